package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/warmlane/warmlane/control/collect"
	"github.com/warmlane/warmlane/control/publish"
	"github.com/warmlane/warmlane/filter/state"
)

// stopWithin bounds the graceful stop.
const stopWithin = 5 * time.Second

// serve runs the service until ctx ends.
func serve(ctx context.Context, c config, stdout io.Writer, log *slog.Logger) error {
	listener, err := net.Listen("tcp", c.listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	hub := publish.NewHub()
	registry := prometheus.NewRegistry()
	var ready sync.Once
	c.collect.Log = log
	c.collect.Observe = scrapeCounter(registry)
	c.collect.Counters = newEventCounters(registry)
	c.collect.Answered = answerCounter(registry)
	c.collect.Publish = func(pools []state.Pool, index []state.Patch) {
		hub.Publish(pools, index)
		ready.Do(func() { fmt.Fprintf(stdout, "ready http://%s\n", listener.Addr()) })
	}
	collector := collect.New(c.collect)
	server := newServer(c, hub, collector, registry, log)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			cancel(fmt.Errorf("serve: %w", err))
		}
	}()
	collector.Run(ctx)
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return errors.Join(err, stop(server, hub))
	}
	return stop(server, hub)
}

// stop answers the polls that wait, and closes connections.
func stop(server *http.Server, hub *publish.Hub) error {
	server.SetKeepAlivesEnabled(false)
	hub.Close()
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("stop: %w", err), server.Close())
	}
	return nil
}

func newServer(c config, hub *publish.Hub, collector *collect.Collector, registry *prometheus.Registry, log *slog.Logger) *http.Server {
	index := func(slot uint16) (publish.KV, bool) {
		kv, ok := collector.KV(slot)
		return publish.KV(kv), ok
	}
	stats := publish.NewStats(hub, index)
	registry.MustRegister(stats, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("/v1/", &publish.Handler{
		Hub: hub, Hold: c.hold, Token: c.token, Stats: stats, Now: time.Now,
		KV: index, Doubt: collector.Doubt,
	})
	mux.Handle("GET /v1/blocks", blocksPage(collector, c.token))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if hub.Latest() == nil {
			say(w, http.StatusServiceUnavailable, "the first state is not known yet")
			return
		}
		say(w, http.StatusOK, "ready")
	})
	return &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // nobody is left to be told
}
