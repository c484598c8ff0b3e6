package lab

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

// check holds a workload against the trace it was made of: tokens are as many
// as it says, and prompts have in common at least what it says.
func check(t *testing.T, all []arrival, w *Workload) {
	t.Helper()
	if len(w.Requests) != len(all) {
		t.Fatalf("%d requests of %d", len(w.Requests), len(all))
	}
	prompts := make([][]engine.Token, len(all))
	for i := range all {
		r := &w.Requests[i]
		prompts[i] = r.Prompt()
		if len(prompts[i]) != r.Tokens || r.Tokens != max(r.Tokens, all[i].input) || r.Tokens > max(all[i].input, 2*leastTokens) {
			t.Fatalf("request %d has %d tokens and says %d, the trace %d", i, len(prompts[i]), r.Tokens, all[i].input)
		}
		for j := range i {
			want := chunkTokens * common(toTokens(all[i].ids), toTokens(all[j].ids))
			want = min(want, all[i].input/chunkTokens*chunkTokens, all[j].input/chunkTokens*chunkTokens)
			want -= leastTokens + openTokens // a message may end before
			if got := common(prompts[i], prompts[j]); got < want {
				t.Fatalf("requests %d and %d share %d tokens, want %d: %v, %v", j, i, got, want, all[j], all[i])
			}
		}
	}
}

func toTokens(ids []uint64) (tokens []engine.Token) {
	for _, id := range ids {
		tokens = append(tokens, engine.Token(id))
	}
	return tokens
}

// TestConversations makes conversations of random trees.
func TestConversations(t *testing.T) {
	for seed := range uint64(40) {
		dice := rand.New(rand.NewPCG(seed, 5))
		var all []arrival
		for range 40 {
			a := arrival{output: 1 + dice.IntN(300)}
			if len(all) > 0 && dice.IntN(4) > 0 { // begins as another one does
				other := all[dice.IntN(len(all))]
				a.ids = slices.Clone(other.ids[:dice.IntN(len(other.ids)+1)])
			}
			for range 1 + dice.IntN(3) {
				a.ids = append(a.ids, uint64(len(all))<<8+uint64(len(a.ids)))
			}
			a.input = len(a.ids)*chunkTokens - dice.IntN(chunkTokens)
			all = append(all, a)
		}
		check(t, all, converse("", all, seed))
	}
}

// A second turn begins with all messages of the first, then come an answer of
// the right length and a question; somebody else parts at the system prompt.
func TestTurns(t *testing.T) {
	w := converse("", []arrival{
		{input: 1300, output: 50, ids: []uint64{1, 2, 3}},
		{input: 700, output: 50, ids: []uint64{1, 9}},
		{input: 2000, output: 50, ids: []uint64{1, 2, 4, 5}},
		{input: 2040, output: 50, ids: []uint64{1, 2, 4, 6}}, // too short to go on from the one before
	}, 1)
	first, other, second, third := &w.Requests[0], &w.Requests[1], &w.Requests[2], &w.Requests[3]
	var roles [][]string
	for i := range w.Requests {
		roles = append(roles, nil)
		for _, m := range w.Requests[i].Messages {
			roles[i] = append(roles[i], m.Role)
		}
	}
	want := [][]string{{"system", "user"}, {"system", "user"}, {"system", "user", "assistant", "user", "user"}, {"system", "user", "assistant", "user", "user"}}
	for i := range want {
		if !slices.Equal(roles[i], want[i]) {
			t.Errorf("request %d: %v, want %v", i, roles[i], want[i])
		}
	}
	if first.Messages[0] != other.Messages[0] || first.Messages[1] == other.Messages[1] {
		t.Error("the first two do not part after the system prompt")
	}
	if !slices.Equal(second.Messages[:2], first.Messages) || !second.Turn || first.Turn || other.Turn {
		t.Error("the third does not go on from the first")
	}
	if got := len(engine.Tokenize(nil, second.Messages[2].Content)); got != first.Output {
		t.Errorf("the answer has %d tokens, want %d", got, first.Output)
	}
	if !slices.Equal(third.Messages[:3], second.Messages[:3]) || common(third.Prompt(), second.Prompt()) < 3*chunkTokens {
		t.Error("the last two do not share their beginning")
	}
	if n := common(second.Prompt(), first.Prompt()); n != first.Tokens {
		t.Errorf("the third has %d tokens of the first, want all %d", n, first.Tokens)
	}
}

// Bodies are what clients send, about four bytes a token.
func TestBody(t *testing.T) {
	w := Conversations(1)
	size := 0
	for i := range w.Requests {
		size += len(w.Requests[i].Body())
	}
	if ratio := float64(size) / float64(w.PromptTokens()); ratio < 3.9 || ratio > 4.1 {
		t.Errorf("%.2f bytes a token", ratio)
	}
	var got chatBody
	if err := json.Unmarshal(w.Requests[7].Body(), &got); err != nil {
		t.Fatal(err)
	}
	r := &w.Requests[7]
	if got.Model != Model || !got.Stream || !got.StreamOptions.IncludeUsage || got.MaxTokens != r.Output || !slices.Equal(got.Messages, r.Messages) {
		t.Errorf("%+v", got)
	}
}
