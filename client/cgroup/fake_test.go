package cgroup

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// fake is a cgroup file system in a directory: like the kernel it gives a new group its files, keeps to its rules for
// passing controllers on, and removes a group only without members and groups below.
type fake struct {
	t *testing.T
	// v2 is where a unified hierarchy is mounted, or empty; what is elsewhere is of version 1.
	v2 string
	// readOnly are directories in which nothing can be made or written.
	readOnly []string
	// without are files that this kernel does not have.
	without []string
	writes  []string
}

var filesOf = map[string][]string{
	"memory":  {"memory.max", "memory.swap.max", "memory.oom.group", "memory.low", "memory.events"},
	"pids":    {"pids.max", "pids.events"},
	"cpu":     {"cpu.weight"},
	"memory1": {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.swappiness", "memory.soft_limit_in_bytes", "memory.oom_control", "memory.max_usage_in_bytes"},
	"pids1":   {"pids.max", "pids.events"},
	"cpu1":    {"cpu.shares"},
}

func (f *fake) inV2(path string) bool {
	return f.v2 != "" && (path == f.v2 || strings.HasPrefix(path, f.v2+"/"))
}

func (f *fake) denied(path string) bool {
	return slices.ContainsFunc(f.readOnly, func(dir string) bool { return path == dir || filepath.Dir(path) == dir })
}

// mount makes the root of a hierarchy. has are its controllers.
func (f *fake) mount(dir string, has ...string) {
	f.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		f.t.Fatal(err)
	}
	f.fill(dir, has)
}

func (f *fake) fill(dir string, has []string) {
	put := func(name, text string) {
		if slices.Contains(f.without, name) {
			return
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	put("cgroup.procs", "")
	if f.inV2(dir) {
		put("cgroup.controllers", strings.Join(has, " ")+"\n")
		put("cgroup.subtree_control", "")
		put("cgroup.kill", "")
	} else {
		put("tasks", "")
	}
	for _, c := range has {
		if !f.inV2(dir) {
			c += "1"
		}
		for _, name := range filesOf[c] {
			if dir != f.v2 {
				put(name, "")
			}
		}
	}
}

func (f *fake) Mkdir(path string) error {
	if _, err := os.Stat(path); err != nil && f.denied(path) {
		return &fs.PathError{Op: "mkdir", Path: path, Err: syscall.EACCES}
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	if f.inV2(path) {
		on, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cgroup.subtree_control"))
		if err != nil {
			f.t.Fatal(err)
		}
		f.fill(path, strings.Fields(string(on)))
		return nil
	}
	var has []string
	for _, c := range controllers() {
		if strings.Contains(path, "/"+c+"/") || strings.Contains(path, "/all/") {
			has = append(has, c)
		}
	}
	f.fill(path, has)
	return nil
}

func (f *fake) Remove(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	procs, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
	if err != nil || len(procs) > 0 || slices.ContainsFunc(entries, fs.DirEntry.IsDir) {
		return &fs.PathError{Op: "rmdir", Path: path, Err: syscall.EBUSY}
	}
	return os.RemoveAll(path)
}

func (f *fake) ReadFile(path string) ([]byte, error)       { return os.ReadFile(path) }
func (f *fake) ReadDir(path string) ([]fs.DirEntry, error) { return os.ReadDir(path) }

func (f *fake) WriteFile(path, text string) error {
	if f.denied(path) {
		return &fs.PathError{Op: "open", Path: path, Err: syscall.EACCES}
	}
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	f.writes = append(f.writes, text+" > "+path)
	if filepath.Base(path) != "cgroup.subtree_control" {
		return os.WriteFile(path, []byte(text), 0o600)
	}
	file := filepath.Join(dir, "cgroup.controllers")
	if dir != f.v2 { // it has what is passed on to it
		file = filepath.Join(filepath.Dir(dir), "cgroup.subtree_control")
	}
	has, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	c := strings.TrimPrefix(text, "+")
	switch {
	case !slices.Contains(strings.Fields(string(has)), c):
		return &fs.PathError{Op: "write", Path: path, Err: syscall.ENOENT}
	case len(procs) > 0 && dir != f.v2:
		return &fs.PathError{Op: "write", Path: path, Err: syscall.EBUSY}
	}
	return os.WriteFile(path, []byte(string(old)+c+" "), 0o600)
}

// text is what a file holds.
func (f *fake) text(path string) string {
	f.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}
