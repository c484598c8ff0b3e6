package route

import "github.com/warmlane/warmlane/filter/state"

// Branch names how a request was placed. It is the word operators see.
type Branch uint8

// The branches. Those of the text tier come first and are decided in this order.
const (
	// NoHealthyWorker: no candidate was left after the filters; Envoy's own
	// balancer decides.
	NoHealthyWorker Branch = iota
	// NoTree: the prompt has no block chain (not one of our dialects,
	// malformed, or without text), so only load counted.
	NoTree
	// LoadBalanceOverride: some candidate's match is longer than the chosen
	// one's by at least a block, and its load made up for that.
	LoadBalanceOverride
	// CacheHit: the chosen replica has a match, and none is longer by a block.
	CacheHit
	// CacheMissMinLoad: the chosen replica matches nothing, nor does any other
	// candidate by a block or more.
	CacheMissMinLoad
	// KVHit and KVMissMinLoad are CacheHit and CacheMissMinLoad where the match
	// rests on what the replicas' engines say they hold.
	KVHit
	KVMissMinLoad
	// The fallbacks are never a choice's branch. They are counted beside one of
	// the text tier, and say why the precise tier did not decide.
	FallbackNoIndex        // no replica's blocks are known
	FallbackUnsupported    // the prompt is of a kind whose tokens cannot be known
	FallbackTokenizeFailed // the tokens are not known and were not told in time
	NumBranches
)

var branchNames = [NumBranches]string{
	"no_healthy_worker", "no_tree", "load_balance_override", "cache_hit", "cache_miss_min_load",
	"kv_hit", "kv_miss_min_load", "fallback_no_index", "fallback_unsupported", "fallback_tokenize_failed",
}

// String returns the word for metrics and logs.
func (b Branch) String() string {
	if int(b) < len(branchNames) {
		return branchNames[b]
	}
	return "unknown"
}

// Rung names the knowledge a choice rests on.
type Rung uint8

// From no knowledge to most.
const (
	RungEnvoy Rung = iota // no choice: Envoy's own balancer
	RungRing              // no match, equal costs: the hash all proxies share
	RungLoad              // no match, but loads differ
	RungMatch             // some candidate matches
)

var rungNames = [...]string{"envoy", "ring", "load", "match"}

// String returns the word for metrics and logs.
func (r Rung) String() string {
	if int(r) < len(rungNames) {
		return rungNames[r]
	}
	return "unknown"
}

// Query is one request, as far as its placement goes.
type Query struct {
	// Model is the name the replica will see; empty means any.
	Model []byte
	// Prompt is the prompt's length in tokens.
	Prompt uint32
	// Matched is, by slot, how many of the prompt's tokens are resident there;
	// slots beyond its length match nothing. It is only read during Choose.
	Matched []uint32
	// Tree says that the prompt has a block chain, so that no match is a fact
	// and not ignorance.
	Tree bool
	// Precise says that Matched rests on what the engines say they hold.
	Precise bool
	// Ring is a hash of the prompt's beginning, the same in every proxy.
	// 0 = none: equal costs go by dice.
	Ring uint64
	// Stream says that the answer's first token will be seen apart.
	Stream bool
	// Exclude drops replicas that have been tried.
	Exclude Slots
}

// Slots is a set of slots.
type Slots [MaxSlots / 64]uint64

// Add puts slot into the set.
func (s *Slots) Add(slot int) {
	if slot >= 0 && slot < MaxSlots {
		s[slot/64] |= 1 << (slot % 64)
	}
}

// Has says whether slot is in the set.
func (s *Slots) Has(slot int) bool {
	return slot >= 0 && slot < MaxSlots && s[slot/64]&(1<<(slot%64)) != 0
}

// MaxOrder is how many replicas a choice names.
const MaxOrder = 3

// Choice is where a request goes and why.
type Choice struct {
	// Order are the slots to try, best first; N of them are set. N is 0 when
	// the choice is left to Envoy.
	Order [MaxOrder]uint16
	N     int

	Branch Branch
	Rung   Rung

	// Of the chosen replica, in tokens. Prompt is set without one, too.
	Prompt, Matched, Uncached uint32
	// Longest is the longest match of any candidate.
	Longest uint32

	Candidates int
	Dropped    [NumFilters]uint16 // by [Filter]
	Relented   bool               // soft filters had dropped everyone and were lifted

	Terms  Terms
	Scores Scores
	// Load is what was last heard of the chosen replica; At tells how old it
	// is. RunnerUp is by how many seconds the next one was worse; 0 if none.
	Load     state.Load
	RunnerUp float32

	// Generation is the state the ledger's keys belong to. When it is not the
	// one last adopted, newer state is to be had.
	Generation uint32
}

// Terms are the parts of a cost in seconds.
type Terms struct {
	Owed    float32 // what the replica has to prefill for our other requests
	Prefill float32 // this request's own uncached tokens, (1 + a) times
	Busy    float32 // requests in flight
	Foreign float32 // what it does for others
}

// Cost is the sum.
func (t Terms) Cost() float32 { return t.Owed + t.Prefill + t.Busy + t.Foreign }

// Scores are the chosen replica's terms for people, each from 0 to 1 where 1
// is best: the share of the prompt that is resident, and 1/(1+seconds) for the
// others.
type Scores struct {
	Prefix, Owed, Busy, Foreign float32
}

func (t Terms) scores(matched, prompt uint32) Scores {
	s := Scores{Owed: 1 / (1 + t.Owed), Busy: 1 / (1 + t.Busy), Foreign: 1 / (1 + t.Foreign)}
	if prompt > 0 {
		s.Prefix = float32(matched) / float32(prompt)
	}
	return s
}
