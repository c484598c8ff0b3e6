package hostsim

import "encoding/binary"

// Limits of what the host parses as pairs (proxy-wasm-cpp-host, limits.h).
const (
	maxPairsBytes = 1 << 20
	maxPairsCount = 1024
)

// encodePairs writes h in the ABI's form: the number of fields, the lengths of
// each name and value, then names and values each followed by a zero byte. All
// integers are 32-bit little-endian.
func encodePairs(h Header) []byte {
	size := 4
	for _, f := range h {
		size += 8 + len(f[0]) + 1 + len(f[1]) + 1
	}
	out := make([]byte, 0, size)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(h)))
	for _, f := range h {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(f[0])))
		out = binary.LittleEndian.AppendUint32(out, uint32(len(f[1])))
	}
	for _, f := range h {
		out = append(append(out, f[0]...), 0)
		out = append(append(out, f[1]...), 0)
	}
	return out
}

// decodePairs reads the ABI's form. Anything malformed or over the limits is
// no pairs at all: so does the real host, which has no status for it.
func decodePairs(b []byte) Header {
	if len(b) < 4 || len(b) > maxPairsBytes {
		return nil
	}
	n := int(binary.LittleEndian.Uint32(b))
	if n > maxPairsCount || len(b) < 4+8*n {
		return nil
	}
	sizes, rest := b[4:4+8*n], b[4+8*n:]
	out := make(Header, n)
	for i := range 2 * n {
		size := uint64(binary.LittleEndian.Uint32(sizes[4*i:]))
		if size+1 > uint64(len(rest)) || rest[size] != 0 {
			return nil
		}
		out[i/2][i%2] = string(rest[:size])
		rest = rest[size+1:]
	}
	if len(rest) != 0 {
		return nil
	}
	return out
}
