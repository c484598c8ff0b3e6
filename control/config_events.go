package main

import (
	"time"

	"github.com/warmlane/warmlane/control/collect"
	"github.com/warmlane/warmlane/control/collect/kvevents"
	"github.com/warmlane/warmlane/filter/state"
)

const maxEndpoint = 300 // bytes

// readEvents reads true, false, or an object with more to say; nil = off.
func readEvents(n node) *collect.Events {
	e, on := collect.DefaultEvents, true
	if _, ok := n.value.(map[string]any); ok {
		n.object(map[string]func(node){
			"enabled":        func(n node) { on = n.boolean() },
			"discover":       func(n node) { e.Discover = n.boolean() },
			"discover_every": func(n node) { e.DiscoverEvery = n.duration(time.Second, time.Hour) },
			"replay_timeout": func(n node) { e.ReplayTimeout = n.duration(100*time.Millisecond, time.Hour) },
		})
	} else if on, ok = n.value.(bool); !ok {
		n.want("true, false, or an object with discover, discover_every, enabled, replay_timeout")
	}
	if !on {
		return nil
	}
	return &e
}

// readFeed reads one event source, an object. Sources are in the order of
// data-parallel ranks.
func readFeed(n node, rank int) kvevents.Source {
	s := kvevents.Source{Rank: rank}
	n.object(map[string]func(node){
		"endpoint": func(n node) { s.Endpoint = readEndpoint(n) },
		"replay":   func(n node) { s.Replay = readEndpoint(n) },
		"topic":    func(n node) { s.Topic = n.text(state.MaxName) },
	})
	if s.Endpoint == "" {
		n.fail("endpoint: is needed")
	}
	return s
}

func readEndpoint(n node) string {
	s := n.text(maxEndpoint)
	if err := collect.CheckEndpoint(s); err != nil {
		n.fail("%v", err)
	}
	return s
}
