package envoy

import (
	"os"
	"sync"
	"time"

	"github.com/warmlane/warmlane/examples/internal/proc"
)

// stopGrace is how long Stop waits for an orderly end.
const stopGrace = 5 * time.Second

// Process is a running Envoy.
type Process struct {
	AdminAPI
	program                 *proc.Process
	dir, logPath, adminFile string
	logFile                 *os.File // nil if the log goes elsewhere
	stop                    sync.Once
}

// Admin is the address of the admin interface, as host:port.
func (p *Process) Admin() string { return string(p.AdminAPI) }

// PID is the id of the process and of its group.
func (p *Process) PID() int { return p.program.Pid() }

// LogPath is the file with Envoy's log, "" if Options named none.
func (p *Process) LogPath() string { return p.logPath }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.program.Done() }

// Fault makes an error of what went wrong with Envoy and of the last lines of its log.
func (p *Process) Fault(what string) error { return p.program.Fault(what) }

// Stop ends Envoy and all of its group, with SIGTERM first and SIGKILL if that
// is not obeyed within five seconds, and removes its temporary files. It returns
// when the process is gone. Further calls wait for the first.
func (p *Process) Stop() {
	p.stop.Do(func() {
		p.program.Stop(stopGrace)
		p.clean()
	})
}

func (p *Process) clean() {
	if p.logFile != nil {
		p.logFile.Close()
	}
	os.RemoveAll(p.dir)
}
