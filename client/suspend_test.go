package client

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/driver/mock"
	"github.com/nomadish/nomadish/client/sim"
	"github.com/nomadish/nomadish/structs"
)

// deaf is a task that ignores its end until it is killed.
func deaf(timeout time.Duration) *structs.Task {
	t := shell("main", `trap '' TERM INT; echo $$ > $NOMAD_TASK_DIR/pid; while :; do sleep 0.02; done`)
	t.KillTimeout = timeout
	return t
}

// untilDeaf waits until a deaf task that runs does not listen any more.
func untilDeaf(t *testing.T, c *Client, id string) {
	t.Helper()
	eventually(t, "the victim is deaf", func() bool {
		pid, err := os.ReadFile(filepath.Join(c.config.AllocDir, id, "main/local/pid"))
		return err == nil && len(pid) > 0
	})
}

// takenFor assigns to a newcomer the room of allocations that are taken back for it, as one
// log entry of the servers does.
func (s *fakeServer) takenFor(node string, newcomer *structs.Job, how string, victims ...string) *structs.Allocation {
	var a *structs.Allocation
	s.change(func() {
		for _, id := range victims {
			if s.allocs[id] == nil {
				continue // it is on another node
			}
			v := s.allocs[id].Copy()
			v.DesiredStatus, v.AllocModifyIndex = how, s.index
			s.allocs[id] = v
		}
		a = s.add(node, newcomer, 0, func(a *structs.Allocation) { a.PreemptedAllocations = victims })
	})
	return a
}

// The newcomer starts when the victim has been killed, not before, and says what it
// waits for.
func TestNewcomerStartsAfterItsVictim(t *testing.T) {
	s, c := realNode(t)
	node := c.NodeID()
	victim := s.place(node, job("victim", structs.JobTypeService, deaf(700*time.Millisecond)), 0, nil)
	s.untilStatus(victim.ID, structs.AllocClientRunning)
	untilDeaf(t, c, victim.ID)
	pidFile := filepath.Join(c.config.AllocDir, victim.ID, "main/local/pid")
	new := s.takenFor(node, job("new", structs.JobTypeBatch, shell("main", `kill -0 $(cat `+pidFile+`) && exit 9; exit 0`)), structs.AllocDesiredEvict, victim.ID, "elsewhere")
	s.untilWaits(new.ID, victim.ID)
	s.untilStatus(new.ID, structs.AllocClientComplete) // 9, had the victim run
	v, n := s.alloc(victim.ID), s.alloc(new.ID)
	if n.TaskStates["main"].StartedAt.Before(v.TaskStates["main"].FinishedAt) {
		t.Errorf("started at %v, the victim ended at %v", n.TaskStates["main"].StartedAt, v.TaskStates["main"].FinishedAt)
	}
}

// untilWaits waits until an allocation has said that it waits for another.
func (s *fakeServer) untilWaits(id, other string) {
	s.t.Helper()
	s.until("it says what it waits for", func() bool {
		ts := s.allocs[id].TaskStates["main"]
		return ts != nil && slices.ContainsFunc(ts.Events, func(e *structs.TaskEvent) bool {
			return e.Type == structs.TaskWaitingForRoom && strings.Contains(e.DisplayMessage, structs.ShortID(other))
		})
	})
}

// A newcomer that is not wanted any more does not wait for the end of its victim.
func TestWaitingNewcomerIsStopped(t *testing.T) {
	s, c := realNode(t)
	victim := s.place(c.NodeID(), job("victim", structs.JobTypeService, deaf(30*time.Second)), 0, nil)
	s.untilStatus(victim.ID, structs.AllocClientRunning)
	untilDeaf(t, c, victim.ID)
	new := s.takenFor(c.NodeID(), job("new", structs.JobTypeService, shell("main", `exec sleep 60`)), structs.AllocDesiredEvict, victim.ID)
	s.untilWaits(new.ID, victim.ID)
	s.edit(new.ID, func(a *structs.Allocation) { a.DesiredStatus = structs.AllocDesiredStop })
	s.untilStatus(new.ID, structs.AllocClientComplete)
	if got := s.alloc(victim.ID).ClientStatus; got != structs.AllocClientRunning {
		t.Errorf("the victim is %s already", got)
	}
}

// steps reads how far the task got that counts in a file.
func steps(t *testing.T, c *Client, id string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.config.AllocDir, id, "main/local/steps"))
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	n, _ := strconv.Atoi(lines[len(lines)-1])
	return n
}

const counting = `i=0; while :; do i=$((i+1)); echo $i >> $NOMAD_TASK_DIR/steps; sleep 0.01; done`

// A victim that is suspended has stopped before the newcomer starts, and goes on where it
// was when the newcomer has gone; its core is the newcomer's meanwhile.
func TestVictimIsSuspendedAndGoesOn(t *testing.T) {
	s, c := realNode(t)
	node := c.NodeID()
	core := func(a *structs.Allocation) { a.AllocatedResources.Tasks["main"].Cpu.ReservedCores = []uint16{0} }
	victim := s.place(node, job("victim", structs.JobTypeService, shell("main", counting)), 0, core)
	s.untilStatus(victim.ID, structs.AllocClientRunning)
	eventually(t, "the victim counts", func() bool { return steps(t, c, victim.ID) > 3 })
	var new *structs.Allocation
	s.change(func() {
		v := s.allocs[victim.ID].Copy()
		v.DesiredStatus, v.AllocModifyIndex = structs.AllocDesiredSuspend, s.index
		s.allocs[victim.ID] = v
		new = s.add(node, job("new", structs.JobTypeBatch, shell("main", `until [ -e $NOMAD_TASK_DIR/go ]; do sleep 0.01; done`)), 0, func(a *structs.Allocation) {
			a.PreemptedAllocations = []string{victim.ID}
			core(a)
		})
	})
	s.untilStatus(victim.ID, structs.AllocClientSuspended)
	s.untilStatus(new.ID, structs.AllocClientRunning)
	at := steps(t, c, victim.ID)
	s.edit(victim.ID, func(a *structs.Allocation) { a.DesiredStatus = structs.AllocDesiredRun })
	s.untilWaits(victim.ID, new.ID)
	if now := steps(t, c, victim.ID); now != at {
		t.Errorf("suspended, it went from %d to %d", at, now)
	}
	if err := os.WriteFile(filepath.Join(c.config.AllocDir, new.ID, "main/local/go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.untilStatus(new.ID, structs.AllocClientComplete)
	s.untilStatus(victim.ID, structs.AllocClientRunning)
	eventually(t, "the victim goes on", func() bool { return steps(t, c, victim.ID) > at })
	if got := s.alloc(victim.ID).TaskStates["main"].Restarts; got != 0 {
		t.Errorf("it was restarted %d times", got)
	}
	s.edit(victim.ID, func(a *structs.Allocation) { a.DesiredStatus = structs.AllocDesiredSuspend })
	s.untilStatus(victim.ID, structs.AllocClientSuspended)
	s.edit(victim.ID, func(a *structs.Allocation) { a.DesiredStatus = structs.AllocDesiredStop })
	s.untilStatus(victim.ID, structs.AllocClientComplete)
}

// An agent that is restarted finds suspended tasks suspended, newcomers held back, and goes on
// with both.
func TestRestartOfAgentWithSuspendedAndWaiting(t *testing.T) {
	s, dir := newFakeServer(t), t.TempDir()
	t.Cleanup(func() { endProcesses(t, dir) })
	x, err := executorOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	launch := func() *Client {
		t.Helper()
		c, err := New(realConfig(s.addr, dir, x))
		if err != nil {
			t.Fatal(err)
		}
		s.until("the node says hello", func() bool { return s.sessions[c.NodeID()] != nil })
		return c
	}
	shut := func(c *Client) {
		if err := c.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		s.change(func() { clear(s.sessions) })
	}
	c := launch()
	suspended := s.place(c.NodeID(), job("suspended", structs.JobTypeService, shell("main", counting)), 0, nil)
	victim := s.place(c.NodeID(), job("victim", structs.JobTypeService, deaf(1200*time.Millisecond)), 0, nil)
	s.untilStatus(victim.ID, structs.AllocClientRunning)
	untilDeaf(t, c, victim.ID)
	eventually(t, "it counts", func() bool { return steps(t, c, suspended.ID) > 0 })
	s.edit(suspended.ID, func(a *structs.Allocation) { a.DesiredStatus = structs.AllocDesiredSuspend })
	s.untilStatus(suspended.ID, structs.AllocClientSuspended)
	new := s.takenFor(c.NodeID(), job("new", structs.JobTypeService, shell("main", `exec sleep 60`)), structs.AllocDesiredEvict, victim.ID)
	s.untilWaits(new.ID, victim.ID)
	shut(c)
	at := steps(t, c, suspended.ID)
	c = launch()
	s.untilStatus(new.ID, structs.AllocClientRunning)
	if v, n := s.alloc(victim.ID).TaskStates["main"], s.alloc(new.ID).TaskStates["main"]; n.StartedAt.Before(v.FinishedAt) {
		t.Errorf("the newcomer started at %v, its victim ended at %v", n.StartedAt, v.FinishedAt)
	}
	if now := steps(t, c, suspended.ID); now != at || s.alloc(suspended.ID).ClientStatus != structs.AllocClientSuspended {
		t.Errorf("it is %s and went from %d to %d", s.alloc(suspended.ID).ClientStatus, at, now)
	}
	shut(c)
	s.edit(suspended.ID, func(a *structs.Allocation) { a.DesiredStatus = structs.AllocDesiredRun })
	c = launch()
	s.untilStatus(suspended.ID, structs.AllocClientRunning)
	eventually(t, "it goes on", func() bool { return steps(t, c, suspended.ID) > at })
	shut(c)
}

// Simulated nodes hold newcomers back, suspend and resume as real ones do.
func TestSimulatedNodesSuspend(t *testing.T) {
	s := newFakeServer(t)
	layouts, err := sim.Parse([]byte(`shape "n" { memory = 1000 }`), "shapes.hcl")
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Servers: []string{s.addr}, Drivers: []driver.Driver{mock.New(nil)}, Simulate: layouts})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	node := c.NodeID()
	s.until("it says hello", func() bool { return s.sessions[node] != nil })
	mocked := func(id, killAfter string) *structs.Job {
		return job(id, structs.JobTypeService, &structs.Task{Name: "main", Driver: MockDriver, KillTimeout: time.Minute,
			Config: map[string]any{"run_for": "1h", "kill_after": killAfter}})
	}
	memory := func(mb int64) func(*structs.Allocation) {
		return func(a *structs.Allocation) { a.AllocatedResources.Tasks["main"].Memory.MemoryMB = mb }
	}
	suspends := s.place(node, mocked("sleeps", "0s"), 0, memory(300))
	dies := s.place(node, mocked("dies", "400ms"), 0, memory(600))
	s.untilAll(structs.AllocClientRunning)
	var new *structs.Allocation
	s.change(func() { // nobody says for whom: it is a matter of room
		for id, status := range map[string]string{suspends.ID: structs.AllocDesiredSuspend, dies.ID: structs.AllocDesiredStop} {
			a := s.allocs[id].Copy()
			a.DesiredStatus, a.AllocModifyIndex = status, s.index
			s.allocs[id] = a
		}
		new = s.add(node, mocked("new", "0s"), 0, memory(700))
	})
	s.until("the newcomer waits", func() bool {
		ts := s.allocs[new.ID].TaskStates["main"]
		return ts != nil && slices.ContainsFunc(ts.Events, func(e *structs.TaskEvent) bool { return e.Type == structs.TaskWaitingForRoom })
	})
	s.untilStatus(suspends.ID, structs.AllocClientSuspended)
	s.untilStatus(new.ID, structs.AllocClientRunning)
	if got := s.alloc(dies.ID).ClientStatus; got != structs.AllocClientComplete {
		t.Errorf("the newcomer runs, and what it waited for is %s", got)
	}
	s.edit(suspends.ID, func(a *structs.Allocation) { a.DesiredStatus = structs.AllocDesiredRun })
	s.untilStatus(suspends.ID, structs.AllocClientRunning)
}
