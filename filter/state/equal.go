package state

import "slices"

// Equal reports whether a and b say the same. Unknown equals unknown; nil and
// empty lists differ, as they mean different things.
func Equal(a, b *Snapshot) bool {
	return a.Epoch == b.Epoch && a.Generation == b.Generation &&
		slices.EqualFunc(a.Pools, b.Pools, func(p, q Pool) bool { return EqualPool(&p, &q) })
}

// EqualPool reports whether two pools say the same.
func EqualPool(a, b *Pool) bool {
	if a.Name != b.Name || !equalNames(a.Models, b.Models) || len(a.Replicas) != len(b.Replicas) {
		return false
	}
	for i := range a.Replicas {
		if !EqualReplica(&a.Replicas[i], &b.Replicas[i]) {
			return false
		}
	}
	return true
}

// EqualReplica reports whether two replicas say the same, their load and its
// time included.
func EqualReplica(a, b *Replica) bool {
	return a.Slot == b.Slot && a.Incarnation == b.Incarnation && a.Address == b.Address &&
		a.Health == b.Health && a.BlockSize == b.BlockSize && a.CacheTokens == b.CacheTokens &&
		a.KV == b.KV && a.Tags == b.Tags && sameFloat(a.Rate, b.Rate) && EqualLoad(&a.Load, &b.Load) &&
		equalNames(a.Models, b.Models) && equalAdapters(a.Adapters, b.Adapters)
}

// EqualLoad reports whether two loads say the same, their time included.
func EqualLoad(a, b *Load) bool {
	return a.At == b.At && a.Waiting == b.Waiting && a.Running == b.Running &&
		sameFloat(a.KV, b.KV) && sameFloat(a.Hit, b.Hit) &&
		sameFloat(a.RPS, b.RPS) && sameFloat(a.TPS, b.TPS)
}

func equalNames(a, b []string) bool {
	return (a == nil) == (b == nil) && slices.Equal(a, b)
}

func equalAdapters(a, b []Adapter) bool {
	return (a == nil) == (b == nil) && slices.Equal(a, b)
}

// sameFloat is equality under which unknown (NaN) equals unknown.
func sameFloat(a, b float32) bool {
	return a == b || (a != a && b != b)
}
