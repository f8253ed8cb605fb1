package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Events is what has happened in a group since it was made.
type Events struct {
	// OOMKills is how many processes the kernel has killed for want of memory.
	OOMKills uint64
	// AtMemoryLimit: the group reached its own limit; else it was the machine that had no memory left.
	AtMemoryLimit bool
	// PidsRefused is how many processes or threads could not be made.
	PidsRefused uint64
}

// Events reads what has happened. What cannot be read has not happened.
func (s *System) Events(g *Group) Events {
	var e Events
	switch g.Memory {
	case "":
	case g.Unified:
		data, _ := s.files.ReadFile(filepath.Join(g.Memory, "memory.events"))
		e.OOMKills, e.AtMemoryLimit = CountOf(data, "oom_kill"), CountOf(data, "oom") > 0
	default:
		data, _ := s.files.ReadFile(filepath.Join(g.Memory, "memory.oom_control"))
		e.OOMKills = CountOf(data, "oom_kill")
		// How often the limit was met (memory.failcnt) is not counted by all kernels; how much was used is.
		data, _ = s.files.ReadFile(filepath.Join(g.Memory, "memory.max_usage_in_bytes"))
		most, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		e.AtMemoryLimit = err == nil && most+memoryStep >= g.Limits.Memory
	}
	if g.Pids != "" {
		data, _ := s.files.ReadFile(filepath.Join(g.Pids, "pids.events"))
		e.PidsRefused = CountOf(data, "max")
	}
	return e
}

// Text returns in words which limits a task with these events has reached; empty: none.
func (g *Group) Text(e Events) string {
	var out []string
	switch {
	case e.OOMKills > 0 && e.AtMemoryLimit && g.Limits.Memory > 0:
		out = append(out, fmt.Sprintf("the task reached its memory limit of %d MiB", g.Limits.Memory>>20))
	case e.OOMKills > 0:
		out = append(out, "the machine, or the group of all tasks, ran out of memory while the task was below its own limit")
	}
	if e.PidsRefused > 0 {
		out = append(out, fmt.Sprintf("the task reached its limit of %d processes and threads", g.Limits.Pids))
	}
	return strings.Join(out, "; ")
}

// memoryStep is more than the kernel takes at once for a group: so close below its limit one may be refused memory.
const memoryStep = 1 << 20

// CountOf reads a number out of lines of "name number", 0 if there is none.
func CountOf(data []byte, name string) uint64 {
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) == 2 && f[0] == name {
			n, err := strconv.ParseUint(f[1], 10, 64)
			if err == nil {
				return n
			}
		}
	}
	return 0
}

// The kernel reports that memory is wanted before it kills: so long and so often is the count looked at then.
const (
	oomLooks = 100
	oomStep  = 2 * time.Millisecond
)

// WatchOOM calls killed, on a goroutine of its own, once the kernel has killed a process of the group for want of
// memory. Version 2 kills the whole group then, and nothing is watched; version 1 kills one process of it. stop ends
// the watching and waits for its end.
func (s *System) WatchOOM(g *Group, killed func()) (stop func(), err error) {
	if g.Memory == "" || g.Memory == g.Unified || g.Limits.Memory == 0 {
		return func() {}, nil
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch the memory of a task: %w", err)
	}
	events := os.NewFile(uintptr(fd), "oom")
	control, err := os.Open(filepath.Join(g.Memory, "memory.oom_control"))
	if err == nil {
		err = s.files.WriteFile(filepath.Join(g.Memory, "cgroup.event_control"), fmt.Sprintf("%d %d", fd, control.Fd()))
		err = errors.Join(err, control.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch the memory of a task: %w", err), events.Close())
	}
	ended := make(chan struct{})
	go func() { // ends with stop, or when the kernel has killed
		defer close(ended)
		buf := make([]byte, 8)
		for {
			if _, err := events.Read(buf); err != nil {
				return
			}
			for range oomLooks {
				if s.Events(g).OOMKills > 0 {
					killed()
					return
				}
				time.Sleep(oomStep)
			}
		}
	}()
	return func() {
		_ = events.Close()
		<-ended
	}, nil
}
