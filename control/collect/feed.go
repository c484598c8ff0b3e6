package collect

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/warmlane/warmlane/control/collect/kvevents"
)

const (
	askPause   = 250 * time.Millisecond // after the first failure to ask; doubled each time, up to DiscoverEvery
	doubtPause = 30 * time.Second       // between two resyncs for doubt
)

// facts are what else is known of a replica and matters to its feed.
type facts struct {
	life     uint32            // counts the engines that were seen at the address
	capacity int               // blocks; 0 = not known
	asleep   bool              // and so without a cache
	feeds    []kvevents.Source // that are configured
}

// feed follows the KV events of one replica: it finds out where they are,
// runs a follower for each of the replica's engines, and lets go of all that
// is known when the replica has been started anew. But for its mailboxes it
// belongs to the goroutine of run.
type feed struct {
	holder   *holder
	config   Events
	pool     string
	address  string
	client   *client
	timeout  time.Duration // of a question
	counters kvevents.Counters
	answered func(Answer)
	log      *slog.Logger

	news   chan facts    // the newest, one element
	doubts chan struct{} // one element

	facts    facts
	answer   Answer            // the last one that was logged
	failures int               // to ask, in a row
	found    []kvevents.Source // by the last answer that was one
	doubted  time.Time

	sources   []kvevents.Source // that are followed
	followers []*kvevents.Follower
	cancel    context.CancelFunc // ends them; nil = none run
	running   sync.WaitGroup
}

// note tells the feed what is known by now. It does not wait. One goroutine
// calls it.
func (f *feed) note(x facts) {
	select {
	case <-f.news:
	default:
	}
	f.news <- x
}

// doubt says that the index keeps lying about this replica. It does not wait.
// Any goroutine may call it.
func (f *feed) doubt() {
	select {
	case f.doubts <- struct{}{}:
	default:
	}
}

// run follows until ctx ends. Then nothing is left of the replica in the index.
func (f *feed) run(ctx context.Context) {
	defer f.holder.leave()
	defer f.unfollow()
	f.take(<-f.news)
	ask := time.NewTimer(0)
	defer ask.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case x := <-f.news:
			if f.take(x) {
				ask.Reset(0)
			}
		case <-f.doubts:
			f.resync(time.Now())
		case <-ask.C:
			ask.Reset(f.ask(ctx))
		}
	}
}

// take takes in what is known now, and reports whether the replica must be
// asked again.
func (f *feed) take(x facts) (again bool) {
	old := f.facts
	f.facts = x
	if x.life != old.life {
		f.unfollow()
		f.found = nil
		f.holder.begin(x.life)
	}
	if x.capacity != old.capacity {
		f.holder.resize(x.capacity)
	}
	if x.asleep {
		f.holder.clear()
	}
	return x.life != old.life || !slices.Equal(x.feeds, old.feeds)
}

// resync has everything told again, unless that was done lately.
func (f *feed) resync(now time.Time) {
	if !f.doubted.IsZero() && now.Sub(f.doubted) < doubtPause {
		return
	}
	f.doubted = now
	f.log.Warn("kv events: the index is in doubt and made anew")
	for _, follower := range f.followers {
		follower.Resync()
	}
}

// ask finds out where the events are and sees to it that they are followed.
// It returns after what time to ask again.
func (f *feed) ask(ctx context.Context) time.Duration {
	if !f.config.Discover || complete(f.facts.feeds) {
		f.follow(ctx, f.facts.feeds)
		return time.Hour
	}
	found, err := f.question(ctx)
	if ctx.Err() != nil {
		return time.Hour
	}
	pause := f.config.DiscoverEvery
	switch {
	case err != nil:
		pause = min(askPause<<min(f.failures, 16), pause)
		f.failures++
		f.tell(AnswerFailed, nil, err)
		found = f.found
	case len(found) == 0:
		f.tell(AnswerNone, nil, nil)
	default:
		f.tell(AnswerSources, found, nil)
	}
	if err == nil {
		f.failures = 0
	}
	f.found = found
	f.follow(ctx, fill(f.facts.feeds, found))
	return jitter(pause)
}

// question asks the replica. One that has no such page publishes nothing.
func (f *feed) question(ctx context.Context) (sources []kvevents.Source, err error) {
	host, _, err := net.SplitHostPort(f.address)
	if err != nil {
		return nil, err
	}
	err = f.client.get(ctx, f.timeout, "http://"+f.address+"/kv_event_sources", func(body []byte) (err error) {
		sources, err = kvevents.ParseSources(body, host)
		return err
	})
	var status statusError
	if errors.As(err, &status) && status == http.StatusNotFound {
		return nil, nil
	}
	return sources, err
}

// complete reports whether there is nothing to ask for.
func complete(feeds []kvevents.Source) bool {
	return len(feeds) > 0 && !slices.ContainsFunc(feeds, func(s kvevents.Source) bool { return s.Replay == "" })
}

// fill returns the configured sources with what they lack of replay sockets
// from those that the replica told of; the latter if none are configured.
func fill(configured, found []kvevents.Source) []kvevents.Source {
	if len(configured) == 0 {
		return found
	}
	out := slices.Clone(configured)
	for i := range out {
		for _, s := range found {
			if out[i].Replay == "" && s.Rank == out[i].Rank {
				out[i].Replay = s.Replay
			}
		}
	}
	return out
}

// tell counts an answer, and logs it if it is not like the one before.
func (f *feed) tell(a Answer, sources []kvevents.Source, err error) {
	f.answered(a)
	if a == f.answer {
		return
	}
	f.answer = a
	switch a {
	case AnswerSources:
		f.log.Info("kv events: found", "sources", sources)
	case AnswerNone:
		f.log.Warn("kv events: the replica publishes none")
	case AnswerFailed:
		f.log.Warn("kv events: /kv_event_sources", "err", err)
	}
}

// follow runs a follower for each of the sources, unless they run already.
func (f *feed) follow(ctx context.Context, sources []kvevents.Source) {
	if slices.Equal(sources, f.sources) {
		f.holder.keep()
		return
	}
	f.unfollow()
	f.holder.open(sources)
	f.sources = sources
	ctx, f.cancel = context.WithCancel(ctx)
	for i, s := range sources {
		follower, err := kvevents.New(i, s, f.holder, f.counters, kvevents.Options{ReplayTimeout: f.config.ReplayTimeout})
		if err != nil {
			f.log.Error("kv events: source", "err", err)
			continue
		}
		f.followers = append(f.followers, follower)
		f.running.Go(func() { follower.Run(ctx) })
	}
}

// unfollow ends the followers.
func (f *feed) unfollow() {
	if f.cancel != nil {
		f.cancel()
	}
	f.running.Wait()
	f.sources, f.followers, f.cancel = nil, nil, nil
}
