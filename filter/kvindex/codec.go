package kvindex

import "encoding/binary"

// Kind is what a payload is. It is the payload's first byte and at the same
// time the version of its form: one that is not known is KindBad.
type Kind uint8

// The kinds of payloads.
const (
	KindBad  Kind = 0
	KindNode Kind = 1
	KindText Kind = 2
)

// Bounds of what payloads may say.
const (
	MaxRun     = 128     // blocks of a node
	MaxHeld    = 1024    // replicas that a node lists
	MaxDepth   = 1 << 24 // blocks of a path
	MaxPayload = nodeHead + 2*MaxRun + heldBytes*MaxHeld
)

// KindOf tells what a payload claims to be.
func KindOf(payload []byte) Kind {
	if len(payload) == 0 || payload[0] > byte(KindText) {
		return KindBad
	}
	return Kind(payload[0])
}

// Node is an unbranched run of blocks and who holds them. Its id is the key of
// its first block. Other nodes attach to its end only.
type Node struct {
	Parent uint64   // id of the node before it, 0 = none
	Depth  uint32   // blocks before this node
	Size   uint32   // tokens in a block
	Tags   []uint16 // low 16 bits of the key of each block, 1 to MaxRun
	Held   []Held   // by ascending slot, those with at least the first block
}

// Held says how many of a node's leading blocks the replica in a slot has.
type Held struct {
	Slot uint16
	Run  uint8 // on the GPU
	Any  uint8 // in any tier, at least Run and 1
}

// The form of a node, all numbers little-endian:
//
//	byte     bytes
//	0        1   1: KindNode
//	1        1   n, blocks
//	2        2   h, replicas
//	4        4   depth
//	8        4   block size
//	12       8   parent
//	20       2n  tags
//	20 + 2n  4h  slot (2), run (1), any (1)
const (
	nodeHead  = 20
	heldBytes = 4
)

// AppendNode appends the payload of n to dst. Of more than MaxHeld replicas it
// takes the first. If n is not as its fields say it must be, what comes out is
// refused by Decode.
func AppendNode(dst []byte, n *Node) []byte {
	held := n.Held[:min(len(n.Held), MaxHeld)]
	tags := n.Tags[:min(len(n.Tags), MaxRun+1)]
	dst = append(dst, byte(KindNode), byte(len(tags)))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(held)))
	dst = binary.LittleEndian.AppendUint32(dst, n.Depth)
	dst = binary.LittleEndian.AppendUint32(dst, n.Size)
	dst = binary.LittleEndian.AppendUint64(dst, n.Parent)
	for _, tag := range tags {
		dst = binary.LittleEndian.AppendUint16(dst, tag)
	}
	for _, h := range held {
		dst = append(dst, byte(h.Slot), byte(h.Slot>>8), h.Run, h.Any)
	}
	return dst
}

// Decode reads a payload into n, whose memory it uses again. On an error n is
// as it was.
func (n *Node) Decode(b []byte) error {
	v, err := viewNode(b)
	if err != nil {
		return err
	}
	n.Parent, n.Depth, n.Size = v.parent, v.depth, v.size
	n.Tags, n.Held = n.Tags[:0], n.Held[:0]
	for i := range v.blocks() {
		n.Tags = append(n.Tags, v.tag(i))
	}
	for i := range v.holders() {
		n.Held = append(n.Held, v.holder(i))
	}
	return nil
}

// nodeView is a node as it lies in its payload.
type nodeView struct {
	parent      uint64
	depth, size uint32
	tags, held  []byte
}

func (v *nodeView) blocks() int      { return len(v.tags) / 2 }
func (v *nodeView) tag(i int) uint16 { return binary.LittleEndian.Uint16(v.tags[2*i:]) }
func (v *nodeView) holders() int     { return len(v.held) / heldBytes }

func (v *nodeView) holder(i int) Held {
	b := (*[heldBytes]byte)(v.held[heldBytes*i:])
	return Held{Slot: binary.LittleEndian.Uint16(b[:]), Run: b[2], Any: b[3]}
}

// viewNode checks a payload and shows what is in it.
func viewNode(b []byte) (v nodeView, err error) {
	switch {
	case KindOf(b) != KindNode:
		return v, &Malformed{"not a node", 0}
	case len(b) < nodeHead:
		return v, &Malformed{"node is cut off", len(b)}
	case b[1] == 0 || b[1] > MaxRun:
		return v, &Malformed{"number of blocks is not 1 to 128", 1}
	}
	tags := 2 * int(b[1])
	held := heldBytes * int(binary.LittleEndian.Uint16(b[2:]))
	v.depth, v.size = binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	v.parent = binary.LittleEndian.Uint64(b[12:])
	switch {
	case held > heldBytes*MaxHeld:
		return v, &Malformed{"more than 1024 replicas", 2}
	case len(b) != nodeHead+tags+held:
		return v, &Malformed{"length does not fit the numbers of blocks and replicas", len(b)}
	case v.depth > MaxDepth:
		return v, &Malformed{"depth is over its bound", 4}
	case v.size == 0 || v.size > MaxBlockSize:
		return v, &Malformed{"block size is not 1 to 65536", 8}
	case (v.parent == 0) != (v.depth == 0):
		return v, &Malformed{"parent does not fit the depth", 12}
	}
	v.tags, v.held = b[nodeHead:nodeHead+tags], b[nodeHead+tags:]
	return v, v.checkHeld()
}

func (v *nodeView) checkHeld() error {
	last, blocks := -1, uint8(v.blocks())
	for i := range v.holders() {
		h := v.holder(i)
		at := nodeHead + len(v.tags) + heldBytes*i
		switch {
		case int(h.Slot) <= last:
			return &Malformed{"slots do not ascend", at}
		case h.Any == 0 || h.Any > blocks || h.Run > h.Any:
			return &Malformed{"runs do not fit the blocks", at + 2}
		}
		last = int(h.Slot)
	}
	return nil
}
