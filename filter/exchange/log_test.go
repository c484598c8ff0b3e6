package exchange

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestAppendTime(t *testing.T) {
	for ms := int64(0); ms < 4e12; ms += 1_234_567_891 {
		want := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
		if got := string(appendTime(nil, ms)); got != want {
			t.Fatalf("%d: %s, want %s", ms, got, want)
		}
	}
}

func TestLogIsJSON(t *testing.T) {
	h := newNative(t, 2, "")
	e := h.open(t, h.worker, chatBody("x", false))
	e.choice.Load.At, e.choice.Load.Waiting, e.choice.Load.KV, e.choice.Load.Hit = h.now-40, 3, 0.41, float32(math.NaN())
	e.ResponseHeaders(ok(), by(e.address()), true)
	var line struct {
		Time, Pool, Model, Branch, Replica, Answered, Outcome string
		Tier, Matched, Prompt, Candidates, Status             int
		Scores                                                map[string]float64
		Load                                                  map[string]float64
	}
	v := e.Settle(noWord)
	if len(v.Properties) != 1 || v.Properties[0].Name != logProperty {
		t.Fatalf("properties %v", v.Properties)
	}
	if err := json.Unmarshal(v.Properties[0].Value, &line); err != nil {
		t.Fatalf("%v: %s", err, v.Properties[0].Value)
	}
	if line.Model != "m" || line.Pool != "default" || line.Outcome != "ok" || line.Status != 200 || line.Replica != line.Answered {
		t.Errorf("%+v", line)
	}
	if len(line.Scores) != 4 || line.Load["waiting"] != 3 || line.Load["kv"] != 0.41 || line.Load["age_ms"] != 40 {
		t.Errorf("%+v", line)
	}
	if _, known := line.Load["hit"]; known {
		t.Error("what is not known was written")
	}
}

func TestAppendText(t *testing.T) {
	for _, text := range []string{"a\"b\\c", "\x01\n\x7f", "\u00e9\u4e16", "\xff"} {
		line := append(appendText([]byte(`{"x":1`), "k", []byte(text)), '}')
		var got struct{ K string }
		if err := json.Unmarshal(line, &got); err != nil || got.K != strings.ToValidUTF8(text, "\uFFFD") {
			t.Errorf("%q: %s, %v", text, line, err)
		}
	}
}

func TestAppendDecimal(t *testing.T) {
	for _, f := range []float64{0, 1, 0.5, 0.41, 0.001, 0.0004, 0.0006, 12.345, 12.3456, 0.999, 0.9999, 0.1, 0.01, 0.101, 100, 999999999999, 812.25} {
		want := strconv.FormatFloat(math.Round(f*1000)/1000, 'f', -1, 64)
		if got := string(appendDecimal(nil, f)); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
}
