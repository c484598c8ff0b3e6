package hostsim_test

import (
	"context"
	"testing"

	"github.com/warmlane/warmlane/hostsim"
)

// BenchmarkDo is what one exchange costs a test.
func BenchmarkDo(b *testing.B) {
	h := exampleHost(hostsim.Options{})
	defer h.Close()
	up := hostsim.Respond(200, "hi")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Do(hostsim.Request{}, up); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNew is what a host costs when its module has been compiled before.
func BenchmarkNew(b *testing.B) {
	code, err := buildGuest("example")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		h, err := hostsim.New(context.Background(), code, hostsim.Options{Workers: 2})
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
