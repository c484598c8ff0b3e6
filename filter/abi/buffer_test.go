package abi

import (
	"testing"
	"unsafe"
)

func TestBufferTake(t *testing.T) {
	var b buffer
	f := func(size uint32, wantHeld int) {
		t.Helper()
		got := b.take(size)
		if len(got) != int(size) || unsafe.SliceData(got) == nil {
			t.Errorf("take(%d): %d bytes at %p", size, len(got), unsafe.SliceData(got))
		}
		if len(b.bytes) != wantHeld {
			t.Errorf("take(%d): holds %d bytes, want %d", size, len(b.bytes), wantHeld)
		}
	}
	f(0, minBuffer)
	f(1, minBuffer)
	f(minBuffer, minBuffer)
	f(minBuffer+1, 2*minBuffer)
	f(3, 2*minBuffer)
	f(70_000, 128<<10)
	f(maxKept, maxKept)
	f(maxKept+1, maxKept+1)
}

func TestBufferRefusesTooMuch(t *testing.T) {
	var b buffer
	for _, size := range []uint32{maxResult + 1, 1<<32 - 1} {
		if got := b.take(size); got != nil || len(b.bytes) != 0 {
			t.Errorf("take(%d) gave %d bytes and holds %d", size, len(got), len(b.bytes))
		}
	}
}

func TestBufferTrim(t *testing.T) {
	var b buffer
	b.take(maxKept)
	if b.trim(); len(b.bytes) != maxKept {
		t.Errorf("%d bytes were not kept", maxKept)
	}
	b.take(maxKept + 1)
	if b.trim(); b.bytes != nil {
		t.Errorf("%d bytes were kept", len(b.bytes))
	}
}

func TestBufferReuses(t *testing.T) {
	var b buffer
	b.take(64 << 10)
	n := testing.AllocsPerRun(100, func() {
		b.trim()
		b.take(64 << 10)
		b.take(0)
	})
	if n != 0 {
		t.Errorf("%v allocations for a buffer of the same size", n)
	}
}
