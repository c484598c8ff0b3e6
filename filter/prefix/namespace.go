package prefix

// Namespace separates prompts that do not share a cache although their bytes
// are equal: other models and adapters, other salts, other tools.
type Namespace uint64

// NamespaceOf begins a namespace with a name, that of the model or adapter.
func NamespaceOf(name []byte) Namespace {
	return Namespace(hashBytes(name, prime3))
}

// With adds a part. The order of parts counts, and an absent part (0) counts
// like any other, so a namespace is always built from the same row of parts.
func (n Namespace) With(part uint64) Namespace {
	return Namespace(avalanche(round(uint64(n), part)))
}

// mix brings a hash of the chain into the namespace. It is one to one.
func (n Namespace) mix(h uint64) uint64 {
	return avalanche(h ^ uint64(n))
}
