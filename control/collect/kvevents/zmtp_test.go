package kvevents

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// deaf is an address that takes connections and says nothing.
func deaf(t *testing.T) string {
	t.Helper()
	return peer(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
}

// peer is an address whose connections are handled by f.
func peer(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = c.Close() }()
				f(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return "tcp://" + l.Addr().String()
}

// publisher is a PUB socket that takes one subscriber at a time.
type publisher struct {
	endpoint    string
	subscribers chan net.Conn // each once it has subscribed
}

func publishing(t *testing.T) *publisher {
	p := &publisher{subscribers: make(chan net.Conn, 10)}
	p.endpoint = peer(t, func(c net.Conn) {
		_, _ = c.Write(hello("PUB", 0, "\xff"))
		want := slices.Concat(greeting(), ready("SUB"), []byte{0, 1, 1})
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("subscriber says %q, %v", got, err)
			return
		}
		p.subscribers <- c
		_, _ = io.Copy(io.Discard, c)
	})
	return p
}

// subscriber waits for the next one.
func (p *publisher) subscriber(t *testing.T) *conn {
	t.Helper()
	select {
	case c := <-p.subscribers:
		return &conn{Conn: c}
	case <-time.After(20 * time.Second):
		t.Fatal("nobody subscribes")
		return nil
	}
}

// publish sends batches with the given numbers.
func (c *conn) publish(t *testing.T, seqs ...uint64) {
	t.Helper()
	for _, seq := range seqs {
		if err := c.send(nil, number8(seq), body(t, seq)); err != nil {
			t.Fatal(err)
		}
	}
}

// wire is a relay whose connections a test can cut.
type wire struct {
	addr string
	mu   sync.Mutex
	open []net.Conn
}

func relay(t *testing.T, to string) *wire {
	w := &wire{}
	w.addr = peer(t, func(c net.Conn) {
		out, err := net.Dial("tcp", strings.TrimPrefix(to, "tcp://"))
		if err != nil {
			return
		}
		w.mu.Lock()
		w.open = append(w.open, c, out)
		w.mu.Unlock()
		go func() { _, _ = io.Copy(out, c); _ = out.Close() }()
		_, _ = io.Copy(c, out)
	})
	t.Cleanup(w.cut)
	return w
}

func (w *wire) endpoint() string { return w.addr }

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.open {
		_ = c.Close()
	}
	w.open = nil
}

// hello is what a PUB socket sends first, with bytes of it replaced.
func hello(kind string, at int, with string) []byte {
	g := greeting()
	copy(g[at:], with)
	return append(g, ready(kind)...)
}

func TestHandshakeRefuses(t *testing.T) {
	f := func(says []byte, want string) {
		t.Helper()
		addr := peer(t, func(c net.Conn) {
			_, _ = c.Write(says)
			_, _ = io.Copy(io.Discard, c)
		})
		c, err := dial(t.Context(), strings.TrimPrefix(addr, "tcp://"), "SUB", "PUB", 300*time.Millisecond)
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", says, err)
				return
			}
			_ = c.Close()
			return
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), addr[6:]) {
			t.Errorf("%q: %v, want %q", says, err, want)
		}
	}
	f(hello("PUB", 0, "\xff"), "")
	f(hello("XPUB", 0, "\xff"), "")
	f(hello("PUB", 11, "\x01"), "") // 3.1
	f([]byte("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close and some more\r\n\r\n"), "is not ZMTP")
	f(hello("PUB", 10, "\x01"), "version 1, want 3")
	f(hello("PUB", 12, "CURVE"), `mechanism "CURVE"`)
	f(hello("ROUTER", 0, "\xff"), `"ROUTER", want PUB`)
	f(greeting(), "i/o timeout")
	f(append(greeting(), 0, 1, 'x'), "a message before READY")
	f(append(greeting(), 4, 6, 5, 'E', 'R', 'R', 'O', 'R'), "want READY")
	f(append(greeting(), 4, 6, 5, 'R', 'E', 'A', 'D', 'Y'), "without a socket type")
	f(append(greeting(), 4, 12, 5, 'R', 'E', 'A', 'D', 'Y', 1, 'a', 0xff, 0xff, 0xff, 0xff), "without a socket type")
	f(append(greeting(), 6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), "frame of")
}

// received reads one message off bytes.
func received(in []byte) (*message, []byte, error) {
	us, them := net.Pipe()
	var wrote bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&wrote, them)
	}()
	c := &conn{Conn: us, in: bufio.NewReader(bytes.NewReader(in))}
	m := new(message)
	err := c.receive(m)
	_ = us.Close()
	<-done
	return m, wrote.Bytes(), err
}

func TestReceive(t *testing.T) {
	f := func(in string, want ...string) {
		t.Helper()
		m, _, err := received([]byte(in))
		if err != nil || m.frames() != len(want) {
			t.Fatalf("%q: %d frames, %v", in, m.frames(), err)
		}
		for i := range want {
			if string(m.frame(i)) != want[i] {
				t.Errorf("%q: frame %d is %q", in, i, m.frame(i))
			}
		}
	}
	f("\x00\x00", "")
	f("\x01\x01a\x01\x00\x00\x02bc", "a", "", "bc")
	f("\x03\x00\x00\x00\x00\x00\x00\x00\x02ab\x00\x01c", "ab", "c")
	f("\x04\x06\x05OTHER\x00\x01a", "a")
	big := strings.Repeat("x", 300000)
	f("\x02\x00\x00\x00\x00\x00\x04\x93\xe0"+big, big)
	for _, bad := range []string{"", "\x00", "\x00\x02a", "\x08\x00", "\x02\x00\x00\x00\x00\x7f\xff\xff\xff", "\x02\xff\xff\xff\xff\xff\xff\xff\xff", strings.Repeat("\x01\x00", 9) + "\x00\x00"} {
		if _, _, err := received([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestPing(t *testing.T) {
	m, wrote, err := received([]byte("\x04\x0a\x04PING\x00\x05abc\x00\x01x"))
	if err != nil || string(m.frame(0)) != "x" || string(wrote) != "\x04\x08\x04PONGabc" {
		t.Errorf("%q, %q, %v", m.frame(0), wrote, err)
	}
}

// TestDeclaredSize: a length alone takes no memory.
func TestDeclaredSize(t *testing.T) {
	m, _, err := received([]byte("\x02\x00\x00\x00\x00\x01\x00\x00\x00abc"))
	if err == nil || cap(m.data) > 4*readStep {
		t.Errorf("%d bytes made room for, %v", cap(m.data), err)
	}
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte("\x01\x01a\x01\x00\x00\x02bc"))
	f.Add([]byte("\x04\x0a\x04PING\x00\x05abc\x00\x01x"))
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00\x01a"))
	f.Fuzz(func(t *testing.T, in []byte) {
		m, _, err := received(in)
		if err == nil && len(m.data) > len(in) {
			t.Fatalf("%d bytes from %d", len(m.data), len(in))
		}
	})
}

func FuzzReady(f *testing.F) {
	f.Add(ready("PUB")[2:])
	f.Add([]byte("\x05READY\x08Identity\x00\x00\x00\x00\x0bSocket-Type\x00\x00\x00\x03PUB"))
	f.Add(append([]byte("\x05READY\xff"), make([]byte, 300)...)) // the longest name
	f.Fuzz(func(t *testing.T, body []byte) {
		if err := checkReady(body, "PUB"); err == nil && !bytes.Contains(body, []byte("PUB")) {
			t.Fatalf("%q names no PUB", body)
		}
	})
}
