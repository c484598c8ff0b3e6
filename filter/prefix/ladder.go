package prefix

// The ladder: rung r (from 0) stands for the chain's hash after a number of
// blocks. Rungs come in octaves of 16: 1-16, 17-32, 34-64 in steps of 2,
// 68-128 in steps of 4, and so on to 262,144 blocks, which are 64 MB.
const (
	maxRungs  = 15 * 16
	maxBlocks = 1 << 18
)

// stepAt is how many blocks rung r lies above the rung before it.
func stepAt(r int) int {
	if r < 32 {
		return 1
	}
	return 1 << (r/16 - 1)
}

// blocksAt is how many blocks rung r stands for.
func blocksAt(r int) int {
	if r < 16 {
		return r + 1
	}
	return (16 + r%16 + 1) << (r/16 - 1)
}
