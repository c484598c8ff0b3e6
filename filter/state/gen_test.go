package state

import (
	"math/rand/v2"
	"strconv"
)

// gen makes random snapshots and random changes to them.
type gen struct{ *rand.Rand }

func newGen(seed uint64) gen { return gen{rand.New(rand.NewPCG(seed, 7))} }

func (g gen) snapshot() *Snapshot {
	s := &Snapshot{Epoch: 9, Generation: 1 + g.Uint64N(5)}
	for i := range 4 {
		if g.IntN(3) > 0 {
			s.Pools = append(s.Pools, g.pool("pool-"+strconv.Itoa(i)))
		}
	}
	return s
}

// after returns a later state: another one, or s with some things changed.
func (g gen) after(s *Snapshot) *Snapshot {
	if g.IntN(3) == 0 {
		next := g.snapshot()
		next.Generation = s.Generation + 1
		return next
	}
	var next Snapshot
	next.copyFrom(s)
	next.Generation += 1 + g.Uint64N(3)
	for i := range next.Pools {
		for j := range next.Pools[i].Replicas {
			if g.IntN(2) == 0 {
				r := &next.Pools[i].Replicas[j]
				slot := r.Slot
				*r = g.replica(slot)
			}
		}
	}
	return &next
}

func (g gen) pool(name string) Pool {
	p := Pool{Name: name, Models: g.names()}
	for slot := range 8 {
		if g.IntN(2) == 0 {
			p.Replicas = append(p.Replicas, g.replica(uint16(slot*slot*900)))
		}
	}
	return p
}

func (g gen) replica(slot uint16) Replica {
	r := Replica{
		Slot: slot, Address: "10.0.0." + strconv.Itoa(g.IntN(9)) + ":8000",
		Incarnation: g.Uint32N(3), Health: Health(g.IntN(4)),
		Models: g.names(), Adapters: g.adapters(), Load: NoLoad(),
		BlockSize: 16 * g.Uint32N(3), CacheTokens: g.Uint32() * g.Uint32N(2),
		Rate: float32(g.IntN(3)) * 1000.5, KV: KVState(g.IntN(3)), Tags: g.IntN(2) > 0,
	}
	if g.IntN(4) > 0 {
		r.Load = g.load()
	}
	return r
}

func (g gen) load() Load {
	l := NoLoad()
	l.At = 1_796_000_000_000 + g.Int64N(1000)
	l.Waiting, l.Running = g.Int32N(5)-1, g.Int32N(5)-1
	for _, f := range []*float32{&l.KV, &l.Hit, &l.RPS, &l.TPS} {
		if g.IntN(3) > 0 {
			*f = float32(g.IntN(4)) / 4
		}
	}
	return l
}

func (g gen) names() []string {
	if g.IntN(4) == 0 {
		return nil
	}
	names := []string{}
	for range g.IntN(3) {
		names = append(names, "org/base-"+strconv.Itoa(g.IntN(4)))
	}
	return names
}

func (g gen) adapters() []Adapter {
	if g.IntN(4) == 0 {
		return nil
	}
	list := []Adapter{}
	for range g.IntN(3) {
		list = append(list, Adapter{"lora-" + strconv.Itoa(g.IntN(4)), AdapterState(g.IntN(4))})
	}
	return list
}

// fleet is the state of n busy replicas, as a proxy holds it.
func fleet(n int) *Snapshot {
	p := Pool{Name: "default", Models: []string{"org/base-7b"}}
	for i := range n {
		p.Replicas = append(p.Replicas, Replica{
			Slot: uint16(i), Incarnation: uint32(i) + 77, Address: "10.0.1." + strconv.Itoa(i) + ":8000",
			Health: Healthy, Models: []string{"org/base-7b"},
			Adapters:  []Adapter{{"lora-a", AdapterLoaded}, {"lora-b", AdapterLoading}},
			Load:      Load{At: 1_796_050_000_000, Waiting: 3, Running: 12, KV: .41, Hit: .77, RPS: 4.1, TPS: 812},
			BlockSize: 16, CacheTokens: 400_000, Rate: 9000,
		})
	}
	return &Snapshot{Epoch: 5, Generation: 812, Pools: []Pool{p}}
}
