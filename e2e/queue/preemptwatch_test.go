package queue

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// roomWatch reads every commit that changes an allocation, in order, and looks after each at what the nodes' MHz and MiB are
// given to: never more than there is. In the end it looks at when the tasks ran, by their own times: never more at once than
// there is, either. (What clients report of several allocations at once is not of one moment.)
type roomWatch struct {
	rooms map[string]room // by node ID

	mu      sync.Mutex
	now     map[string]*structs.Allocation
	history map[string][]change
	changed chan struct{} // closed and made anew at each commit
	index   uint64
	wrong   []string
	err     error
}

type room struct{ cpu, memory int64 }

// change is what a commit made of an allocation.
type change struct {
	index uint64
	alloc *structs.Allocation
}

// is returns the two statuses of an allocation, "run/running".
func (c change) is() string { return c.alloc.DesiredStatus + "/" + c.alloc.ClientStatus }

// watchRoom watches until the test ends. What it saw wrong fails the test.
func watchRoom(t *testing.T, a *harness.Agent) *roomWatch {
	t.Helper()
	w := &roomWatch{
		rooms: map[string]room{}, now: map[string]*structs.Allocation{}, history: map[string][]change{}, changed: make(chan struct{}),
	}
	nodes, _, err := a.API.Nodes().List(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, stub := range nodes {
		n, _, err := a.API.Nodes().Info(t.Context(), stub.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.rooms[n.ID] = room{n.NodeResources.Cpu.CpuShares, n.NodeResources.Memory.MemoryMB}
	}
	streamAllocs(t, a, w.read, func() {
		w.lookBack()
		for _, text := range w.wrong {
			t.Error(text)
		}
	})
	return w
}

func (w *roomWatch) read(index uint64, changed []*structs.Allocation, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.err = err
		return
	}
	w.index = index
	for _, a := range changed {
		w.now[a.ID] = a
		w.history[a.ID] = append(w.history[a.ID], change{index, a})
	}
	w.look()
	close(w.changed)
	w.changed = make(chan struct{})
}

// look adds up what is given.
func (w *roomWatch) look() {
	given := map[string]room{}
	add := func(to map[string]room, a *structs.Allocation, awake bool) {
		cpu, memory, _, _ := a.AllocatedResources.Total()
		if !awake { // what is suspended keeps its memory
			cpu = 0
		}
		to[a.NodeID] = room{to[a.NodeID].cpu + cpu, to[a.NodeID].memory + memory}
	}
	for _, a := range w.now {
		if !a.Terminal() {
			add(given, a, a.DesiredStatus == structs.AllocDesiredRun)
		}
	}
	for node, r := range w.rooms {
		if g := given[node]; g.cpu > r.cpu || g.memory > r.memory {
			w.bad("node %s has given %v of %v", node, g, r)
		}
	}
}

// lookBack adds up what tasks have used at each of their starts. Those that stood still meanwhile are left out.
func (w *roomWatch) lookBack() {
	type span struct {
		from, to time.Time
		room     room
	}
	spans := map[string][]span{}
	for id, a := range w.now {
		still := slices.ContainsFunc(w.history[id], func(c change) bool { return c.alloc.DesiredStatus == structs.AllocDesiredSuspend })
		s := a.TaskStates["t"]
		if still || s == nil || s.StartedAt.IsZero() {
			continue
		}
		cpu, memory, _, _ := a.AllocatedResources.Total()
		spans[a.NodeID] = append(spans[a.NodeID], span{s.StartedAt, s.FinishedAt, room{cpu, memory}})
	}
	for node, list := range spans {
		for _, at := range list {
			var used room
			for _, s := range list {
				if !s.from.After(at.from) && (s.to.IsZero() || s.to.After(at.from)) {
					used = room{used.cpu + s.room.cpu, used.memory + s.room.memory}
				}
			}
			if r := w.rooms[node]; used.cpu > r.cpu || used.memory > r.memory {
				w.bad("at %s %v of %v were used on node %s", at.from, used, r, node)
			}
		}
	}
}

func (w *roomWatch) bad(format string, args ...any) {
	if len(w.wrong) < 20 {
		w.wrong = append(w.wrong, fmt.Sprintf("at index %d: ", w.index)+fmt.Sprintf(format, args...))
	}
}

// upTo waits until the watcher has read everything up to an index.
func (w *roomWatch) upTo(t *testing.T, index uint64) {
	t.Helper()
	for {
		w.mu.Lock()
		read, changed, err := w.index, w.changed, w.err
		w.mu.Unlock()
		switch {
		case read >= index:
			return
		case err != nil:
			t.Fatalf("the event stream ended at index %d: %v", read, err)
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("the watcher has read up to index %d of %d", read, index)
		}
	}
}

// of returns what has been made of an allocation since an index.
func (w *roomWatch) of(id string, since uint64) (out []change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.history[id] {
		if c.index > since {
			out = append(out, c)
		}
	}
	return out
}

// stopped returns the allocations of a job that servers have asked to give way since an index, with the index of that.
func (w *roomWatch) stopped(job, desired string, since uint64) map[string]uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]uint64{}
	for id, changes := range w.history {
		for i, c := range changes {
			if c.alloc.JobID == job && c.index > since && c.alloc.DesiredStatus == desired && (i == 0 || changes[i-1].alloc.DesiredStatus != desired) {
				out[id] = c.index
			}
		}
	}
	return out
}

// placed returns the allocations of a job that came since an index, with the index of that.
func (w *roomWatch) placed(job string, since uint64) map[string]uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]uint64{}
	for id, changes := range w.history {
		if c := changes[0]; c.alloc.JobID == job && c.index > since {
			out[id] = c.index
		}
	}
	return out
}

// ids are the sorted IDs of allocations.
func ids(stubs []*structs.AllocListStub) []string {
	var out []string
	for _, s := range stubs {
		out = append(out, s.ID)
	}
	slices.Sort(out)
	return out
}
