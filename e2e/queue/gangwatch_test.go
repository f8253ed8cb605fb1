package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// gangWatch reads every commit that changes an allocation, in order, from the event stream: each line is all that one index
// changed. After each it looks at what the cluster holds.
type gangWatch struct {
	mins map[string]int // job → how many of it there must be at once, if any

	mu      sync.Mutex
	allocs  map[string]*watched
	members map[string]map[string]bool // job → those that are to run
	given   gpuUse                     // to allocations that are to run
	used    gpuUse                     // by allocations whose tasks run
	history map[string][]moment        // of each allocation
	lists   []listing                  // what lists have said meanwhile
	index   uint64
	lines   int
	wrong   []string
	err     error // why it ended
}

// gpuUse is how much of each GPU allocations have, in thousandths: GPU → allocation → share.
type gpuUse map[string]map[string]int

// watched is what the watcher reads of an allocation.
type watched struct {
	ID, Name, JobID, DesiredStatus, ClientStatus string
	ModifyIndex                                  uint64
	AllocatedResources                           *structs.AllocatedResources
}

// moment is the status of an allocation from an index on.
type moment struct {
	index  uint64
	status string
}

// listing is a list of all allocations as it was at an index.
type listing struct {
	index  uint64
	status map[string]string
}

func (w *watched) status() string { return w.DesiredStatus + "/" + w.ClientStatus }

func (w *watched) live() bool {
	return w.DesiredStatus == structs.AllocDesiredRun && (w.ClientStatus == structs.AllocClientPending || w.ClientStatus == structs.AllocClientRunning)
}

// gpus are those that it was given, with the share of each.
func (w *watched) gpus() map[string]int {
	out := map[string]int{}
	for _, task := range w.AllocatedResources.Tasks {
		for _, d := range task.Devices {
			for _, id := range d.DeviceIDs {
				out[id] += cmp.Or(d.Share, structs.DeviceShareWhole)
			}
		}
	}
	return out
}

func newGangWatch(mins map[string]int) *gangWatch {
	return &gangWatch{
		mins: mins, allocs: map[string]*watched{}, members: map[string]map[string]bool{}, given: gpuUse{}, used: gpuUse{},
		history: map[string][]moment{},
	}
}

// watchGangs watches until the test ends. What it saw wrong fails the test. mins is not changed any more.
func watchGangs(t *testing.T, a *harness.Agent, mins map[string]int) *gangWatch {
	t.Helper()
	w := newGangWatch(mins)
	streamAllocs(t, a, w.read, func() {
		for _, text := range w.wrong {
			t.Error(text)
		}
	})
	return w
}

// streamAllocs calls read for each commit that changes allocations, from the first, and with the error that ends the stream. That is when the test ends;
// then it calls end.
func streamAllocs[A any](t *testing.T, a *harness.Agent, read func(index uint64, changed []*A, err error), end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	body, err := a.API.Raw(ctx, "/v1/event/stream?topic=Allocation&index=1", nil)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for dec := json.NewDecoder(body); ; {
			var line struct {
				Index  uint64
				Events []struct{ Payload struct{ Allocation *A } }
			}
			if err := dec.Decode(&line); err != nil {
				read(0, nil, err)
				return
			}
			if line.Index == 0 { // a heartbeat
				continue
			}
			var changed []*A
			for _, e := range line.Events {
				changed = append(changed, e.Payload.Allocation)
			}
			read(line.Index, changed, nil)
		}
	}()
	t.Cleanup(func() {
		cancel()
		_ = body.Close()
		<-done
		end()
	})
}

func (w *gangWatch) read(index uint64, changed []*watched, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.err = err
		return
	}
	w.commit(index, changed)
}

func (w *gangWatch) bad(format string, args ...any) {
	if len(w.wrong) < 20 {
		w.wrong = append(w.wrong, fmt.Sprintf("at index %d: ", w.index)+fmt.Sprintf(format, args...))
	}
}

// commit takes over what one index changed, and looks at the whole.
func (w *gangWatch) commit(index uint64, changed []*watched) {
	if index <= w.index {
		w.bad("index %d comes after it", index)
	}
	w.index = index
	w.lines++
	touched, claimed := map[string]bool{}, map[string]bool{}
	for _, now := range changed {
		if before := w.allocs[now.ID]; before != nil {
			for id := range before.gpus() {
				delete(w.given[id], now.ID)
				delete(w.used[id], now.ID)
			}
		}
		if now.ModifyIndex != index {
			w.bad("allocation %s says that it has changed at %d", now.ID, now.ModifyIndex)
		}
		w.allocs[now.ID] = now
		w.history[now.ID] = append(w.history[now.ID], moment{index, now.status()})
		touched[now.JobID] = true
		if w.members[now.JobID] == nil {
			w.members[now.JobID] = map[string]bool{}
		}
		delete(w.members[now.JobID], now.ID)
		if now.live() {
			w.members[now.JobID][now.ID] = true
		}
		for id, share := range now.gpus() {
			claimed[id] = true
			if now.live() {
				w.given.add(id, now.ID, share)
			}
			if now.ClientStatus == structs.AllocClientRunning {
				w.used.add(id, now.ID, share)
			}
		}
	}
	for id := range claimed {
		if n := w.given.sum(id); n > structs.DeviceShareWhole {
			w.bad("%d thousandths of GPU %s are given away: %v", n, id, w.given[id])
		}
		if n := w.used.sum(id); n > structs.DeviceShareWhole {
			w.bad("%d thousandths of GPU %s are used: %v", n, id, w.used[id])
		}
	}
	for job := range touched {
		if n := len(w.members[job]); n > 0 && n < w.mins[job] {
			w.bad("%d members of gang %s, which needs %d", n, job, w.mins[job])
		}
	}
}

func (u gpuUse) add(gpu, alloc string, share int) {
	if u[gpu] == nil {
		u[gpu] = map[string]int{}
	}
	u[gpu][alloc] = share
}

func (u gpuUse) sum(gpu string) (n int) {
	for _, share := range u[gpu] {
		n += share
	}
	return n
}

// list reads all allocations, which is another door to the same: one moment as a whole. It must be what the watcher saw then,
// see agrees, and have no half gang.
func (w *gangWatch) list(ctx context.Context, c *api.Client) error {
	all, meta, err := c.Allocations().List(ctx, nil)
	if err != nil {
		return err
	}
	l := listing{meta.Index, map[string]string{}}
	members := map[string]int{}
	for _, alloc := range all {
		one := &watched{DesiredStatus: alloc.DesiredStatus, ClientStatus: alloc.ClientStatus}
		l.status[alloc.ID] = one.status()
		if one.live() {
			members[alloc.JobID]++
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for job, n := range members {
		if n < w.mins[job] {
			w.bad("a list at index %d has %d members of gang %s, which needs %d", l.index, n, job, w.mins[job])
		}
	}
	w.lists = append(w.lists, l)
	return nil
}

// at returns the statuses of all allocations at an index, as the watcher saw them.
func (w *gangWatch) at(index uint64) map[string]string {
	out := map[string]string{}
	for id, moments := range w.history {
		for _, m := range moments {
			if m.index <= index {
				out[id] = m.status
			}
		}
	}
	return out
}

// agrees waits until the watcher has seen all that there is, and compares what it saw with what the cluster has listed, now and
// before.
func (w *gangWatch) agrees(t *testing.T, a *harness.Agent) {
	t.Helper()
	if err := w.list(t.Context(), a.API); err != nil {
		t.Fatal(err)
	}
	harness.Within(t, 20*time.Second, "the watcher seeing what is listed", func(ctx context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.err != nil {
			t.Fatalf("the event stream ended: %v", w.err)
		}
		if last := w.lists[len(w.lists)-1].index; w.index < last {
			return fmt.Errorf("it has read up to index %d, the list is of %d", w.index, last)
		}
		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.lists {
		if saw := w.at(l.index); !maps.Equal(saw, l.status) {
			t.Errorf("at index %d %d allocations are listed, and the watcher saw %d: %s", l.index, len(l.status), len(saw), differ(l.status, saw))
		}
	}
}

// differ names one difference of two maps.
func differ(a, b map[string]string) string {
	for id := range a {
		if a[id] != b[id] {
			return fmt.Sprintf("%s is %q and %q", id, a[id], b[id])
		}
	}
	for id := range b {
		if a[id] != b[id] {
			return fmt.Sprintf("%s is %q and %q", id, a[id], b[id])
		}
	}
	return ""
}

// reported returns how many indexes it has seen, and how many lists.
func (w *gangWatch) reported() (lines, lists int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines, len(w.lists)
}

// TestGangWatchSees: the watcher finds what is wrong, if something is.
func TestGangWatchSees(t *testing.T) {
	t.Parallel()
	alloc := func(id, job, desired, client string, gpus ...string) *watched {
		return &watched{ID: id, Name: id, JobID: job, DesiredStatus: desired, ClientStatus: client, AllocatedResources: &structs.AllocatedResources{
			Tasks: map[string]*structs.AllocatedTaskResources{"t": {Devices: []*structs.AllocatedDeviceResource{{DeviceIDs: gpus}}}},
		}}
	}
	f := func(what string, wrong int, commits ...[]*watched) {
		t.Helper()
		w := newGangWatch(map[string]int{"two": 2})
		for i, c := range commits {
			for _, one := range c {
				one.ModifyIndex = uint64(i + 1)
			}
			w.commit(uint64(i+1), c)
		}
		if len(w.wrong) != wrong {
			t.Errorf("%s: %d things wrong, want %d: %q", what, len(w.wrong), wrong, w.wrong)
		}
	}
	type list = []*watched
	a, b := alloc("a", "two", "run", "pending", "g1"), alloc("b", "two", "run", "pending", "g2")
	f("a whole gang", 0, list{a, b}, list{alloc("a", "two", "run", "running", "g1")})
	f("half a gang comes", 1, list{a}, list{b})
	f("half a gang goes", 1, list{a, b}, list{alloc("a", "two", "stop", "pending", "g1")})
	f("a gang goes, and another has its GPUs", 0, list{a, b},
		list{alloc("c", "one", "run", "pending", "g1"), alloc("a", "two", "stop", "running", "g1"), alloc("b", "two", "stop", "running", "g2")})
	f("a GPU is given twice", 1, list{a, b}, list{alloc("c", "one", "run", "pending", "g1")})
	share := func(id string, share int) *watched {
		w := alloc(id, "one", "run", "pending", "g1")
		w.AllocatedResources.Tasks["t"].Devices[0].Share = share
		return w
	}
	f("a GPU is shared", 0, list{share("c", 500)}, list{share("d", 500)})
	f("a GPU is shared by too many", 1, list{share("c", 500)}, list{share("d", 501)})
	f("a task starts before the other has ended", 1, list{alloc("d", "one", "run", "running", "g1")},
		list{alloc("d", "one", "stop", "running", "g1")}, list{alloc("c", "one", "run", "running", "g1")})
}

// decided returns an error while evaluations are pending.
func decided(ctx context.Context, a *harness.Agent) error {
	evals, _, err := a.API.Evaluations().List(ctx, &api.Query{Params: map[string]string{"status": structs.EvalStatusPending}, PerPage: 1})
	if err == nil && len(evals) > 0 {
		err = fmt.Errorf("evaluation %s is pending", evals[0].ID)
	}
	return err
}
