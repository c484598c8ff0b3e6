package kvindex

import "encoding/binary"

// The head of the index, all numbers little-endian:
//
//	byte  bytes
//	0     4  magic and version
//	4     4  term: grows by one whenever a writer begins or takes over
//	8     4  epoch: the term in which the index was begun
//	12    1  1 when it is complete
const (
	headBytes = 13
	headMagic = 'W' | 'L'<<8 | 'K'<<16 | 1<<24
)

type head struct {
	term, epoch uint32
	complete    bool
}

// readHead reports false if value is no head.
func readHead(value []byte) (h head, ok bool) {
	if len(value) != headBytes || binary.LittleEndian.Uint32(value) != headMagic || value[12] > 1 {
		return head{}, false
	}
	return head{
		term:     binary.LittleEndian.Uint32(value[4:]),
		epoch:    binary.LittleEndian.Uint32(value[8:]),
		complete: value[12] == 1,
	}, true
}

func (h head) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, headMagic)
	dst = binary.LittleEndian.AppendUint32(dst, h.term)
	dst = binary.LittleEndian.AppendUint32(dst, h.epoch)
	if h.complete {
		return append(dst, 1)
	}
	return append(dst, 0)
}
