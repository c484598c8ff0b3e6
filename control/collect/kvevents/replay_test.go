package kvevents

import (
	"bytes"
	"testing"
)

// framed makes a message of frames.
func framed(frames ...[]byte) *message {
	m := new(message)
	for _, f := range frames {
		m.data = append(m.data, f...)
		m.ends = append(m.ends, len(m.data))
	}
	return m
}

func TestParseReply(t *testing.T) {
	end := number8(endSeq)
	f := func(want reply, ok bool, frames ...[]byte) {
		t.Helper()
		r, err := parseReply(framed(frames...))
		if (err == nil) != ok || r.end != want.end || r.seq != want.seq && !r.end || !bytes.Equal(r.payload, want.payload) || !bytes.Equal(r.topic, want.topic) {
			t.Errorf("%q: %+v, %v", frames, r, err)
		}
	}
	f(reply{seq: 7, payload: []byte("p"), topic: []byte("kv")}, true, nil, []byte("kv"), number8(7), []byte("p"))
	f(reply{seq: 7, payload: []byte("p")}, true, nil, number8(7), []byte("p"))
	f(reply{end: true}, true, capture(t, "kv-replay-end")...)
	f(reply{end: true}, true, nil, nil, end, nil)
	f(reply{end: true}, true, nil, end, nil)
	f(reply{end: true}, true, nil, end)
	f(reply{}, false, nil)
	f(reply{}, false, nil, nil)
	f(reply{}, false, nil, []byte("kv"), []byte("p"))
	f(reply{}, false, []byte("x"), number8(7), []byte("p"))
	f(reply{}, false, nil, nil, nil, nil, nil)
	if r, err := parseReply(framed(capture(t, "kv-replay-first")...)); err != nil || r.seq != 0 || Decode(r.payload, new(Batch)) != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

func FuzzParseReply(f *testing.F) {
	f.Add([]byte{}, []byte("kv"), number8(7), []byte("p"), 4)
	f.Add([]byte{}, []byte{}, number8(endSeq), []byte{}, 4)
	f.Add([]byte{}, number8(1), []byte("p"), []byte{}, 3)
	f.Fuzz(func(t *testing.T, a, b, c, d []byte, n int) {
		m := framed([][]byte{a, b, c, d, a, b}[:min(max(n, 0), 6)]...)
		r, err := parseReply(m)
		if err == nil && (len(a) != 0 || !r.end && r.seq == endSeq || len(r.payload) > len(m.data)) {
			t.Fatalf("%+v from %q", r, m.data)
		}
	})
}
