//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/internal/envoy"
	"github.com/warmlane/warmlane/examples/internal/proc"
)

const build = "../../build"

// house is a running quickstart.
type house struct {
	t                   *testing.T
	process             *proc.Process
	url, admin, control string
	logs                string
}

// envoyPath is the Envoy under test, fetched once.
func envoyPath(t *testing.T) string {
	t.Helper()
	cache, err := envoy.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	path, err := envoy.Fetch(ctx, cache, os.Getenv("WARMLANE_ENVOY_VERSION"))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// start runs the quickstart with further flags until it is ready.
func start(t *testing.T, flags ...string) *house {
	t.Helper()
	bin := filepath.Join(build, "quickstart")
	if _, err := os.Stat(bin); err != nil {
		t.Fatalf("run `make build` first: %v", err)
	}
	h := &house{t: t, logs: t.TempDir()}
	args := append([]string{"-listen", "127.0.0.1:0", "-envoy", envoyPath(t), "-log-dir", h.logs}, flags...)
	p, err := proc.Start(nil, bin, args...)
	if err != nil {
		t.Fatal(err)
	}
	h.process = p
	t.Cleanup(func() { p.Stop(20 * time.Second); h.report() })
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	line, err := p.Ready(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := fmt.Sscanf(line, "%s admin=%s control=%s", &h.url, &h.admin, &h.control); n != 3 {
		t.Fatalf("ready line %q: %v", line, err)
	}
	return h
}

// report shows what Envoy had to say, if the test failed.
func (h *house) report() {
	if !h.t.Failed() {
		return
	}
	for _, name := range []string{"envoy.log", "control.log"} {
		if b, err := os.ReadFile(filepath.Join(h.logs, name)); err == nil {
			lines := strings.Split(strings.TrimSpace(string(b)), "\n")
			h.t.Logf("%s ends:\n%s", name, strings.Join(lines[max(0, len(lines)-15):], "\n"))
		}
	}
}

// get reads a page and fails the test if that cannot be done.
func (h *house) get(url string) string {
	h.t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(b)
}

// series sums the values of a metric of Envoy's whose line has all the given
// labels, such as `branch="cache_hit"`.
func (h *house) series(name string, labels ...string) float64 {
	h.t.Helper()
	return sum(h.get(h.admin+"/stats/prometheus"), name, labels...)
}

// sum adds up a metric on a page in Prometheus' text format.
func sum(page, name string, labels ...string) (sum float64) {
	line := regexp.MustCompile(`(?m)^` + name + `(?:\{(.*)\})? (\S+)$`)
	for _, m := range line.FindAllStringSubmatch(page, -1) {
		all := true
		for _, l := range labels {
			all = all && strings.Contains(m[1], l)
		}
		if v, err := strconv.ParseFloat(m[2], 64); err == nil && all {
			sum += v
		}
	}
	return sum
}

// eventually waits until f holds.
func (h *house) eventually(within time.Duration, what string, f func() bool) {
	h.t.Helper()
	end := time.Now().Add(within)
	for !f() {
		if time.Now().After(end) {
			h.t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// settled waits until the books of all replicas are empty.
func (h *house) settled() {
	h.t.Helper()
	h.eventually(15*time.Second, "in-flight gauges at 0", func() bool { return h.series("warmlane_in_flight") == 0 })
}

// reply is what a client got.
type reply struct {
	status int
	header http.Header
	body   []byte
	err    error
}

// fresh makes a connection for each request, so that all workers see some.
var fresh = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}, Timeout: 60 * time.Second}

// kept keeps its connections.
var kept = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}, Timeout: 60 * time.Second}

func post(c *http.Client, url string, body []byte, headers ...string) reply {
	return send(c, url, bytes.NewReader(body), headers...)
}

// send posts a body; one that is no *bytes.Reader goes chunked.
func send(c *http.Client, url string, body io.Reader, headers ...string) reply {
	req, err := http.NewRequest(http.MethodPost, url, body)
	if err != nil {
		return reply{err: err}
	}
	req.Header.Set("content-type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, b, err}
}

// message is a chat of one message.
func message(text string) []byte {
	b, err := json.Marshal(map[string]any{"model": "m", "messages": []map[string]string{{"role": "user", "content": text}}})
	if err != nil {
		panic(err)
	}
	return b
}

// branch is the branch of an explained reply.
func (r *reply) branch() string {
	m := regexp.MustCompile(`branch=(\w+)`).FindStringSubmatch(r.header.Get("x-warmlane-decision"))
	if m == nil {
		return ""
	}
	return m[1]
}

// child finds the process that quickstart has started from a program.
func (h *house) child(program string) int {
	h.t.Helper()
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(h.process.Pid()), "-f", program).Output()
	pid, err2 := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || err2 != nil {
		h.t.Fatalf("no child %q of quickstart: %v %q", program, err, out)
	}
	return pid
}

func (h *house) kill(program string) {
	h.t.Helper()
	if err := syscall.Kill(h.child(program), syscall.SIGKILL); err != nil {
		h.t.Fatal(err)
	}
}
