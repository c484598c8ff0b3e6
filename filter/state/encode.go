package state

import "encoding/binary"

// Field numbers, never used again for anything else. Numbers 9
// (quotas) and 10 (configuration) of a page are kept for what is to come.
const (
	pagePool    = 1 // record: sets the pool that the replicas after it belong to
	pageReplica = 2 // record
	pageDropped = 3 // name of a pool that is gone
	pageRecord  = 8 // record of the KV index of that pool

	poolName    = 1 // always, first
	poolModels  = 2 // list of names
	poolRemoved = 3 // slots of replicas that are gone: varints, ascending

	replicaSlot        = 1 // always, first
	replicaIncarnation = 2
	replicaAddress     = 3 // always in a new replica
	replicaHealth      = 4
	replicaModels      = 5 // list of names
	replicaAdapters    = 6 // list of adapter records
	replicaLoad        = 7 // record, replaces all of the load
	replicaBlockSize   = 8
	replicaCacheTokens = 9
	replicaRate        = 10
	replicaKV          = 11
	replicaTags        = 12

	recordID      = 1 // always, first
	recordPayload = 2 // left out = there is no such record any more

	adapterName  = 1
	adapterState = 2

	loadAt      = 1
	loadWaiting = 2
	loadRunning = 3
	loadKV      = 4
	loadHit     = 5
	loadRPS     = 6
	loadTPS     = 7
)

// nothing stands for "did not exist before": each field that is known differs
// from it, which makes a whole record the delta from nothing.
var nothing = Replica{Load: NoLoad()}

// appendReplica appends those fields of r that differ from old.
func appendReplica(dst []byte, old, r *Replica) []byte {
	dst, start := openRecord(dst, pageReplica)
	dst = appendVarint(dst, replicaSlot, uint64(r.Slot))
	if r.Incarnation != old.Incarnation {
		dst = appendVarint(dst, replicaIncarnation, uint64(r.Incarnation))
	}
	if r.Address != old.Address {
		dst = appendString(dst, replicaAddress, r.Address)
	}
	if r.Health != old.Health {
		dst = appendVarint(dst, replicaHealth, uint64(r.Health))
	}
	dst = appendServed(dst, old, r)
	if !EqualLoad(&r.Load, &old.Load) {
		dst = appendLoad(dst, &r.Load)
	}
	dst = appendSizes(dst, old, r)
	dst = appendIndexed(dst, old, r)
	return closeRecord(dst, start)
}

func appendServed(dst []byte, old, r *Replica) []byte {
	if !equalNames(r.Models, old.Models) {
		dst = appendNames(dst, replicaModels, r.Models)
	}
	if !equalAdapters(r.Adapters, old.Adapters) {
		dst = appendAdapters(dst, r.Adapters)
	}
	return dst
}

func appendSizes(dst []byte, old, r *Replica) []byte {
	if r.BlockSize != old.BlockSize {
		dst = appendVarint(dst, replicaBlockSize, uint64(r.BlockSize))
	}
	if r.CacheTokens != old.CacheTokens {
		dst = appendVarint(dst, replicaCacheTokens, uint64(r.CacheTokens))
	}
	if !sameFloat(r.Rate, old.Rate) {
		dst = appendFloat(dst, replicaRate, r.Rate)
	}
	return dst
}

func appendIndexed(dst []byte, old, r *Replica) []byte {
	if r.KV != old.KV {
		dst = appendVarint(dst, replicaKV, uint64(r.KV))
	}
	if r.Tags != old.Tags {
		dst = appendBool(dst, replicaTags, r.Tags)
	}
	return dst
}

// appendLoad leaves out what is not known.
func appendLoad(dst []byte, l *Load) []byte {
	dst, start := openRecord(dst, replicaLoad)
	if l.At > 0 {
		dst = appendVarint(dst, loadAt, uint64(l.At))
	}
	if l.Waiting >= 0 {
		dst = appendVarint(dst, loadWaiting, uint64(l.Waiting))
	}
	if l.Running >= 0 {
		dst = appendVarint(dst, loadRunning, uint64(l.Running))
	}
	dst = appendKnown(dst, loadKV, l.KV)
	dst = appendKnown(dst, loadHit, l.Hit)
	dst = appendKnown(dst, loadRPS, l.RPS)
	dst = appendKnown(dst, loadTPS, l.TPS)
	return closeRecord(dst, start)
}

func appendKnown(dst []byte, num uint64, f float32) []byte {
	if f != f {
		return dst
	}
	return appendFloat(dst, num, f)
}

// appendNames writes a list: the number of items plus one, then the items. 0
// is the list that is not known, so that a delta can say all three: unchanged
// (no field), not known (0) and empty (1).
func appendNames(dst []byte, num uint64, names []string) []byte {
	dst, start := openRecord(dst, num)
	dst = appendCount(dst, len(names), names == nil)
	for _, name := range names {
		dst = appendRaw(dst, name)
	}
	return closeRecord(dst, start)
}

func appendAdapters(dst []byte, adapters []Adapter) []byte {
	dst, start := openRecord(dst, replicaAdapters)
	dst = appendCount(dst, len(adapters), adapters == nil)
	for i := range adapters {
		dst = appendAdapter(dst, &adapters[i])
	}
	return closeRecord(dst, start)
}

func appendAdapter(dst []byte, a *Adapter) []byte {
	dst, start := openLength(dst)
	dst = appendString(dst, adapterName, a.Name)
	dst = appendVarint(dst, adapterState, uint64(a.State))
	return closeRecord(dst, start)
}

func appendCount(dst []byte, n int, unknown bool) []byte {
	if unknown {
		return append(dst, 0)
	}
	return binary.AppendUvarint(dst, uint64(n)+1)
}
