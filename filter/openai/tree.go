package openai

import "math/bits"

// valueKind is a kind of JSON value. Its number enters digests.
type valueKind uint8

const (
	kindNull valueKind = iota + 1
	kindFalse
	kindTrue
	kindNumber
	kindString
	kindArray
	kindObject
)

// maxTracked is how many levels of a value are digested as trees. What lies
// deeper counts in the order in which it stands.
const maxTracked = 32

// tree computes the digest of a value from its tokens: objects as sets of
// members, arrays as lists.
type tree struct {
	depth  int // containers open now; 0 = no value is being digested
	levels [maxTracked]level
}

type level struct {
	sum, key uint64
	object   bool
}

func (t *tree) open(object bool) {
	t.depth++
	if t.depth > maxTracked {
		t.absorb(uint64(containerKind(object)))
		return
	}
	t.levels[t.depth-1] = level{object: object}
}

// close ends the innermost container. If it was the outermost, done is true
// and sum its digest.
func (t *tree) close() (sum uint64, kind valueKind, done bool) {
	t.depth--
	if t.depth >= maxTracked {
		t.absorb(0)
		return 0, 0, false
	}
	l := &t.levels[t.depth]
	kind = containerKind(l.object)
	sum = mix(l.sum + uint64(kind))
	if t.depth == 0 {
		return sum, kind, true
	}
	t.value(sum)
	return 0, 0, false
}

func (t *tree) key(h uint64) {
	if t.depth > maxTracked {
		t.absorb(h)
		return
	}
	t.levels[t.depth-1].key = h
}

// ignoredKey stands for the sum of a key whose member does not count.
const ignoredKey = 1 << 63

// value takes the digest of a value inside of the innermost container.
func (t *tree) value(h uint64) {
	if t.depth > maxTracked {
		t.absorb(h)
		return
	}
	l := &t.levels[t.depth-1]
	switch {
	case !l.object:
		l.sum = mix(l.sum + h)
	case l.key != ignoredKey:
		l.sum += pair(l.key, h)
	}
}

func (t *tree) absorb(h uint64) {
	l := &t.levels[maxTracked-1]
	l.sum = mix(l.sum ^ h)
}

func containerKind(object bool) valueKind {
	if object {
		return kindObject
	}
	return kindArray
}

// scalar is the digest of a string or number with the given hash.
func scalar(k valueKind, h uint64) uint64 { return mix(h + uint64(k)) }

// pair is the digest of an object's member.
func pair(key, value uint64) uint64 { return mix(key ^ bits.RotateLeft64(value, 29)) }

// mix spreads every bit of h over all of the result; zero stays the sign of
// an absent value. (The finaliser of MurmurHash3 with an offset.)
func mix(h uint64) uint64 {
	h += 0x9E3779B97F4A7C15
	h = (h ^ h>>30) * 0xBF58476D1CE4E5B9
	h = (h ^ h>>27) * 0x94D049BB133111EB
	h ^= h >> 31
	if h == 0 {
		return 1
	}
	return h
}
