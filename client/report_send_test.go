package client

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// TestRefusedReports: an allocation of which the servers want to hear nothing, or not much, keeps them from hearing of no other one, and
// they are not asked again and again.
func TestRefusedReports(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		unwanted func(*structs.AllocClientUpdate) bool
		arrives  bool
	}{
		"wholly":         {func(*structs.AllocClientUpdate) bool { return true }, false},
		"for its events": {func(u *structs.AllocClientUpdate) bool { return len(u.TaskStates["main"].Events) > 0 }, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			refusals := 0
			var bad, first *structs.Allocation
			r.s.unwanted = func(u *structs.AllocClientUpdate) error {
				if bad == nil || u.ID != bad.ID || !c.unwanted(u) {
					return nil
				}
				refusals++
				return structs.Errorf(structs.CodeBadRequest, "allocation %s is refused", u.ID)
			}
			r.start()
			batch := job("j", structs.JobTypeBatch, fake("main", map[string]any{"run_for": "1ms"}))
			r.s.change(func() {
				for i := range 40 {
					a := r.s.add(r.c.NodeID(), batch, i, nil)
					if i == 0 {
						first = a
					}
					if i == 17 {
						bad = a
					}
				}
			})
			done := func() int {
				n := 0
				for id, a := range r.s.allocs {
					if a.ClientStatus == structs.AllocClientComplete && (id != bad.ID || c.arrives) {
						n++
					}
				}
				return n
			}
			want := 39
			if c.arrives {
				want++
			}
			r.s.until(fmt.Sprintf("%d of 40 allocations are complete", want), func() bool { return done() == want })
			// What goes on is heard of, too.
			last := r.s.place(r.c.NodeID(), batch, 100, nil)
			r.s.untilStatus(last.ID, structs.AllocClientComplete)
			r.s.mu.Lock()
			defer r.s.mu.Unlock()
			if refusals > 40 {
				t.Errorf("%d reports were refused for one allocation", refusals)
			}
			if got := r.s.allocs[first.ID].TaskStates["main"]; got == nil || len(got.Events) == 0 {
				t.Errorf("of another allocation the servers know only %+v", got)
			}
		})
	}
}

// TestReportsAreSplit: what an agent has to say of many allocations that have failed with long messages goes in as many reports as it
// takes, each within what servers allow.
func TestReportsAreSplit(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	n := r.c.nodes[0]
	long := strings.Repeat("no such file or directory: ", 4000)
	failed := func() *structs.TaskState {
		s := &structs.TaskState{State: structs.TaskStateDead, Failed: true}
		for range structs.MaxTaskEvents {
			s.Events = append(s.Events, &structs.TaskEvent{Type: structs.TaskDriverFailure, DisplayMessage: long, DriverError: long, Details: map[string]string{"driver_error": long}})
		}
		return s
	}
	tasks := map[string]*structs.TaskState{}
	for i := range 40 {
		tasks[fmt.Sprintf("t%d", i)] = failed()
	}
	const count = 60
	r.s.change(func() {
		for i := range count {
			id := structs.DeriveID("split", uint64(i)) // small
			r.s.allocs[id] = &structs.Allocation{ID: id, NodeID: n.id, ClientStatus: structs.AllocClientPending}
		}
	})
	for i := range count {
		u := &structs.AllocClientUpdate{ID: structs.DeriveID("split", uint64(i)), NodeID: n.id, ClientStatus: structs.AllocClientFailed, ClientDescription: long} // small
		u.TaskStates = map[string]*structs.TaskState{"t": failed()}
		if i == 7 {
			u.TaskStates = tasks // more than one report may hold, in earnest words
		}
		n.reportAs(u)
	}
	r.s.untilAll(structs.AllocClientFailed)
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	for id, a := range r.s.allocs {
		for name, state := range a.TaskStates {
			if len(state.Events) != structs.MaxTaskEvents {
				t.Errorf("allocation %s: %d events of task %s", id, len(state.Events), name)
			}
		}
		if len(a.TaskStates) == 0 {
			t.Errorf("allocation %s came without its tasks", id)
		}
	}
}

// TestLongMessagesAreCut: a task that fails with a long message is reported with the beginning and the end of it.
func TestLongMessagesAreCut(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	long := strings.Repeat("x", 100<<10) + ": no such file"
	a := r.s.place(r.c.NodeID(), job("j", structs.JobTypeBatch, fake("main", map[string]any{"start_error": long})), 0, nil)
	r.s.untilStatus(a.ID, structs.AllocClientFailed)
	found := false
	for _, e := range r.s.alloc(a.ID).TaskStates["main"].Events {
		for _, text := range []string{e.DisplayMessage, e.DriverError, e.Message} {
			found = found || strings.HasSuffix(text, ": no such file")
			if len(text) > structs.MaxTaskText {
				t.Errorf("event %s has a text of %d bytes", e.Type, len(text))
			}
		}
	}
	if !found {
		t.Errorf("no event has the cause: %+v", r.s.alloc(a.ID).TaskStates["main"].Events)
	}
}

// TestLimitedReports: a node that sends too much waits longer before it reports again.
func TestLimitedReports(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var limited []time.Time
	r.s.unwanted = func(*structs.AllocClientUpdate) error {
		if len(limited) == 2 {
			return nil
		}
		limited = append(limited, time.Now())
		return structs.Errorf(structs.CodeLimited, "too much").WithHint("try again in 1s")
	}
	r.start()
	a := r.s.place(r.c.NodeID(), job("j", structs.JobTypeBatch, fake("main", map[string]any{"run_for": "1ms"})), 0, nil)
	r.s.untilStatus(a.ID, structs.AllocClientComplete)
	if apart := limited[1].Sub(limited[0]); apart < limitedBackoff {
		t.Errorf("sent again after %v", apart)
	}
}
