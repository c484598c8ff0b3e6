package publish

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/warmlane/warmlane/filter/state"
)

var noon = time.UnixMilli(1_796_050_799_040)

func handler(h *Hub) *Handler {
	return &Handler{Hub: h, Hold: 50 * time.Millisecond, Stats: NewStats(h, nil), Now: func() time.Time { return noon }}
}

func get(h http.Handler, method, target, auth string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	if auth != "" {
		r.Header.Set("Authorization", auth)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestStatuses(t *testing.T) {
	empty := handler(NewHub())
	full := handler(NewHub())
	full.Hub.Publish(fleet(2, 1, "a"), nil)
	held := state.Request{Epoch: full.Hub.epoch, Gen: 1}
	f := func(h *Handler, method, target string, status int, contains string) {
		t.Helper()
		w := get(h, method, target, "")
		if w.Code != status || !strings.Contains(w.Body.String(), contains) {
			t.Errorf("%s %s: %d %.200q", method, target, w.Code, w.Body)
		}
		if status >= 400 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: not JSON: %q", target, w.Body)
		}
		if w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: may be cached", target)
		}
	}
	f(full, "GET", "/v1/state?epoch=0&gen=0", 200, "WLS\x01")
	f(full, "GET", "/v1/state", 200, "WLS\x01")
	f(full, "GET", "/v1/state?later=1", 200, "WLS\x01")
	f(full, "GET", held.Path(), 204, "")
	f(empty, "GET", "/v1/state", 503, "no_state")
	f(full, "GET", "/v1/state?gen=x", 400, "gen: want a number of 64 bits, got \\\"x\\\"")
	f(full, "GET", "/v1/state?gen=-1", 400, "gen: ")
	f(full, "GET", "/v1/state?page=4294967296", 400, "page: want a number of 32 bits")
	f(full, "GET", "/v1/state?a=%zz", 400, "query: ")
	f(full, "GET", "/v1/state?"+strings.Repeat("pool=a&", maxPoolsAsked+1), 400, "pool: at most 256, got 257")
	f(full, "POST", "/v1/state", 405, "method_not_allowed")
	f(full, "GET", "/v1/other", 404, "not_found")
	f(full, "GET", "/v1/pools", 200, `"generation": 1`)
	f(empty, "GET", "/v1/pools", 200, `"pools": []`)
}

func TestToken(t *testing.T) {
	h := handler(NewHub())
	h.Hub.Publish(fleet(1, 1, "a"), nil)
	h.Token = "s3cret"
	f := func(auth string, status int) {
		t.Helper()
		for _, path := range []string{"/v1/state", "/v1/pools"} {
			w := get(h, "GET", path, auth)
			if w.Code != status {
				t.Errorf("%s %q: %d", path, auth, w.Code)
			}
			if status == 401 && (strings.Contains(w.Body.String(), "10.0") || !json.Valid(w.Body.Bytes()) || w.Header().Get("WWW-Authenticate") != "Bearer") {
				t.Errorf("%s %q: %v %s", path, auth, w.Header(), w.Body)
			}
		}
	}
	f("", 401)
	f("Bearer", 401)
	f("Bearer s3cre", 401)
	f("Bearer s3cret ", 401)
	f("Basic s3cret", 401)
	f("s3cret", 401)
	f("Bearer s3cret", 200)
	f("bearer s3cret", 200)
}

// The shape that people and tests rely on, to the letter.
func TestPoolsPage(t *testing.T) {
	h := handler(NewHub())
	h.Hub.Publish([]state.Pool{{Name: "default", Models: []string{"tiny"}, Replicas: []state.Replica{
		{Slot: 0, Address: "10.0.0.7:8000", Health: state.Healthy, Models: []string{"tiny"},
			Adapters: []state.Adapter{{Name: "lora-a", State: state.AdapterLoaded}}, BlockSize: 32,
			Load: state.Load{At: 1_796_050_799_000, Waiting: 3, Running: 12, KV: .41, Hit: .77, RPS: 4.1, TPS: 812}},
		{Slot: 12, Address: "[::1]:8000", Load: state.NoLoad()},
	}}}, nil)
	got := get(h, "GET", "/v1/pools", "")
	want := `{"epoch":EPOCH,"generation":1,"pools":[{"name":"default","models":["tiny"],"replicas":[
		{"slot":"r0","address":"10.0.0.7:8000","state":"healthy","models":["tiny"],"adapters":[{"name":"lora-a","state":"loaded"}],
		 "load":{"waiting":3,"running":12,"kv_usage":0.41,"hit_ratio":0.77,"rps":4.1,"tps":812,"age_ms":40},
		 "kv":{"blocks":null,"block_size":32,"last_seq":null,"partial":null,"epoch":null}},
		{"slot":"r12","address":"[::1]:8000","state":"unknown","models":null,"adapters":null,
		 "load":{"waiting":null,"running":null,"kv_usage":null,"hit_ratio":null,"rps":null,"tps":null,"age_ms":null},
		 "kv":{"blocks":null,"block_size":null,"last_seq":null,"partial":null,"epoch":null}}]}]}`
	var page struct{ Epoch json.Number }
	if err := json.Unmarshal(got.Body.Bytes(), &page); err != nil {
		t.Fatal(err)
	}
	if a, b := compact(t, got.Body.String()), compact(t, strings.Replace(want, "EPOCH", page.Epoch.String(), 1)); a != b {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
	if e, err := page.Epoch.Float64(); err != nil || e < 1 || e != math.Trunc(e) || e > 1<<53 {
		t.Errorf("epoch %v does not fit a float", page.Epoch)
	}
}

func compact(t *testing.T, s string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.SplitSeq(s, "\n") {
		b.WriteString(strings.TrimSpace(line))
	}
	out := strings.ReplaceAll(b.String(), "\": ", "\":")
	if !json.Valid([]byte(out)) {
		t.Fatalf("not JSON: %s", out)
	}
	return out
}

func TestStats(t *testing.T) {
	h := handler(NewHub())
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(h.Stats)
	pools := fleet(3, 1, "a")
	pools[0].Replicas[1].Health = state.Draining
	pools[0].Replicas[2].Load.KV = float32(math.NaN())
	h.Hub.Publish(pools, nil)
	page := get(h, "GET", "/v1/state", "").Body.Len()
	text := get(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), "GET", "/metrics", "").Body.String()
	for _, want := range []string{
		`warmlane_control_load_unknown{pool="a",signal="kv_usage"} 1`,
		`warmlane_control_load_unknown{pool="a",signal="running"} 3`,
		`warmlane_control_load_unknown{pool="a",signal="waiting"} 0`,
		`warmlane_control_replicas{pool="a",state="draining"} 1`,
		`warmlane_control_replicas{pool="a",state="healthy"} 2`,
		`warmlane_control_replicas{pool="a",state="unhealthy"} 0`,
		`warmlane_control_replicas{pool="a",state="unknown"} 0`,
		`warmlane_control_state_generation 1`,
		`warmlane_control_state_waiters 0`,
		`warmlane_control_state_bytes_total ` + strconv.Itoa(page),
		`warmlane_control_scrape_age_seconds `,
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("lacks %s", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// What is known of the KV index goes to people and to Prometheus.
func TestKV(t *testing.T) {
	known := map[uint16]KV{
		0: {Blocks: 120, BlockSize: 16, LastSeq: 99, Partial: true, Epoch: 3},
		1: {Blocks: 0, LastSeq: -1},
	}
	h := handler(NewHub())
	h.KV = func(slot uint16) (KV, bool) { kv, ok := known[slot]; return kv, ok }
	h.Stats = NewStats(h.Hub, h.KV)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(h.Stats)
	pools := fleet(3, 1, "a")
	pools[0].Replicas[1].BlockSize = 32
	h.Hub.Publish(pools, nil)
	page := compact(t, get(h, "GET", "/v1/pools", "").Body.String())
	text := get(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), "GET", "/metrics", "").Body.String()
	for _, want := range []string{
		`"kv":{"blocks":120,"block_size":16,"last_seq":99,"partial":true,"epoch":3}`,
		`"kv":{"blocks":0,"block_size":32,"last_seq":null,"partial":false,"epoch":0}`,
		`"kv":{"blocks":null,"block_size":null,"last_seq":null,"partial":null,"epoch":null}`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("lacks %s in %s", want, page)
		}
	}
	for want, there := range map[string]bool{
		`warmlane_control_kv_blocks{pool="a",slot="r0"} 120`: true,
		`warmlane_control_kv_blocks{pool="a",slot="r1"} 0`:   true,
		`warmlane_control_kv_blocks{pool="a",slot="r2"}`:     false,
		`warmlane_control_kv_partial{pool="a",slot="r0"} 1`:  true,
		`warmlane_control_kv_partial{pool="a",slot="r1"} 0`:  true,
		`warmlane_control_kv_partial{pool="a",slot="r2"}`:    false,
		"\nwarmlane_control_kv_records_dropped_total 0":      true,
	} {
		if strings.Contains(text, want) != there {
			t.Errorf("%s: want it there %v", want, there)
		}
	}
}

// Doubts mean the slots of one instance of control.
func TestDoubts(t *testing.T) {
	h := handler(NewHub())
	h.Hub.Publish(fleet(1, 1, "a"), nil)
	f := func(query string, status int, want ...uint16) {
		t.Helper()
		var got []uint16
		h.Doubt = func(slot uint16) { got = append(got, slot) }
		if w := get(h, "GET", "/v1/state?"+query, ""); w.Code != status || !slices.Equal(got, want) {
			t.Errorf("%s: %d %v, %s", query, w.Code, got, w.Body)
		}
	}
	mine := "epoch=" + strconv.FormatUint(h.Hub.epoch, 10) + "&gen=1"
	f(mine, 204)
	f(mine+"&doubt=0&doubt=65535", 204, 0, 65535)
	f("epoch=5&gen=1&doubt=1", 200)
	f(mine+"&doubt=65536", 400)
	f(mine+"&doubt=", 400)
	f(mine+strings.Repeat("&doubt=1", state.MaxDoubts+1), 400)
	h.Doubt = nil
	if w := get(h, "GET", "/v1/state?"+mine+"&doubt=1", ""); w.Code != 204 {
		t.Errorf("nobody cares: %d", w.Code)
	}
}

// waiting returns how many polls are held.
func waiting(t *testing.T, s *Stats) int {
	var m dto.Metric
	if err := s.waiters.Write(&m); err != nil {
		t.Error(err)
	}
	return int(m.GetGauge().GetValue())
}

// 1,000 filters wait over real connections; one change answers them all, and
// the next one does too.
func TestThousandPolls(t *testing.T) {
	const filters = 1000
	h := handler(NewHub())
	h.Hold = time.Minute
	h.Hub.Publish(fleet(8, 0, "a"), nil)
	srv := httptest.NewServer(h)
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: filters}}
	defer client.CloseIdleConnections()
	views := make([]state.View, filters)
	round := func() {
		var wg sync.WaitGroup
		for i := range views {
			wg.Go(func() {
				if err := pollOnce(client, srv.URL, &views[i]); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	round()
	for i := range int32(3) {
		published := make(chan time.Time)
		go func() {
			for end := time.Now().Add(30 * time.Second); waiting(t, h.Stats) < filters && time.Now().Before(end); {
				time.Sleep(5 * time.Millisecond)
			}
			now := time.Now()
			h.Hub.Publish(fleet(8, i+1, "a"), nil)
			published <- now
		}()
		done := make(chan struct{})
		go func() { round(); close(done) }()
		begun := <-published
		<-done
		t.Logf("%d polls answered in %v", filters, time.Since(begun))
	}
	for i := range views {
		if views[i].Snapshot().Generation != 4 {
			t.Fatalf("filter %d has generation %d", i, views[i].Snapshot().Generation)
		}
	}
}

func pollOnce(client *http.Client, base string, v *state.View) error {
	resp, err := client.Get(base + v.Query(nil))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	_, err = v.Apply(page)
	return err
}

// FuzzRequest: what a filter writes is read as it was meant, and no query
// makes the reader panic.
func FuzzRequest(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint64(3), uint32(4), "a b&é", uint16(7), "epoch=1&gen=2")
	f.Add(uint64(0), uint64(0), uint64(0), uint32(0), "", uint16(0), "pool=%zz&doubt=x")
	f.Fuzz(func(t *testing.T, epoch, gen, to uint64, page uint32, pool string, doubt uint16, raw string) {
		_, _ = parseRequest(raw)
		q := state.Request{Epoch: epoch, Gen: gen, To: to, Page: page, Pools: []string{pool}, Doubts: []uint16{doubt}}
		if page == 0 {
			q.To = 0
		}
		got, err := parseRequest(strings.TrimPrefix(q.Path(), state.Path+"?"))
		if err != nil {
			t.Fatal(err)
		}
		if got.Epoch != q.Epoch || got.Gen != q.Gen || got.To != q.To || got.Page != q.Page || len(got.Pools) != 1 || got.Pools[0] != pool || !slices.Equal(got.Doubts, q.Doubts) {
			t.Fatalf("got %+v, want %+v", got, q)
		}
	})
}
