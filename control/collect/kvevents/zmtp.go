package kvevents

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// Bounds of one ZMTP message.
const (
	maxMessage = 32 << 20 // bytes of all frames
	maxFrames  = 8
	readStep   = 64 << 10 // memory taken ahead of bytes that have come
)

// Bits of a frame's first byte.
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

// conn is the client's end of a ZMTP 3.0 connection without security: one socket of
// type SUB or DEALER with one peer. We speak ZMTP ourselves since the library at
// hand makes room for whatever length a peer declares, greets without a deadline,
// cannot tell a reader that a connection broke, and has no bounded queue that drops.
type conn struct {
	net.Conn
	in      *bufio.Reader
	release func() bool // of the context
}

// Close ends the connection; a read under way returns.
func (c *conn) Close() error {
	c.release()
	return c.Conn.Close()
}

// message is what a socket received. Its memory is used again.
type message struct {
	data []byte
	ends []int // where each frame ends in data
}

func (m *message) frames() int { return len(m.ends) }

func (m *message) frame(i int) []byte {
	start := 0
	if i > 0 {
		start = m.ends[i-1]
	}
	return m.data[start:m.ends[i]:m.ends[i]]
}

// dial connects a socket of type kind to a peer that must be of type peer. The
// connection is closed when ctx is done.
func dial(ctx context.Context, address, kind, peer string, timeout time.Duration) (*conn, error) {
	d := net.Dialer{Timeout: timeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
	nc, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("kvevents: %w", err)
	}
	c := &conn{nc, bufio.NewReaderSize(nc, readStep), context.AfterFunc(ctx, func() { _ = nc.Close() })}
	_ = c.SetDeadline(time.Now().Add(timeout))
	if err := c.greet(kind, peer); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("kvevents: %s: %w", address, err)
	}
	_ = c.SetDeadline(time.Time{})
	return c, nil
}

// greet exchanges greetings and READY commands.
func (c *conn) greet(kind, peer string) error {
	if _, err := c.Write(slices.Concat(greeting(), ready(kind))); err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	var theirs [64]byte
	if _, err := io.ReadFull(c.in, theirs[:]); err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	mechanism := bytes.TrimRight(theirs[12:32], "\x00")
	switch {
	case theirs[0] != 0xff || theirs[9] != 0x7f:
		return fmt.Errorf("greeting %x is not ZMTP", theirs[:10])
	case theirs[10] < 3:
		return fmt.Errorf("ZMTP version %d, want 3", theirs[10])
	case string(mechanism) != "NULL":
		return fmt.Errorf("security mechanism %q, want NULL", mechanism)
	}
	flags, body, err := c.frame(nil, 4096)
	if err != nil {
		return fmt.Errorf("READY: %w", err)
	}
	if flags&flagCommand == 0 {
		return fmt.Errorf("a message before READY")
	}
	return checkReady(body, peer)
}

func greeting() []byte {
	var g [64]byte
	g[0], g[9], g[10] = 0xff, 0x7f, 3
	copy(g[12:], "NULL")
	return g[:]
}

// ready is the READY command of a socket type, as a frame.
func ready(kind string) []byte {
	const name = "Socket-Type"
	body := append([]byte("\x05READY"), byte(len(name)))
	body = append(body, name...)
	body = binary.BigEndian.AppendUint32(body, uint32(len(kind)))
	body = append(body, kind...)
	return append([]byte{flagCommand, byte(len(body))}, body...)
}

// checkReady reads the peer's READY command, which must name its socket type.
func checkReady(body []byte, want string) error {
	name, rest, ok := short(body)
	if string(name) != "READY" {
		return fmt.Errorf("command %q, want READY", body)
	}
	for ok && len(rest) > 0 {
		var key, value []byte
		key, rest, ok = short(rest)
		if !ok || len(rest) < 4 {
			break
		}
		n := binary.BigEndian.Uint32(rest)
		if uint64(n) > uint64(len(rest)-4) {
			break
		}
		value, rest = rest[4:4+n], rest[4+n:]
		if !bytes.EqualFold(key, []byte("Socket-Type")) {
			continue
		}
		if t := string(value); t != want && t != "X"+want {
			return fmt.Errorf("a socket of type %q, want %s", t, want)
		}
		return nil
	}
	return fmt.Errorf("READY without a socket type")
}

// short takes a string whose length is its first byte off b.
func short(b []byte) (text, rest []byte, ok bool) {
	if len(b) == 0 || int(b[0]) >= len(b) {
		return nil, nil, false
	}
	end := 1 + int(b[0])
	return b[1:end], b[end:], true
}

// send writes one message whose frames are shorter than 256 bytes.
func (c *conn) send(frames ...[]byte) error {
	var out []byte
	for i, f := range frames {
		flags := byte(flagMore)
		if i == len(frames)-1 {
			flags = 0
		}
		out = append(append(out, flags, byte(len(f))), f...)
	}
	_, err := c.Write(out)
	return err
}

// receive reads the next message into m.
func (c *conn) receive(m *message) error {
	m.data, m.ends = m.data[:0], m.ends[:0]
	for {
		flags, data, err := c.frame(m.data, maxMessage)
		if err != nil {
			return err
		}
		if flags&flagCommand != 0 {
			if err := c.command(data[len(m.data):]); err != nil {
				return err
			}
			continue
		}
		m.data = data
		if m.ends = append(m.ends, len(data)); len(m.ends) > maxFrames {
			return fmt.Errorf("kvevents: message of more than %d frames", maxFrames)
		}
		if flags&flagMore == 0 {
			return nil
		}
	}
}

// command answers a PING, as a peer with heartbeats wants it; others are passed over.
func (c *conn) command(body []byte) error {
	name, rest, _ := short(body)
	if string(name) != "PING" || len(rest) < 2 || len(rest) > 18 {
		return nil
	}
	pong := append([]byte("\x04PONG"), rest[2:]...) // without the time to live
	_, err := c.Write(append([]byte{flagCommand, byte(len(pong))}, pong...))
	return err
}

// frame reads one frame and appends its bytes to data, which must not grow beyond most.
func (c *conn) frame(data []byte, most int) (flags byte, out []byte, err error) {
	var head [9]byte
	if _, err = io.ReadFull(c.in, head[:2]); err != nil {
		return 0, data, err
	}
	flags = head[0]
	if flags > flagMore|flagLong|flagCommand {
		return 0, data, fmt.Errorf("kvevents: frame with flags 0x%02x", flags)
	}
	size := uint64(head[1])
	if flags&flagLong != 0 {
		if _, err = io.ReadFull(c.in, head[2:]); err != nil {
			return 0, data, err
		}
		size = binary.BigEndian.Uint64(head[1:])
	}
	if size > uint64(most-len(data)) {
		return 0, data, fmt.Errorf("kvevents: frame of %d bytes, message beyond %d", size, most)
	}
	for left := int(size); left > 0 && err == nil; {
		n := min(left, readStep)
		data = slices.Grow(data, n)
		_, err = io.ReadFull(c.in, data[len(data):len(data)+n])
		data = data[:len(data)+n]
		left -= n
	}
	return flags, data, err
}
