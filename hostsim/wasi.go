package hostsim

import (
	"slices"
	"time"
)

// WASI as Envoy gives it to a guest: a log, a clock, dice, an environment, and
// polite refusals for the rest.

type errno = uint32

const (
	errnoSuccess errno = 0
	errnoBadF    errno = 8
	errnoFault   errno = 21
	errnoInval   errno = 28
	errnoNoEnt   errno = 44
	errnoNoSys   errno = 52
	errnoNotDir  errno = 20
	errnoNotSup  errno = 58
	// bootTime is what the monotonic clock shows at the start: runtimes take 0
	// for a broken clock.
	bootTime      = time.Hour
	pollTime      = 100 * time.Microsecond
	maxRandomSize = 64 << 10
	maxWrite      = 16 << 20 // bytes of one fd_write
	rightFdWrite  = 64
)

// wasiTable is the WASI of an Envoy release; what it lacks cannot be imported.
func wasiTable(f features) []hostFunc {
	if !f.wasi2026 {
		return append([]hostFunc{{name: "poll_oneoff", signature: "iiii:i", run: errnoOf(errnoNoSys)}}, wasiCalls...)
	}
	return slices.Concat(wasiCalls, wasiCalls2026)
}

var wasiCalls = []hostFunc{
	{name: "fd_write", signature: "iiii:i", run: wasiWrite},
	{name: "fd_read", signature: "iiii:i", run: errnoOf(errnoNoSys)},
	{name: "fd_seek", signature: "iIii:i", run: errnoOf(errnoSuccess)},
	{name: "fd_close", signature: "i:i", run: errnoOf(errnoSuccess)},
	{name: "fd_fdstat_get", signature: "ii:i", run: wasiFdstat},
	{name: "fd_fdstat_set_flags", signature: "ii:i", run: errnoOf(errnoNoSys)},
	{name: "fd_prestat_get", signature: "ii:i", run: errnoOf(errnoBadF)},
	{name: "fd_prestat_dir_name", signature: "iii:i", run: errnoOf(errnoNoSys)},
	{name: "path_open", signature: "iiiiiIIii:i", run: errnoOf(errnoNoEnt)},
	{name: "environ_get", signature: "ii:i", run: wasiEnviron},
	{name: "environ_sizes_get", signature: "ii:i", run: wasiEnvironSizes},
	{name: "args_get", signature: "ii:i", run: errnoOf(errnoSuccess)},
	{name: "args_sizes_get", signature: "ii:i", run: wasiArgsSizes},
	{name: "clock_time_get", signature: "iIi:i", run: wasiClock},
	{name: "random_get", signature: "ii:i", run: wasiRandom},
	{name: "sched_yield", signature: ":i", run: errnoOf(errnoSuccess)},
	// proc_exit returns: the VM goes on, or falls over what follows.
	{name: "proc_exit", signature: "i:", run: errnoOf(errnoSuccess)},
}

var wasiCalls2026 = []hostFunc{
	{name: "poll_oneoff", signature: "iiii:i", run: wasiPoll},
	{name: "clock_res_get", signature: "ii:i", run: wasiClockRes},
	{name: "fd_advise", signature: "iIIi:i", run: errnoOf(errnoSuccess)},
	{name: "fd_allocate", signature: "iII:i", run: onlyStdio(errnoSuccess)},
	{name: "fd_datasync", signature: "i:i", run: onlyStdio(errnoSuccess)},
	{name: "fd_sync", signature: "i:i", run: onlyStdio(errnoSuccess)},
	{name: "fd_fdstat_set_rights", signature: "iII:i", run: onlyStdio(errnoSuccess)},
	{name: "fd_filestat_get", signature: "ii:i", run: errnoOf(errnoBadF)},
	{name: "fd_filestat_set_size", signature: "iI:i", run: onlyStdio(errnoSuccess)},
	{name: "fd_filestat_set_times", signature: "iIIi:i", run: onlyStdio(errnoSuccess)},
	{name: "fd_pread", signature: "iiiIi:i", run: errnoOf(errnoNoSys)},
	{name: "fd_pwrite", signature: "iiiIi:i", run: wasiPwrite},
	{name: "fd_readdir", signature: "iiiIi:i", run: zeroed(4, errnoNotDir)},
	{name: "fd_renumber", signature: "ii:i", run: wasiRenumber},
	{name: "fd_tell", signature: "ii:i", run: wasiTell},
	{name: "path_create_directory", signature: "iii:i", run: errnoOf(errnoNotSup)},
	{name: "path_filestat_get", signature: "iiiii:i", run: errnoOf(errnoNotSup)},
	{name: "path_filestat_set_times", signature: "iiiiIIi:i", run: errnoOf(errnoNotSup)},
	{name: "path_link", signature: "iiiiii:i", run: errnoOf(errnoNotSup)},
	{name: "path_readlink", signature: "iiiiii:i", run: zeroed(5, errnoNotSup)},
	{name: "path_remove_directory", signature: "iii:i", run: errnoOf(errnoNotSup)},
	{name: "path_rename", signature: "iiiiii:i", run: errnoOf(errnoNotSup)},
	{name: "path_symlink", signature: "iiii:i", run: errnoOf(errnoNotSup)},
	{name: "path_unlink_file", signature: "iii:i", run: errnoOf(errnoNotSup)},
	{name: "sock_accept", signature: "iii:i", run: errnoOf(errnoNotSup)},
	{name: "sock_recv", signature: "iiiiii:i", run: zeroed(4, errnoNotSup)},
	{name: "sock_send", signature: "iiiii:i", run: zeroed(4, errnoNotSup)},
	{name: "sock_shutdown", signature: "ii:i", run: errnoOf(errnoNotSup)},
}

func errnoOf(e errno) func(*vm, []uint64) uint32 {
	return func(*vm, []uint64) uint32 { return e }
}

// onlyStdio answers e for standard output and error, and "bad descriptor" for
// any other.
func onlyStdio(e errno) func(*vm, []uint64) uint32 {
	return func(_ *vm, a []uint64) uint32 {
		if !stdio(a[0]) {
			return errnoBadF
		}
		return e
	}
}

func stdio(fd uint64) bool { return fd == 1 || fd == 2 }

// zeroed answers e after writing 0 as the count of what was done, whose
// address is argument i.
func zeroed(i int, e errno) func(*vm, []uint64) uint32 {
	return func(v *vm, a []uint64) uint32 { return faultOr(v.put32(a[i], 0), e) }
}

func faultOr(ok bool, e errno) errno {
	if !ok {
		return errnoFault
	}
	return e
}

// wasiWrite logs what is written to standard output (info) and error (error).
func wasiWrite(v *vm, a []uint64) uint32 { return v.writev(a[0], a[1], a[2], a[3]) }

func wasiPwrite(v *vm, a []uint64) uint32 { return v.writev(a[0], a[1], a[2], a[4]) }

func (v *vm) writev(fd, vectors, count, out uint64) errno {
	if !stdio(fd) {
		return errnoBadF
	}
	var text []byte
	for i := range count {
		if len(text) > maxWrite {
			return errnoInval
		}
		ptr, ok := v.mem.ReadUint32Le(uint32(vectors + 8*i))
		size, ok2 := v.mem.ReadUint32Le(uint32(vectors + 8*i + 4))
		b, ok3 := v.read(uint64(ptr), uint64(size))
		if !ok || !ok2 || !ok3 {
			return errnoFault
		}
		text = append(text, b...)
	}
	v.logWritten(fd, text)
	return faultOr(v.put32(out, uint32(len(text))), errnoSuccess)
}

func (v *vm) logWritten(fd uint64, text []byte) {
	level := LevelInfo
	if fd == 2 {
		level = LevelError
	}
	if n := len(text); n > 0 {
		if text[n-1] == '\n' {
			n--
		}
		v.log(level, string(text[:n]))
	}
}

func wasiFdstat(v *vm, a []uint64) uint32 {
	if !stdio(a[0]) {
		return errnoBadF
	}
	return faultOr(v.put64(a[1], 0) && v.put64(a[1]+8, rightFdWrite) && v.put64(a[1]+16, 0), errnoSuccess)
}

// environment lists "name=value", each with its zero byte, in a stable order.
func (v *vm) environment() []string {
	var out []string
	for name, value := range v.host.opts.Env {
		out = append(out, name+"="+value+"\x00")
	}
	slices.Sort(out)
	return out
}

func wasiEnviron(v *vm, a []uint64) uint32 {
	array, buf := a[0], a[1]
	for _, e := range v.environment() {
		if !v.put32(array, uint32(buf)) || !v.mem.Write(uint32(buf), []byte(e)) {
			return errnoFault
		}
		array += 4
		buf += uint64(len(e))
	}
	return errnoSuccess
}

func wasiEnvironSizes(v *vm, a []uint64) uint32 {
	size := 0
	for _, e := range v.environment() {
		size += len(e)
	}
	return faultOr(v.put32(a[0], uint32(len(v.host.opts.Env))) && v.put32(a[1], uint32(size)), errnoSuccess)
}

func wasiArgsSizes(v *vm, a []uint64) uint32 {
	return faultOr(v.put32(a[0], 0) && v.put32(a[1], 0), errnoSuccess)
}

func wasiClock(v *vm, a []uint64) uint32 {
	switch a[0] {
	case 0:
		return faultOr(v.put64(a[2], uint64(v.host.clock.wall().UnixNano())), errnoSuccess)
	case 1:
		return faultOr(v.put64(a[2], uint64(bootTime+v.host.clock.now+v.polled)), errnoSuccess)
	}
	return errnoNotSup
}

func wasiClockRes(v *vm, a []uint64) uint32 {
	if a[0] > 1 {
		return errnoNotSup
	}
	return faultOr(v.put64(a[1], 1), errnoSuccess)
}

func wasiRandom(v *vm, a []uint64) uint32 {
	if a[1] > maxRandomSize {
		return errnoInval
	}
	b := make([]byte, a[1])
	v.rand.Read(b)
	return faultOr(v.mem.Write(uint32(a[0]), b), errnoSuccess)
}

// wasiPoll succeeds at once with no event: waiting is not possible. A runtime
// that waits for time to pass polls until it has; so every poll takes a little
// of it, on this VM's monotonic clock only.
func wasiPoll(v *vm, a []uint64) uint32 {
	v.polled += pollTime
	return faultOr(v.put32(a[3], 0), errnoSuccess)
}

func wasiRenumber(_ *vm, a []uint64) uint32 {
	if !stdio(a[0]) || !stdio(a[1]) {
		return errnoBadF
	}
	return errnoNotSup
}

func wasiTell(v *vm, a []uint64) uint32 {
	if !stdio(a[0]) {
		return errnoBadF
	}
	return faultOr(v.put64(a[1], 0), errnoSuccess)
}
