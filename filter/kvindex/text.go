package kvindex

import "encoding/binary"

// Text says which blocks an engine made of a prompt: the path that ends in a
// node. Its id is the key of the prompt's text.
type Text struct {
	Leaf   uint64 // the node in which the path ends
	Blocks uint8  // how many of that node's blocks belong to it, 1 to MaxRun
	Depth  uint32 // blocks of the whole path
	Size   uint32 // tokens in a block
}

// The form of a text, all numbers little-endian:
//
//	byte  bytes
//	0     1   2: KindText
//	1     1   blocks of the leaf
//	2     4   depth
//	6     4   block size
//	10    8   leaf
const textBytes = 18

// AppendText appends the payload of t to dst. If t is not as its fields say it
// must be, Decode refuses what comes out.
func AppendText(dst []byte, t *Text) []byte {
	dst = append(dst, byte(KindText), t.Blocks)
	dst = binary.LittleEndian.AppendUint32(dst, t.Depth)
	dst = binary.LittleEndian.AppendUint32(dst, t.Size)
	return binary.LittleEndian.AppendUint64(dst, t.Leaf)
}

// Decode reads a payload into t. On an error t is as it was.
func (t *Text) Decode(b []byte) error {
	switch {
	case KindOf(b) != KindText:
		return &Malformed{"not a text", 0}
	case len(b) != textBytes:
		return &Malformed{"length is not that of a text", len(b)}
	}
	d := Text{
		Blocks: b[1],
		Depth:  binary.LittleEndian.Uint32(b[2:]),
		Size:   binary.LittleEndian.Uint32(b[6:]),
		Leaf:   binary.LittleEndian.Uint64(b[10:]),
	}
	switch {
	case d.Blocks == 0 || d.Blocks > MaxRun:
		return &Malformed{"number of blocks is not 1 to 128", 1}
	case d.Depth < uint32(d.Blocks) || d.Depth > MaxDepth:
		return &Malformed{"depth does not fit the blocks", 2}
	case d.Size == 0 || d.Size > MaxBlockSize:
		return &Malformed{"block size is not 1 to 65536", 6}
	case d.Leaf == 0:
		return &Malformed{"no leaf", 10}
	}
	*t = d
	return nil
}
