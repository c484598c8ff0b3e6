package hostsim

import "fmt"

// script is a function that waits for a host call.
type script struct {
	worker int
	call   string
	left   int
	run    func()
}

// OnCall makes run run once, just before the nth (1 is the next) host call of
// that name, such as "proxy_set_shared_data", that a guest makes on the
// worker. run may drive streams of other workers and read the host, so that
// what another thread could do between two instructions becomes a line of a
// test. Driving the interrupted worker gives ErrBusy.
func (h *Host) OnCall(worker int, call string, nth int, run func()) error {
	if _, err := h.threadAt(worker); err != nil {
		return err
	}
	if nth < 1 || run == nil {
		return fmt.Errorf("hostsim: OnCall %s: nth %d must be 1 or more, run must not be nil", call, nth)
	}
	if !h.known[call] {
		return fmt.Errorf("hostsim: OnCall %s: no such host call", call)
	}
	h.scripts = append(h.scripts, &script{worker, call, nth, run})
	return nil
}

func (h *Host) runScripts(v *vm, call string) {
	for i, s := range h.scripts {
		if s.worker != v.worker.index || s.call != call {
			continue
		}
		if s.left--; s.left == 0 {
			h.scripts = append(h.scripts[:i:i], h.scripts[i+1:]...)
			s.run()
			return
		}
	}
}
