package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// killDelay is how long the pipes of an ended program are still read. A grandchild that kept them open must not hold us.
const killDelay = 2 * time.Second

// Process is a program that was started. Its methods may be called from several goroutines.
type Process struct {
	name  string
	cmd   *exec.Cmd
	tail  *Tail
	ready chan string
	done  chan struct{}
	err   error // how it ended; to be read after done is closed
}

// Start runs the program at path. What it prints, on both outputs, goes to log, never in two writes at once; nil drops it.
func Start(log io.Writer, path string, args ...string) (*Process, error) {
	p := &Process{
		name:  filepath.Base(path),
		cmd:   exec.Command(path, args...),
		tail:  &Tail{},
		ready: make(chan string, 1),
		done:  make(chan struct{}),
	}
	out := &serial{to: p.tail}
	if log != nil {
		out.to = io.MultiWriter(log, p.tail)
	}
	stdout, lines := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = lines, out
	p.cmd.WaitDelay = killDelay
	p.cmd.SysProcAttr = attributes()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	copied := make(chan struct{})
	go func() { defer close(copied); p.read(stdout, out) }()
	go p.wait(lines, copied)
	return p, nil
}

// serial lets the copiers of both outputs share a writer that is not made for it.
type serial struct {
	mu sync.Mutex
	to io.Writer
}

func (s *serial) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(p)
}

// read passes standard output on and looks for the ready line.
func (p *Process) read(stdout io.Reader, log io.Writer) {
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			io.WriteString(log, line)
		}
		if rest, ok := strings.CutPrefix(line, "ready "); ok {
			select {
			case p.ready <- strings.TrimSpace(rest):
			default: // said more than once
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *Process) wait(lines *io.PipeWriter, copied <-chan struct{}) {
	err := p.cmd.Wait()
	lines.Close()
	<-copied
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	p.err = err
	close(p.done)
}

// Ready waits for the line "ready REST" and returns REST. If the program ends first, or ctx does, the error holds
// the last lines it printed.
func (p *Process) Ready(ctx context.Context) (string, error) {
	select {
	case rest := <-p.ready:
		return rest, nil
	case <-p.done:
		return "", p.Fault("ended before it was ready")
	case <-ctx.Done():
		return "", p.Fault("is not ready: " + context.Cause(ctx).Error())
	}
}

// Fault makes an error of what happened to the program and of the last lines it printed.
func (p *Process) Fault(what string) error {
	return fmt.Errorf("%s %s; its last lines:\n%s", p.name, what, p.tail)
}

// Pid is the process id, which is the id of the process group as well.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the program ended: nil for exit code 0. It waits for the end.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Stop asks the process group to end and kills it if it has not after grace. It returns when the program has ended.
func (p *Process) Stop(grace time.Duration) {
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
	}
	p.Kill()
}

// Kill ends the process group at once, as a crash would, and waits for it.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// Signal sends a signal to the process group. A group that is gone is not an error.
func (p *Process) Signal(signal syscall.Signal) {
	_ = syscall.Kill(-p.Pid(), signal)
}
