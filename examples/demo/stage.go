package main

import (
	"strconv"
	"time"

	"github.com/warmlane/warmlane/examples/internal/load"
)

const (
	replicas = 4
	model    = "org/demo-8b"
	think    = 400 * time.Millisecond // mean pause of a user
)

// talk is the load: conversations about a document, on system prompts that some of them share. A turn adds little to what was said
// before, so nearly all of a prompt can be found in a cache, if the request comes to the replica that has it.
var talk = load.Shape{
	Users: 24, Conversations: 1, Turns: 15,
	SystemPrompts: 4, SystemWords: 200, FirstWords: 1600, FollowWords: 40, MaxTokens: 20,
}

// engine is what a replica is like. A conversation ends with some 3,000 tokens, so 24 of them need 72,000. One replica has room
// for 22,000: enough for its share of the conversations, not for all of them. And to compute every prompt anew keeps the four busy all the
// time, while what is new in each is little.
func engine() []string {
	return []string{
		"-listen", "127.0.0.1:0", "-model", model,
		"-num-gpu-blocks", strconv.Itoa(22000/16 + 1), "-block-size", "16",
		"-prefill-rate", "9000", "-decode-rate", "80", "-decode-rate-full", "40",
		"-kv-events", "tcp://127.0.0.1:0", "-kv-replay", "tcp://127.0.0.1:0",
	}
}
