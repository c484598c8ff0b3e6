package report

import (
	"encoding/binary"
	"math"

	"github.com/warmlane/warmlane/filter/state"
)

// sample is what the engine said of itself last. Its value in shared data,
// little-endian; what is not known is -1 or NaN:
//
//	magic u32, waiting i32, at i64 (ms since the Unix epoch), running i32,
//	kv, hit, rps, tps, gpu, gpuMemory f32
type sample struct {
	state.Load
	gpu, gpuMemory float32 // use of the GPUs and of their memory, 0 to 1
}

const (
	sampleMagic = 0x31524c57 // "WLR1"
	sampleSize  = 44
)

func (v *sample) encode(b *[sampleSize]byte) {
	binary.LittleEndian.PutUint32(b[0:], sampleMagic)
	binary.LittleEndian.PutUint32(b[4:], uint32(v.Waiting))
	binary.LittleEndian.PutUint64(b[8:], uint64(v.At))
	binary.LittleEndian.PutUint32(b[16:], uint32(v.Running))
	for i, f := range v.floats() {
		binary.LittleEndian.PutUint32(b[20+4*i:], math.Float32bits(*f))
	}
}

// decode reads a sample; false if b is none.
func (v *sample) decode(b []byte) bool {
	if len(b) != sampleSize || binary.LittleEndian.Uint32(b) != sampleMagic {
		return false
	}
	v.Waiting = int32(binary.LittleEndian.Uint32(b[4:]))
	v.At = int64(binary.LittleEndian.Uint64(b[8:]))
	v.Running = int32(binary.LittleEndian.Uint32(b[16:]))
	for i, f := range v.floats() {
		*f = math.Float32frombits(binary.LittleEndian.Uint32(b[20+4*i:]))
	}
	return true
}

func (v *sample) floats() [6]*float32 {
	return [6]*float32{&v.KV, &v.Hit, &v.RPS, &v.TPS, &v.gpu, &v.gpuMemory}
}
