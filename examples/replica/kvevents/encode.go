package kvevents

import (
	"encoding/binary"
	"math"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

// Shape is how events lie on the wire. vLLM changed it over time; the zero value
// is what 0.32 sends.
type Shape struct {
	ArrayEvents bool // events as positional arrays tagged by their first element, as before about 0.28
	BytesHashes bool // hashes as 32 bytes instead of unsigned 64-bit numbers
}

// AppendBatch appends the msgpack payload of a batch: [ts, [event, ...], rank].
// ts is in seconds since 1970.
func (s Shape) AppendBatch(b []byte, ts float64, events []engine.Event) []byte {
	b = append(b, 0x93, 0xcb)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(ts))
	b = appendArray(b, len(events))
	for i := range events {
		b = s.appendEvent(b, &events[i])
	}
	return append(b, 0)
}

func (s Shape) appendEvent(b []byte, ev *engine.Event) []byte {
	if s.ArrayEvents {
		return s.appendPositional(b, ev)
	}
	switch ev.Kind {
	case engine.BlockStored:
		return s.appendStored(b, ev)
	case engine.BlockRemoved:
		b = append(b, 0x84)
		b = appendText(appendText(b, "type"), "BlockRemoved")
		b = s.appendHashes(appendText(b, "block_hashes"), ev.Hashes)
		b = appendText(appendText(b, "medium"), "GPU")
		return append(appendText(b, "group_idx"), 0)
	default:
		return appendText(appendText(append(b, 0x81), "type"), "AllBlocksCleared")
	}
}

// appendStored writes the fields in vLLM's order. Those with a default value,
// such as an absent session, are left out.
func (s Shape) appendStored(b []byte, ev *engine.Event) []byte {
	fields := byte(11)
	if ev.Session != "" {
		fields++
	}
	b = append(b, 0x80|fields)
	b = appendText(appendText(b, "type"), "BlockStored")
	b = s.appendHashes(appendText(b, "block_hashes"), ev.Hashes)
	b = s.appendParent(appendText(b, "parent_block_hash"), ev)
	b = appendTokens(appendText(b, "token_ids"), ev.Tokens)
	b = appendUint(appendText(b, "block_size"), uint64(ev.BlockSize))
	b = appendAdapterID(appendText(b, "lora_id"), ev.Space)
	b = appendText(appendText(b, "medium"), "GPU")
	b = appendTextOrNil(appendText(b, "lora_name"), ev.Space.Adapter)
	b = appendExtra(appendText(b, "extra_keys"), ev.Extra)
	b = append(appendText(b, "group_idx"), 0)
	b = appendText(appendText(b, "kv_cache_spec_kind"), "full_attention")
	if ev.Session != "" {
		b = appendText(appendText(b, "session_id"), ev.Session)
	}
	return b
}

// appendPositional writes the older form, which ended with extra_keys.
func (s Shape) appendPositional(b []byte, ev *engine.Event) []byte {
	switch ev.Kind {
	case engine.BlockStored:
		b = appendText(append(b, 0x99), "BlockStored")
		b = s.appendHashes(b, ev.Hashes)
		b = s.appendParent(b, ev)
		b = appendTokens(b, ev.Tokens)
		b = appendUint(b, uint64(ev.BlockSize))
		b = appendAdapterID(b, ev.Space)
		b = appendText(b, "GPU")
		b = appendTextOrNil(b, ev.Space.Adapter)
		return appendExtra(b, ev.Extra)
	case engine.BlockRemoved:
		b = appendText(append(b, 0x93), "BlockRemoved")
		return appendText(s.appendHashes(b, ev.Hashes), "GPU")
	default:
		return appendText(append(b, 0x91), "AllBlocksCleared")
	}
}

func (s Shape) appendHash(b []byte, h engine.Hash) []byte {
	if s.BytesHashes {
		return append(append(b, 0xc4, byte(len(h))), h[:]...)
	}
	return appendUint(b, h.Uint64())
}

func (s Shape) appendHashes(b []byte, hashes []engine.Hash) []byte {
	b = appendArray(b, len(hashes))
	for _, h := range hashes {
		b = s.appendHash(b, h)
	}
	return b
}

func (s Shape) appendParent(b []byte, ev *engine.Event) []byte {
	if ev.Root {
		return append(b, 0xc0)
	}
	return s.appendHash(b, ev.Parent)
}

func appendTokens(b []byte, tokens []engine.Token) []byte {
	b = appendArray(b, len(tokens))
	for _, t := range tokens {
		b = appendUint(b, uint64(t))
	}
	return b
}

func appendExtra(b []byte, extra [][]string) []byte {
	b = appendArray(b, len(extra))
	for _, keys := range extra {
		if len(keys) == 0 {
			b = append(b, 0xc0)
			continue
		}
		b = appendArray(b, len(keys))
		for _, k := range keys {
			b = appendText(b, k)
		}
	}
	return b
}

func appendAdapterID(b []byte, s engine.Space) []byte {
	if s.Adapter == "" {
		return append(b, 0xc0)
	}
	return appendUint(b, uint64(s.AdapterID))
}

func appendTextOrNil(b []byte, s string) []byte {
	if s == "" {
		return append(b, 0xc0)
	}
	return appendText(b, s)
}

// The rest is msgpack: each value in its shortest form.

func appendUint(b []byte, v uint64) []byte {
	switch {
	case v < 1<<7:
		return append(b, byte(v))
	case v < 1<<8:
		return append(b, 0xcc, byte(v))
	case v < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(v))
	case v < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcf), v)
}

func appendArray(b []byte, n int) []byte {
	switch {
	case n < 16:
		return append(b, 0x90|byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, 0xdc), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, 0xdd), uint32(n))
}

func appendText(b []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		b = append(b, 0xa0|byte(n))
	case n < 1<<8:
		b = append(b, 0xd9, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0xda), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n))
	}
	return append(b, s...)
}
