package shared

import "strconv"

// The catalogue of keys. A WasmPlugin has an empty vm_id, so other plugins
// may share the namespace: every key begins with "wl.". Keys are never
// removed, so each row is bounded by configuration, not by traffic.
//
//	wl.state          the snapshot last fetched from control        1
//	wl.lease          which VM keeps the long poll open             1
//	wl.doubt          replicas whose KV index keeps being wrong     1
//	wl.l.POOL         the pool's ledger                             one a pool
//	wl.l.report:NAME  the ledger of the engine a reporter is for    one an engine
//	wl.r.NAME         what the engine said last                     one an engine
//	wl.rl.NAME        which VM asks the engine                      one an engine
//	wl.t.N            buckets of the text index                     fixed number
//	wl.k              head of the index of KV blocks                1
//	wl.k.N            its buckets                                   fixed number
//	wl.b.N            buckets of borders of prompts                 fixed number
//	wl.q.N            buckets of prompts whose blocks were asked    fixed number
//	wl.conform.NAME   scratch of Conform                            4, tests only
const (
	StateKey      = "wl.state"
	LeaseKey      = "wl.lease"
	DoubtKey      = "wl.doubt"
	BlocksKey     = "wl.k"
	ledgerPrefix  = "wl.l."
	enginePrefix  = "wl.r."
	scrapePrefix  = "wl.rl."
	bucketPrefix  = "wl.t."
	blocksPrefix  = "wl.k."
	bordersPrefix = "wl.b."
	promptsPrefix = "wl.q."
	conformPrefix = "wl.conform."
)

// LedgerKey is the key of a pool's ledger.
func LedgerKey(pool string) []byte {
	return append([]byte(ledgerPrefix), pool...)
}

// EngineKey is the key of what an engine said last, by its cluster's name.
func EngineKey(engine string) []byte { return append([]byte(enginePrefix), engine...) }

// ScrapeKey is the key of the lease on asking an engine.
func ScrapeKey(engine string) []byte { return append([]byte(scrapePrefix), engine...) }

// AppendBucketKey appends the key of bucket n of the text index to dst.
func AppendBucketKey(dst []byte, n uint32) []byte {
	return appendNumbered(dst, bucketPrefix, n)
}

// AppendBlocksKey appends the key of bucket n of the index of KV blocks to dst.
func AppendBlocksKey(dst []byte, n uint32) []byte {
	return appendNumbered(dst, blocksPrefix, n)
}

// AppendBordersKey appends the key of bucket n of the borders to dst.
func AppendBordersKey(dst []byte, n uint32) []byte {
	return appendNumbered(dst, bordersPrefix, n)
}

// AppendPromptsKey appends the key of bucket n of the prompts whose blocks were
// asked for to dst.
func AppendPromptsKey(dst []byte, n uint32) []byte {
	return appendNumbered(dst, promptsPrefix, n)
}

func appendNumbered(dst []byte, prefix string, n uint32) []byte {
	dst = append(dst, prefix...)
	return strconv.AppendUint(dst, uint64(n), 10)
}
