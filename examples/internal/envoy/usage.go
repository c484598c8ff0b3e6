package envoy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// clockTick is the unit of times in /proc: Linux shows USER_HZ, which is 100 on
// every architecture Envoy runs on.
const clockTick = time.Second / 100

// CPU is the processor time, user and system, of all of Envoy's threads so far.
func (p *Process) CPU() (time.Duration, error) {
	b, err := os.ReadFile(p.proc("stat"))
	if err != nil {
		return 0, err
	}
	ticks, err := parseStat(b)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", p.proc("stat"), err)
	}
	return time.Duration(ticks) * clockTick, nil
}

// RSS is the resident memory in bytes.
func (p *Process) RSS() (int64, error) {
	b, err := os.ReadFile(p.proc("statm"))
	if err != nil {
		return 0, err
	}
	pages, err := field(b, 1)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", p.proc("statm"), err)
	}
	return pages * int64(os.Getpagesize()), nil
}

func (p *Process) proc(file string) string {
	return "/proc/" + strconv.Itoa(p.PID()) + "/" + file
}

// parseStat adds utime and stime of /proc/PID/stat (proc_pid_stat(5)). They are
// the fields 14 and 15, counted behind the command's name, which is in
// parentheses and may hold anything.
func parseStat(b []byte) (int64, error) {
	at := bytes.LastIndexByte(b, ')')
	if at < 0 {
		return 0, errors.New("no command name")
	}
	user, err := field(b[at+1:], 11)
	if err != nil {
		return 0, err
	}
	system, err := field(b[at+1:], 12)
	return user + system, err
}

func field(b []byte, i int) (int64, error) {
	fields := bytes.Fields(b)
	if i >= len(fields) {
		return 0, fmt.Errorf("%d fields, want more than %d", len(fields), i)
	}
	return strconv.ParseInt(string(fields[i]), 10, 64)
}
