package state

// insert makes room at index at. The new element is one from behind the
// length, with whatever memory it had.
func insert[T any](s []T, at int) []T {
	n := len(s)
	if n == cap(s) {
		var zero T
		s = append(s, zero)
	} else {
		s = s[:n+1]
	}
	spare := s[n]
	copy(s[at+1:], s[at:n])
	s[at] = spare
	return s
}

// cut takes the element at index at out and keeps it behind the length, where
// its memory waits to be used again.
func cut[T any](s []T, at int) []T {
	n := len(s) - 1
	gone := s[at]
	copy(s[at:], s[at+1:])
	s[n] = gone
	return s[:n]
}

// resize returns n elements, those there were with what they held. The result
// is never nil.
func resize[T any](s []T, n int) []T {
	if s == nil || n > cap(s) {
		grown := make([]T, n)
		copy(grown, s[:cap(s)])
		return grown
	}
	return s[:n]
}
