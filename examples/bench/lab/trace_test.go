package lab

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReadTrace(t *testing.T) {
	const lines = `{"timestamp": 1000, "input_length": 600, "output_length": 3, "hash_ids": [7, 8]}
{"timestamp": 3000, "input_length": 512, "output_length": 0, "hash_ids": [7]}
{"timestamp": 9000, "input_length": 512, "output_length": 5, "hash_ids": [9]}
`
	dir := t.TempDir()
	plain, zipped := filepath.Join(dir, "t.jsonl"), filepath.Join(dir, "t.jsonl.gz")
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write([]byte(lines))
	w.Close()
	for path, data := range map[string][]byte{plain: []byte(lines), zipped: z.Bytes()} {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := ReadTrace(path, Window{Name: "x", From: 1, To: 9, Speedup: 2}, 1)
		if err != nil || len(got.Requests) != 2 || got.Setting != "x" {
			t.Fatalf("%+v, %v", got, err)
		}
		a, b := &got.Requests[0], &got.Requests[1]
		if a.At != 0 || a.Tokens != 600 || a.Output != 3 || b.At != time.Second || b.Tokens != 512 || b.Output != 1 {
			t.Errorf("%v %d %d, %v %d %d", a.At, a.Tokens, a.Output, b.At, b.Tokens, b.Output)
		}
	}
}

func TestReadTraceRefuses(t *testing.T) {
	window := Window{To: 10, Speedup: 1}
	f := func(lines, want string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "t.jsonl")
		if err := os.WriteFile(path, []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadTrace(path, window, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	f("{", "line 1")
	f(`{"timestamp":1,"input_length":513,"output_length":1,"hash_ids":[1]}`, "line 1: 513 tokens need 2 hash ids, not 1")
	f(`{"timestamp":11000,"input_length":5,"output_length":1,"hash_ids":[1]}`, "no requests from 0 to 10 s")
	f(strings.Repeat(" ", maxLine+1), "too long")
	window.Speedup = 0
	f("", "speed above 0")
	window = Window{From: 5, To: 5, Speedup: 1}
	f("", "times that grow")
}

// Any lines give an error or conversations whose tokens are counted right.
func FuzzTrace(f *testing.F) {
	f.Add([]byte(`{"timestamp":0,"input_length":600,"output_length":3,"hash_ids":[7,8]}
{"timestamp":500,"input_length":1300,"output_length":3,"hash_ids":[7,9,10]}
{"timestamp":500,"input_length":1300,"output_length":3,"hash_ids":[7,9,11]}`), uint64(1))
	f.Add([]byte(`{"timestamp":0,"input_length":1,"output_length":-3,"hash_ids":[7,8]}`), uint64(2))
	f.Fuzz(func(t *testing.T, lines []byte, seed uint64) {
		all, err := readLines(bytes.NewReader(lines), Window{To: 10, Speedup: 2})
		if err != nil {
			return
		}
		shuffleTies(all, seed)
		check(t, all, converse("", all, seed))
	})
}
