package blocks

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/warmlane/warmlane/control/collect/kvevents"
	"github.com/warmlane/warmlane/examples/replica/engine"
	wire "github.com/warmlane/warmlane/examples/replica/kvevents"
)

// TestSimulatedEngine lets random traffic run in the example engine and compares
// what its events tell with what it lists. Copies abound: the cache is small and
// steps are short. Nothing that is gone may be believed to be there; with
// reports in the traffic, few blocks in a thousand may be missed.
func TestSimulatedEngine(t *testing.T) {
	for _, single := range []bool{false, true} {
		for _, reports := range []bool{false, true} {
			t.Run(fmt.Sprintf("single copy %v, reports %v", single, reports), func(t *testing.T) {
				for seed := range uint64(3) {
					s := simulation{b: newBench(t), dice: rand.New(rand.NewPCG(seed, 2)), reports: reports}
					s.e = engine.New(engine.Config{Blocks: 60, MaxSeqs: 6, BatchTokens: 64, SingleCopy: single, OnBatch: s.take})
					for range 2000 {
						s.step()
					}
					s.judge()
				}
			})
		}
	}
}

type simulation struct {
	b       *bench
	e       *engine.Engine
	dice    *rand.Rand
	reports bool
	batch   kvevents.Batch
	now     time.Duration
	last    *engine.Request

	compared, missed, wrong int
}

func (s *simulation) take(at time.Duration, events []engine.Event) {
	if err := kvevents.Decode(wire.Shape{}.AppendBatch(nil, at.Seconds(), events), &s.batch); err != nil {
		s.b.t.Fatal(err)
	}
	s.b.Fold(At{3, 0}, &s.batch)
}

func (s *simulation) step() {
	s.now += time.Duration(s.dice.IntN(int(20 * time.Millisecond)))
	if s.last != nil && s.dice.IntN(4) == 0 {
		s.e.Abort(s.now, s.last)
	}
	s.last = s.e.NewRequest(engine.Spec{
		Prompt:     append(randomTokens(s.dice.IntN(3), 16*s.dice.IntN(6)), randomTokens(100+s.dice.IntN(8), 1+s.dice.IntN(60))...),
		MaxTokens:  1 + s.dice.IntN(40),
		ReportFull: s.reports && s.dice.IntN(3) == 0,
	})
	if err := s.e.Submit(s.now, s.last); err != nil {
		s.b.t.Fatal(err)
	}
	s.e.Advance(s.now)
	if s.dice.IntN(100) == 0 {
		for at, busy := s.e.Next(); busy; at, busy = s.e.Next() {
			s.now = max(s.now, at)
			s.e.Advance(s.now)
		}
		s.e.Reset(s.now)
	}
	if s.e.Unsent() == 0 {
		s.compare()
	}
}

func (s *simulation) compare() {
	s.b.pull()
	known := s.b.Hashes(3)
	for _, blk := range s.e.Blocks() {
		s.compared++
		if _, ok := known[blk.Hash.Uint64()]; !ok {
			s.missed++
		}
		delete(known, blk.Hash.Uint64())
	}
	s.wrong += len(known)
}

func (s *simulation) judge() {
	s.b.t.Helper()
	allowed := 0
	if s.reports {
		allowed = s.compared / 500
	}
	if s.wrong > 0 || s.missed > allowed || s.compared < 10000 {
		s.b.t.Errorf("of %d blocks in the engine %d are not known, %d are known that are gone", s.compared, s.missed, s.wrong)
	}
}

func randomTokens(seed, n int) []engine.Token {
	dice := rand.New(rand.NewPCG(uint64(seed), 9))
	p := make([]engine.Token, n)
	for i := range p {
		p[i] = engine.Token(dice.IntN(50000))
	}
	return p
}
