package cgroup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits is what the processes of a task may use together. Where something cannot be limited (Base.Limited), its
// value has no effect.
type Limits struct {
	// Memory is in bytes, with what the kernel keeps for the processes, and without swap; 0: no limit.
	Memory int64 `json:",omitempty"`
	// MemoryLow, if it is not 0, is less than Memory: what is above it is the first to be reclaimed.
	MemoryLow int64 `json:",omitempty"`
	// Pids is how many processes and threads there may be at once; 0: no limit.
	Pids int64 `json:",omitempty"`
	// CPU is a weight beside other tasks, in MHz; 0: the kernel's default.
	CPU int64 `json:",omitempty"`
}

// Validate names the first limit that makes no sense.
func (l Limits) Validate() error {
	if l.Memory < 0 || l.MemoryLow < 0 || l.Pids < 0 || l.CPU < 0 {
		return fmt.Errorf("limits %+v: none may be negative", l)
	}
	return nil
}

// Group is the control groups of one task: a directory in each hierarchy that has one of the controllers, and in the
// unified one if there is any. It is a value that can be kept as JSON.
type Group struct {
	// Parent and Name are the base's place and the directory's name in it.
	Parent, Name string
	// Unified is the directory in the unified hierarchy, or empty.
	Unified string `json:",omitempty"`
	// Memory, Pids and CPU are the directories of these controllers, or empty; each may be Unified.
	Memory string `json:",omitempty"`
	Pids   string `json:",omitempty"`
	CPU    string `json:",omitempty"`
	Limits Limits
}

const (
	// maxName is how long a directory's name may be; the kernel's limit is 255.
	maxName = 200
	suffix  = ".scope"
)

// Group returns the group of the task of that ID. It exists once Create has made it.
func (b *Base) Group(id string, l Limits) *Group {
	name := url.PathEscape(id)
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(id))
		name = name[:maxName-32] + hex.EncodeToString(sum[:16])
	}
	name += suffix
	in := func(dir string) string {
		if dir == "" {
			return ""
		}
		return filepath.Join(dir, name)
	}
	return &Group{
		Parent: b.parent, Name: name, Limits: l,
		Unified: in(b.unified), Memory: in(b.of[controllerMemory]), Pids: in(b.of[controllerPids]), CPU: in(b.of[controllerCPU]),
	}
}

// dirs are the group's directories, each once.
func (g *Group) dirs() []string {
	out := make([]string, 0, 4)
	for _, dir := range []string{g.Unified, g.Memory, g.Pids, g.CPU} {
		if dir != "" && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}

// Create makes the group's directories and sets its limits. If it fails nothing is left.
func (s *System) Create(g *Group) error {
	for _, dir := range g.dirs() {
		if err := s.files.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return errors.Join(fmt.Errorf("control group of the task: %w", err), s.removeNow(g))
		}
	}
	for _, set := range g.settings() {
		err := s.files.WriteFile(set.file, set.text)
		if set.optional && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EOPNOTSUPP)) {
			continue
		}
		if err != nil {
			return errors.Join(fmt.Errorf("limit of the task: write %s to %s: %w", set.text, set.file, reason(err)), s.removeNow(g))
		}
	}
	return nil
}

// setting is what is written to one file of a group.
type setting struct {
	file, text string
	// optional: some kernels do not have the file, and can do without.
	optional bool
}

func (g *Group) settings() []setting {
	var out []setting
	add := func(optional bool, dir, file string, value int64) {
		out = append(out, setting{filepath.Join(dir, file), strconv.FormatInt(value, 10), optional})
	}
	l := g.Limits
	if g.Memory != "" && l.Memory > 0 {
		low, swap := "memory.low", "memory.swap.max"
		if g.Memory == g.Unified {
			add(false, g.Memory, "memory.max", l.Memory)
			add(true, g.Memory, swap, 0)
			// Whoever takes too much is killed with all that belongs to it, not one process of it.
			add(true, g.Memory, "memory.oom.group", 1)
		} else {
			low = "memory.soft_limit_in_bytes"
			add(false, g.Memory, "memory.limit_in_bytes", l.Memory)
			add(true, g.Memory, "memory.swappiness", 0)
			// Memory and swap together; not there unless the kernel counts swap.
			add(true, g.Memory, "memory.memsw.limit_in_bytes", l.Memory)
		}
		if l.MemoryLow > 0 && l.MemoryLow < l.Memory {
			add(true, g.Memory, low, l.MemoryLow)
		}
	}
	if g.Pids != "" && l.Pids > 0 {
		add(false, g.Pids, "pids.max", l.Pids)
	}
	if g.CPU != "" && l.CPU > 0 {
		if g.CPU == g.Unified {
			add(false, g.CPU, "cpu.weight", weightOf(l.CPU))
		} else {
			add(false, g.CPU, "cpu.shares", sharesOf(l.CPU))
		}
	}
	return out
}

// The kernel's bounds on weights.
const (
	minShares, maxShares = 2, 262_144
	minWeight, maxWeight = 1, 10_000
)

// sharesOf is MHz as version 1 takes them.
func sharesOf(mhz int64) int64 { return min(max(mhz, minShares), maxShares) }

// weightOf is MHz as version 2 takes them: the range of shares laid over the range of weights, as other runtimes do.
func weightOf(mhz int64) int64 {
	return minWeight + (sharesOf(mhz)-minShares)*(maxWeight-minWeight)/(maxShares-minShares)
}

// Start calls fork so that the process that it makes is born into the group. fork receives a descriptor of the group in
// the unified hierarchy, which it must have the process born into, or -1. It must fork on the thread on which it is
// called. Start must be called by OnThread, which must learn whether the thread may stay.
func (s *System) Start(g *Group, fork func(unified int) (pid int, err error)) (pid int, stays bool, err error) {
	unified := -1
	if g.Unified != "" {
		unified, err = unix.Open(g.Unified, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0, true, fmt.Errorf("control group %s: %w", g.Unified, err)
		}
		defer func() { _ = unix.Close(unified) }()
	}
	dirs := slices.DeleteFunc(g.dirs(), func(dir string) bool { return dir == g.Unified })
	for _, dir := range dirs {
		if err = s.files.WriteFile(filepath.Join(dir, "tasks"), "0"); err != nil {
			err = fmt.Errorf("enter control group %s: %w", dir, reason(err))
			break
		}
	}
	if err == nil {
		pid, err = fork(unified)
	}
	return pid, s.goHome(dirs), err
}

// goHome takes the calling thread back to the process's own groups of version 1, and reports whether it is there.
func (s *System) goHome(dirs []string) bool {
	for _, dir := range dirs {
		for _, h := range s.of {
			if h.v2 || !strings.HasPrefix(dir, h.mount+"/") {
				continue
			}
			if h.home == "" || s.files.WriteFile(filepath.Join(h.home, "tasks"), "0") != nil {
				return false
			}
			break
		}
	}
	return true
}

// OnThread calls f on a thread of its own, which ends afterwards unless f returns that it may stay. It is never the
// process's first thread: that one stands for the process in a hierarchy of version 1, and cannot end.
func OnThread(f func() (stays bool)) {
	done := make(chan struct{})
	go func() { // ends with f
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			OnThread(f) // on another, as this one is taken meanwhile
			runtime.UnlockOSThread()
			return
		}
		if f() {
			runtime.UnlockOSThread()
		}
	}()
	<-done
}

const (
	// killStep is the first pause between two looks at a group whose processes have been killed, maxKillStep the longest.
	killStep    = time.Millisecond
	maxKillStep = 20 * time.Millisecond
	// patientLooks is after how many looks the group may make no more processes.
	patientLooks = 4
)

// Kill kills all processes of the group and returns once none is left.
func (s *System) Kill(ctx context.Context, g *Group) error {
	if g.Unified != "" {
		// Linux 5.14 and newer; whoever forks meanwhile is killed too. What is not in this hierarchy is found below.
		_ = s.files.WriteFile(filepath.Join(g.Unified, "cgroup.kill"), "1")
	}
	for looks, pause := 1, killStep; ; looks, pause = looks+1, min(2*pause, maxKillStep) {
		pids, err := s.members(g)
		if err != nil {
			return fmt.Errorf("kill the processes of a task: %w", err)
		}
		if len(pids) == 0 {
			return nil
		}
		if looks == patientLooks && g.Pids != "" {
			// They fork faster than they are killed. Not done at once, as it shows in Events.
			_ = s.files.WriteFile(filepath.Join(g.Pids, "pids.max"), "0")
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended by itself
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kill the processes of a task: %d are left, such as %d: %w", len(pids), pids[0], ctx.Err())
		case <-time.After(pause):
		}
	}
}

// members are the processes in any of the group's directories and those below them, each once.
func (s *System) members(g *Group) ([]int, error) {
	var pids []int
	for _, dir := range g.dirs() {
		if err := s.addMembers(dir, &pids); err != nil {
			return nil, err
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

func (s *System) addMembers(dir string, pids *[]int) error {
	data, err := s.files.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if gone(err) {
		return nil
	}
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) { // one that its task has made for threads only: its parent lists them
		return err
	}
	for _, f := range strings.Fields(string(data)) {
		// A thread of this process may be in the group for a moment (Start). Processes of other namespaces are 0.
		if pid, err := strconv.Atoi(f); err == nil && pid > 1 && pid != os.Getpid() {
			*pids = append(*pids, pid)
		}
	}
	below, err := children(s.files, dir)
	for _, child := range below {
		err = errors.Join(err, s.addMembers(child, pids))
	}
	return err
}

// children are the groups right below one.
func children(files fileSystem, dir string) ([]string, error) {
	var st unix.Stat_t
	if unix.Stat(dir, &st) == nil && st.Nlink == 2 {
		return nil, nil // a directory's links are itself, its name, and one of each directory in it
	}
	entries, err := files.ReadDir(dir)
	if gone(err) {
		return nil, nil
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, err
}

// gone reports whether an error says that a group is not there (any more).
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) }

// Remove removes the group, waiting until the kernel has let go of its last process.
func (s *System) Remove(ctx context.Context, g *Group) error {
	for pause := killStep; ; pause = min(2*pause, maxKillStep) {
		err := s.removeNow(g)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("remove the control group of a task: %w", err)
		case <-time.After(pause):
		}
	}
}

func (s *System) removeNow(g *Group) error {
	var errs []error
	for _, dir := range g.dirs() {
		errs = append(errs, removeTree(s.files, dir))
	}
	return errors.Join(errs...)
}

// removeTree removes a group and those that its processes have made below it.
func removeTree(files fileSystem, dir string) error {
	err := files.Remove(dir)
	if err == nil || gone(err) {
		return nil
	}
	below, rerr := children(files, dir)
	if rerr != nil || len(below) == 0 {
		return fmt.Errorf("%s: %w", dir, err)
	}
	for _, child := range below {
		if err := removeTree(files, child); err != nil {
			return err
		}
	}
	if err := files.Remove(dir); err != nil && !gone(err) {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}
