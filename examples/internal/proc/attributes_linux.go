package proc

import "syscall"

// attributes puts a program into a group of its own and has the kernel kill it when we die without a chance to stop it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
