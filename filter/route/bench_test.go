package route

import (
	"strconv"
	"testing"

	"github.com/warmlane/warmlane/filter/state"
)

// exchange is what one streamed request asks of a router.
func exchange(r *Router, q *Query, now int64, rep *Report) {
	var c Choice
	var t Ticket
	r.Choose(q, now, uint64(now), &c, &t)
	if rep != nil {
		r.Note(&t, now+50, rep)
	}
	r.FirstToken(&t, now+50)
	r.Settle(&t, now+100, OK)
}

func TestRequestMakesNoGarbage(t *testing.T) {
	for _, n := range []int{8, MaxSlots} {
		c := newCrew(fleet(n), 5)
		for _, r := range c.workers {
			send(r, 100, t0, 1)
		}
		r := c.workers[0]
		q := Query{Model: []byte("m"), Prompt: 1000, Matched: make([]uint32, n), Tree: true, Stream: true}
		rep := NoReport()
		rep.Waiting = 1
		now := t0
		if got := testing.AllocsPerRun(100, func() {
			now += 10
			exchange(r, &q, now, &rep)
			r.Tick(now)
		}); got != 0 {
			t.Errorf("%d replicas: %v allocations", n, got)
		}
	}
}

func TestAdoptMakesNoGarbage(t *testing.T) {
	p := fleet(64)
	for i := range p.Replicas {
		p.Replicas[i].Models = []string{"base", "alias"}
		p.Replicas[i].Adapters = []state.Adapter{{Name: "sql", State: state.AdapterLoaded}}
	}
	r := newCrew(p, 1).workers[0]
	generation := uint32(1)
	if got := testing.AllocsPerRun(20, func() {
		generation++
		r.Adopt(p, generation)
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkChoose(b *testing.B) {
	for _, n := range []int{8, 64, MaxSlots} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			c := newCrew(fleet(n), 5)
			for _, r := range c.workers {
				send(r, 100, t0, 1)
			}
			q := Query{Prompt: 1000, Matched: make([]uint32, n), Tree: true, Stream: true}
			b.ReportAllocs()
			b.SetBytes(int64(pageSize(n, 5)))
			var choice Choice
			var ticket Ticket
			for i := range b.N {
				c.workers[0].Choose(&q, t0+int64(i), uint64(i), &choice, &ticket)
			}
		})
	}
}

func BenchmarkExchange(b *testing.B) {
	for _, n := range []int{8, MaxSlots} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			r := newCrew(fleet(n), 1).workers[0]
			q := Query{Prompt: 1000, Tree: true, Stream: true}
			b.ReportAllocs()
			for i := range b.N {
				exchange(r, &q, t0+200*int64(i), nil)
			}
		})
	}
}

func BenchmarkParseReport(b *testing.B) {
	header := []byte("TEXT named_metrics.kv_cache_usage_perc=0.4, named_metrics.num_requests_waiting=3.0")
	b.ReportAllocs()
	for range b.N {
		r := NoReport()
		ParseReport(header, &r)
	}
}
