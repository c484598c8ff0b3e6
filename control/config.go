package main

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/warmlane/warmlane/control/collect"
	"github.com/warmlane/warmlane/control/publish"
	"github.com/warmlane/warmlane/filter/state"
)

const (
	maxConfig = 4 << 20 // bytes of the configuration
	maxToken  = 4096
	maxName   = 253                    // bytes of a pool's or a host's name
	fileEvery = 100 * time.Millisecond // a change counts after two looks
	maxDNS    = 64                     // names in one pool
)

// config is what the configuration file says, with defaults filled in.
type config struct {
	listen  string
	token   string
	hold    time.Duration
	collect collect.Config // without Log, Publish and Observe
}

func defaults() config {
	return config{
		listen: "127.0.0.1:9090",
		hold:   publish.DefaultHold,
		collect: collect.Config{
			Coalesce:     20 * time.Millisecond,
			LoadEvery:    100 * time.Millisecond,
			RefreshEvery: time.Second,
			FirstWithin:  3 * time.Second,
		},
	}
}

// loadConfig reads the configuration from a file.
func loadConfig(path string, resolver collect.Resolver) (config, error) {
	text, err := collect.ReadCapped(path, maxConfig)
	if err != nil {
		return config{}, err
	}
	c, err := parseConfig(text, filepath.Dir(path), resolver)
	if err != nil {
		return config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// parseConfig reads the text of a configuration. Files it names are looked for
// from dir. The error names every mistake, one a line.
func parseConfig(text []byte, dir string, resolver collect.Resolver) (config, error) {
	var errs []error
	root, err := parseTree(text, &errs)
	if err != nil {
		return config{}, err
	}
	r := reader{config: defaults(), dir: dir, resolver: resolver, scrape: collect.DefaultScrape}
	r.root(root)
	if len(r.collect.Pools) == 0 && len(errs) == 0 {
		root.fail("pools: at least one is needed")
	}
	return r.config, errors.Join(errs...)
}

// reader gathers the configuration.
type reader struct {
	config
	dir      string
	resolver collect.Resolver
	scrape   collect.Scrape // what pools begin with
}

func (r *reader) root(n node) {
	var pools node
	n.object(map[string]func(node){
		"listen":     func(n node) { r.listen = readListen(n) },
		"token":      func(n node) { r.token = readToken(n, n.text(maxToken)) },
		"token_file": func(n node) { r.token = r.readTokenFile(n) },
		"publish":    r.readPublish,
		"scrape":     func(n node) { readScrape(n, &r.scrape) },
		"pools":      func(n node) { pools = n },
	})
	// Last, as each begins with what "scrape" says.
	if pools.errs != nil {
		pools.list(state.MaxPools, r.readPool)
	}
}

func readListen(n node) string {
	s := n.text(maxName)
	if _, _, err := net.SplitHostPort(s); err != nil {
		n.want("HOST:PORT, as 0.0.0.0:9090 or [::1]:9090")
	}
	return s
}

func (r *reader) readTokenFile(n node) string {
	text, err := collect.ReadCapped(r.path(n.text(4096)), maxToken)
	if err != nil {
		n.fail("%v", err)
		return ""
	}
	return readToken(n, strings.TrimSpace(string(text)))
}

// readToken refuses what cannot stand in a header.
func readToken(n node, token string) string {
	for _, c := range []byte(token) {
		if c <= ' ' || c > '~' {
			n.fail("want printable ASCII without blanks")
			return ""
		}
	}
	return token
}

func (r *reader) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.dir, name)
}

func (r *reader) readPublish(n node) {
	c := &r.collect
	n.object(map[string]func(node){
		"hold":          func(n node) { r.hold = n.duration(time.Second, time.Minute) },
		"coalesce":      func(n node) { c.Coalesce = n.duration(0, time.Second) },
		"load_every":    func(n node) { c.LoadEvery = n.duration(0, time.Minute) },
		"refresh_every": func(n node) { c.RefreshEvery = n.duration(100*time.Millisecond, time.Minute) },
		"first_within":  func(n node) { c.FirstWithin = n.duration(0, time.Minute) },
	})
}

func readScrape(n node, s *collect.Scrape) {
	n.object(map[string]func(node){
		"interval":        func(n node) { s.Interval = n.duration(10*time.Millisecond, time.Hour) },
		"timeout":         func(n node) { s.Timeout = n.duration(10*time.Millisecond, time.Minute) },
		"max_bytes":       func(n node) { s.MaxBytes = n.integer(1<<10, 64<<20) },
		"models_every":    func(n node) { s.ModelsEvery = n.duration(10*time.Millisecond, time.Hour) },
		"health_every":    func(n node) { s.HealthEvery = n.duration(10*time.Millisecond, time.Hour) },
		"unhealthy_after": func(n node) { s.UnhealthyAfter = int(n.integer(1, 1000)) },
	})
}

func (r *reader) readPool(n node) {
	p := collect.Pool{Scrape: r.scrape}
	var static collect.Static
	n.object(map[string]func(node){
		"name": func(n node) { p.Name = n.text(maxName) },
		"models": func(n node) {
			n.list(state.MaxModels, func(n node) { p.Models = append(p.Models, n.text(state.MaxName)) })
		},
		"replicas": func(n node) {
			static = collect.Static{} // an empty list is one, too
			n.list(state.MaxReplicas, func(n node) { static = append(static, readMember(n)) })
		},
		"kv_events": func(n node) { p.Events = readEvents(n) },
		"replicas_file": func(n node) {
			p.Sources = append(p.Sources, collect.File{Path: r.path(n.text(4096)), Every: fileEvery})
		},
		"dns":    func(n node) { n.list(maxDNS, func(n node) { p.Sources = append(p.Sources, r.readDNS(n)) }) },
		"scrape": func(n node) { readScrape(n, &p.Scrape) },
	})
	if p.Events == nil && slices.ContainsFunc(static, func(m collect.Member) bool { return m.Feeds != nil }) {
		n.fail("kv_events: is off, but replicas have some")
	}
	if static != nil {
		p.Sources = append([]collect.Source{static}, p.Sources...)
	}
	r.addPool(n, p)
}

func (r *reader) addPool(n node, p collect.Pool) {
	if p.Name == "" {
		n.fail("name: is needed")
	}
	if len(p.Sources) == 0 {
		n.fail("at least one of replicas, replicas_file and dns is needed")
	}
	for i := range r.collect.Pools {
		if r.collect.Pools[i].Name == p.Name {
			n.fail("name: %q is taken by pools[%d]", p.Name, i)
		}
	}
	r.collect.Pools = append(r.collect.Pools, p)
}

// readMember reads an address, or an object with an address.
func readMember(n node) (m collect.Member) {
	if _, ok := n.value.(map[string]any); !ok {
		m.Address = readAddress(n)
		return m
	}
	n.object(map[string]func(node){
		"address":  func(n node) { m.Address = readAddress(n) },
		"draining": func(n node) { m.Draining = n.boolean() },
		"kv_events": func(n node) {
			n.list(collect.MaxRanks, func(n node) { m.Feeds = append(m.Feeds, readFeed(n, len(m.Feeds))) })
		},
	})
	if m.Address == "" {
		n.fail("address: is needed")
	}
	return m
}

func readAddress(n node) string {
	s := n.text(state.MaxName)
	address, err := collect.ParseAddress(s)
	if err != nil {
		n.fail("%v", err)
	}
	return address
}

func (r *reader) readDNS(n node) collect.DNS {
	d := collect.DNS{Every: 5 * time.Second, Resolver: r.resolver}
	n.object(map[string]func(node){
		"name":  func(n node) { d.Name = n.text(maxName) },
		"port":  func(n node) { d.Port = uint16(n.integer(1, 65535)) },
		"every": func(n node) { d.Every = n.duration(100*time.Millisecond, time.Hour) },
	})
	if d.Name == "" || d.Port == 0 {
		n.fail("name and port are needed")
	}
	return d
}
