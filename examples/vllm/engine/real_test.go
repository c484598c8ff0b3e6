//go:build vllm

package engine

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestServer has one server's life: it is started, used, and killed, and leaves no process behind that holds on to its ports.
func TestServer(t *testing.T) {
	s, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	if err := s.LoadAdapter(t.Context(), "lora-a"); err != nil {
		t.Error(err)
	}
	if err := s.LoadAdapter(t.Context(), "lora-a"); err == nil || !strings.Contains(err.Error(), "status 400") {
		t.Errorf("an adapter was loaded twice: %v", err)
	}
	if err := s.LoadAdapter(t.Context(), "lora-c"); err == nil || !strings.Contains(err.Error(), `"lora-c"`) {
		t.Errorf("an adapter that does not exist: %v", err)
	}
	if err := s.ResetCache(t.Context()); err != nil {
		t.Error(err)
	}
	if s.Ended() {
		t.Error("a healthy server is said to have ended")
	}
	s.Kill()
	if !s.Ended() {
		t.Error("a killed server has not ended")
	}
	for _, port := range s.ports {
		if !freed(port) {
			t.Errorf("port %d is still taken", port)
		}
	}
}

// freed waits until a port can be bound. Killed processes need a moment to let go of theirs.
func freed(port int) bool {
	for range 100 {
		if l, err := net.Listen("tcp", ":"+strconv.Itoa(port)); err == nil {
			return l.Close() == nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}
