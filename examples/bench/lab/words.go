package lab

// appendWords writes the words of a prompt's positions [from, to). Each is a
// space and two to four letters, four bytes on average, and one token wherever
// it stands, since the engine's tokens begin at spaces and have up to six bytes.
func (p *prompt) appendWords(text []byte, from, to int) []byte {
	for position := from; position < to; position++ {
		n := p.path[min(position/chunkTokens, len(p.path)-1)].at(position)
		h := mix(n.seed + uint64(position))
		text = append(text, ' ')
		for letters := 2 + h%3; letters > 0; letters-- {
			h /= 3
			text = append(text, 'a'+byte(h%26))
			h /= 26
		}
	}
	return text
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
