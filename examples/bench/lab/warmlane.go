package lab

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"

	"github.com/warmlane/warmlane/filter/prefix"
	"github.com/warmlane/warmlane/filter/route"
	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
)

// workersPerProxy is how many workers, each with its own router, share one
// proxy's data.
const workersPerProxy = 4

// warmlane drives filter/route and the text index of filter/prefix: proxies
// that know nothing of each other, each with workers that share one store.
type warmlane struct {
	dice    *rand.Rand
	proxies []*proxy
	tickets []*placed
	reports bool // engines report their load with the head of an answer
}

// proxy is one Envoy.
type proxy struct {
	workers []*worker
}

// worker is one VM of a proxy.
type worker struct {
	router   *route.Router
	index    *prefix.Index
	replicas []prefix.Replica
	matched  []uint32
}

// placed is a request on its way.
type placed struct {
	route.Ticket
	router *route.Router
}

func newWarmlane(engines []*Engine, proxies int, reports bool, seed uint64) *warmlane {
	w := &warmlane{dice: rand.New(rand.NewPCG(seed, 2)), reports: reports}
	pool := state.Pool{Name: "lab"}
	for i, e := range engines {
		pool.Replicas = append(pool.Replicas, state.Replica{
			Slot: uint16(i), Address: "10.0.0." + strconv.Itoa(i) + ":8000", Health: state.Healthy,
			CacheTokens: uint32(e.cfg.CacheBlocks * blockTokens), Load: route.NoReport().Load,
		})
	}
	for range proxies {
		w.proxies = append(w.proxies, w.newProxy(&pool))
	}
	return w
}

func (w *warmlane) newProxy(pool *state.Pool) *proxy {
	p := &proxy{}
	mem := shared.NewMem()
	for range workersPerProxy {
		view := mem.View()
		r := route.New(view, pool.Name, route.Defaults(), w.dice.Uint32())
		r.Adopt(pool, 1)
		p.workers = append(p.workers, &worker{
			router:   r,
			index:    prefix.New(view, prefix.Options{}),
			replicas: make([]prefix.Replica, len(pool.Replicas)),
			matched:  make([]uint32, len(pool.Replicas)),
		})
	}
	return p
}

// millis is virtual time as the router wants it.
func millis(now int64) int64 { return 1_700_000_000_000 + now/1000 }

func (w *warmlane) Pick(now int64, id int, r *Request) int {
	p := w.proxies[w.dice.IntN(len(w.proxies))]
	v := p.workers[w.dice.IntN(len(p.workers))]
	t := &placed{router: v.router}
	for len(w.tickets) <= id {
		w.tickets = append(w.tickets, nil)
	}
	w.tickets[id] = t
	return v.place(millis(now), r, w.dice.Uint64(), &t.Ticket)
}

// place does with a prompt what the filter does: look up, choose, record. An
// index in memory has no error to give.
func (v *worker) place(now int64, r *Request, dice uint64, t *route.Ticket) int {
	var chain prefix.Chain
	chainOf(&chain, r)
	for slot := range v.replicas {
		v.replicas[slot] = v.replica(slot)
	}
	v.index.Lookup(&chain, 0, v.replicas, v.matched, now)
	for slot := range v.matched {
		v.matched[slot] /= bytesPerToken
	}
	q := route.Query{
		Prompt: uint32(r.Input), Matched: v.matched, Tree: true, Ring: chain.RingHash(0), Stream: true,
	}
	var c route.Choice
	v.router.Choose(&q, now, dice, &c, t)
	slot := int(c.Order[0])
	v.index.Record(&chain, 0, v.replica(slot))
	return slot
}

func (v *worker) replica(slot int) prefix.Replica {
	return prefix.Replica{Key: v.router.Key(slot), Clock: v.router.Clock(slot), Capacity: v.router.Capacity(slot)}
}

// bytesPerToken is what a token of text is taken for.
const bytesPerToken = 4

// chainOf hashes a text made up for the request: equal chunks have equal text.
func chainOf(c *prefix.Chain, r *Request) {
	var text [ChunkTokens * bytesPerToken]byte
	for i, name := range r.Chunks {
		dice := rand.New(rand.NewPCG(name, 4))
		for at := 0; at < len(text); at += 8 {
			binary.LittleEndian.PutUint64(text[at:], dice.Uint64())
		}
		c.Text(text[:r.chunkTokens(i)*bytesPerToken])
	}
	c.Border()
}

func (w *warmlane) Head(now int64, id int, owed, inFlight int) {
	if !w.reports {
		return
	}
	rep := route.NoReport()
	rep.Owed, rep.InFlight = int32(owed), int32(inFlight)
	t := w.tickets[id]
	if t == nil {
		return // answered already
	}
	t.router.Note(&t.Ticket, millis(now), &rep)
}

func (w *warmlane) First(now int64, id int) {
	t := w.tickets[id]
	t.router.FirstToken(&t.Ticket, millis(now), nil)
}

func (w *warmlane) Done(now int64, id int) {
	t := w.tickets[id]
	t.router.Settle(&t.Ticket, millis(now), route.OK, nil)
	w.tickets[id] = nil
}
