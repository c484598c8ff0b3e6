package follow

import (
	"encoding/binary"
	"slices"

	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
)

// Doubt tells control, with the leader's next poll, that the KV index of the
// replica in that slot keeps being wrong. Every VM may say so; the word is in
// shared data until the leader asks control again, which may be after the poll
// that is open now: up to 25 seconds. Whoever is still in doubt says it again,
// so a word that is lost is no loss.
//
// The value is a list of slots, u16 little-endian, at most state.MaxDoubts.
func (f *Follower) Doubt(slot uint16) {
	_ = shared.Update(f.store, []byte(shared.DoubtKey), func(value []byte) ([]byte, bool) {
		if len(value)%2 != 0 {
			value = nil
		}
		for i := 0; i < len(value); i += 2 {
			if binary.LittleEndian.Uint16(value[i:]) == slot {
				return nil, false
			}
		}
		return binary.LittleEndian.AppendUint16(slices.Clone(value), slot), len(value) < 2*state.MaxDoubts
	})
}

// takeDoubts moves the doubts from shared data to those that go out with each
// poll until one is answered.
func (f *Follower) takeDoubts() {
	taken := f.doubts
	err := shared.Update(f.store, []byte(shared.DoubtKey), func(value []byte) ([]byte, bool) {
		taken = f.doubts
		found := len(value) > 0
		for ; len(value) >= 2 && len(taken) < state.MaxDoubts; value = value[2:] {
			if slot := binary.LittleEndian.Uint16(value); !slices.Contains(taken, slot) {
				taken = append(taken, slot)
			}
		}
		return nil, found
	})
	if err == nil {
		f.doubts = taken
	}
}
