package kvevents

import (
	"encoding/binary"
	"slices"

	"github.com/go-zeromq/zmq4"
)

// endSeq marks the end of a replay: -1 in 8 bytes.
const endSeq = ^uint64(0)

// serveReplay answers replay requests one after the other until the socket closes.
func (p *Publisher) serveReplay() {
	defer p.done.Done()
	for {
		msg, err := p.router.Recv()
		if err != nil {
			return
		}
		// An engine ignores what it does not understand.
		if client, from, ok := parseReplay(msg.Frames); ok {
			_ = p.replay(client, from) // a client that left is no reason to fail the next one
		}
	}
}

// parseReplay reads the frames of a request: the client's identity (put there by
// the socket), an empty frame, and the first wanted sequence number.
func parseReplay(frames [][]byte) (client []byte, from uint64, ok bool) {
	if len(frames) != 3 || len(frames[1]) != 0 || len(frames[2]) != 8 {
		return nil, 0, false
	}
	return frames[0], binary.BigEndian.Uint64(frames[2]), true
}

// replay sends the kept batches from a number on, then the end mark.
func (p *Publisher) replay(client []byte, from uint64) error {
	for _, b := range p.since(from) {
		if err := p.reply(client, b.seq, []byte(p.opts.Topic), b.payload); err != nil {
			return err
		}
	}
	return p.reply(client, endSeq, nil, nil)
}

// reply sends one batch or the end mark; both have the same frames.
func (p *Publisher) reply(client []byte, seq uint64, topic, payload []byte) error {
	frames := [][]byte{client, {}, topic, seqBytes(seq), payload}
	if p.opts.OldReplay {
		frames = slices.Delete(frames, 2, 3)
	}
	return p.router.SendMulti(zmq4.NewMsgFrom(frames...))
}

// since copies the list of kept batches from a number on, oldest first.
func (p *Publisher) since(from uint64) []batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]batch, 0, len(p.kept))
	for i := range p.kept {
		b := p.kept[(p.seq+uint64(i))%uint64(len(p.kept))]
		if b.seq >= from {
			out = append(out, b)
		}
	}
	return out
}
