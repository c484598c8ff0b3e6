package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/warmlane/warmlane/examples/vllm/engine"
)

func TestRunRefuses(t *testing.T) {
	f := func(n, blocks int, want string) {
		t.Helper()
		err := run(context.Background(), n, engine.Options{Blocks: blocks}, false, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("-n %d -blocks %d: %v, want an error with %q", n, blocks, err, want)
		}
	}
	f(0, 256, "-n 0: want 1 to 16")
	f(17, 256, "-n 17: want 1 to 16")
	f(1, 64, "want at least 129")
}
