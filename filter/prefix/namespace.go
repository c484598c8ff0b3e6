package prefix

import "github.com/warmlane/warmlane/filter/xxh64"

// Namespace separates prompts that do not share a cache although their bytes
// are equal: other models and adapters, other salts, other tools.
type Namespace uint64

// NamespaceOf begins a namespace with a name, that of the model or adapter.
func NamespaceOf(name []byte) Namespace {
	return Namespace(xxh64.Sum(name, xxh64.Prime3))
}

// With adds a part. The order of parts counts, and an absent part (0) counts
// like any other, so a namespace is always built from the same row of parts.
func (n Namespace) With(part uint64) Namespace {
	return Namespace(xxh64.Avalanche(xxh64.Round(uint64(n), part)))
}

// mix brings a hash of the chain into the namespace. It is one to one.
func (n Namespace) mix(h uint64) uint64 {
	return xxh64.Avalanche(h ^ uint64(n))
}
