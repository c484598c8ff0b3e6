package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/warmlane/warmlane/examples/internal/envoy"
	"github.com/warmlane/warmlane/examples/internal/proc"
)

const (
	startLimit = 90 * time.Second // quickstart may have to fetch Envoy
	stopGrace  = 10 * time.Second
)

// fleet is the replicas of a round and what stands before them.
type fleet struct {
	replicas  []*proc.Process
	gate      *proc.Process
	addresses []string // of the replicas
	url       string   // where clients connect
	admin     envoy.AdminAPI
}

// startFleet starts fresh replicas and then quickstart with the flags. What they log goes to files in build.
func startFleet(ctx context.Context, build, name string, flags []string) (*fleet, error) {
	f := &fleet{}
	if err := f.start(ctx, build, name, flags); err != nil {
		f.stop()
		return nil, err
	}
	return f, nil
}

func (f *fleet) start(ctx context.Context, build, name string, flags []string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for range replicas {
		replica, err := proc.Start(nil, filepath.Join(build, "replica"), engine()...)
		if err != nil {
			return err
		}
		f.replicas = append(f.replicas, replica)
	}
	for _, replica := range f.replicas {
		line, err := replica.Ready(ctx)
		if err != nil {
			return err
		}
		url, _, _ := strings.Cut(line, " ")
		f.addresses = append(f.addresses, strings.TrimPrefix(url, "http://"))
	}
	return f.openGate(ctx, build, name, flags)
}

func (f *fleet) openGate(ctx context.Context, build, name string, flags []string) error {
	logs := filepath.Join(build, "demo-logs", strings.ReplaceAll(strings.ToLower(name), " ", "-"))
	if err := os.RemoveAll(logs); err != nil {
		return err
	}
	args := []string{"-listen", "127.0.0.1:0", "-replicas", strings.Join(f.addresses, ","), "-log-dir", logs}
	gate, err := proc.Start(nil, filepath.Join(build, "quickstart"), append(args, flags...)...)
	if err != nil {
		return err
	}
	f.gate = gate
	line, err := gate.Ready(ctx)
	if err != nil {
		return err
	}
	for i, word := range strings.Fields(line) {
		if i == 0 {
			f.url = word
		}
		if admin, ok := strings.CutPrefix(word, "admin=http://"); ok {
			f.admin = envoy.AdminAPI(admin)
		}
	}
	if f.admin == "" {
		return fmt.Errorf("quickstart's ready line names no admin address: %q", line)
	}
	return nil
}

// stop ends everything that was started.
func (f *fleet) stop() {
	if f.gate != nil {
		f.gate.Stop(stopGrace)
	}
	for _, replica := range f.replicas {
		replica.Kill() // simulated: there is nothing to finish
	}
}
