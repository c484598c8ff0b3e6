//go:build vllm

package e2e

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// users are served side by side. The engines and Envoy share few cores.
	users = 2
	// pause is a user's between two requests. An event takes some milliseconds to get from an engine to the filter.
	pause = 200 * time.Millisecond
	// settle is time enough for that on a busy machine.
	settle = time.Second
)

// script is what a user does, one request after the other.
type script func(s *stage, dice *rand.Rand)

// play lets the users take scripts until none is left. Each script has dice of its own.
func (s *stage) play(seed uint64, scripts ...script) {
	next := make(chan int)
	var all sync.WaitGroup
	for range users {
		all.Go(func() {
			for i := range next {
				scripts[i](s, rand.New(rand.NewPCG(seed, uint64(i))))
			}
		})
	}
	for i := range scripts {
		next <- i
	}
	close(next)
	all.Wait()
}

// mixed is what an engine gets to see in a day.
func mixed(seed uint64) []script {
	dice := rand.New(rand.NewPCG(seed, 1))
	systems := []string{text(dice, 250), text(dice, 150), text(dice, 350)}
	var scripts []script
	for i := range 9 {
		scripts = append(scripts, conversation("conversation", body{"model": baseModel}, systems[i%len(systems)], 6))
	}
	return append(scripts,
		conversation("adapter", body{"model": "lora-a"}, systems[0], 4),
		conversation("adapter", body{"model": "lora-b"}, systems[0], 4),
		conversation("salt", body{"model": baseModel, "cache_salt": "a"}, systems[1], 4),
		conversation("salt", body{"model": baseModel, "cache_salt": "b"}, systems[1], 4),
		conversation("salt and adapter", body{"model": "lora-a", "cache_salt": "a"}, systems[0], 4),
		ids(5), ids(5),
		story(5), story(5),
		repeat(4), repeat(4),
		several(3),
	)
}

// conversation has the whole conversation before it in each request, with the answers as they came. Every other is a stream.
func conversation(kind string, with body, system string, turns int) script {
	return func(s *stage, dice *rand.Rand) {
		messages := []map[string]string{{"role": "system", "content": system}}
		for turn := range turns {
			messages = append(messages, map[string]string{"role": "user", "content": text(dice, 30+dice.IntN(60))})
			b := chat(with, messages, 24)
			if turn%2 == 1 {
				b["stream"], b["stream_options"] = true, map[string]bool{"include_usage": true}
			}
			messages = append(messages, map[string]string{"role": "assistant", "content": s.send(kind, b)})
			time.Sleep(pause)
		}
	}
}

// chat is a chat completion's body with what is in with.
func chat(with body, messages any, maxTokens int) body {
	b := body{"messages": messages, "max_tokens": maxTokens, "temperature": 0}
	for key, value := range with {
		b[key] = value
	}
	return b
}

func completion(prompt any, maxTokens int) body {
	return body{"model": baseModel, "prompt": prompt, "max_tokens": maxTokens, "temperature": 0}
}

// ids sends a growing prompt of token ids.
func ids(turns int) script {
	return func(s *stage, dice *rand.Rand) {
		var prompt []uint32
		for range turns {
			for range 150 + dice.IntN(100) {
				prompt = append(prompt, 100+dice.Uint32N(3900))
			}
			s.send("token ids", completion(append([]uint32(nil), prompt...), 8))
			time.Sleep(pause)
		}
	}
}

// story lets the engine go on with a text, again and again.
func story(turns int) script {
	return func(s *stage, dice *rand.Rand) {
		prompt := text(dice, 150)
		for range turns {
			prompt += s.send("text", completion(prompt, 40)) + " " + text(dice, 20)
			time.Sleep(pause)
		}
	}
}

// repeat sends one request several times. The answer is longer than a block, so that copies of decoded blocks come about.
func repeat(times int) script {
	return func(s *stage, dice *rand.Rand) {
		b := chat(body{"model": baseModel, "ignore_eos": true}, []map[string]string{{"role": "user", "content": text(dice, 200)}}, 70)
		for range times {
			s.send("repeat", b)
			time.Sleep(pause)
		}
	}
}

// several sends two prompts in one request, several times.
func several(times int) script {
	return func(s *stage, dice *rand.Rand) {
		b := completion([]string{text(dice, 200), text(dice, 200)}, 4)
		for range times {
			s.send("two prompts", b)
			time.Sleep(pause)
		}
	}
}
