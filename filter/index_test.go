package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
	"github.com/warmlane/warmlane/hostsim"
)

// records are n random records of an index, of about 8 blocks each, in the
// order in which control sends them.
func records(n int) []state.Record {
	r := rand.New(rand.NewPCG(1, 1))
	list := make([]state.Record, n)
	for i := range list {
		list[i] = state.Record{ID: r.Uint64(), Payload: bytes.Repeat([]byte{7}, 48+r.IntN(16))}
	}
	slices.SortFunc(list, func(a, b state.Record) int { return cmp.Compare(bits.Reverse64(a.ID), bits.Reverse64(b.ID)) })
	return list
}

// indexing is a control that has an index of KV blocks: the whole of it as
// generation 1, and a delta as generation 2 when that has been held for three
// seconds.
func (p *proxy) indexing(all, changed []state.Record) hostsim.Upstream {
	pool := state.Pool{Name: "default", Models: []string{"m"}}
	for i, a := range p.replicas {
		pool.Replicas = append(pool.Replicas, state.Replica{Slot: uint16(i), Incarnation: 1, Address: a, Health: state.Healthy, Load: state.NoLoad()})
	}
	one := &state.Snapshot{Epoch: 7, Generation: 1, Pools: []state.Pool{pool}}
	two := &state.Snapshot{Epoch: 7, Generation: 2, Pools: one.Pools}
	whole := state.Pages(nil, one, state.MaxPage, state.Patch{Pool: "default", Records: all})
	delta := state.Pages(one, two, state.MaxPage, state.Patch{Pool: "default", Records: changed})
	return func(r *hostsim.UpstreamRequest) hostsim.Reply {
		u, err := url.Parse(r.Header.Get(":path"))
		if err != nil {
			return hostsim.Reply{Status: 400}
		}
		page, _ := strconv.Atoi(u.Query().Get("page"))
		switch u.Query().Get("gen") {
		case "0":
			return hostsim.Reply{Body: whole[page]}
		case "1":
			return hostsim.Reply{Body: delta[page], Delay: 3 * time.Second}
		}
		return hostsim.Reply{Status: 204, Delay: 25 * time.Second}
	}
}

// indexed counts the records that the index in shared data has.
func (p *proxy) indexed() (n int, complete bool) {
	head, _, ok := p.host.Shared().Get(shared.BlocksKey)
	if !ok {
		return 0, false
	}
	for bucket := range uint32(2048) {
		b, _, _ := p.host.Shared().Get(string(shared.AppendBlocksKey(nil, bucket)))
		for at := 8; at < len(b); at += 10 + int(binary.LittleEndian.Uint16(b[at+8:])) {
			n++
		}
	}
	return n, head[12] == 1
}

// published is the generation of the state in shared data.
func (p *proxy) published(t *testing.T) uint64 {
	t.Helper()
	b, _, _ := p.host.Shared().Get(shared.StateKey)
	h, err := state.ParseHeader(b[min(shared.SequenceSize, len(b)):])
	if err != nil {
		t.Fatal(err)
	}
	return h.To
}

// TestIndexArrives brings an index of 240,000 blocks, and then a change of
// 10,000, through the module into shared data. The leader's VM must not be kept
// for long at a time, nor grow for good.
func TestIndexArrives(t *testing.T) {
	all := records(30_000)
	var gone []state.Record // all over the buckets
	for i := 0; i < len(all); i += 24 {
		gone = append(gone, state.Record{ID: all[i].ID})
	}
	p := newProxyOf(t, 2, 1, "", func(p *proxy) hostsim.Upstream { return p.indexing(all, gone) })
	if n, complete := p.indexed(); n != len(all) || !complete {
		t.Fatalf("%d records of %d, complete %v", n, len(all), complete)
	}
	var took time.Duration // from the first write to the new state
	for range 2000 {
		_, before := p.host.Shared().Calls()
		p.host.Advance(5 * time.Millisecond)
		_, after := p.host.Shared().Calls()
		if after-before > 300 {
			t.Errorf("%d writes in one tick", after-before)
		}
		if took > 0 || after-before > 200 {
			took += 5 * time.Millisecond
		}
		if p.published(t) == 2 {
			break
		}
	}
	if took == 0 || took > 50*time.Millisecond {
		t.Errorf("a delta of %d records took %v", len(gone), took)
	}
	if n, complete := p.indexed(); n != len(all)-len(gone) || !complete {
		t.Errorf("%d records after the delta, complete %v", n, complete)
	}
	const budget = 48 << 20
	if m := p.host.Memory(hostsim.MainThread); m > budget {
		t.Errorf("the leader's VM has %d KiB, budget %d KiB", m>>10, budget>>10)
	}
	t.Logf("leader's VM: %d KiB, shared data: %d KiB, delta in %v", p.host.Memory(hostsim.MainThread)>>10, p.host.Shared().Bytes()>>10, took)
}
