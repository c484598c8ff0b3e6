package publish

import (
	"context"
	"time"

	"github.com/warmlane/warmlane/filter/state"
)

// reply is how a poll ended.
type reply int

const (
	replyPage    reply = iota
	replyNothing       // what the asker holds is still the newest
	replyNone          // there is no state at all yet
)

// poll waits for something newer than what the asker holds, for at most hold,
// and returns the page of it that was asked for.
//
// If only pools that were not asked for have changed, it goes on waiting. At
// the end of hold it then answers a delta that holds nothing, so that the
// asker's generation does not fall behind those that are kept.
func (h *Hub) poll(ctx context.Context, q *state.Request, want pools, hold time.Duration) ([]byte, reply) {
	timer := time.NewTimer(hold)
	defer timer.Stop()
	for over := false; ; {
		page, r, next := h.try(q, want, over)
		if r == replyPage || over {
			return page, r
		}
		select {
		case <-next:
		case <-timer.C:
			over = true
		case <-h.closing:
			over = true
		case <-ctx.Done():
			return nil, replyNothing
		}
	}
}

// try answers if it can; next is closed when it is worth trying again. over
// says that the asker will not wait any longer.
func (h *Hub) try(q *state.Request, want pools, over bool) (page []byte, r reply, next <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.latest()
	if now == nil {
		return nil, replyNone, h.next
	}
	if page := h.laterPage(q, want); page != nil {
		return page, replyPage, nil
	}
	held := h.held(q)
	if held == now || held != nil && !over && !h.news(held, want) {
		return nil, replyNothing, h.next
	}
	return h.answer(held, want)[0], replyPage, nil
}

// held returns the state the asker says it has, nil if it needs the whole.
func (h *Hub) held(q *state.Request) *generation {
	if q.Epoch != h.epoch {
		return nil
	}
	return h.at(q.Gen)
}

// laterPage returns a page beyond the first of an answer that was begun, also
// when a newer state came in between. nil means that it cannot be had: the
// asker then gets the first page of the answer of now, and begins anew.
func (h *Hub) laterPage(q *state.Request, want pools) []byte {
	if q.Page == 0 || q.Epoch != h.epoch {
		return nil
	}
	pages := h.answers.find(question{from: q.Gen, to: q.To, pools: want.joined})
	if uint64(q.Page) >= uint64(len(pages)) {
		return nil
	}
	return pages[q.Page]
}
