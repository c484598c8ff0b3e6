package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/warmlane/warmlane/examples/bench/lab"
	"github.com/warmlane/warmlane/examples/replica/pace"
)

// replay sends a workload by the world's clock.
type replay struct {
	clock    *pace.Clock
	base     string
	together bool // do not wait for the head of one request before the next of the same moment is sent
	client   *http.Client

	mu     sync.Mutex
	inside []time.Duration // real time from sending to the answer's head
	err    error           // the first failure
}

// requestLimit is the real time that one exchange may take.
const requestLimit = 5 * time.Minute

func newReplay(clock *pace.Clock, base string, together bool) *replay {
	transport := &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}
	return &replay{clock: clock, base: base, together: together, client: &http.Client{Transport: transport}}
}

// run sends every request at its time and returns when all answers have ended.
// The first failure is returned; a run with one is no measurement.
func (p *replay) run(ctx context.Context, requests []lab.Request) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer p.client.CloseIdleConnections()
	start := p.clock.Now()
	var open sync.WaitGroup
	for i := range requests {
		p.clock.Sleep(ctx.Done(), start+requests[i].At)
		if ctx.Err() != nil {
			break
		}
		p.clock.Hold()
		body, head := requests[i].Body(), make(chan struct{})
		open.Go(func() {
			if err := p.exchange(ctx, body, head); err != nil {
				p.fail(fmt.Errorf("request %d: %w", i, err))
				cancel()
			}
		})
		if !p.together {
			<-head
		}
	}
	open.Wait()
	return errors.Join(p.err, context.Cause(ctx))
}

// exchange sends one request and reads its answer to the end. head is closed
// and the clock goes on when the answer's head is there, or will never be.
func (p *replay) exchange(ctx context.Context, body []byte, head chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	sent := time.Now()
	resp, err := p.send(ctx, body)
	took := time.Since(sent)
	p.clock.Release()
	close(head)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	p.note(took)
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // only to tell people
		return fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func (p *replay) send(ctx context.Context, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.GetBody = nil // so that net/http sends nothing twice
	return p.client.Do(req)
}

func (p *replay) note(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inside = append(p.inside, d)
}

func (p *replay) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
}
