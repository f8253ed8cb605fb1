package cgroup

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// The controllers that are used, as they are named in limits.
const (
	controllerMemory = "memory"
	controllerPids   = "pids"
	controllerCPU    = "cpu"
)

// controllers are all of them, in the order in which a node lists them.
func controllers() []string { return []string{controllerMemory, controllerPids, controllerCPU} }

// fileSystem is what is needed of a cgroup file system, so that tests can stand in for the kernel.
type fileSystem interface {
	Mkdir(path string) error
	Remove(path string) error
	ReadFile(path string) ([]byte, error)
	// WriteFile writes to a file that must exist.
	WriteFile(path, text string) error
	ReadDir(path string) ([]fs.DirEntry, error)
}

// kernel is the real one.
type kernel struct{}

func (kernel) Mkdir(path string) error                    { return os.Mkdir(path, 0o755) }
func (kernel) Remove(path string) error                   { return syscall.Rmdir(path) }
func (kernel) ReadFile(path string) ([]byte, error)       { return os.ReadFile(path) }
func (kernel) ReadDir(path string) ([]fs.DirEntry, error) { return os.ReadDir(path) }

func (kernel) WriteFile(path, text string) error {
	// Neither created nor truncated: a missing file means that the kernel has no such control.
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return cmp.Or(err, f.Close())
}

// hierarchy is one mounted tree of control groups.
type hierarchy struct {
	mount string // where it is mounted
	home  string // the directory of this process's own group in it; empty if that lies outside of what is mounted
	v2    bool
}

// System is what this machine has mounted of control groups.
type System struct {
	files fileSystem
	// unified is the hierarchy of version 2, or nil.
	unified *hierarchy
	// of is where each controller is; one that is nowhere is missing.
	of map[string]*hierarchy
	// born reports whether the kernel lets a process be born into a group of version 2.
	born func() error
	cpus int

	mu    sync.Mutex
	bases map[string]*Base
}

// Detect returns what this machine has mounted. A machine without control groups is no error: it has no
// controllers.
func Detect(cpus int) (*System, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("find control groups: %w", err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("find control groups: %w", err)
	}
	return detect(kernel{}, string(mounts), string(own), cpus), nil
}

// detect reads mounts, which is /proc/self/mountinfo, and own, which is /proc/self/cgroup.
func detect(files fileSystem, mounts, own string, cpus int) *System {
	s := &System{files: files, of: map[string]*hierarchy{}, bases: map[string]*Base{}, born: canBeBorn, cpus: max(1, cpus)}
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(strings.TrimRight(line, "\n"), " - ")
		where, what := strings.Fields(before), strings.Fields(after)
		if !ok || len(where) < 5 || len(what) < 3 {
			continue
		}
		root, mount, options := where[3], unescape(where[4]), strings.Split(what[2], ",")
		switch what[0] {
		case "cgroup2":
			if s.unified == nil {
				s.unified = &hierarchy{mount: mount, home: homeOf(own, "", root, mount), v2: true}
			}
		case "cgroup":
			for _, c := range controllers() {
				if s.of[c] == nil && slices.Contains(options, c) {
					s.of[c] = &hierarchy{mount: mount, home: homeOf(own, c, root, mount)}
				}
			}
		}
	}
	if s.unified == nil {
		return s
	}
	// A controller that a hierarchy of version 1 has is not in the unified one.
	has, err := files.ReadFile(filepath.Join(s.unified.mount, "cgroup.controllers"))
	for _, c := range strings.Fields(string(has)) {
		if err == nil && slices.Contains(controllers(), c) && s.of[c] == nil {
			s.of[c] = s.unified
		}
	}
	return s
}

// unescape undoes the octal escapes of mountinfo.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// homeOf finds the directory of a process's group in a hierarchy of which root is mounted; own is /proc/<pid>/cgroup.
func homeOf(own, controller, root, mount string) string {
	for line := range strings.Lines(own) {
		_, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), ":")
		names, path, ok := strings.Cut(rest, ":")
		if !ok || !slices.Contains(strings.Split(names, ","), controller) {
			continue
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			return ""
		}
		return filepath.Join(mount, rel)
	}
	return ""
}

// canBeBorn finds out, without making a process, whether clone3(2) is there and allowed.
func canBeBorn() error {
	// The kernel refuses arguments of no length, which a filter of system calls does not let it see.
	if _, _, errno := unix.RawSyscall(unix.SYS_CLONE3, 0, 0, 0); errno != unix.EINVAL {
		return fmt.Errorf("clone3(2): %w", errno)
	}
	return nil
}
