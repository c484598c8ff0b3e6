package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/warmlane/warmlane/examples/internal/envoy"
	"github.com/warmlane/warmlane/examples/internal/proc"
)

// object is a document's mapping, in the types that JSON has.
type object = map[string]any

// readyWithin bounds the start of a router; quickstart may have to fetch Envoy.
const readyWithin = 90 * time.Second

// router is what stands between the replay and the engines.
type router struct {
	url   string
	admin envoy.AdminAPI
	stop  func()
}

// openRouter starts the router of a policy.
func openRouter(ctx context.Context, o options, policy string, workers int, replicas []string) (router, error) {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	switch policy {
	case "round-robin":
		return openEnvoy(ctx, workers, "round_robin.v3.RoundRobin", replicas)
	case "least-request":
		return openEnvoy(ctx, workers, "least_request.v3.LeastRequest", replicas)
	case "text":
		return openWarmlane(ctx, o, workers, object{"name": "default"}, replicas)
	case "precise-ask":
		return openWarmlane(ctx, o, workers, precise("ask"), replicas)
	case "precise-learned":
		return openWarmlane(ctx, o, workers, precise("learned"), replicas)
	}
	return router{}, fmt.Errorf("policy %q is not known", policy)
}

func precise(tokenize string) object {
	return object{"name": "default", "kv_events": true, "tokenize": tokenize, "cluster": "replicas", "tokenize_timeout_ms": 2000}
}

// routing are the filter's defaults in its own time: it lives by the machine's
// clock, on which the engines are faster than they are.
func routing(speed float64) object {
	return object{"in_flight_cost_s": 0.02 / speed, "prefill_rate": 8000 * speed, "load_half_life_ms": int(1000 / speed)}
}

// openWarmlane starts quickstart with the pool configured as given.
func openWarmlane(ctx context.Context, o options, workers int, pool object, replicas []string) (router, error) {
	dir, err := os.MkdirTemp("", "warmlane-trace-")
	if err != nil {
		return router{}, err
	}
	settings, err := json.Marshal(object{"filter": object{"pools": []any{pool}, "routing": routing(o.speed)}})
	if err != nil {
		return router{}, err
	}
	file := filepath.Join(dir, "settings.yaml") // JSON is YAML
	if err := os.WriteFile(file, settings, 0o600); err != nil {
		return router{}, err
	}
	p, err := proc.Start(nil, filepath.Join(o.build, "quickstart"), "-listen", "127.0.0.1:0", "-workers", strconv.Itoa(workers),
		"-replicas", strings.Join(replicas, ","), "-config", file, "-log-dir", filepath.Join(dir, "logs"))
	if err != nil {
		return router{}, err
	}
	stop := func() {
		p.Stop(10 * time.Second)
		_ = os.RemoveAll(dir) // a folder that stays harms nobody
	}
	line, err := p.Ready(ctx)
	if err != nil {
		stop()
		return router{}, err
	}
	url, rest, _ := strings.Cut(line, " ")
	admin, _, _ := strings.Cut(strings.TrimPrefix(rest, "admin=http://"), " ")
	return router{url: url, admin: envoy.AdminAPI(admin), stop: stop}, nil
}

// openEnvoy starts a plain Envoy whose own balancer chooses.
func openEnvoy(ctx context.Context, workers int, policy string, replicas []string) (router, error) {
	cache, err := envoy.CacheDir()
	if err != nil {
		return router{}, err
	}
	path, err := envoy.Fetch(ctx, cache, envoy.Default)
	if err != nil {
		return router{}, err
	}
	config, err := plain(policy, replicas)
	if err != nil {
		return router{}, err
	}
	p, err := envoy.Start(ctx, envoy.Options{Path: path, Config: config, Concurrency: workers, Log: os.Stderr, LogLevel: "error"})
	if err != nil {
		return router{}, err
	}
	address, err := p.Listener(ctx, "plain")
	if err != nil {
		p.Stop()
		return router{}, err
	}
	return router{url: "http://" + address, admin: p.AdminAPI, stop: p.Stop}, nil
}
