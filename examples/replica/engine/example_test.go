package engine_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

// Two engines in virtual time: a prompt needs next to nothing where its beginning
// was served before.
func Example() {
	warm, cold := engine.New(engine.Config{}), engine.New(engine.Config{})
	serve := func(e *engine.Engine, now time.Duration, question string) time.Duration {
		r := e.NewRequest(engine.Spec{Prompt: engine.Tokenize(nil, strings.Repeat(" rules", 1600)+question), MaxTokens: 1})
		if err := e.Submit(now, r); err != nil {
			fmt.Println(err)
		}
		for at, busy := e.Next(); busy; at, busy = e.Next() {
			e.Advance(at)
		}
		return r.TTFT()
	}
	serve(warm, 0, " one")
	fmt.Println(serve(warm, time.Second, " two"), serve(cold, time.Second, " two"))
	// Output: 125µs 200.125ms
}
