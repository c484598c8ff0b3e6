package proc

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func shell(t *testing.T, script string) (*Process, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	p, err := Start(log, "/bin/sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p, log
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestReady(t *testing.T) {
	p, log := shell(t, "echo starting; echo ready http://127.0.0.1:1 more; echo ready again; echo oops >&2")
	got, err := p.Ready(within(t, 10*time.Second))
	if err != nil || got != "http://127.0.0.1:1 more" {
		t.Fatalf("Ready = %q, %v", got, err)
	}
	if err := p.Err(); err != nil {
		t.Errorf("Err = %v", err)
	}
	for _, want := range []string{"starting\n", "ready again\n", "oops\n"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q: %q", want, log)
		}
	}
}

func TestReadySaysWhyNot(t *testing.T) {
	f := func(script, want string) {
		t.Helper()
		p, _ := shell(t, script)
		_, err := p.Ready(within(t, time.Second))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Ready of %q: %v, want an error with %q", script, err, want)
		}
	}
	f("echo no such pool >&2; exit 3", "ended before it was ready; its last lines:\n  no such pool\n")
	f("echo still thinking; exec sleep 60", "sh is not ready: context deadline exceeded; its last lines:\n  still thinking\n")
}

func TestErr(t *testing.T) {
	p, _ := shell(t, "exit 3")
	if err := p.Err(); err == nil || err.Error() != "exit status 3" {
		t.Errorf("Err = %v", err)
	}
	if _, err := Start(nil, "/no/such/program"); err == nil {
		t.Error("a program that does not exist was started")
	}
}

// gone tells whether the process with the id printed by the script has ended.
func gone(t *testing.T, line string) bool {
	t.Helper()
	var pid int
	if _, err := fmt.Sscan(line, &pid); err != nil {
		t.Fatalf("no process id in %q", line)
	}
	for range 100 {
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

func TestStopEndsTheWholeGroup(t *testing.T) {
	f := func(script string) {
		t.Helper()
		p, _ := shell(t, script)
		child, err := p.Ready(within(t, 10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		p.Stop(300 * time.Millisecond)
		if !gone(t, child) {
			t.Errorf("%q: its child is still there", script)
		}
	}
	f("sleep 60 & echo ready $!; wait")
	f("trap '' TERM; sleep 60 & echo ready $!; wait; wait") // deaf: has to be killed
}

func TestSignal(t *testing.T) {
	p, _ := shell(t, "trap 'exit 7' USR1; echo ready now; while :; do sleep 0.05; done")
	if _, err := p.Ready(within(t, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	p.Signal(syscall.SIGUSR1)
	if err := p.Err(); err == nil {
		t.Error("the signal did not arrive")
	}
	p.Signal(syscall.SIGUSR1) // nobody there any more
}

func TestTail(t *testing.T) {
	var tail Tail
	for i := range 100 {
		fmt.Fprintf(&tail, "line %d\nand", i)
	}
	fmt.Fprint(&tail, strings.Repeat("x", 3*tailWidth))
	got := strings.Split(tail.String(), "\n")
	if len(got) != tailLines+2 || got[tailLines-1] != "  andline 99" {
		t.Errorf("kept %d lines, the last whole one is %q", len(got), got[tailLines-1])
	}
	if open := got[tailLines]; len(open) != 2+tailWidth {
		t.Errorf("the open line has %d bytes", len(open))
	}
}
