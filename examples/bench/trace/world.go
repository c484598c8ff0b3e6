package main

import (
	"context"
	"time"

	"github.com/warmlane/warmlane/examples/bench/lab"
	"github.com/warmlane/warmlane/examples/replica/kvevents"
	"github.com/warmlane/warmlane/examples/replica/node"
	"github.com/warmlane/warmlane/examples/replica/pace"
	"github.com/warmlane/warmlane/examples/replica/wire"
)

// fleet is how many engines there are.
const fleet = 8

// stride is how much of the machine's time the world may pass at once; what
// this process was not run for beyond it does not count.
const stride = 3 * time.Millisecond

// world is the engines and their time.
type world struct {
	clock    *pace.Clock
	replicas []*node.Replica
}

func newWorld(speed float64) (*world, error) {
	w := &world{clock: pace.NewSteadyClock(speed, stride)}
	for range fleet {
		r, err := node.Start(node.Options{
			Clock:     w.clock,
			Engine:    lab.Engine(),
			Events:    &kvevents.Options{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0"},
			Wire:      wire.Config{Models: []string{lab.Model}},
			Kept:      1 << 20,
			KeepAlive: time.Minute,
		})
		if err != nil {
			w.close()
			return nil, err
		}
		w.replicas = append(w.replicas, r)
	}
	return w, nil
}

func (w *world) addresses() (list []string) {
	for _, r := range w.replicas {
		list = append(list, r.Addr())
	}
	return list
}

// entries are the requests the engines have served on a path.
func (w *world) entries(path string) (list []wire.Entry) {
	for _, r := range w.replicas {
		for _, e := range r.Journal().Last(0) {
			if e.Path == path {
				list = append(list, e)
			}
		}
	}
	return list
}

func (w *world) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, r := range w.replicas {
		_ = r.Stop(ctx) // what is still open is cut
	}
	w.clock.Stop()
}
