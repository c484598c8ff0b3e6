package load

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// Play says how a script is played on a server.
type Play struct {
	Base   string      // where the server is, such as http://127.0.0.1:8080
	Model  string      // named in each request
	Header http.Header // sent with each request; may be nil

	// Think is the mean pause of a user before a question. The pauses vary between half of it and one and a half, and
	// the first is anything up to twice of it, so that users do not walk in step. Same seed, same pauses.
	Think time.Duration
	Seed  uint64

	// Each is called after each request, never by two at once; may be nil.
	Each func(user int, chat Chat, out Outcome)
}

// Run plays every user's conversations and returns the outcomes in the order of their ends. A failed request ends its
// conversation, for there is no answer to go on from. When ctx ends, no further request is sent and those
// under way are abandoned; those are not in the result.
func (p Play) Run(ctx context.Context, script Script) []Outcome {
	client := NewClient(p.Base)
	defer client.Close()
	r := &run{Play: p, client: client}
	var users sync.WaitGroup
	for user, conversations := range script {
		dice := rand.New(rand.NewPCG(p.Seed, uint64(user)))
		users.Go(func() { r.user(ctx, user, dice, conversations) })
	}
	users.Wait()
	return r.outcomes
}

type run struct {
	Play
	client *Client

	mu       sync.Mutex // over outcomes and calls of Each
	outcomes []Outcome
}

func (r *run) user(ctx context.Context, user int, dice *rand.Rand, conversations []Conversation) {
	pause(ctx, time.Duration(2*dice.Float64()*float64(r.Think)))
	for _, c := range conversations {
		r.conversation(ctx, user, dice, c)
	}
}

func (r *run) conversation(ctx context.Context, user int, dice *rand.Rand, c Conversation) {
	chat := Chat{Model: r.Model, MaxTokens: c.MaxTokens, Header: r.Header}
	if c.System != "" {
		chat.Messages = append(chat.Messages, Message{Role: "system", Content: c.System})
	}
	for _, question := range c.Questions {
		pause(ctx, time.Duration((0.5+dice.Float64())*float64(r.Think)))
		chat.Messages = append(chat.Messages, Message{Role: "user", Content: question})
		out := r.client.Do(ctx, chat)
		if ctx.Err() != nil {
			return
		}
		r.note(user, chat, out)
		if out.Err != nil {
			return
		}
		chat.Messages = append(chat.Messages, Message{Role: "assistant", Content: out.Text})
	}
}

func (r *run) note(user int, chat Chat, out Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes = append(r.outcomes, out)
	if r.Each != nil {
		r.Each(user, chat, out)
	}
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
