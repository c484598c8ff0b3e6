package abi

import (
	"errors"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

func TestCheck(t *testing.T) {
	f := func(status uint32, want error) {
		t.Helper()
		if got := check(status); !errors.Is(got, want) {
			t.Errorf("status %d: got %v, want %v", status, got, want)
		}
	}
	f(0, nil)
	f(1, types.ErrorStatusNotFound)
	f(2, types.ErrorStatusBadArgument)
	f(3, StatusSerializationFailure)
	f(4, StatusParseFailure)
	f(6, StatusInvalidMemoryAccess)
	f(7, types.ErrorStatusEmpty)
	f(8, types.ErrorStatusCasMismatch)
	f(10, types.ErrorInternalFailure)
	f(12, types.ErrorUnimplemented)
	f(77, Status(77))
}

func TestStatusWords(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range []Status{3, 4, 6, 77} {
		seen[s.Error()] = true
	}
	if len(seen) != 4 || !seen["error status returned by host: 77"] {
		t.Errorf("four statuses read as %v", seen)
	}
}

func TestCheckDoesNotAllocate(t *testing.T) {
	var last error
	n := testing.AllocsPerRun(100, func() {
		for status := range uint32(13) {
			last = check(status)
		}
	})
	if n != 0 || last == nil {
		t.Errorf("%v allocations for the specification's statuses, last %v", n, last)
	}
}
