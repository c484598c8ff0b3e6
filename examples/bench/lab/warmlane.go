package lab

import (
	"os"
	"math/rand/v2"
	"strconv"

	"github.com/warmlane/warmlane/filter/route"
	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
)

// workersPerProxy is how many workers, each with its own router, share one
// proxy's data.
const workersPerProxy = 4

// warmlane drives filter/route: proxies that know nothing of each other, each
// with workers that share one store.
type warmlane struct {
	dice    *rand.Rand
	proxies []*proxy
	tickets []*placed
	reports bool // engines report their load with the head of an answer
}

// proxy is one Envoy.
type proxy struct {
	workers []*route.Router
	index   *lru
}

// placed is a request on its way.
type placed struct {
	route.Ticket
	router *route.Router
	req *Request
	pred, chosen int
	p int
}

func newWarmlane(engines []*Engine, proxies int, reports bool, seed uint64) *warmlane {
	expEng = engines; expPin = [8]map[uint64]int{}; expFoot = [8]int{}; expUnc = [8]int{}
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
	p := &proxy{index: newLRU(len(pool.Replicas))}
	mem := shared.NewMem()
	for range workersPerProxy {
		cfg := route.Defaults()
		cfg.Behind = float32(expF("LAB_A", 1))
		cfg.PerRequest = float32(expF("LAB_B", 0.02))
		cfg.StartRate = float32(expF("LAB_R", 8000))
		r := route.New(mem.View(), pool.Name, cfg, w.dice.Uint32())
		r.Adopt(pool, 1)
		p.workers = append(p.workers, r)
	}
	return p
}

// millis is virtual time as the router wants it.
func millis(now int64) int64 { return 1_700_000_000_000 + now/1000 }

func (w *warmlane) Pick(now int64, id int, r *Request) int {
	pi := w.dice.IntN(len(w.proxies))
	p := w.proxies[pi]
	t := &placed{req: r, p: pi, router: p.workers[w.dice.IntN(len(p.workers))]}
	q := route.Query{
		Prompt: uint32(r.Input), Matched: p.index.match(t.router, r), Tree: true, Ring: r.Chunks[0] + 1, Stream: true,
	}
	var c route.Choice
	t.router.Choose(&q, millis(now), w.dice.Uint64(), &c, &t.Ticket)
	for len(w.tickets) <= id {
		w.tickets = append(w.tickets, nil)
	}
	w.tickets[id] = t
	if expPin[0]==nil { for i := range expPin { expPin[i] = map[uint64]int{} } }
	for _, n := range r.Chunks { expPin[c.Order[0]][n]++ }
	expFoot[c.Order[0]] += r.Input + int(expF("LAB_OUT", 343))
	t.pred = int(c.Matched)
	expUnc[c.Order[0]] += r.Input - t.pred
	t.chosen = int(c.Order[0])
	real := 0
	for i := range expEng[t.chosen].cache.match(r) { real += r.chunkTokens(i) }
	if d := real - t.pred; d > 0 { expUnder0 += d } else { expOver0 -= d }
	for sl := range expEng { real := 0
	for i := range expEng[sl].cache.match(r) { real += r.chunkTokens(i) }
	if int(q.Matched[sl]) < real { expMissed += real - int(q.Matched[sl]) } else { expFalse += int(q.Matched[sl])-real }}
	p.index.store(t.router, int(c.Order[0]), r)
	return int(c.Order[0])
}

func (w *warmlane) Head(now int64, id int, owed, inFlight int) {
	if !w.reports {
		return
	}
	rep := route.NoReport()
	rep.Owed, rep.InFlight = int32(owed), int32(inFlight)
	t := w.tickets[id]
	t.router.Note(&t.Ticket, millis(now), &rep)
}

func (w *warmlane) First(now int64, id int) {
	t := w.tickets[id]
	t.router.FirstToken(&t.Ticket, millis(now), nil)
}

func (w *warmlane) Done(now int64, id int) {
	t := w.tickets[id]
	sl := t.Slot()
	for _, n := range t.req.Chunks { expPin[sl][n]-- }
	expUnc[sl] -= t.req.Input - t.pred
	expFoot[sl] -= t.req.Input+int(expF("LAB_OUT", 343))
	t.router.Settle(&t.Ticket, millis(now), route.OK, nil)
	if expF("LAB_TOUCH", 0) > 0 {
		w.proxies[t.p].index.store(t.router, sl, t.req)
	}
	w.tickets[id] = nil
}

// lru is what a text index of a proxy knows: which chunk was sent where, and
// at which clock of the replica.
type lru struct {
	sent []map[uint64]uint32 // by slot, chunk -> clock
	hits []uint32
}

func newLRU(slots int) *lru {
	l := &lru{sent: make([]map[uint64]uint32, slots), hits: make([]uint32, slots)}
	for i := range l.sent {
		l.sent[i] = map[uint64]uint32{}
	}
	return l
}

// match gives the tokens that should be resident at each slot.
func (l *lru) match(r *route.Router, q *Request) []uint32 {
	for slot, seen := range l.sent {
		l.hits[slot] = 0
		clock, capacity := r.Clock(slot), r.Capacity(slot)
		capacity = uint32(float64(capacity)*expF("LAB_CAPF", 1))
		for i, name := range q.Chunks {
			at, ok := seen[name]
			if k := expF("LAB_Y", 0); k > 0 {
				lim := float64(capacity) - float64(expFoot[slot])/16*expF("LAB_FOOT", 1) + k*float64(expUnc[slot])/16
				if !(ok && float64(clock-at) <= lim) { break }
			} else if expF("LAB_SHADOW", 0) > 0 {
				fp := float64(expFoot[slot])/16*expF("LAB_FOOT", 1)
				if !(expPin[slot][name] > 0 || ok && float64(clock-at) <= float64(capacity) - fp) { break }
			} else if expF("LAB_PERFECT", 0) > 0 {
				if expEng[slot].cache.chunks[name] == nil && !(ok && clock-at <= uint32(float64(capacity)*expF("LAB_PERFECT", 0))) {
					break
				}
			} else if !ok || clock-at > capacity {
				break
			} else if lo := expF("LAB_SOFT", 0); lo > 0 {
				age := float64(clock-at) / float64(capacity)
				f := min(1, (1-age)/(1-lo))
				l.hits[slot] += uint32(f*float64(q.chunkTokens(i)))
				continue
			}
			l.hits[slot] += uint32(q.chunkTokens(i))
		}
	}
	return l.hits
}

func (l *lru) store(r *route.Router, slot int, q *Request) {
	clock := r.Clock(slot)
	for _, name := range q.Chunks {
		l.sent[slot][name] = clock
	}
}

var expEng []*Engine
func expF(k string, d float64) float64 { if v := os.Getenv(k); v != "" { f, _ := strconv.ParseFloat(v, 64); return f }; return d }

var expUnder0, expOver0, expMissed, expFalse int

var expPin [8]map[uint64]int
var expFoot [8]int

var expUnc [8]int
