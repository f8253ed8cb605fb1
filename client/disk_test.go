package client

import (
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nomadish/nomadish/client/gpu/nvml"
	"github.com/nomadish/nomadish/structs"
)

// eventsOf are a node's events as the servers have them, one a line.
func (s *fakeServer) eventsOf(node string) string {
	var out []string
	for _, e := range s.events[node] {
		out = append(out, e.Subsystem+": "+e.Message)
	}
	return strings.Join(out, "\n")
}

// A full disk is told to the servers and to the tasks that run, which go on, and so is that there is room again.
func TestDiskFullIsReported(t *testing.T) {
	r := newRig(t)
	var free atomic.Uint64
	free.Store(500 << 20)
	r.config.DiskRoom = func(dir string) (structs.DiskRoom, error) {
		return structs.DiskRoom{Path: dir, Total: 1 << 30, Free: free.Load()}, nil
	}
	r.config.Disk = structs.DiskLimit{MB: 10, Percent: 5}
	r.config.DiskInterval, r.config.ChangeInterval = time.Millisecond, time.Millisecond
	r.start()
	id := r.c.NodeID()
	a := r.s.place(id, job("j", structs.JobTypeService, fake("main", nil)), 0, nil)
	r.s.untilStatus(a.ID, structs.AllocClientRunning)
	told := func(full, event, task string) {
		t.Helper()
		r.s.until("the servers and the task know: "+event, func() bool {
			n, now := r.s.nodes[id], r.s.allocs[a.ID]
			return strings.Contains(n.DiskFull, full) && (n.DiskFull == "") == (full == "") && n.DiskFull == n.StatusDescription && strings.Contains(r.s.eventsOf(id), event) &&
				now.ClientStatus == structs.AllocClientRunning &&
				slices.ContainsFunc(now.TaskStates["main"].Events, func(e *structs.TaskEvent) bool { return e.Type == task })
		})
	}
	free.Store(3 << 20)
	// Which of its two directories is named depends on when the look was that saw it first.
	told("is full (3.0 MiB of 1024.0 MiB left)", "Storage: The disk is full; the node accepts no new allocations: the disk of "+filepath.Dir(r.config.AllocDir), structs.TaskDiskFull)
	free.Store(500 << 20)
	told("", "Storage: The disk has room again", structs.TaskDiskHasRoom)
}

// A node that registers with a full disk says so at once.
func TestDiskFullFromTheStart(t *testing.T) {
	r := newRig(t)
	r.config.Disk = structs.DiskLimit{MB: 10, Percent: 5}
	r.config.DiskRoom = func(dir string) (structs.DiskRoom, error) { return structs.DiskRoom{Path: dir, Total: 1 << 30}, nil }
	r.start()
	if n := r.c.nodes[0].Node(); n.DiskFull == "" || n.Ready() {
		t.Errorf("it registered as if there were room: %q", n.DiskFull)
	}
}

// Bad GPUs are reported at once, each kind of trouble in one event, however many devices it hits.
func TestBadGPUsAreReported(t *testing.T) {
	r, f := gpuRig(t)
	r.config.ChangeInterval = time.Millisecond
	r.start()
	id := r.c.NodeID()
	f.set(nvml.GPU{UUID: "GPU-0", Name: "H100", BusID: "0000:01:00.0", Lost: true}, nvml.GPU{UUID: "GPU-1", Name: "H100", BusID: "0000:02:00.0", Lost: true})
	r.s.until("an event of both", func() bool {
		return r.s.eventsOf(id) == "Device: Not healthy; not assigned to tasks: the GPU is lost: it fell off the bus" &&
			r.s.events[id][0].Details["devices"] == "GPU-0, GPU-1"
	})
	f.set(nvml.GPU{UUID: "GPU-0", Name: "H100", BusID: "0000:01:00.0"}, nvml.GPU{UUID: "GPU-1", Name: "H100", BusID: "0000:02:00.0"})
	r.s.until("an event of their health", func() bool { return strings.HasSuffix(r.s.eventsOf(id), "\nDevice: Healthy again") })
}

// What changes all the time is told now and then: never a registration for each change.
func TestChangesAreBounded(t *testing.T) {
	r := newRig(t)
	var looks atomic.Int64
	r.config.Disk = structs.DiskLimit{MB: 10, Percent: 5}
	r.config.DiskRoom = func(dir string) (structs.DiskRoom, error) { // full and not, at every look
		n := looks.Add(1)
		return structs.DiskRoom{Path: dir, Total: 1 << 30, Free: uint64((n-1)/2%2) << 29}, nil // not negative
	}
	r.config.DiskInterval, r.config.ChangeInterval = 100*time.Microsecond, time.Hour
	r.start()
	r.s.until("the node registers once more", func() bool { return r.s.registered[r.c.NodeID()] >= 2 })
	was := looks.Load()
	r.s.until("many more looks", func() bool { return looks.Load() > was+200 }) // as heartbeats come in
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if n := r.s.registered[r.c.NodeID()]; n != 2 {
		t.Errorf("it registered %d times", n)
	}
}
