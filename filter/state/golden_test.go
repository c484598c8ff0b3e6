package state

import (
	"bytes"
	"encoding/hex"
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
