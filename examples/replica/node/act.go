package node

import (
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/warmlane/warmlane/examples/replica/kvevents"
	"github.com/warmlane/warmlane/examples/replica/wire"
)

// Do carries out an action and returns when it is done. One that comes back
// later (RefuseFor) is done when the replica is gone.
func (r *Replica) Do(a wire.Action) { r.act(a, nil) }

// act spares one connection: the one the wish came over.
func (r *Replica) act(a wire.Action, spare net.Conn) {
	if a.Exit {
		r.exit()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	if a.DropBatches > 0 && r.life.events != nil {
		r.life.events.Drop(a.DropBatches)
	}
	pause := time.Duration(a.RefuseFor * float64(time.Second))
	if pause > 0 && r.listener != nil {
		_ = r.listener.Close()
		r.listener = nil
	}
	if a.Restart || pause > 0 {
		r.conns.sever(spare)
	}
	if a.Restart {
		r.reborn(pause > 0)
	}
	if pause > 0 {
		r.comeback = time.AfterFunc(pause, r.back)
	}
}

func (r *Replica) exit() {
	if r.opts.Exit != nil {
		r.opts.Exit()
		return
	}
	r.Kill()
}

// reborn ends the present life and begins the next one at the same addresses.
// With gone the event sockets stay closed until the replica is back.
func (r *Replica) reborn(gone bool) {
	old := r.life
	old.end()
	if old.events != nil {
		o := old.events.Options()
		r.opts.Events = &o
	}
	events := r.opts.Events
	if gone {
		events = nil
	}
	r.begin(events)
}

// begin starts a life. Another program may have taken an event port meanwhile:
// a replica without events is then better than none, and shows in its event sources.
func (r *Replica) begin(at *kvevents.Options) {
	l, err := r.newLife(at)
	if err != nil {
		l, err = r.newLife(nil)
	}
	if err == nil {
		r.life = l
	}
}

// back ends a time of refusal.
func (r *Replica) back() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped || r.listener != nil {
		return
	}
	if r.life.events == nil && r.opts.Events != nil {
		r.life.end()
		r.begin(r.opts.Events)
	}
	l, err := net.Listen("tcp", r.addr)
	if err != nil {
		r.comeback = time.AfterFunc(100*time.Millisecond, r.back) // the port is taken; it may become free
		return
	}
	r.serve(l)
}

// conns are the open connections.
type conns struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

// note is an http.Server.ConnState hook.
func (c *conns) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if c.open == nil {
			c.open = map[net.Conn]struct{}{}
		}
		c.open[conn] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
}

// sever resets all connections but one.
func (c *conns) sever(spare net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		if conn != spare {
			wire.Sever(conn)
			_ = conn.Close()
		}
	}
}
