package shared

import "strconv"

// The catalogue of keys. A WasmPlugin has an empty vm_id, so other plugins
// may share the namespace: every key begins with "wl.". Keys are never
// removed, so each row is bounded by configuration, not by traffic.
//
//	wl.state          the snapshot last fetched from control        1
//	wl.lease          which VM keeps the long poll open             1
//	wl.l.POOL         the pool's ledger                             one a pool
//	wl.t.N            buckets of the text index                     fixed number
//	wl.conform.NAME   scratch of Conform                            4, tests only
const (
	StateKey      = "wl.state"
	LeaseKey      = "wl.lease"
	ledgerPrefix  = "wl.l."
	bucketPrefix  = "wl.t."
	conformPrefix = "wl.conform."
)

// LedgerKey is the key of a pool's ledger.
func LedgerKey(pool string) []byte {
	return append([]byte(ledgerPrefix), pool...)
}

// AppendBucketKey appends the key of bucket n of the text index to dst.
func AppendBucketKey(dst []byte, n uint32) []byte {
	dst = append(dst, bucketPrefix...)
	return strconv.AppendUint(dst, uint64(n), 10)
}
