package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/warmlane/warmlane/examples/internal/envoy"
	"github.com/warmlane/warmlane/examples/internal/load"
)

// progressEvery is how often a line tells how far a round is.
const progressEvery = 2 * time.Second

// round is one way of routing.
type round struct {
	name    string
	flags   []string // further flags of quickstart
	explain bool     // ask the filter for its reasons
	build   string
	seed    uint64
	out     io.Writer
}

// result is what came of a round.
type result struct {
	name     string
	report   load.Report
	took     time.Duration
	shares   []share
	branches []envoy.Branch
	story    []chapter
}

// play runs the round on a fleet of its own.
func (r round) play(ctx context.Context) (result, error) {
	fmt.Fprintf(r.out, "\n%s: starting replicas and Envoy\n", r.name)
	f, err := startFleet(ctx, r.build, r.name, r.flags)
	if err != nil {
		return result{}, err
	}
	defer f.stop()
	before, err := requestsByReplica(ctx, f.admin, f.addresses)
	if err != nil {
		return result{}, err
	}
	got := r.talk(ctx, f)
	if err := context.Cause(ctx); err != nil {
		return result{}, err
	}
	if got.shares, err = sharesSince(ctx, f.admin, f.addresses, before); err != nil {
		return result{}, err
	}
	got.branches, err = f.admin.Branches(ctx)
	return got, err
}

// talk plays the conversations and tells of the progress.
func (r round) talk(ctx context.Context, f *fleet) result {
	got := result{name: r.name}
	script := load.NewScript(talk, r.seed)
	start := time.Now()
	next := start.Add(progressEvery)
	var outcomes []load.Outcome
	play := load.Play{Base: f.url, Model: model, Header: http.Header{}, Think: think, Seed: r.seed}
	if r.explain {
		play.Header.Set("x-warmlane-explain", "1")
	}
	play.Each = func(user int, _ load.Chat, out load.Outcome) {
		outcomes = append(outcomes, out)
		if user == 0 {
			got.story = append(got.story, chapter{out})
		}
		if now := time.Now(); now.After(next) {
			next = now.Add(progressEvery)
			r.progress(now.Sub(start), script.Requests(), load.Summarize(outcomes))
		}
	}
	got.report = load.Summarize(play.Run(ctx, script))
	got.took = time.Since(start)
	r.progress(got.took, script.Requests(), got.report)
	return got
}

func (r round) progress(since time.Duration, all int, so load.Report) {
	fmt.Fprintf(r.out, "%s: %4.1f s, %3d of %d requests, %d errors, hit ratio %2.0f %%, TTFT p90 %.3f s\n",
		r.name, since.Seconds(), so.Requests, all, so.Errors, 100*so.HitRatio(), so.TTFTAt(0.9).Seconds())
}
