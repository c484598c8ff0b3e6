package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestAppendTokens(t *testing.T) {
	f := func(answer string, want ...uint32) {
		t.Helper()
		got, err := AppendTokens([]uint32{7}, []byte(answer))
		if err != nil || !slices.Equal(got, append([]uint32{7}, want...)) {
			t.Errorf("%q: %v, %v, want %v", answer, got, err, want)
		}
	}
	f(`{"count":4,"max_model_len":4096,"tokens":[464,381,2586,466],"token_strs":null}`, 464, 381, 2586, 466)
	f(`{"tokens":[1, 1242, 465, 201, 36, 0, 99999999, 4294967295],"token_strs":["a]\"",{"b":[1]}]}`, 1, 1242, 465, 201, 36, 0, 99999999, 4294967295)
	f("\n{ \"tokens\" : [ 1 ,\n2 ] , \"count\" : 2 }\n", 1, 2)
	f(`{"count":0,"tokens":[]}`)
}

func TestAppendTokensRefuses(t *testing.T) {
	f := func(answer, want string) {
		t.Helper()
		got, err := AppendTokens([]uint32{7}, []byte(answer))
		if err == nil || !strings.Contains(err.Error(), want) || len(got) != 1 {
			t.Errorf("%q: %v, %v, want %q", answer, got, err, want)
		}
	}
	f(``, "not an object")
	f(`<html><body>502 Bad Gateway</body></html>`, "not an object")
	f(`{"error":{"message":"The model does not exist.","code":404}}`, "no tokens")
	f(`{"count":3,"tokens":[1,2]}`, "count says 3, there are 2")
	f(`{"tokens":[1,2],"count":-2}`, "count is no number")
	f(`{"tokens":[1,-2]}`, "not a token id")
	f(`{"tokens":[1,2.5]}`, "neither a comma")
	f(`{"tokens":[1,1e3]}`, "neither a comma")
	f(`{"tokens":[01]}`, "not a token id")
	f(`{"tokens":[4294967296]}`, "too large")
	f(`{"tokens":[123456789012345678901234567890]}`, "too large")
	f(`{"tokens":["1"]}`, "not a token id")
	f(`{"tokens":null}`, "no array")
	f(`{"tokens":[1],"tokens":[2]}`, "second time")
	f(`{"tokens":[1,2,3`, "neither a comma")
	f(`{"tokens":[1,2,3]`, "neither a comma")
	f(`{"tokens":[1]} x`, "after the end")
	f(`{"token_strs":["a`, "does not end")
	f(`{"a":,"tokens":[1]}`, "no value")
	f(`{"count":99999999999999999999,"tokens":[]}`, "")
}

func FuzzAppendTokens(f *testing.F) {
	for _, seed := range []string{
		`{"count":4,"max_model_len":4096,"tokens":[464,381,2586,466],"token_strs":null}`, `{"tokens":[1, 22, 333, 0,]}`,
		`{"tokens":[12345678,1234567,00]}`, `<html>`, `{"a":"\u0022","tokens":[]}`, `{"a":{"tokens":[1]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		got, err := AppendTokens(nil, answer)
		var v map[string]json.RawMessage
		if err != nil || json.Unmarshal(answer, &v) != nil || bytes.ContainsRune(answer, '\\') {
			return // it may be taken, as of other members only the end is looked for
		}
		var want []json.Number
		if json.Unmarshal(v["tokens"], &want) != nil || len(got) != len(want) {
			t.Fatalf("%q gave %v", answer, got)
		}
		for i := range got {
			if n, bad := strconv.ParseUint(string(want[i]), 10, 32); bad != nil || uint32(n) != got[i] {
				t.Fatalf("%q: token %d is %d", answer, i, got[i])
			}
		}
	})
}

// idRecord keeps what an IDSink is given.
type idRecord struct {
	record
	ids []byte
}

func (r *idRecord) IDs(words []byte) { r.ids = append(r.ids, words...) }
func (r *idRecord) Reset()           { r.record.Reset(); r.ids = r.ids[:0] }

func TestIDSink(t *testing.T) {
	f := func(kind Kind, body string, want ...uint32) {
		t.Helper()
		var s Scanner
		for piece := 1; piece <= len(body); piece += 13 {
			r := &idRecord{}
			s.Reset(kind, r)
			for rest := body; rest != ""; {
				n := min(piece, len(rest))
				s.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			s.Close()
			var ids []byte
			for _, id := range want {
				ids = append(ids, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
			}
			if !slices.Equal(r.ids, ids) {
				t.Errorf("%.100q in pieces of %d: %d bytes of ids, want %d", body, piece, len(r.ids), len(ids))
			}
		}
	}
	f(Completions, `{"prompt":[1,2,3000000000]}`, 1, 2, 3000000000)
	f(Completions, `{"prompt":[[1,2],[3]]}`, 1, 2)
	f(Completions, `{"prompt":[9,9],"prompt":[1, 2]}`, 1, 2)
	f(Completions, `{"prompt":"text"}`)
	f(Completions, `{"prompt":["a","b"]}`)
	f(Chat, `{"messages":[{"content":"x","ids":[1,2]}]}`)
	many := make([]uint32, 5000)
	list := make([]string, len(many))
	for i := range many {
		many[i] = uint32(i * 7)
		list[i] = strconv.Itoa(i * 7)
	}
	f(Completions, `{"prompt":[`+strings.Join(list, ",")+`]}`, many...)
}

func BenchmarkAppendTokens(b *testing.B) {
	answer := []byte(`{"count":32000,"max_model_len":131072,"tokens":[`)
	for i := range 32000 {
		answer = append(strconv.AppendInt(answer, int64(i*3), 10), ',')
	}
	answer = append(answer[:len(answer)-1], `]}`...)
	var ids []uint32
	b.SetBytes(int64(len(answer)))
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if ids, err = AppendTokens(ids[:0], answer); err != nil {
			b.Fatal(err)
		}
	}
}
