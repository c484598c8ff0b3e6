package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	defaultMaxBody = 32 << 20
	maxWorkers     = 256
)

// options are the command line, checked as far as that goes without looking at files or names.
type options struct {
	listen        string // where clients connect
	replicas      []string
	kvEvents      []kvSource // by position of replicas, maybe fewer
	replicasFile  string
	controlListen string
	envoyPath     string // empty: the pinned version is fetched
	workers       int    // 0: one for each core
	configFile    string
	maxBody       uint32 // bytes
	logDir        string // empty: standard error
	wasmPath      string
	controlPath   string
	roundRobin    bool
}

// kvSource is where a replica publishes its KV events. Both parts may be empty: then the replica is asked.
type kvSource struct{ events, replay string }

func parseFlags(args []string, help io.Writer) (options, error) {
	o := options{listen: "127.0.0.1:8080", controlListen: "127.0.0.1:0", maxBody: defaultMaxBody}
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Func("listen", "`ADDR` where clients connect, as HOST:PORT; port 0 takes a free one (default "+o.listen+")", listenAddress(&o.listen))
	flags.Func("replicas", "the replicas, as `HOST:PORT,...`; IPv6 as [::1]:8000", list(&o.replicas))
	flags.StringVar(&o.replicasFile, "replicas-file", "", "`FILE` with the address of one replica a line, \"draining\" behind one that shall get nothing new; changes are followed")
	flags.Func("kv-events", "where the replicas publish KV events, as `URL[|REPLAY],...` in the order of -replicas; an entry may be empty\n(default: each replica is asked)", kvSources(&o.kvEvents))
	flags.Func("control-listen", "`ADDR` of the control service; port 0 takes a free one (default "+o.controlListen+")", listenAddress(&o.controlListen))
	flags.StringVar(&o.envoyPath, "envoy", "", "`PATH` of the Envoy to run (default: a pinned version, fetched once)")
	flags.Func("workers", "`N` worker threads of Envoy (default: one for each core)", number(&o.workers, 1, maxWorkers))
	flags.StringVar(&o.configFile, "config", "", "YAML `FILE` with more configuration, under filter: for the plugin, under control: for control; changes are followed")
	flags.Func("max-body", "largest request body in `BYTES`; larger ones get 413 (default "+strconv.Itoa(defaultMaxBody)+")", number(&o.maxBody, 1, math.MaxUint32))
	flags.StringVar(&o.logDir, "log-dir", "", "`DIR` for envoy.log, access.log and control.log (default: standard error)")
	flags.StringVar(&o.wasmPath, "wasm", beside("warmlane.wasm"), "`PATH` of the filter")
	flags.StringVar(&o.controlPath, "control", beside("control"), "`PATH` of the control program")
	flags.BoolVar(&o.roundRobin, "round-robin", false, "run Envoy without Warmlane, to compare")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(help)
			fmt.Fprintln(help, "quickstart runs Envoy with Warmlane in front of replicas.")
			flags.PrintDefaults()
		}
		return options{}, err
	}
	return o, o.check(flags.Args())
}

// check looks at what a single flag cannot know.
func (o *options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q: only flags are allowed", rest[0])
	case len(o.replicas) == 0 && o.replicasFile == "":
		return errors.New("one of -replicas and -replicas-file is needed")
	case len(o.replicas) > 0 && o.replicasFile != "":
		return errors.New("only one of -replicas and -replicas-file is allowed")
	case len(o.kvEvents) > 0 && o.replicasFile != "":
		return errors.New("-kv-events goes with -replicas only: entries are matched by position, and the lines of -replicas-file move")
	case len(o.kvEvents) > len(o.replicas):
		return fmt.Errorf("-kv-events has %d entries for %d -replicas: at most one for each is allowed", len(o.kvEvents), len(o.replicas))
	}
	return nil
}

// beside names a file in the folder of our own binary.
func beside(name string) string {
	self, err := os.Executable()
	if err != nil {
		return name
	}
	return filepath.Join(filepath.Dir(self), name)
}

func list(to *[]string) func(string) error {
	return func(text string) error {
		for _, entry := range strings.Split(text, ",") {
			entry = strings.TrimSpace(entry)
			if entry == "" {
				return errors.New("an entry is empty: want HOST:PORT between commas")
			}
			if _, _, err := splitAddress(entry); err != nil {
				return err
			}
			*to = append(*to, entry)
		}
		return nil
	}
}

func kvSources(to *[]kvSource) func(string) error {
	return func(text string) error {
		for _, entry := range strings.Split(text, ",") {
			events, replay, _ := strings.Cut(strings.TrimSpace(entry), "|")
			for _, url := range []string{events, replay} {
				if url != "" && !strings.HasPrefix(url, "tcp://") {
					return fmt.Errorf("%q: want tcp://HOST:PORT", url)
				}
			}
			if events == "" && replay != "" {
				return fmt.Errorf("%q: a replay address needs an event address before it", entry)
			}
			*to = append(*to, kvSource{events, replay})
		}
		return nil
	}
}

func listenAddress(to *string) func(string) error {
	return func(text string) error {
		host, port, err := splitListen(text)
		if err != nil {
			return err
		}
		*to = joinAddress(host, port)
		return nil
	}
}

func number[N int | uint32](to *N, least, most N) func(string) error {
	return func(text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < int64(least) || n > int64(most) {
			return fmt.Errorf("want a whole number from %d to %d", least, most)
		}
		*to = N(n)
		return nil
	}
}
