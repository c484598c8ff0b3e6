package kvindex

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The records of testdata/v1. They and the files never change: a difference
// means that other releases would misread us, or we them.
var (
	goldenNode = Node{
		Parent: 0x1122334455667788, Depth: 300, Size: 16, Tags: []uint16{0x0102, 0xfffe, 3},
		Held: []Held{{Slot: 0, Run: 3, Any: 3}, {Slot: 7, Run: 0, Any: 1}, {Slot: 300, Run: 2, Any: 3}},
	}
	goldenRoot = Node{Size: 32, Tags: []uint16{0x8001}}
	goldenText = Text{Leaf: 0x99aabbccddeeff00, Blocks: 2, Depth: 302, Size: 16}
)

func readGolden(t testing.TB, name string) []byte {
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
	node := func(name string, n *Node) {
		t.Helper()
		want := readGolden(t, name)
		if got := AppendNode(nil, n); !bytes.Equal(got, want) {
			t.Errorf("%s: writes\n%x\nwant\n%x", name, got, want)
		}
		read := Node{Tags: []uint16{9, 9, 9, 9}, Held: []Held{{1, 1, 1}}}
		if err := read.Decode(want); err != nil || !sameNode(&read, n) {
			t.Errorf("%s: reads %+v, %v, want %+v", name, read, err, n)
		}
	}
	node("node.hex", &goldenNode)
	node("root.hex", &goldenRoot)
	want := readGolden(t, "text.hex")
	if got := AppendText(nil, &goldenText); !bytes.Equal(got, want) {
		t.Errorf("text: writes\n%x\nwant\n%x", got, want)
	}
	var read Text
	if err := read.Decode(want); err != nil || read != goldenText {
		t.Errorf("text: reads %+v, %v", read, err)
	}
}

func sameNode(a, b *Node) bool {
	return a.Parent == b.Parent && a.Depth == b.Depth && a.Size == b.Size &&
		reflect.DeepEqual(append([]uint16{}, a.Tags...), append([]uint16{}, b.Tags...)) &&
		reflect.DeepEqual(append([]Held{}, a.Held...), append([]Held{}, b.Held...))
}

func TestKindOf(t *testing.T) {
	f := func(payload []byte, want Kind) {
		t.Helper()
		if got := KindOf(payload); got != want {
			t.Errorf("%x: %d, want %d", payload, got, want)
		}
	}
	f(nil, KindBad)
	f([]byte{0}, KindBad)
	f([]byte{3}, KindBad)
	f(AppendNode(nil, &goldenNode), KindNode)
	f(AppendText(nil, &goldenText), KindText)
}

func TestDecodeNames(t *testing.T) {
	good := AppendNode(nil, &goldenNode)
	node := func(offset int, what string, change func(b []byte) []byte) {
		t.Helper()
		n := goldenNode
		err := n.Decode(change(bytes.Clone(good)))
		checkMalformed(t, err, offset, what)
		if !sameNode(&n, &goldenNode) {
			t.Errorf("%s: the node was changed", what)
		}
	}
	set := func(at int, v ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[at:], v); return b }
	}
	cut := func(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:n] } }
	node(0, "not a node", cut(0))
	node(0, "not a node", set(0, 2))
	node(19, "node is cut off", cut(19))
	node(1, "number of blocks", set(1, 0))
	node(1, "number of blocks", set(1, 129))
	node(2, "more than 1024 replicas", set(2, 1, 4))
	node(len(good)-1, "length", cut(len(good)-1))
	node(len(good)+1, "length", func(b []byte) []byte { return append(b, 0) })
	node(4, "depth", set(4, 1, 0, 0, 1))
	node(8, "block size", set(8, 0, 0, 0, 0))
	node(8, "block size", set(8, 1, 0, 1, 0))
	node(12, "parent", set(12, 0, 0, 0, 0, 0, 0, 0, 0))
	node(12, "parent", set(4, 0, 0, 0, 0))
	node(30, "slots do not ascend", set(30, 0))
	node(28, "runs do not fit", set(28, 4, 4))
	node(28, "runs do not fit", set(28, 3, 2))
	node(28, "runs do not fit", set(28, 0, 0))

	short := AppendText(nil, &goldenText)
	text := func(offset int, what string, change func(b []byte) []byte) {
		t.Helper()
		got := goldenText
		checkMalformed(t, got.Decode(change(bytes.Clone(short))), offset, what)
		if got != goldenText {
			t.Errorf("%s: the text was changed", what)
		}
	}
	text(0, "not a text", cut(0))
	text(0, "not a text", set(0, 1))
	text(17, "length", cut(17))
	text(19, "length", func(b []byte) []byte { return append(b, 0) })
	text(1, "number of blocks", set(1, 0))
	text(1, "number of blocks", set(1, 129))
	text(2, "depth", set(2, 1, 0, 0, 0))
	text(2, "depth", set(2, 1, 0, 0, 1))
	text(6, "block size", set(6, 0, 0, 0, 0))
	text(6, "block size", set(6, 1, 0, 1, 0))
	text(10, "no leaf", set(10, 0, 0, 0, 0, 0, 0, 0, 0))
}

func checkMalformed(t *testing.T, err error, offset int, what string) {
	t.Helper()
	var m *Malformed
	if !errors.As(err, &m) || m.Offset != offset || !strings.Contains(err.Error(), what) {
		t.Errorf("%v, want %q at byte %d", err, what, offset)
	}
}

func TestAppendKeepsBounds(t *testing.T) {
	n := Node{Size: 16, Tags: make([]uint16, MaxRun), Held: make([]Held, MaxHeld+5)}
	for i := range n.Held {
		n.Held[i] = Held{Slot: uint16(i), Run: 1, Any: 2}
	}
	b := AppendNode(nil, &n)
	var read Node
	if err := read.Decode(b); err != nil || len(read.Held) != MaxHeld || len(b) != MaxPayload {
		t.Errorf("%d replicas in %d bytes, %v", len(read.Held), len(b), err)
	}
	for _, blocks := range []int{0, MaxRun + 1, 1000} {
		n.Tags = make([]uint16, blocks)
		if err := read.Decode(AppendNode(nil, &n)); err == nil {
			t.Errorf("a node of %d blocks was read", blocks)
		}
	}
}

// randomNode is a valid node of any shape.
func randomNode(r *rand.Rand) *Node {
	n := &Node{Size: 1 + r.Uint32N(MaxBlockSize), Tags: make([]uint16, 1+r.IntN(MaxRun))}
	if r.IntN(3) > 0 {
		n.Parent, n.Depth = r.Uint64()|1, 1+r.Uint32N(MaxDepth)
	}
	for i := range n.Tags {
		n.Tags[i] = uint16(r.Uint32())
	}
	for slot := r.IntN(10); slot < 1<<16 && len(n.Held) < MaxHeld && r.IntN(20) > 0; slot += 1 + r.IntN(100) {
		any := 1 + r.IntN(len(n.Tags))
		n.Held = append(n.Held, Held{Slot: uint16(slot), Run: uint8(r.IntN(any + 1)), Any: uint8(any)})
	}
	return n
}

func TestNodesComeBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var read Node
	for range 2000 {
		n := randomNode(r)
		if err := read.Decode(AppendNode(nil, n)); err != nil || !sameNode(&read, n) {
			t.Fatalf("%+v came back as %+v, %v", n, read, err)
		}
	}
}

func TestDecodeMakesNoGarbage(t *testing.T) {
	b := AppendNode(nil, randomNode(rand.New(rand.NewPCG(3, 4))))
	var n Node
	if err := n.Decode(b); err != nil {
		t.Fatal(err)
	}
	if allocs := testing.AllocsPerRun(100, func() {
		if n.Decode(b) != nil {
			t.Error("failed")
		}
		b = AppendNode(b[:0], &n)
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// FuzzRecord holds that whatever is read is written the same again.
func FuzzRecord(f *testing.F) {
	for _, name := range []string{"node.hex", "root.hex", "text.hex"} {
		f.Add(readGolden(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var n Node
		var text Text
		nodeErr, textErr := n.Decode(b), text.Decode(b)
		switch {
		case nodeErr == nil && (KindOf(b) != KindNode || !bytes.Equal(AppendNode(nil, &n), b)):
			t.Errorf("%x was read as %+v", b, n)
		case textErr == nil && (KindOf(b) != KindText || !bytes.Equal(AppendText(nil, &text), b)):
			t.Errorf("%x was read as %+v", b, text)
		case nodeErr == nil && len(b) > MaxPayload:
			t.Errorf("%d bytes are over the bound", len(b))
		}
	})
}

// FuzzNode holds that every valid node comes back, and that no other does.
func FuzzNode(f *testing.F) {
	f.Add(uint64(5), uint32(300), uint32(16), []byte{1, 2, 3, 4}, []byte{0, 0, 1, 2, 5, 0, 2, 2})
	f.Add(uint64(0), uint32(0), uint32(1), []byte{1, 2}, []byte{})
	f.Fuzz(func(t *testing.T, parent uint64, depth, size uint32, tags, held []byte) {
		n := Node{Parent: parent, Depth: depth, Size: size}
		for ; len(tags) >= 2; tags = tags[2:] {
			n.Tags = append(n.Tags, uint16(tags[0])|uint16(tags[1])<<8)
		}
		for ; len(held) >= 4 && len(n.Held) < MaxHeld; held = held[4:] {
			n.Held = append(n.Held, Held{Slot: uint16(held[0]) | uint16(held[1])<<8, Run: held[2], Any: held[3]})
		}
		var read Node
		err := read.Decode(AppendNode(nil, &n))
		if valid := validNode(&n); valid != (err == nil) || valid && !sameNode(&read, &n) {
			t.Errorf("valid %v: %+v came back as %+v, %v", valid, n, read, err)
		}
	})
}

func validNode(n *Node) bool {
	if len(n.Tags) < 1 || len(n.Tags) > MaxRun || n.Size < 1 || n.Size > MaxBlockSize || n.Depth > MaxDepth {
		return false
	}
	last := -1
	for _, h := range n.Held {
		if int(h.Slot) <= last || h.Any < 1 || int(h.Any) > len(n.Tags) || h.Run > h.Any {
			return false
		}
		last = int(h.Slot)
	}
	return (n.Parent == 0) == (n.Depth == 0)
}
