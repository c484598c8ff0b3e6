package lab

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func mean(t *testing.T, policy string, reqs []Request) Result {
	t.Helper()
	r, err := Run(policy, reqs, 8, DefaultEngine(), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%-12s hit %.1f %%, mean TTFT %.2f s, p99 %.2f s", policy, 100*r.HitRatio, r.TTFTMean, r.TTFTP99)
	return r
}

// The whole point: one proxy of four workers does as well as a policy that
// sees every queue and cache, and far better than a blind one.
func TestWarmlaneIsCloseToTheOracle(t *testing.T) {
	reqs := Conversations(1)
	best := min(mean(t, "oracle:0", reqs).TTFTMean, mean(t, "oracle:1", reqs).TTFTMean)
	ours := mean(t, "warmlane", reqs)
	blind := mean(t, "rr", reqs)
	if ours.TTFTMean > 1.2*best {
		t.Errorf("mean TTFT %.3f s, the oracle's %.3f s: more than 1.2 times", ours.TTFTMean, best)
	}
	if ours.TTFTMean > blind.TTFTMean/3 {
		t.Errorf("mean TTFT %.3f s, round robin's %.3f s: not a third", ours.TTFTMean, blind.TTFTMean)
	}
	if ours.HitRatio < 1.5*blind.HitRatio {
		t.Errorf("hit ratio %.2f, round robin's %.2f", ours.HitRatio, blind.HitRatio)
	}
}

func TestRunsAreRepeatable(t *testing.T) {
	reqs := Conversations(2)[:150]
	for _, policy := range []string{"work", "oracle:1", "warmlane:2:report"} {
		a, b := mean(t, policy, reqs), mean(t, policy, reqs)
		if a != b {
			t.Errorf("%s: %+v, then %+v", policy, a, b)
		}
	}
}

func TestPolicyNames(t *testing.T) {
	f := func(name string) {
		t.Helper()
		if _, err := Run(name, Conversations(1)[:1], 1, DefaultEngine(), 1); err == nil {
			t.Errorf("%q is no policy", name)
		}
	}
	f("")
	f("oracle")
	f("oracle:x")
	f("warmlane:0")
	f("warmlane:x")
	f("warmlane:1:x")
}

func TestPromptLargerThanTheCache(t *testing.T) {
	r := Request{Input: 600_000, Output: 1, Chunks: make([]uint64, 1172)}
	if _, err := Run("rr", []Request{r}, 1, DefaultEngine(), 1); err == nil {
		t.Error("a prompt no engine can hold would wait for ever")
	}
}

func TestReadTrace(t *testing.T) {
	const lines = `{"timestamp": 1000, "input_length": 600, "output_length": 3, "hash_ids": [7, 8]}
{"timestamp": 3000, "input_length": 512, "output_length": 0, "hash_ids": [7]}
{"timestamp": 9000, "input_length": 512, "output_length": 5, "hash_ids": [9]}
`
	dir := t.TempDir()
	plain, zipped := filepath.Join(dir, "t.jsonl"), filepath.Join(dir, "t.jsonl.gz")
	if err := os.WriteFile(plain, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	z := gzip.NewWriter(&b)
	z.Write([]byte(lines))
	z.Close()
	if err := os.WriteFile(zipped, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{plain, zipped} {
		got, err := ReadTrace(path, Window{From: 1, To: 9, Speedup: 2}, 1)
		if err != nil || len(got) != 2 {
			t.Fatalf("%v, %v", got, err)
		}
		if got[1].At != 1_000_000 || got[1].Output != 1 || got[0].Input != 600 || len(got[0].Chunks) != 2 {
			t.Errorf("%+v", got)
		}
	}
}

func TestReadTraceRefuses(t *testing.T) {
	f := func(lines, want string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "t.jsonl")
		if err := os.WriteFile(path, []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := ReadTrace(path, Window{To: 10, Speedup: 1}, 1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	f("{", "line 1")
	f(`{"timestamp":1,"input_length":513,"output_length":1,"hash_ids":[1]}`, "line 1: 513 tokens need 2 hash ids, not 1")
}

// An idle engine prefills at its rate and decodes at its speed.
func TestEngineTimes(t *testing.T) {
	reqs := []Request{{Input: 4096, Output: 61, Chunks: []uint64{1, 2, 3, 4, 5, 6, 7, 8}}}
	reqs = append(reqs, reqs[0])
	reqs[1].At = 10_000_000
	r := mean(t, "rr", reqs[:1])
	if r.TTFTMean < 0.255 || r.TTFTMean > 0.257 {
		t.Errorf("TTFT %v s, want 4096 / 16000", r.TTFTMean)
	}
	if d := r.EndToEnd - r.TTFTMean; d < 0.99 || d > 1.01 {
		t.Errorf("60 tokens took %v s, want 1", d)
	}
	one, err := Run("rr", reqs, 1, DefaultEngine(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if one.HitRatio < 0.49 || one.HitRatio > 0.5 {
		t.Errorf("hit ratio %v, want all but one token of the second prompt", one.HitRatio)
	}
}

func TestCacheEvictsTheOldest(t *testing.T) {
	a := &Request{Input: 1024, Chunks: []uint64{1, 2}}
	c := newCache(100)
	if !c.reserve(64) {
		t.Fatal("no room in an empty cache")
	}
	c.fill(1, 32)
	c.fill(2, 32)
	if c.reserve(64) {
		t.Fatal("pinned chunks were evicted")
	}
	c.unpin(a, 2)
	if !c.reserve(64) || c.match(a) != 1 {
		t.Errorf("%d chunks left, want the first: the end of a prompt goes first", c.match(a))
	}
}
