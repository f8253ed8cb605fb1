package alloc

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/driver/mock"
	"github.com/nomadish/nomadish/structs"
)

// node is a Host for tests, and a Store in memory.
type node struct {
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	mu      sync.Mutex
	urgent  int
	rooms   int // how often its place changed
	runs    map[string][]byte
	drivers *driver.Registry
}

func newNode(t *testing.T) *node {
	t.Helper()
	drivers, err := driver.NewRegistry(mock.New(nil))
	if err != nil {
		t.Fatal(err)
	}
	n := &node{runs: map[string][]byte{}, drivers: drivers}
	n.ctx, n.cancel = context.WithCancel(t.Context())
	return n
}

func (n *node) close(runners ...*Runner) {
	for _, r := range runners {
		r.Close()
	}
	n.cancel()
	n.wg.Wait()
}

func (n *node) Node() *structs.Node                       { return &structs.Node{ID: "n"} }
func (n *node) Go(fn func(ctx context.Context))           { n.wg.Go(func() { fn(n.ctx) }) }
func (n *node) StartSlot(context.Context) (func(), error) { return func() {}, nil }
func (n *node) PutAlloc(_ *structs.Allocation, done func(error)) {
	if done != nil {
		done(nil)
	}
}

func (n *node) PutRun(id string, run []byte, done func(error)) {
	n.mu.Lock()
	n.runs[id] = run
	n.mu.Unlock()
	if done != nil {
		done(nil)
	}
}

func (n *node) Report(_ string, urgent bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if urgent {
		n.urgent++
	}
}

func (n *node) Room(string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rooms++
}

func (n *node) config() *Config {
	return &Config{Drivers: n.drivers, Store: n, Host: n, MaxKillTimeout: time.Minute, Logger: hclog.NewNullLogger()}
}

func ptr[T any](v T) *T { return &v }

func service(config map[string]any, edit func(*structs.TaskGroup)) *structs.Allocation {
	g := &structs.TaskGroup{Name: "g", Tasks: []*structs.Task{{Name: "main", Driver: "mock_driver", Config: config, KillTimeout: time.Second}},
		RestartPolicy: &structs.RestartPolicy{Attempts: ptr(100), Interval: ptr(time.Hour), Delay: ptr(time.Second), Mode: ptr("fail")}}
	if edit != nil {
		edit(g)
	}
	return &structs.Allocation{
		ID: "a", JobID: "j", TaskGroup: "g", NodeID: "n", Name: "j.g[0]", AllocModifyIndex: 1,
		Job: &structs.Job{ID: "j", Type: structs.JobTypeService, TaskGroups: []*structs.TaskGroup{g}},
	}
}

func update(g *structs.TaskGroup) {
	g.Update = &structs.UpdateStrategy{MinHealthyTime: ptr(10 * time.Second), HealthyDeadline: ptr(time.Minute), HealthCheck: ptr("task_states")}
}

// Health is decided once: when the tasks ran long enough in one go, or when the
// deadline came first.
func TestHealth(t *testing.T) {
	f := func(name, run string, wait time.Duration, want *bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			n := newNode(t)
			r, err := New(n.config(), Dir{}, service(map[string]any{"run_for": run, "exit_code": 1}, update))
			if err != nil {
				t.Fatal(err)
			}
			r.Grant()
			time.Sleep(wait)
			d := r.Snapshot().DeploymentStatus
			switch {
			case want == nil && d != nil:
				t.Errorf("%s: decided %v after %v", name, *d.Healthy, wait)
			case want != nil && (d == nil || d.Healthy == nil || *d.Healthy != *want):
				t.Errorf("%s: %+v after %v, want %v", name, d, wait, *want)
			}
			n.close(r)
		})
	}
	f("too early", "1h", 9*time.Second, nil)
	f("long enough", "1h", 11*time.Second, ptr(true))
	f("keeps failing", "5s", 59*time.Second, nil)
	f("keeps failing till the deadline", "5s", 61*time.Second, ptr(false))
	f("runs 12 s at a time", "12s", 20*time.Second, ptr(true))
}

func TestRestoreGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		a := service(map[string]any{"run_for": "1h", "exit_code": 7}, func(g *structs.TaskGroup) { g.MaxRunDuration = 3 * time.Hour })
		a.Job.Type = structs.JobTypeBatch
		r, err := New(n.config(), Dir{}, a)
		if err != nil {
			t.Fatal(err)
		}
		r.Grant()
		time.Sleep(30 * time.Minute)
		n.close(r)
		time.Sleep(10 * time.Minute)

		next := newNode(t)
		r, err = Restore(next.config(), Dir{}, a, n.runs["a"])
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if s := r.Snapshot(); s.ClientStatus != structs.AllocClientRunning || s.TaskStates["main"].Restarts != 0 {
			t.Errorf("restored as %s with %d restarts", s.ClientStatus, s.TaskStates["main"].Restarts)
		}
		r.Grant()
		// Its hour, and two restarts of an hour each, are over the limit of three
		// hours that began with its first start, before the agent's.
		time.Sleep(2*time.Hour + 30*time.Minute)
		s := r.Snapshot()
		if s.ClientStatus != structs.AllocClientComplete || s.ClientDescription != DescExpired {
			t.Errorf("after three hours: %s, %q", s.ClientStatus, s.ClientDescription)
		}
		next.close(r)
	})
}

// An agent that ends before it is decided whether an allocation is healthy decides it when it is back: an update waits for that.
func TestRestoreDecidesHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		a := service(map[string]any{"run_for": "1h"}, update)
		r, err := New(n.config(), Dir{}, a)
		if err != nil {
			t.Fatal(err)
		}
		r.Grant()
		time.Sleep(5 * time.Second)
		n.close(r)
		time.Sleep(10 * time.Second)

		next := newNode(t)
		r, err = Restore(next.config(), Dir{}, a, n.runs["a"])
		if err != nil {
			t.Fatal(err)
		}
		r.Grant()
		time.Sleep(9 * time.Second)
		if d := r.Snapshot().DeploymentStatus; d != nil {
			t.Errorf("decided too early: %v", *d.Healthy)
		}
		time.Sleep(2 * time.Second)
		if d := r.Snapshot().DeploymentStatus; !d.IsHealthy() {
			t.Errorf("not healthy: %+v", d)
		}
		next.close(r)
	})
}

func TestNothingStartsBeforeGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		r, err := New(n.config(), Dir{}, service(map[string]any{"run_for": "1h"}, nil))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if s := r.Snapshot(); s.ClientStatus != structs.AllocClientPending {
			t.Errorf("status %s", s.ClientStatus)
		}
		stop := *r.Alloc()
		stop.DesiredStatus, stop.AllocModifyIndex = structs.AllocDesiredStop, 2
		r.Update(&stop)
		synctest.Wait()
		<-r.Ended()
		if s := r.Snapshot(); s.ClientStatus != structs.AllocClientComplete || n.rooms != 1 || r.Phase() != PhaseEnded {
			t.Errorf("status %s, told %d times", s.ClientStatus, n.rooms)
		}
		n.close(r)
	})
}

// Older news than those known must not bring back what is being stopped.
func TestOldNewsAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		a := service(map[string]any{"run_for": "1h"}, nil)
		a.AllocModifyIndex = 5
		r, err := New(n.config(), Dir{}, a)
		if err != nil {
			t.Fatal(err)
		}
		r.Grant()
		synctest.Wait()
		old := *a
		old.DesiredStatus, old.AllocModifyIndex = structs.AllocDesiredStop, 4
		r.Update(&old)
		time.Sleep(time.Minute)
		if s := r.Snapshot(); s.ClientStatus != structs.AllocClientRunning {
			t.Errorf("status %s", s.ClientStatus)
		}
		n.close(r)
	})
}

func TestAllocationWithoutItsGroupIsRefused(t *testing.T) {
	n := newNode(t)
	a := service(nil, nil)
	a.TaskGroup = "other"
	if _, err := New(n.config(), Dir{}, a); err == nil {
		t.Error("it was taken")
	}
	if _, err := Restore(n.config(), Dir{}, service(nil, nil), []byte{0xc1}); err == nil {
		t.Error("unreadable state was taken")
	}
}

func FuzzRestore(f *testing.F) {
	f.Add([]byte{0x80})
	drivers, err := driver.NewRegistry(mock.New(nil))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, run []byte) {
		n := &node{runs: map[string][]byte{}, drivers: drivers}
		n.ctx, n.cancel = context.WithCancel(context.Background())
		r, err := Restore(n.config(), Dir{}, service(map[string]any{"run_for": "1h"}, nil), run)
		if err == nil {
			r.Snapshot()
			n.close(r)
		}
		n.cancel()
	})
}
