package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/bench/lab"
)

// requests are a conversation of n turns, one each engine second.
func requests(n int) []lab.Request {
	var list []lab.Request
	messages := []lab.Message{{Role: "system", Content: strings.Repeat("be brief and kind ", 40)}}
	for i := range n {
		messages = append(messages, lab.Message{Role: "user", Content: strings.Repeat("and what of this ", 20)})
		list = append(list, lab.Request{At: time.Duration(i) * time.Second, Messages: append([]lab.Message(nil), messages...), Output: 3})
	}
	return list
}

func TestReplay(t *testing.T) {
	w, err := newWorld(50)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for _, together := range []bool{false, true} {
		for _, r := range w.replicas {
			r.Journal().Clear()
		}
		list := requests(5)
		p := newReplay(w.clock, "http://"+w.replicas[0].Addr(), together)
		if err := p.run(context.Background(), list); err != nil {
			t.Fatal(err)
		}
		got, err := score("s", "p", 1, w, p.inside)
		if err != nil {
			t.Fatal(err)
		}
		if got.HitRatio < 0.5 || got.Mean <= 0 || got.P50 > got.P90 || got.P90 > got.P99 || got.Calls != 0 {
			t.Errorf("together %v: a conversation on one engine gave %+v", together, got)
		}
	}
}

func TestReplayTellsWhatFailed(t *testing.T) {
	w, err := newWorld(50)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	list := requests(2)
	list[1].Output = -7 // refused
	err = newReplay(w.clock, "http://"+w.replicas[0].Addr(), false).run(context.Background(), list)
	if err == nil || !strings.Contains(err.Error(), "request 1: status 400") {
		t.Errorf("%v", err)
	}
	if _, err := score("s", "p", 1, w, make([]time.Duration, 2)); err == nil {
		t.Error("a play with a refused request was scored")
	}
}

func TestInstrument(t *testing.T) {
	rows := []row{{Setting: "a", Policy: "round-robin", Workers: 1, Mean: 2}, {Setting: "a", Policy: virtualRoundRobin, Workers: 1, Mean: 2.09}}
	if err := checkInstrument(rows); err != nil {
		t.Error(err)
	}
	rows[1].Mean = 2.2
	if err := checkInstrument(rows); err == nil {
		t.Error("a tenth apart was taken")
	}
}

func TestSave(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.json")
	rows := []row{{Setting: "a", Policy: "text", Workers: 4, Proxies: 1, Mean: 1.5}, {Setting: "a", Policy: virtualRoundRobin}}
	if err := save(file, rows); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0]["policy"] != "text" || got[0]["ttft_mean_s"] != 1.5 || got[0]["workers"] != 4.0 {
		t.Errorf("%v", got)
	}
}

func TestFlags(t *testing.T) {
	f := func(args string, want string) {
		t.Helper()
		_, err := parse(strings.Fields(args))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	f("-trace t -workers 1,2 -policies text,oracle -settings synth", "")
	f("-trace=", "-trace")
	f("-trace t -workers 0", "-workers")
	f("-trace t -policies best", "best")
	f("-trace t -settings none", "none")
	f("-trace t -speed -1", "-speed")
}

func TestPercentiles(t *testing.T) {
	sorted := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	if got := at(sorted, 0.5); got != 6 {
		t.Errorf("p50 %v", got)
	}
	if got := at(sorted, 1); got != 10 {
		t.Errorf("p100 %v", got)
	}
}
