//go:build e2e

package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/replica/node"
)

// TestKVIndexEqualsCache lets everything happen to three engines with small
// caches that may happen, and compares what control believes, block by block and
// copy by copy, with what the engines say.
func TestKVIndexEqualsCache(t *testing.T) {
	list := engines(t, 3, func(o *node.Options) { o.Engine.Blocks, o.Engine.MaxModelLen = 120, 1000 })
	f := startFleet(t, list, pool(t, "kv_events: true, tokenize: learned"), "-workers", "2")
	for _, r := range list {
		post(fresh, r.URL+"/v1/load_lora_adapter", []byte(`{"lora_name":"sql","lora_path":"/a"}`))
	}
	f.run(t, []part{
		{"evictions", f.traffic}, {"copies", f.copies}, {"announced again", f.announced}, {"gaps", f.gaps}, {"cleared", f.cleared}, {"restart", f.restart},
	})
	if n := f.controlSeries("warmlane_control_kv_anomalies_total", `kind="gap"`); n == 0 {
		t.Error("no gap was seen")
	}
	for _, kind := range []string{"undecodable", "unknown_event", "unknown_parent", "replay_failed", "replay_incomplete", "bad_block_size", "misaligned", "over_capacity"} {
		if n := f.controlSeries("warmlane_control_kv_anomalies_total", fmt.Sprintf("kind=%q", kind)); n > 0 {
			t.Errorf("%v anomalies of kind %s", n, kind)
		}
	}
	f.settled()
}

// traffic sends prompts that share beginnings, of several namespaces and
// lengths, more than the caches hold: through Envoy and past it.
func (f *fleet) traffic(t *testing.T) {
	var wg sync.WaitGroup
	for worker := range 6 {
		wg.Go(func() {
			for i := range 15 {
				o := chat(words(fmt.Sprint("shared", i%3), 60), " ok", words(fmt.Sprint("own", worker), 10+7*i))
				o["max_tokens"] = 1 + 5*(i%4)
				switch i % 5 {
				case 1:
					o["model"] = "sql"
				case 2:
					o["cache_salt"] = fmt.Sprint("tenant", worker)
				}
				url := f.url
				if i%2 == 1 {
					url = f.replicas[worker%len(f.replicas)].URL
				}
				if r := post(fresh, url+chatPath, body(o)); r.status != 200 {
					t.Errorf("status %d, %v: %.200s", r.status, r.err, r.body)
				}
			}
		})
	}
	wg.Wait()
	f.indexed(t)
}

// copies repeats prompts exactly: answers come again as they were, and their
// blocks and the last one of a prompt of whole blocks are stored once more.
func (f *fleet) copies(t *testing.T) {
	for i := range f.replicas {
		for range 3 {
			f.direct(t, i, completionPath, body(object{"model": "m", "prompt": ids(31, 64), "max_tokens": 40, "temperature": 0}))
		}
		most := 0
		for _, n := range f.cached(i) {
			most = max(most, n)
		}
		if most < 2 {
			t.Error("the engine has no copies")
		}
	}
	f.indexed(t)
}

// announced has cached blocks told again, which makes no copies.
func (f *fleet) announced(t *testing.T) {
	full := object{"model": "m", "prompt": ids(32, 150), "max_tokens": 1, "vllm_xargs": object{"kv_cache_report_mode": "full"}}
	for i := range f.replicas {
		f.direct(t, i, completionPath, idPrompt(ids(32, 150)))
		for range 3 {
			f.direct(t, i, completionPath, body(full))
		}
	}
	f.traffic(t) // and they go when their time has come
}

// gaps loses batches on the way.
func (f *fleet) gaps(t *testing.T) {
	for round := range 3 {
		for i, r := range f.replicas {
			r.Faults(fmt.Sprintf(`{"drop_batches": %d}`, 1+2*round))
			for k := range 4 + 2*round {
				f.direct(t, i, completionPath, idPrompt(ids(100*round+10*i+k, 100)))
			}
		}
	}
	f.indexed(t)
}

// cleared empties the caches, and then some more is cached.
func (f *fleet) cleared(t *testing.T) {
	for i, r := range f.replicas {
		if a := post(fresh, r.URL+"/reset_prefix_cache", nil); a.status != 200 {
			t.Fatalf("status %d", a.status)
		}
		f.direct(t, i, completionPath, idPrompt(ids(400+i, 100)))
	}
	f.indexed(t)
}

// restart has all engines begin anew.
func (f *fleet) restart(t *testing.T) {
	for i, r := range f.replicas {
		epoch := f.epoch(i)
		r.Faults(`{"restart": true}`)
		f.direct(t, i, completionPath, idPrompt(ids(500+i, 100)))
		f.direct(t, i, completionPath, idPrompt(ids(400+i, 80)))
		f.eventually(10*time.Second, "an index begun anew", func() bool { return f.epoch(i) > epoch })
	}
	f.indexed(t)
}
