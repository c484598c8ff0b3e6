package collect

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmlane/warmlane/control/collect/kvevents"
)

func TestParseMembers(t *testing.T) {
	f := func(text, wantErr string, want ...Member) {
		t.Helper()
		got, err := ParseMembers(text)
		if !slices.EqualFunc(got, want, same) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
		if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%q: error %v, want %q", text, err, wantErr)
		}
	}
	a, b := Member{Address: "10.0.0.7:8000"}, Member{Address: "[::1]:8000", Draining: true}
	f("", "")
	f("10.0.0.7:8000", "", a)
	f("# fleet\n\n 10.0.0.7:8000 # first\r\n[::1]:8000\tdraining\n", "", a, b)
	f("[::1]:8000\n[0:0:0:0:0:0:0:1]:8000 draining\n", "", b)
	f("10.0.0.7:8000\ngpu:8000\n[::1]:8000 draining", "line 2: address \"gpu:8000\"", a, b)
	f("10.0.0.7:8000 drain", "line 1: ")
	f("10.0.0.7:8000 draining now", "line 1: ")
	kv := a
	kv.Draining, kv.Feeds = true, []kvevents.Source{{Endpoint: "tcp://10.0.0.7:5557"}, {Endpoint: "tcp://[::1]:5558", Replay: "tcp://gpu:1", Rank: 1}}
	f("10.0.0.7:8000 kv=tcp://10.0.0.7:5557 draining kv=tcp://[::1]:5558|tcp://gpu:1", "", kv)
	f("10.0.0.7:8000 draining\n10.0.0.7:8000 kv=tcp://10.0.0.7:5557 kv=tcp://[::1]:5558|tcp://gpu:1\n10.0.0.7:8000 kv=tcp://a:1", "", kv)
	f("10.0.0.7:8000 kv=tcp://*:5557\n[::1]:8000 draining", "line 1: ", b)
	f("10.0.0.7:8000 kv=tcp://a:1|", "line 1: ")
	f("10.0.0.7:8000 kv=", "line 1: ")
	f("10.0.0.7:8000"+strings.Repeat(" kv=tcp://a:1", MaxRanks+1), "line 1: ")
}

func same(a, b Member) bool { return a.equal(&b) }

func FuzzMembers(f *testing.F) {
	f.Add("# fleet\n\n 10.0.0.7:8000 # first\r\n[::1]:8000\tdraining\n")
	f.Add("10.0.0.7:8000 kv=tcp://10.0.0.7:5557|tcp://10.0.0.7:5558")
	f.Fuzz(func(t *testing.T, text string) {
		members, _ := ParseMembers(text)
		for _, m := range members {
			if again, err := ParseAddress(m.Address); err != nil || again != m.Address {
				t.Fatalf("%q is not in normal form: %q, %v", m.Address, again, err)
			}
			for _, s := range m.Feeds {
				if err := CheckEndpoint(s.Endpoint); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// record gathers what a source emits and reports.
type record struct {
	mu    sync.Mutex
	lists [][]Member
	errs  []error
}

func (r *record) emit(list []Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lists = append(r.lists, list)
}

func (r *record) report(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

func TestFileIsWatched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "replicas")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got record
	w := fileWatch{path: path, emit: got.emit, report: got.report}
	f := func(want string) {
		t.Helper()
		last := "nothing"
		if n := len(got.lists); n > 0 {
			last = ""
			for _, m := range got.lists[n-1] {
				last += m.Address + " "
			}
		}
		if strings.TrimSpace(last) != want {
			t.Errorf("list %q, want %q", last, want)
		}
	}
	w.look(true) // the file is not there yet
	f("")
	write("10.0.0.1:80\n")
	w.look(false)
	f("")
	w.look(false)
	f("10.0.0.1:80")
	write("") // half written
	w.look(false)
	write("10.0.0.1:80\n10.0.0.2:80\n")
	w.look(false)
	f("10.0.0.1:80")
	w.look(false)
	f("10.0.0.1:80 10.0.0.2:80")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.look(false)
	w.look(false)
	f("10.0.0.1:80 10.0.0.2:80")
	if len(got.errs) != 2 || !errors.Is(got.errs[1], os.ErrNotExist) {
		t.Errorf("reported %v", got.errs)
	}
	write(strings.Repeat("#", maxFile+1))
	w.look(false)
	f("10.0.0.1:80 10.0.0.2:80")
	if n := len(got.lists); n != 3 {
		t.Errorf("%d lists were emitted", n)
	}
}

// names is a resolver whose answers a test sets.
type names struct {
	mu    sync.Mutex
	addrs []netip.Addr
	err   error
}

func (n *names) set(err error, addrs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err, n.addrs = err, nil
	for _, a := range addrs {
		n.addrs = append(n.addrs, netip.MustParseAddr(a))
	}
}

func (n *names) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if network != "ip" || host != "vllm.test" {
		return nil, errors.New("asked for " + network + " " + host)
	}
	return slices.Clone(n.addrs), n.err
}

func TestDNSIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got record
		var resolver names
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		down := errors.New("no such host")
		resolver.set(nil, "10.0.0.2", "::ffff:10.0.0.1", "::1", "10.0.0.2")
		go DNS{Name: "vllm.test", Port: 80, Every: time.Second, Resolver: &resolver}.Run(ctx, got.emit, got.report)
		step := func() {
			time.Sleep(time.Second)
			synctest.Wait()
		}
		step()
		resolver.set(down)
		step()
		step()
		resolver.set(nil, "10.0.0.1", "10.0.0.2", "::1")
		step()
		resolver.set(nil, "10.0.0.1")
		step()
		cancel()
		synctest.Wait()
		all := []Member{{Address: "10.0.0.1:80"}, {Address: "10.0.0.2:80"}, {Address: "[::1]:80"}}
		if len(got.lists) != 2 || !slices.EqualFunc(got.lists[0], all, same) || !slices.EqualFunc(got.lists[1], all[:1], same) {
			t.Errorf("lists %v", got.lists)
		}
		if len(got.errs) != 1 || !errors.Is(got.errs[0], down) {
			t.Errorf("reported %v", got.errs)
		}
	})
}
