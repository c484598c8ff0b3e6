package kvindex

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/warmlane/warmlane/filter/shared"
)

func note(t testing.TB, l *Learned, b uint64, v Border) {
	t.Helper()
	if err := l.Note(b, v); err != nil {
		t.Fatal(err)
	}
}

func checkBorder(t testing.TB, l *Learned, b uint64, want Border, known bool) {
	t.Helper()
	if got, ok := l.Border(b); got != want || ok != known {
		t.Errorf("border %d: %+v, %v, want %+v, %v", b, got, ok, want, known)
	}
}

func TestBorders(t *testing.T) {
	mem := shared.NewMem()
	a, b := NewLearned(mem.View(), Options{}), NewLearned(mem.View(), Options{})
	checkBorder(t, a, 5, Border{}, false)
	v := Border{Text: 1 << 60, At: 100, Of: 2000, Tokens: 500}
	note(t, a, 5, v)
	checkBorder(t, a, 5, v, true)
	checkBorder(t, b, 5, v, true)
	checkBorder(t, b, 5+4096, Border{}, false)
	other := Border{Text: 2, At: 100, Of: 3000}
	note(t, b, 5, other) // a's image is out of date now
	note(t, b, 5+4096, v)
	note(t, a, 5+2*4096, v)
	checkBorder(t, a, 5, other, true)
	checkBorder(t, a, 5+4096, v, true)
	checkBorder(t, a, 5+2*4096, v, true)
	if c := a.Stats().Conflicts; c != 1 {
		t.Errorf("%d conflicts, want that of the old image", c)
	}
}

// The oldest borders go, and what is noted again counts as new.
func TestBordersAreBounded(t *testing.T) {
	mem := shared.NewMem()
	l := NewLearned(mem.View(), Options{Borders: 1, BorderBytes: bordersHead + 4*borderBytes + 5})
	for b := range uint64(4) {
		note(t, l, b, Border{Text: b})
	}
	note(t, l, 0, Border{Text: 0})
	note(t, l, 5, Border{Text: 5})
	note(t, l, 2, Border{Text: 22})
	note(t, l, 6, Border{Text: 6})
	for b, want := range map[uint64]uint64{0: 0, 5: 5, 2: 22, 6: 6} {
		checkBorder(t, l, b, Border{Text: want}, true)
	}
	checkBorder(t, l, 1, Border{}, false)
	checkBorder(t, l, 3, Border{}, false)
	value, _, err := mem.View().Get(shared.AppendBordersKey(nil, 0))
	if err != nil || len(value) != bordersHead+4*borderBytes {
		t.Errorf("%d bytes, %v", len(value), err)
	}
}

func TestBordersCostLittle(t *testing.T) {
	mem := shared.NewMem()
	l := NewLearned(mem.View(), Options{})
	v := Border{Text: 7, At: 1, Of: 2, Tokens: 3}
	f := func(what string, gets, sets int, do func()) {
		t.Helper()
		g, s := mem.Gets, mem.Sets
		do()
		if g, s = mem.Gets-g, mem.Sets-s; g != gets || s != sets {
			t.Errorf("%s: %d reads and %d writes, want %d and %d", what, g, s, gets, sets)
		}
	}
	f("look-up", 1, 0, func() { checkBorder(t, l, 5, Border{}, false) })
	f("note after it", 0, 1, func() { note(t, l, 5, v) })
	f("note without", 1, 1, func() { note(t, l, 6, v) })
	f("look-up of what is known", 1, 0, func() { checkBorder(t, l, 5, v, true) })
	f("note of what is known", 0, 0, func() { note(t, l, 5, v) })
}

// The index of borders against a list of all that was noted.
func TestBordersAgreeWithModel(t *testing.T) {
	const room = 6
	mem, o := shared.NewMem(), Options{Borders: 2, BorderBytes: bordersHead + room*borderBytes}
	workers := []*Learned{NewLearned(mem.View(), o), NewLearned(mem.View(), o), NewLearned(mem.View(), o)}
	r := rand.New(rand.NewPCG(1, 1))
	last := make(map[uint64]Border)
	for range 5000 {
		w := workers[r.IntN(len(workers))]
		b := uint64(r.IntN(16))
		if r.IntN(2) == 0 {
			v := Border{Text: r.Uint64N(3), At: uint32(r.IntN(2))}
			w.Border(b)
			note(t, w, b, v)
			last[b] = v
			checkBorder(t, workers[r.IntN(len(workers))], b, v, true)
		} else if got, ok := w.Border(b); ok && got != last[b] {
			t.Fatalf("border %d: %+v, want %+v", b, got, last[b])
		}
	}
	known := 0
	for b := range uint64(16) {
		if _, ok := workers[0].Border(b); ok {
			known++
		}
	}
	if known != 2*room {
		t.Errorf("%d borders known, want %d", known, 2*room)
	}
}

func TestPrompts(t *testing.T) {
	mem := shared.NewMem()
	a, b := NewLearned(mem.View(), Options{}), NewLearned(mem.View(), Options{})
	f := func(l *Learned, id uint64, want []uint64, size, tokens uint32, known bool) {
		t.Helper()
		got, gotSize, gotTokens, ok := l.Keys(id, []uint64{42})
		if !slices.Equal(got[1:], want) || got[0] != 42 || gotSize != size || gotTokens != tokens || ok != known {
			t.Errorf("prompt %d: %x, %d, %d, %v", id, got, gotSize, gotTokens, ok)
		}
	}
	remember := func(l *Learned, id uint64, size, tokens uint32, keys []uint64) {
		t.Helper()
		if err := l.Remember(id, size, tokens, keys); err != nil {
			t.Fatal(err)
		}
	}
	f(a, 5, nil, 0, 0, false)
	remember(a, 5, 16, 40, []uint64{1 << 63, 7})
	remember(b, 5+1024, 32, 10, nil)
	f(a, 5, []uint64{1 << 63, 7}, 16, 40, true)
	f(b, 5, []uint64{1 << 63, 7}, 16, 40, true)
	f(a, 5+1024, nil, 32, 10, true)
	f(a, 5+2048, nil, 0, 0, false)
	remember(b, 5, 16, 50, []uint64{8, 9, 10})
	f(a, 5, []uint64{8, 9, 10}, 16, 50, true)
	f(a, 5+1024, nil, 32, 10, true)

	long := make([]uint64, 5000)
	for i := range long {
		long[i] = uint64(i)
	}
	remember(a, 6, 16, 80_000, long)
	fits := (16<<10 - promptsHead - promptHead) / 8
	f(b, 6, long[:fits], 16, 80_000, true)
	if fits < 2000 {
		t.Errorf("only %d blocks of a prompt can be remembered", fits)
	}
}

func TestPromptsAreBounded(t *testing.T) {
	mem := shared.NewMem()
	l := NewLearned(mem.View(), Options{Prompts: 1, PromptBytes: 256})
	known := func(want ...uint64) {
		t.Helper()
		var got []uint64
		for id := range uint64(10) {
			if _, _, _, ok := l.Keys(id, nil); ok {
				got = append(got, id)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("prompts %d are known, want %d", got, want)
		}
	}
	keys := make([]uint64, 5) // 58 bytes each
	for id := range uint64(6) {
		if err := l.Remember(id, 16, 80, keys); err != nil {
			t.Fatal(err)
		}
	}
	known(2, 3, 4, 5)
	if err := l.Remember(2, 16, 80, keys); err != nil {
		t.Fatal(err)
	}
	if err := l.Remember(6, 16, 80, keys); err != nil {
		t.Fatal(err)
	}
	known(2, 4, 5, 6)
	if err := l.Remember(7, 16, 800, make([]uint64, 50)); err != nil {
		t.Fatal(err)
	}
	known(7)
}

// What one worker learns, no other takes away by being at work too.
func TestWorkersLearnTogether(t *testing.T) {
	const workers, each = 4, 20
	mem, o := shared.NewMem(), Options{Borders: 1, BorderBytes: 8 << 10, Prompts: 1}
	var wg sync.WaitGroup
	for worker := range uint64(workers) {
		wg.Go(func() {
			l := NewLearned(mem.View(), o)
			for i := range uint64(each) {
				id := worker*each + i
				for err := shared.ErrCAS; errors.Is(err, shared.ErrCAS); {
					err = l.Note(id, Border{Text: id})
				}
				for err := shared.ErrCAS; errors.Is(err, shared.ErrCAS); {
					err = l.Remember(id, 16, 16, []uint64{id})
				}
			}
		})
	}
	wg.Wait()
	l := NewLearned(mem.View(), o)
	for id := range uint64(workers * each) {
		checkBorder(t, l, id, Border{Text: id}, true)
		if keys, _, _, ok := l.Keys(id, nil); !ok || !slices.Equal(keys, []uint64{id}) {
			t.Errorf("prompt %d: %d, %v", id, keys, ok)
		}
	}
}

func TestLearnedErrors(t *testing.T) {
	mem := shared.NewMem()
	s := &faulty{Store: mem.View()}
	l := NewLearned(s, Options{})
	f := func(what string, want error) {
		t.Helper()
		if err := l.Note(5, Border{Text: 1}); !errors.Is(err, want) {
			t.Errorf("%s: note gives %v", what, err)
		}
		if err := l.Remember(5, 16, 1, nil); !errors.Is(err, want) {
			t.Errorf("%s: remember gives %v", what, err)
		}
	}
	s.get = errBroken
	f("broken read", errBroken)
	checkBorder(t, l, 5, Border{}, false)
	if _, _, _, ok := l.Keys(5, nil); ok {
		t.Error("keys without a store")
	}
	s.get, s.set = nil, errBroken
	f("broken write", errBroken)
	s.set = shared.ErrCAS
	f("lost races", shared.ErrCAS)
	s.set = nil
	f("no error", nil)
	checkBorder(t, l, 5, Border{Text: 1}, true)
}

func TestLearnedDamage(t *testing.T) {
	mem := shared.NewMem()
	l := NewLearned(mem.View(), Options{})
	for i, value := range []string{"", "xyz", "WLB\x01", "WLB\x02odd", "WLQ\x02"} {
		mem.View().Set(shared.AppendBordersKey(nil, 5), []byte(value), 0)
		mem.View().Set(shared.AppendPromptsKey(nil, 5), []byte(value), 0)
		checkBorder(t, l, 5, Border{}, false)
		note(t, l, 5, Border{Text: 1})
		checkBorder(t, l, 5, Border{Text: 1}, true)
		if err := l.Remember(5, 16, 1, []uint64{3}); err != nil {
			t.Fatal(err)
		}
		if keys, _, _, ok := l.Keys(5, nil); !ok || !slices.Equal(keys, []uint64{3}) {
			t.Errorf("%q: keys %v, %v", value, keys, ok)
		}
		if got := l.Stats().Damaged; got != uint64(2*i+2) {
			t.Errorf("%q: %d damaged, want %d", value, got, 2*i+2)
		}
	}
}

func TestLearnedMakesNoGarbage(t *testing.T) {
	l := NewLearned(shared.NewMem().View(), Options{})
	keys := make([]uint64, 500)
	var dst []uint64
	i := uint64(0)
	all := func() {
		i++
		l.Border(i % 3)
		if l.Note(i%3, Border{Text: i}) != nil || l.Remember(i%3, 16, 8000, keys) != nil {
			t.Error("failed")
		}
		dst, _, _, _ = l.Keys(i%3, dst[:0])
	}
	for range 3 {
		all()
	}
	if n := testing.AllocsPerRun(100, all); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzLearned holds that no bytes in the place of what was learned do harm, and
// that what is learned over them is known.
func FuzzLearned(f *testing.F) {
	seed := NewLearned(shared.NewMem().View(), Options{})
	if err := seed.Note(5, Border{Text: 1, At: 2, Of: 3, Tokens: 4}); err != nil {
		f.Fatal(err)
	}
	f.Add(slices.Clone(seed.images[5].buf), uint64(5))
	f.Add(appendPrompt([]byte("WLQ\x01"), 5, 16, 100, []uint64{1, 2, 3}), uint64(5))
	f.Add(appendPrompt(appendPrompt([]byte("WLQ\x01"), 9, 16, 100, []uint64{1}), 5, 16, 7, nil), uint64(7))
	f.Fuzz(func(t *testing.T, value []byte, id uint64) {
		mem, o := shared.NewMem(), Options{Borders: 1, Prompts: 1}
		l := NewLearned(mem.View(), o)
		mem.View().Set(shared.AppendBordersKey(nil, 0), value, 0)
		mem.View().Set(shared.AppendPromptsKey(nil, 0), value, 0)
		l.Border(id)
		if keys, _, _, _ := l.Keys(id, nil); 8*len(keys) > len(value) {
			t.Errorf("%d keys in %d bytes", len(keys), len(value))
		}
		v := Border{Text: id, At: 1, Of: 2, Tokens: 3}
		note(t, l, id, v)
		checkBorder(t, l, id, v, true)
		want := []uint64{id, 1}
		if err := l.Remember(id, 16, 33, want); err != nil {
			t.Fatal(err)
		}
		if keys, size, tokens, ok := l.Keys(id, nil); !ok || size != 16 || tokens != 33 || !slices.Equal(keys, want) {
			t.Errorf("keys %x, %d, %d, %v", keys, size, tokens, ok)
		}
		for _, key := range [][]byte{shared.AppendBordersKey(nil, 0), shared.AppendPromptsKey(nil, 0)} {
			if value, _, err := mem.View().Get(key); err != nil || len(value) > 16<<10 {
				t.Errorf("%s: %d bytes, %v", key, len(value), err)
			}
		}
	})
}
