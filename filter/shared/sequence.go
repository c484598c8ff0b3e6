package shared

import (
	"encoding/binary"
	"errors"
)

// SequenceSize is the length of what a published value begins with: a sequence
// number, u32 little-endian, that grows by one with each publication in this
// proxy, whoever makes it. It may wrap: compare with int32(a-b) > 0. It is
// never 0.
const SequenceSize = 4

// Publish stores framed under key and returns the sequence number it put into
// the first SequenceSize bytes of framed, which the caller leaves free for it.
func Publish(s Store, key, framed []byte) (sequence uint32, err error) {
	err = Update(s, key, func(old []byte) ([]byte, bool) {
		last, _, _ := Published(old)
		if sequence = last + 1; sequence == 0 {
			sequence = 1
		}
		binary.LittleEndian.PutUint32(framed, sequence)
		return framed, true
	})
	return sequence, err
}

// Published takes a published value apart; ok is false if stored is none.
func Published(stored []byte) (sequence uint32, value []byte, ok bool) {
	if len(stored) < SequenceSize {
		return 0, nil, false
	}
	return binary.LittleEndian.Uint32(stored), stored[SequenceSize:], true
}

// LoadPublished reads what was last published under key. ErrNotFound means
// that nothing was. The value is valid until the next call on s.
func LoadPublished(s Store, key []byte) (sequence uint32, value []byte, err error) {
	stored, _, err := s.Get(key)
	if err != nil {
		return 0, nil, err
	}
	sequence, value, ok := Published(stored)
	if !ok {
		return 0, nil, errors.New("shared data: " + string(key) + ": not a published value")
	}
	return sequence, value, nil
}
