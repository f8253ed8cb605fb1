package cgroup

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// withoutMounts leaves out the mounts of a kind of file system.
func withoutMounts(mounts, kind string) string {
	var b strings.Builder
	for line := range strings.Lines(mounts) {
		if kind == "" || !strings.Contains(line, " - "+kind+" ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// The kernel of this machine keeps a process and all that descends from it in the group, and lets go of it: with all that is
// mounted, with the hierarchies of version 1 alone, and with the unified one alone. Where a test may make no groups
// nothing is claimed, with a reason.
func TestKernel(t *testing.T) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for name, hidden := range map[string]string{"all": "", "version 1": "cgroup2", "version 2": "cgroup"} {
		t.Run(name, func(t *testing.T) {
			s := detect(kernel{}, withoutMounts(string(mounts), hidden), string(own), 2)
			parent := "nomadish-test-" + strconv.Itoa(os.Getpid())
			b, err := s.Open(parent)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("limited: %v; missing: %s", b.Limited(), b.Missing())
			if len(b.Limited()) < 3 && b.Missing() == "" {
				t.Error("it does not say what is missing")
			}
			defer func() {
				b.Close()
				for _, dir := range b.dirs() {
					if _, err := os.Stat(dir); err == nil {
						t.Errorf("%s is left", dir)
					}
				}
			}()
			g := b.Group("task", Limits{Memory: 64 << 20, Pids: 40, CPU: 100})
			if err := s.Create(g); err != nil {
				t.Fatal(err)
			}
			if len(g.dirs()) == 0 {
				return // as the reason says
			}
			pid, out := family(t, s, g)
			for _, dir := range g.dirs() {
				procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
				if err != nil {
					t.Fatal(err)
				}
				if n := len(strings.Fields(string(procs))); n != 3 || !strings.Contains(string(procs), strconv.Itoa(pid)) {
					t.Errorf("%s: %d members, want the process and its two descendants: %q", dir, n, procs)
				}
			}
			if err := s.removeNow(g); err == nil {
				t.Error("a group with members was removed")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := s.Kill(ctx, g); err != nil {
				t.Error(err)
			}
			// All of them held the pipe.
			if rest, err := out.ReadString(0); rest != "" || err == nil {
				t.Errorf("after they were killed: %q, %v", rest, err)
			}
			var ws syscall.WaitStatus
			if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil || ws.Signal() != syscall.SIGKILL {
				t.Errorf("it ended as %v, %v", ws, err)
			}
			if err := s.Remove(ctx, g); err != nil {
				t.Error(err)
			}
			if err := s.Kill(ctx, g); err != nil {
				t.Errorf("of what is not there: %v", err)
			}
		})
	}
}

// family starts a process in a group, with a child in another session and that one's child, and waits until all are there.
func family(t *testing.T, s *System, g *Group) (pid int, out *bufio.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	const script = `setsid /bin/sh -c "sleep 1000 & echo ready; wait" & wait`
	before := threadsIn(t, g)
	OnThread(func() (stays bool) {
		pid, stays, err = s.Start(g, func(unified int) (int, error) {
			attr := &syscall.ProcAttr{Files: []uintptr{0, w.Fd(), 2}, Env: []string{"PATH=/usr/bin:/bin"}, Sys: &syscall.SysProcAttr{Setsid: true}}
			if unified >= 0 {
				attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, unified
			}
			return syscall.ForkExec("/bin/sh", []string{"sh", "-c", script}, attr)
		})
		return stays
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out = bufio.NewReader(r)
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if after := threadsIn(t, g); before != 0 || after != 0 {
		t.Errorf("%d threads of the test in the group before the start, %d after", before, after)
	}
	return pid, out
}

// threadsIn counts the threads of this process in a group of version 1.
func threadsIn(t *testing.T, g *Group) int {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, dir := range g.dirs() {
		tasks, err := os.ReadFile(filepath.Join(dir, "tasks"))
		if err != nil {
			continue // of version 2
		}
		for _, tid := range strings.Fields(string(tasks)) {
			for _, thread := range threads {
				if thread.Name() == tid {
					n++
				}
			}
		}
	}
	return n
}

// What is called on a thread of its own is never on the first one, and a thread that could not go home ends.
func TestOnThread(t *testing.T) {
	for _, stays := range []bool{true, false} {
		tid := 0
		OnThread(func() bool {
			tid = unix.Gettid()
			return stays
		})
		if tid == os.Getpid() || tid == 0 {
			t.Errorf("on thread %d of process %d", tid, os.Getpid())
		}
		if !stays {
			for deadline := time.Now().Add(time.Minute); unix.Tgkill(os.Getpid(), tid, 0) == nil; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("thread %d does not end", tid)
				}
			}
		}
	}
}
