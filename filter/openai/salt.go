package openai

// SaltHash is what [Request].Salt is for a body with this cache_salt, so that
// blocks which an engine stored under a salt are found for the same salt.
func SaltHash(salt string) uint64 {
	canonical := make([]byte, 0, len(salt)+len(salt)/8)
	for i := range len(salt) {
		c := salt[i]
		if c < 0x80 && letter[c] != 0 {
			canonical = append(canonical, '\\')
			c = letter[c]
		}
		canonical = append(canonical, c)
	}
	return scalar(kindString, sumOf(canonical))
}
