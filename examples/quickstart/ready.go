package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/warmlane/warmlane/examples/internal/envoy"
)

const (
	filterWait = 60 * time.Second // to load and compile the module
	stateWait  = 5 * time.Second  // for the first state from control
	probeWait  = 10 * time.Second // for a replica to answer
	poll       = 20 * time.Millisecond
)

// verdicts counts what Envoy has said so far about the filters it was given.
type verdicts struct{ taken, refused int64 }

func askVerdicts(ctx context.Context, e *envoy.Process) (verdicts, error) {
	const discovery = "extension_config_discovery.http_filter." + filterName + "."
	stats, err := e.Stats(ctx, discovery)
	return verdicts{stats[discovery+"update_success"], stats[discovery+"update_rejected"]}, err
}

// awaitFilter waits until Envoy has taken or refused one more filter than before. A refusal comes with Envoy's log, which names the
// key of the configuration that is wrong.
func awaitFilter(ctx context.Context, e *envoy.Process, before verdicts) error {
	return until(ctx, filterWait, func(ctx context.Context) (bool, error) {
		now, err := askVerdicts(ctx, e)
		if now.refused > before.refused {
			return false, final{e.Fault("refuses the filter or its configuration")}
		}
		return now.taken > before.taken, err
	})
}

// awaitState waits until the filter has heard from control.
func awaitState(ctx context.Context, e *envoy.Process) error {
	const generation = "wasmcustom.warmlane_state_generation"
	return until(ctx, stateWait, func(ctx context.Context) (bool, error) {
		stats, err := e.Stats(ctx, generation)
		return stats[generation] > 0, err
	})
}

// awaitReplica sends a request through the listener until a replica answers it, with whatever status.
func awaitReplica(ctx context.Context, address string) error {
	url := "http://" + reachable(address) + "/v1/models"
	client := &http.Client{Timeout: probeWait, Transport: &http.Transport{DisableKeepAlives: true}}
	return until(ctx, probeWait, func(ctx context.Context) (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, final{err}
		}
		resp, err := client.Do(req)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		if resp.Header.Get("x-envoy-upstream-service-time") != "" { // set by Envoy on upstream answers only
			return true, nil
		}
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
		return false, fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(body)))
	})
}

// reachable is an address to connect to where something listens on address.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	switch {
	case err != nil:
		return address
	case host == "0.0.0.0":
		host = "127.0.0.1"
	case host == "::":
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}

// final is an error that waiting does not mend.
type final struct{ error }

// until asks again and again, until the answer is yes, an error is final, the time is over, or ctx ends. The error tells the last
// reason there was.
func until(ctx context.Context, limit time.Duration, ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	last := errors.New("nothing has been heard")
	for {
		done, err := ask(ctx)
		var verdict final
		switch {
		case done:
			return nil
		case errors.As(err, &verdict):
			return verdict.error
		case err != nil && ctx.Err() == nil:
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up: %w", last)
		case <-time.After(poll):
		}
	}
}
