package state

import (
	"bytes"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The states of testdata/v1. They and the files never change: a difference
// means that other releases would misread us, or we them.
func golden() (a, b *Snapshot) {
	a = &Snapshot{Epoch: 4503599627370497, Generation: 7, Pools: []Pool{
		{Name: "default", Models: []string{"org/base-7b"}, Replicas: []Replica{
			{Slot: 0, Incarnation: 0xcafe, Address: "10.0.0.7:8000", Health: Healthy,
				Models:    []string{"org/base-7b"},
				Adapters:  []Adapter{{"lora-a", AdapterLoaded}, {"lora-b", AdapterLoading}},
				Load:      Load{At: 1796050799118, Waiting: 3, Running: 12, KV: 0.5, Hit: 0.75, RPS: 4, TPS: 812},
				BlockSize: 32, CacheTokens: 8192, Rate: 9000},
			{Slot: 300, Address: "[::1]:8001", Load: NoLoad()},
		}},
		{Name: "empty", Models: []string{}},
		{Name: "old"},
	}}
	b = new(Snapshot)
	b.copyFrom(a)
	b.Generation = 9
	b.Pools = b.Pools[:2]
	first := &b.Pools[0].Replicas[0]
	first.Health = Draining
	first.Models = nil
	first.Adapters = []Adapter{}
	first.Load.Hit = unknownRatio
	b.Pools[0].Replicas = b.Pools[0].Replicas[:1]
	b.Pools[1].Replicas = []Replica{{Slot: 301, Address: "gpu-3:8000", Health: Unhealthy, Load: NoLoad()}}
	return a, b
}

// goldenIndexed adds an index of KV blocks to the states.
func goldenIndexed() (a, b *Snapshot, whole, delta []Patch) {
	a, b = golden()
	a.Pools[0].Replicas[0].KV, a.Pools[0].Replicas[0].Tags = KVComplete, true
	a.Pools[0].Replicas[1].KV = KVPartial
	b.Pools[0].Replicas[0].KV = KVPartial
	b.Pools[1].Replicas[0].Tags = true
	long := bytes.Repeat([]byte("tags"), 40)
	whole = []Patch{
		{"default", []Record{{0x0102030405060708, []byte("node")}, {1, long}, {1<<64 - 1, []byte{}}}},
		{"old", []Record{{7, []byte("text")}}},
	}
	delta = []Patch{{"default", []Record{{1, nil}, {2, []byte("new")}}}, {"empty", []Record{{9, []byte("x")}}}}
	return a, b, whole, delta
}

func readGolden(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "v1", name))
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGoldenBytes(t *testing.T) {
	a, b := golden()
	f := func(name string, got []byte) {
		t.Helper()
		if want := readGolden(t, name); !bytes.Equal(got, want) {
			t.Errorf("%s: writes\n%x\nwant\n%x", name, got, want)
		}
	}
	f("whole.hex", AppendSnapshot(nil, a))
	f("whole.hex", Pages(nil, a, MaxPage)[0])
	f("delta.hex", Pages(a, b, MaxPage)[0])
	cut := Pages(nil, a, 200)
	if len(cut) != 2 {
		t.Fatalf("%d pages", len(cut))
	}
	f("page0.hex", cut[0])
	f("page1.hex", cut[1])
	a, b, whole, delta := goldenIndexed()
	f("kv-whole.hex", Pages(nil, a, MaxPage, whole...)[0])
	f("kv-delta.hex", Pages(a, b, MaxPage, delta...)[0])
	cut = Pages(nil, a, 250, whole...)
	if len(cut) != 3 {
		t.Fatalf("%d pages", len(cut))
	}
	for i := range cut {
		f("kv-page"+string(rune('0'+i))+".hex", cut[i])
	}
}

func TestGoldenBytesAreRead(t *testing.T) {
	a, b := golden()
	var v View
	apply(t, &v, [][]byte{readGolden(t, "page0.hex"), readGolden(t, "page1.hex")})
	if !Equal(v.Snapshot(), a) {
		t.Error("pages read differently")
	}
	apply(t, &v, [][]byte{readGolden(t, "delta.hex")})
	if !Equal(v.Snapshot(), b) {
		t.Error("delta reads differently")
	}
	if err := v.Load(readGolden(t, "whole.hex")); err != nil || !Equal(v.Snapshot(), a) {
		t.Errorf("whole reads differently: %v", err)
	}
	// What a reader of version 1 made of a page that a later release wrote.
	if err := v.Load(readGolden(t, "later-minor.hex")); err != nil || !Equal(v.Snapshot(), a) {
		t.Errorf("page with later fields: %v", err)
	}
}

func TestGoldenRecordsAreRead(t *testing.T) {
	a, b, _, _ := goldenIndexed()
	long := strings.Repeat("tags", 40)
	want := map[string]string{"default 72623859790382856": "node", "default 1": long, "default 18446744073709551615": "", "old 7": "text"}
	f := func(names ...string) {
		t.Helper()
		var sink kept
		v := View{Records: &sink}
		for _, name := range names {
			if _, err := v.Apply(readGolden(t, name)); err != nil {
				t.Fatal(name, err)
			}
		}
		if !Equal(v.Snapshot(), a) || !maps.Equal(sink.records, want) {
			t.Errorf("%v read differently: %v", names, sink.records)
		}
		apply(t, &v, [][]byte{readGolden(t, "kv-delta.hex")})
		after := maps.Clone(want)
		delete(after, "default 1")
		after["default 2"], after["empty 9"] = "new", "x"
		if !Equal(v.Snapshot(), b) || !maps.Equal(sink.records, after) {
			t.Errorf("delta reads differently: %v", sink.records)
		}
	}
	f("kv-whole.hex")
	f("kv-page0.hex", "kv-page1.hex", "kv-page2.hex")
}
