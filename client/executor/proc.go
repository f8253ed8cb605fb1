package executor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// clockTick is the unit of times in /proc/*/stat: USER_HZ is 100 on every
// architecture that Go runs on.
const clockTick = time.Second / 100

// procStat is what is used of /proc/<pid>/stat.
type procStat struct {
	pid, ppid, session int
	state              byte
	// ticks used by it, and by its children that it has waited for
	utime, stime, cutime, cstime uint64
	startTicks                   uint64
	rss                          uint64 // bytes
}

// parseStat reads a line of /proc/<pid>/stat. The second field is the command's
// name in parentheses and may contain anything, so fields count from the last one.
func parseStat(data []byte) (procStat, error) {
	var p procStat
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 1 || end < open {
		return p, errors.New("process stat: no command name")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data[:open])))
	if err != nil {
		return p, fmt.Errorf("process stat: %w", err)
	}
	f := strings.Fields(string(data[end+1:]))
	if len(f) < 22 || len(f[0]) != 1 {
		return p, errors.New("process stat: too few fields")
	}
	p.pid, p.state = pid, f[0][0]
	num := func(i int) uint64 {
		v, e := strconv.ParseUint(f[i], 10, 64)
		if e != nil {
			err = fmt.Errorf("process stat: %w", e)
		}
		return v
	}
	// f[0] is field 3 of proc(5).
	p.ppid, p.session = int(num(1)), int(num(3))
	p.utime, p.stime, p.cutime, p.cstime = num(11), num(12), num(13), num(14)
	p.startTicks = num(19)
	p.rss = num(21) * uint64(os.Getpagesize())
	return p, err
}

func readStat(pid int) (procStat, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, err
	}
	return parseStat(data)
}

// alive reports whether the process that was started at ticks under pid still
// runs, and is not just an exit status that nobody has fetched.
func alive(pid int, ticks uint64) bool {
	st, err := readStat(pid)
	return err == nil && st.startTicks == ticks && st.state != 'Z' && st.state != 'X'
}

// bootID names the running boot of the machine.
func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("boot ID: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// hasMarker reports whether a process was started for the task of that ID.
func hasMarker(pid int, id string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	want := []byte(Marker + "=" + id)
	for len(env) > 0 {
		var v []byte
		v, env, _ = bytes.Cut(env, []byte{0})
		if bytes.Equal(v, want) {
			return true
		}
	}
	return false
}

// allProcs reads /proc. Processes that end meanwhile are left out.
func allProcs() ([]procStat, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	names, err := d.Readdirnames(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var procs []procStat
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if st, err := readStat(pid); err == nil {
			procs = append(procs, st)
		}
	}
	return procs, nil
}

// ownChildren lists this process's children, those of all its threads. It falls
// back to all processes where the kernel was built without the lists.
func ownChildren() ([]int, error) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(lists) == 0 {
		procs, err := allProcs()
		if err != nil {
			return nil, err
		}
		var pids []int
		for _, p := range procs {
			if p.ppid == os.Getpid() {
				pids = append(pids, p.pid)
			}
		}
		return pids, nil
	}
	var pids []int
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			continue // the thread ended
		}
		for _, f := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids, nil
}

// members picks the processes of a task out of all: those of its session and
// those that descend from them.
func members(procs []procStat, main int) []procStat {
	in := map[int]bool{main: true}
	for grown := true; grown; {
		grown = false
		for _, p := range procs {
			if !in[p.pid] && p.state != 'Z' && (p.session == main || in[p.ppid]) {
				in[p.pid] = true
				grown = true
			}
		}
	}
	var out []procStat
	for _, p := range procs {
		switch {
		case p.pid == main:
			out = append([]procStat{p}, out...)
		case in[p.pid]:
			out = append(out, p)
		}
	}
	return out
}

// swapOf is the swapped memory of a process in bytes, 0 where it cannot be read.
func swapOf(pid int) uint64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, ok := bytes.Cut(data, []byte("\nVmSwap:"))
	if !ok {
		return 0
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	f := strings.Fields(string(line))
	if len(f) == 0 {
		return 0
	}
	kb, err := strconv.ParseUint(f[0], 10, 64)
	if err != nil {
		return 0
	}
	return kb << 10
}

// measure adds up a task's processes.
func measure(procs []procStat, main int, now time.Time) (Stats, bool) {
	s := Stats{At: now}
	var user, system uint64
	for _, p := range members(procs, main) {
		s.Pids = append(s.Pids, p.pid)
		user += p.utime
		system += p.stime
		if p.pid == main {
			user += p.cutime
			system += p.cstime
		}
		s.RSS += p.rss
		s.Swap += swapOf(p.pid)
	}
	s.CPUUser, s.CPUSystem = time.Duration(user)*clockTick, time.Duration(system)*clockTick
	return s, len(s.Pids) > 0 && s.Pids[0] == main
}

// childOf takes the child's pid out of the result of waitid(2). The kernel puts a
// union after three ints, aligned to a pointer; the pid comes first in it.
func childOf(info *unix.Siginfo) int {
	const ints = 3 * unsafe.Sizeof(int32(0))
	const word = unsafe.Sizeof(uintptr(0))
	const at = (ints + word - 1) / word * word
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), at)))
}
