package hostsim

import (
	"reflect"
	"testing"
)

func TestHeaderChanges(t *testing.T) {
	f := func(change func(h *Header), want Header) {
		t.Helper()
		h := Header{{":path", "/"}, {"X-A", "1"}, {"x-b", "2"}, {"x-a", "3"}}.lowered()
		change(h)
		if !reflect.DeepEqual(*h, want) {
			t.Errorf("got %q, want %q", *h, want)
		}
	}
	rest := Header{{":path", "/"}, {"x-a", "1"}, {"x-b", "2"}, {"x-a", "3"}}
	f(func(h *Header) {}, rest)
	f(func(h *Header) { h.add("X-A", "4") }, append(rest.Clone(), [2]string{"x-a", "4"}))
	f(func(h *Header) { h.add(":path", "4") }, Header{{":path", "/,4"}, {"x-a", "1"}, {"x-b", "2"}, {"x-a", "3"}})
	f(func(h *Header) { h.set("X-A", "4") }, Header{{":path", "/"}, {"x-a", "4"}, {"x-b", "2"}})
	f(func(h *Header) { h.set("x-c", "4") }, append(rest.Clone(), [2]string{"x-c", "4"}))
	f(func(h *Header) { h.remove("X-A") }, Header{{":path", "/"}, {"x-b", "2"}})
	f(func(h *Header) { h.remove("x-c") }, rest)
	f(func(h *Header) { *h = h.merged() }, Header{{":path", "/"}, {"x-a", "1,3"}, {"x-b", "2"}})
}

func TestHeaderReads(t *testing.T) {
	h := Header{{"x-a", "1"}, {"x-a", "2"}}
	if h.Get("X-A") != "1" || h.Get("x-b") != "" || !h.Has("x-a") || h.Has("x-b") {
		t.Errorf("reads of %q are wrong", h)
	}
	if got := h.Values("x-A"); !reflect.DeepEqual(got, []string{"1", "2"}) {
		t.Errorf("values %q", got)
	}
	if got := h.byteSize(); got != 8 {
		t.Errorf("%d bytes", got)
	}
}
