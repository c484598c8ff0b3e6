package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/warmlane/warmlane/examples/internal/proc"
	"sigs.k8s.io/yaml"
)

const (
	controlReady = 20 * time.Second // until its first ready line
	stopGrace    = 5 * time.Second
	firstPause   = 100 * time.Millisecond // before a dead control is started again; doubled each time
	longestPause = 5 * time.Second
	soundLife    = 10 * time.Second // after living as long, the pause starts small again
)

// controlConfig is control's configuration: one pool with the replicas, and the settings on top. If file is not empty it names the
// list of replicas, one a line, that control is to watch. Either way addresses are resolved, so that control and Envoy name replicas alike.
// KV events come from the given sources, by position; the other replicas are asked for theirs.
func controlConfig(listen string, replicas []replica, kv []kvSource, file string, s settings) ([]byte, error) {
	pool := object{"name": poolName, "kv_events": true}
	if file != "" {
		pool["replicas_file"] = file
	} else {
		pool["replicas"] = members(replicas, kv)
	}
	base := object{
		"listen": listen,
		"scrape": object{"interval": "250ms"},
		"pools":  []any{pool},
	}
	return yaml.Marshal(merge(base, s.control))
}

func members(replicas []replica, kv []kvSource) []any {
	list := make([]any, len(replicas))
	for i, each := range replicas {
		list[i] = each.address
		if i < len(kv) && kv[i].events != "" {
			list[i] = object{"address": each.address, "kv_events": []any{kv[i].object()}}
		}
	}
	return list
}

func (k kvSource) object() object {
	o := object{"endpoint": k.events}
	if k.replay != "" {
		o["replay"] = k.replay
	}
	return o
}

// checkControl has control itself look at a configuration file.
func checkControl(ctx context.Context, program, config string) error {
	out, err := exec.CommandContext(ctx, program, "-config", config, "-check").CombinedOutput()
	if err != nil {
		return fmt.Errorf("control refuses its configuration: %s", strings.TrimSpace(string(out)))
	}
	return nil
}

// warden keeps control running. It has no goroutine of its own: the owner waits on died and due and calls back.
type warden struct {
	program string
	config  string // path
	log     io.Writer

	process *proc.Process // nil while there is none
	started time.Time
	pause   time.Duration
	due     <-chan time.Time // when to start again; nil if it runs
}

// begin starts control and waits for its ready line; it returns the address it listens on.
func (w *warden) begin(ctx context.Context) (string, error) {
	if err := w.start(); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, controlReady)
	defer cancel()
	url, err := w.process.Ready(ctx)
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(url, "http://"), nil
}

func (w *warden) start() error {
	process, err := proc.Start(w.log, w.program, "-config", w.config)
	if err != nil {
		return err
	}
	w.process, w.started, w.due = process, time.Now(), nil
	return nil
}

// died is closed when control has ended; nil, which blocks for ever, while there is none.
func (w *warden) died() <-chan struct{} {
	if w.process == nil {
		return nil
	}
	return w.process.Done()
}

// mourn plans the next start, after control has ended or could not be started, and returns the pause until then.
func (w *warden) mourn() time.Duration {
	if w.process != nil {
		w.process.Kill() // what may be left of its group
		w.process = nil
	}
	if w.pause *= 2; w.pause < firstPause || time.Since(w.started) > soundLife {
		w.pause = firstPause
	}
	w.pause = min(w.pause, longestPause)
	w.due = time.After(w.pause)
	return w.pause
}

// restart replaces a running control, or one that is due, at once.
func (w *warden) restart() error {
	w.stop()
	return w.start()
}

func (w *warden) stop() {
	if w.process != nil {
		w.process.Stop(stopGrace)
		w.process = nil
	}
}
