//go:build wasip1

package abi

// Header gives the first value of a header; name must be in lower case. An
// absent header gives types.ErrorStatusNotFound. The value is valid until the
// next call of Header.
//
// A map is there from its own callback on, for as long as that has not answered
// Continue, and again in OnLog; in between, Envoy answers
// types.ErrorStatusBadArgument. Whoever needs several headers asks for
// ReadHeaders once: that costs little more than one Header.
func Header(m MapType, name string) ([]byte, error) {
	headerBuffer.expect()
	return headerBuffer.fetch(hostGetHeader(uint32(m), name, &result.data, &result.size))
}

// AppendHeader appends the first value of a header to dst, which on an error is
// returned as it was.
func AppendHeader(dst []byte, m MapType, name string) ([]byte, error) {
	value, err := Header(m, name)
	return append(dst, value...), err
}

// HeaderPairs gives a whole map, checked and valid until the next call of
// HeaderPairs or ReadHeaders. A map that does not exist is empty.
func HeaderPairs(m MapType) (Pairs, error) {
	pairsBuffer.expect()
	b, err := pairsBuffer.fetch(hostGetHeaderMap(uint32(m), &result.data, &result.size))
	if err != nil {
		return Pairs{}, err
	}
	return ParsePairs(b)
}

// ReadHeaders is HeaderPairs for the path of every request: into walks the map
// without a walk before to check it, so Next may stop early (Pairs.Err). On an
// error into is empty.
func ReadHeaders(m MapType, into *Pairs) error {
	pairsBuffer.expect()
	b, err := pairsBuffer.fetch(hostGetHeaderMap(uint32(m), &result.data, &result.size))
	if err != nil {
		into.clear()
		return err
	}
	return into.begin(b)
}

// HeaderBytes is the size of all names and values of a map. The host does not
// answer it in OnLog.
func HeaderBytes(m MapType) (int, error) {
	result.word = 0
	err := check(hostGetHeaderMapSize(uint32(m), &result.word))
	return int(result.word), err
}

// SetHeaderPairs replaces a whole map.
func SetHeaderPairs(m MapType, headers *Encoder) error {
	pairs, err := headers.Bytes()
	if err != nil {
		return err
	}
	return check(hostSetHeaderMap(uint32(m), start(pairs), length(pairs)))
}

// AddHeader adds a value to those a header may have. Request headers can be
// changed until OnRequestHeaders, or a later call while paused, has answered
// Continue; every change clears Envoy's choice of route.
func AddHeader(m MapType, name string, value []byte) error {
	return check(hostAddHeader(uint32(m), name, start(value), length(value)))
}

// ReplaceHeader sets a header to one value, whatever it had.
func ReplaceHeader(m MapType, name string, value []byte) error {
	return check(hostReplaceHeader(uint32(m), name, start(value), length(value)))
}

// RemoveHeader removes every value of a header; an absent one is no error.
func RemoveHeader(m MapType, name string) error {
	return check(hostRemoveHeader(uint32(m), name))
}

// Buffer gives at most max bytes of a buffer from an offset within it. The bytes
// are valid until the next call of Buffer, for any kind of buffer. More than
// 256 MiB at once are refused.
func Buffer(b BufferType, offset, max int) ([]byte, error) {
	bodyBuffer.expect()
	return bodyBuffer.fetch(hostGetBuffer(uint32(b), uint32(offset), uint32(max), &result.data, &result.size))
}

// AppendBuffer appends at most max bytes of a buffer to dst, which on an error
// is returned as it was.
func AppendBuffer(dst []byte, b BufferType, offset, max int) ([]byte, error) {
	chunk, err := Buffer(b, offset, max)
	return append(dst, chunk...), err
}

// BufferSize is the number of bytes in a buffer.
func BufferSize(b BufferType) (int, error) {
	result.word = 0
	err := check(hostGetBufferStatus(uint32(b), &result.word, &result.flags))
	return int(result.word), err
}

// SetBuffer changes a buffer. Envoy knows three forms: offset 0 replaces the
// first size bytes, so size 0 puts value in front and a size beyond the end
// replaces all; an offset at or beyond the end appends; anything between is
// types.ErrorStatusBadArgument.
func SetBuffer(b BufferType, offset, size int, value []byte) error {
	return check(hostSetBuffer(uint32(b), uint32(offset), uint32(size), start(value), length(value)))
}

// Property reads an attribute of the exchange, the connection or the plugin. The
// parts of path are separated by zero bytes ("upstream\x00address"). Integers come
// as 8 bytes, little-endian, times as nanoseconds. An attribute that is absent
// gives types.ErrorStatusNotFound. The value is valid until the next call of
// Property.
func Property(path string) ([]byte, error) {
	propertyBuffer.expect()
	return propertyBuffer.fetch(hostGetProperty(path, &result.data, &result.size))
}

// AppendProperty appends an attribute to dst, which on an error is returned as
// it was.
func AppendProperty(dst []byte, path string) ([]byte, error) {
	value, err := Property(path)
	return append(dst, value...), err
}

// SetProperty writes filter state of the stream in work: Envoy keeps it under
// "wasm." and the path, where access logs and other filters find it.
func SetProperty(path string, value []byte) error {
	return check(hostSetProperty(path, start(value), length(value)))
}
