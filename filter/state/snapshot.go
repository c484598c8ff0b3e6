package state

import "math"

// Caps of the format. A decoder refuses what is above them before it
// allocates; whoever builds a Snapshot keeps to them.
const (
	MaxPage     = 1 << 20  // bytes of one page
	MaxSnapshot = 16 << 20 // bytes of all pages of one snapshot or delta, KV records aside
	MaxRecords  = 64 << 20 // bytes of all KV records of one answer
	MaxPayload  = 8 << 10  // bytes of a KV record's payload
	MaxName     = 1024     // bytes of an address, or the name of a pool, model or adapter
	MaxPools    = 256
	MaxReplicas = 4096 // in one pool
	MaxModels   = 256  // of one pool or replica
	MaxAdapters = 512  // of one replica
)

// Snapshot is the whole of what one control instance knows at one moment.
// Epoch names the instance; Generation counts its changes from 1. Pools are
// sorted by name, each name occurs once.
type Snapshot struct {
	Epoch      uint64
	Generation uint64
	Pools      []Pool
}

// Pool is a set of replicas that serve the same models. Replicas are sorted
// by slot. Models nil means that they are not known yet, empty that there are
// none.
type Pool struct {
	Name     string
	Models   []string
	Replicas []Replica
}

// Replica is one engine. Slot is its place in every table that is indexed by
// replica; it stays for as long as the replica does and may be used again
// after. No two replicas of a snapshot share a slot, whatever their pools.
//
// Incarnation changes whenever what the replica had cached is gone: another
// pod at the address, or a restarted engine. It is made from the engine's own
// start time, so that every control instance gives the same. 0 means that it
// is not known yet and says nothing about the cache.
//
// Models and Adapters nil mean not known yet, empty that there are none.
type Replica struct {
	Slot        uint16
	Incarnation uint32
	Address     string // "10.0.0.7:8000", "[::1]:8000": as Envoy prints it
	Health      Health
	Models      []string
	Adapters    []Adapter
	Load        Load
	BlockSize   uint32  // tokens; 0 = unknown
	CacheTokens uint32  // tokens the KV cache holds; 0 = unknown
	Rate        float32 // uncached prompt tokens per second; 0 = unknown
	KV          KVState // of the KV index of this replica
	Tags        bool    // its KV events carry the session tags that the filter sends
}

// Health is what control thinks of a replica.
type Health uint8

// Unknown is the zero value: nothing was heard yet. A state that this version
// does not know reads as Unknown.
const (
	Unknown Health = iota
	Healthy
	Unhealthy
	Draining
)

// String returns the state as /v1/pools spells it.
func (h Health) String() string {
	switch h {
	case Healthy:
		return "healthy"
	case Unhealthy:
		return "unhealthy"
	case Draining:
		return "draining"
	default:
		return "unknown"
	}
}

// KVState is how far the KV index knows what a replica has cached.
type KVState uint8

// The zero value says that the replica tells nothing, or that it is not known
// whether it does. A state that this version does not know reads as KVNone.
const (
	KVNone     KVState = iota
	KVPartial          // some blocks that the replica holds may be missing
	KVComplete         // all are there
)

// Adapter is a LoRA adapter and how far it is.
type Adapter struct {
	Name  string
	State AdapterState
}

// AdapterState says whether an adapter can serve.
type AdapterState uint8

// An adapter that is Loading may be joined; one that is Failed may not.
const (
	AdapterUnknown AdapterState = iota
	AdapterLoaded
	AdapterLoading
	AdapterFailed
)

// String returns the state as /v1/pools spells it.
func (a AdapterState) String() string {
	switch a {
	case AdapterLoaded:
		return "loaded"
	case AdapterLoading:
		return "loading"
	case AdapterFailed:
		return "failed"
	default:
		return "unknown"
	}
}

// Load is a replica's load as of At. Absent is not zero: a count that is not
// known is -1, a ratio or rate that is not known is NaN. Start from [NoLoad].
type Load struct {
	At      int64   // milliseconds since the Unix epoch; 0 = never
	Waiting int32   // requests
	Running int32   // requests
	KV      float32 // share of the KV cache in use, 0 to 1
	Hit     float32 // prefix cache hit ratio, 0 to 1
	RPS     float32 // finished requests per second
	TPS     float32 // generated tokens per second
}

// unknownRatio is the one NaN the decoder hands out.
var unknownRatio = float32(math.NaN())

// NoLoad returns the load of a replica of which nothing is known.
func NoLoad() Load {
	return Load{
		Waiting: -1, Running: -1,
		KV: unknownRatio, Hit: unknownRatio, RPS: unknownRatio, TPS: unknownRatio,
	}
}
