package alloc

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/structs"
)

// want tells a runner what the servers want of its allocation.
func (n *node) want(r *Runner, desired string) {
	a := *r.Alloc()
	a.DesiredStatus = desired
	a.AllocModifyIndex++
	r.Update(&a)
}

func wantStatus(t *testing.T, r *Runner, status string) {
	t.Helper()
	synctest.Wait()
	if got := r.Snapshot(); got.ClientStatus != status {
		t.Fatalf("%s (%s), want %s", got.ClientStatus, got.ClientDescription, status)
	}
}

func eventsOf(r *Runner, name string) (types []string) {
	for _, e := range r.Snapshot().TaskStates[name].Events {
		types = append(types, e.Type)
	}
	return types
}

func started(t *testing.T, n *node, a *structs.Allocation) *Runner {
	t.Helper()
	r, err := New(n.config(), Dir{}, a)
	if err != nil {
		t.Fatal(err)
	}
	r.Grant()
	wantStatus(t, r, structs.AllocClientRunning)
	return r
}

// Suspended and resumed, a task goes on where it was, and its time limit with it.
func TestSuspendAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		a := service(map[string]any{"run_for": "10m"}, func(g *structs.TaskGroup) { g.MaxRunDuration = 15 * time.Minute })
		a.Job.Type = structs.JobTypeBatch
		begin := time.Now()
		r := started(t, n, a)
		time.Sleep(4 * time.Minute)
		n.want(r, structs.AllocDesiredSuspend)
		wantStatus(t, r, structs.AllocClientSuspended)
		if r.Phase() != PhaseSuspended || n.rooms != 1 {
			t.Fatalf("place %d, told %d times", r.Phase(), n.rooms)
		}
		time.Sleep(24 * time.Hour)
		wantStatus(t, r, structs.AllocClientSuspended)
		n.want(r, structs.AllocDesiredRun)
		wantStatus(t, r, structs.AllocClientSuspended) // until it is granted
		if r.Phase() != PhaseResuming || n.rooms != 2 {
			t.Fatalf("place %d, told %d times", r.Phase(), n.rooms)
		}
		r.Wait("Waits for somebody")
		if s := r.Snapshot(); s.ClientDescription != "Waits for somebody" {
			t.Errorf("description %q", s.ClientDescription)
		}
		time.Sleep(time.Hour)
		r.Grant()
		wantStatus(t, r, structs.AllocClientRunning)
		<-r.Ended()
		if took := time.Since(begin); took != 25*time.Hour+10*time.Minute || r.ClientStatus() != structs.AllocClientComplete {
			t.Errorf("%s after %v", r.ClientStatus(), took)
		}
		got := eventsOf(r, "main")
		for _, kind := range []string{structs.TaskSuspended, structs.TaskWaitingForRoom, structs.TaskResumed} {
			if !slices.Contains(got, kind) {
				t.Errorf("events %q: no %q", got, kind)
			}
		}
		n.close(r)
	})
}

// The time limit ends what ran as long as it may, not counting the cold.
func TestTimeLimitStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		begin := time.Now()
		r := started(t, n, service(map[string]any{"run_for": "100h"}, func(g *structs.TaskGroup) { g.MaxRunDuration = time.Hour }))
		time.Sleep(50 * time.Minute)
		n.want(r, structs.AllocDesiredSuspend)
		time.Sleep(3 * time.Hour)
		n.want(r, structs.AllocDesiredRun)
		r.Grant()
		<-r.Ended()
		if took := time.Since(begin); took != 4*time.Hour || r.Snapshot().ClientDescription != DescExpired {
			t.Errorf("%s after %v", r.Snapshot().ClientDescription, took)
		}
		n.close(r)
	})
}

// Whatever ends an allocation ends a suspended one, and its tasks hear of it.
func TestEndOfSuspended(t *testing.T) {
	f := func(name string, end func(*node, *Runner), after time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			n := newNode(t)
			r := started(t, n, service(map[string]any{"run_for": "100h", "kill_after": "700ms"}, nil))
			n.want(r, structs.AllocDesiredSuspend)
			wantStatus(t, r, structs.AllocClientSuspended)
			time.Sleep(time.Hour)
			begin := time.Now()
			end(n, r)
			<-r.Ended()
			if took := time.Since(begin); took != after || r.ClientStatus() != structs.AllocClientComplete {
				t.Errorf("%s: %s after %v, want %v", name, r.ClientStatus(), took, after)
			}
			n.close(r)
		})
	}
	f("stopped", func(n *node, r *Runner) { n.want(r, structs.AllocDesiredStop) }, 700*time.Millisecond)
	f("evicted", func(n *node, r *Runner) { n.want(r, structs.AllocDesiredEvict) }, 700*time.Millisecond)
	f("forgotten", func(_ *node, r *Runner) { r.Stop() }, 700*time.Millisecond)
	f("halted", func(_ *node, r *Runner) { r.Halt() }, 700*time.Millisecond)
	f("stopped while it waits to go on", func(n *node, r *Runner) {
		n.want(r, structs.AllocDesiredRun)
		synctest.Wait()
		n.want(r, structs.AllocDesiredStop)
	}, 700*time.Millisecond)
}

// What did not run yet is not started, what waits for its restart waits on, and both go
// on when the allocation does.
func TestSuspendedStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		a := service(map[string]any{"run_for": "1h"}, func(g *structs.TaskGroup) {
			g.Tasks = append(g.Tasks,
				&structs.Task{Name: "slow", Driver: "mock_driver", Config: map[string]any{"run_for": "1h", "start_block_for": "10s"}},
				&structs.Task{Name: "fails", Driver: "mock_driver", Config: map[string]any{"run_for": "2s", "exit_code": 1}},
				&structs.Task{Name: "later", Driver: "mock_driver", Config: map[string]any{"run_for": "1h"}, Lifecycle: &structs.TaskLifecycle{Hook: structs.TaskLifecycleHookPoststart}})
			g.RestartPolicy.Delay = ptr(time.Minute)
		})
		r, err := New(n.config(), Dir{}, a)
		if err != nil {
			t.Fatal(err)
		}
		r.Grant()
		time.Sleep(3 * time.Second) // "fails" waits for its restart, "slow" is being started
		n.want(r, structs.AllocDesiredSuspend)
		wantStatus(t, r, structs.AllocClientRunning) // not yet
		time.Sleep(8 * time.Second)
		wantStatus(t, r, structs.AllocClientSuspended)
		time.Sleep(time.Hour)
		s := r.Snapshot()
		if got := s.TaskStates["fails"]; got.State != structs.TaskStatePending || got.Restarts != 1 {
			t.Errorf("the one that failed is %s with %d restarts", got.State, got.Restarts)
		}
		if got := s.TaskStates["later"].State; got != structs.TaskStatePending {
			t.Errorf("the one that comes later is %s", got)
		}
		n.want(r, structs.AllocDesiredRun)
		r.Grant()
		time.Sleep(time.Second)
		for name, ts := range r.Snapshot().TaskStates {
			if ts.State != structs.TaskStateRunning {
				t.Errorf("%s is %s", name, ts.State)
			}
		}
		n.close(r)
	})
}

// Wanted suspended and not, faster than it can be done: what was wanted last holds, and
// room that was granted to one that is suspended again goes back.
func TestSuspendAndResumeInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		r := started(t, n, service(map[string]any{"run_for": "1h"}, nil))
		for range 5 {
			n.want(r, structs.AllocDesiredSuspend)
			n.want(r, structs.AllocDesiredRun)
		}
		if synctest.Wait(); r.Phase() == PhaseResuming {
			r.Grant()
		}
		wantStatus(t, r, structs.AllocClientRunning)
		n.want(r, structs.AllocDesiredSuspend)
		wantStatus(t, r, structs.AllocClientSuspended)
		n.want(r, structs.AllocDesiredRun)
		n.want(r, structs.AllocDesiredSuspend)
		reported := n.rooms
		r.Grant()
		wantStatus(t, r, structs.AllocClientSuspended)
		if r.Phase() != PhaseSuspended || n.rooms != reported+1 {
			t.Errorf("phase %d, reported %d times more", r.Phase(), n.rooms-reported)
		}
		n.close(r)
	})
}

// An agent that ends while tasks are suspended finds them so, and what was resumed
// meanwhile goes on where it was.
func TestRestoreOfSuspended(t *testing.T) {
	f := func(name, desired, status string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			n := newNode(t)
			a := service(map[string]any{"run_for": "1h"}, nil)
			a.Job.Type = structs.JobTypeBatch
			r := started(t, n, a)
			time.Sleep(20 * time.Minute)
			n.want(r, structs.AllocDesiredSuspend)
			wantStatus(t, r, structs.AllocClientSuspended)
			kept := *r.Alloc()
			n.close(r)
			time.Sleep(10 * time.Hour)

			next := newNode(t)
			r, err := Restore(next.config(), Dir{}, &kept, n.runs["a"])
			if err != nil {
				t.Fatal(err)
			}
			wantStatus(t, r, structs.AllocClientSuspended)
			if r.Phase() != PhaseSuspended || !r.HasRun() {
				t.Errorf("%s: place %d, has run %v", name, r.Phase(), r.HasRun())
			}
			next.want(r, desired)
			if desired == structs.AllocDesiredRun {
				r.Grant()
			}
			wantStatus(t, r, status)
			begin := time.Now()
			if status == structs.AllocClientRunning {
				<-r.Ended()
				if took := time.Since(begin); took != 40*time.Minute || r.ClientStatus() != structs.AllocClientComplete {
					t.Errorf("%s: %s after %v more", name, r.ClientStatus(), took)
				}
			}
			if n := strings.Count(strings.Join(eventsOf(r, "main"), "\n"), structs.TaskSuspended); n != 1 {
				t.Errorf("%s: suspended %d times: %q", name, n, eventsOf(r, "main"))
			}
			next.close(r)
		})
	}
	f("still suspended", structs.AllocDesiredSuspend, structs.AllocClientSuspended)
	f("resumed", structs.AllocDesiredRun, structs.AllocClientRunning)
	f("stopped", structs.AllocDesiredStop, structs.AllocClientComplete)
}

// A suspended allocation is not found healthy, and begins its time anew when it goes on.
func TestSuspendedIsNotHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		r := started(t, n, service(map[string]any{"run_for": "1h"}, update))
		time.Sleep(5 * time.Second)
		n.want(r, structs.AllocDesiredSuspend)
		time.Sleep(time.Hour)
		if d := r.Snapshot().DeploymentStatus; d != nil {
			t.Fatalf("decided while it was suspended: %v", *d.Healthy)
		}
		n.want(r, structs.AllocDesiredRun)
		r.Grant()
		time.Sleep(9 * time.Second)
		if d := r.Snapshot().DeploymentStatus; d != nil {
			t.Fatalf("decided too early: %v", *d.Healthy)
		}
		time.Sleep(2 * time.Second)
		if d := r.Snapshot().DeploymentStatus; !d.IsHealthy() {
			t.Errorf("not healthy: %+v", d)
		}
		n.close(r)
	})
}

// SuspendedFor tasks take no orders.
func TestSuspendedTakesNoOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		r := started(t, n, service(map[string]any{"run_for": "1h"}, nil))
		n.want(r, structs.AllocDesiredSuspend)
		wantStatus(t, r, structs.AllocClientSuspended)
		for _, err := range []error{r.Restart("main", false), r.Restart("", true), r.Signal(t.Context(), "main", "SIGHUP")} {
			if err == nil || !strings.Contains(err.Error(), "resume it first") {
				t.Errorf("%v", err)
			}
		}
		n.close(r)
	})
}

// stubborn is a driver whose tasks cannot be suspended: at all, or as often as fails says.
type stubborn struct {
	driver.Driver
	fails int
	tries *int
}

func (s stubborn) Start(ctx context.Context, c *driver.TaskConfig) (driver.Handle, error) {
	h, err := s.Driver.Start(ctx, c)
	if s.fails == 0 {
		return struct{ driver.Handle }{h}, err
	}
	return stubbornHandle{h, s}, err
}

type stubbornHandle struct {
	driver.Handle
	s stubborn
}

func (h stubbornHandle) Suspend(ctx context.Context) error {
	if *h.s.tries++; *h.s.tries <= h.s.fails {
		return context.DeadlineExceeded
	}
	return h.Handle.(driver.Suspender).Suspend(ctx)
}

func (h stubbornHandle) Resume(ctx context.Context) error {
	return h.Handle.(driver.Suspender).Resume(ctx)
}

// What cannot be suspended is tried again, and ended if that does not help: others were
// promised its room.
func TestCannotBeSuspended(t *testing.T) {
	f := func(fails int, status, description string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			n, tries := newNode(t), 0
			mock, err := n.drivers.Get("mock_driver")
			if err != nil {
				t.Fatal(err)
			}
			if n.drivers, err = driver.NewRegistry(stubborn{mock, fails, &tries}); err != nil {
				t.Fatal(err)
			}
			r := started(t, n, service(map[string]any{"run_for": "1h"}, nil))
			n.want(r, structs.AllocDesiredSuspend)
			time.Sleep(time.Minute)
			wantStatus(t, r, status)
			if s := r.Snapshot(); s.ClientDescription != description {
				t.Errorf("description %q", s.ClientDescription)
			}
			n.close(r)
		})
	}
	f(0, structs.AllocClientFailed, DescCannotSuspend)
	f(2, structs.AllocClientSuspended, descSuspended)
	f(3, structs.AllocClientFailed, DescCannotSuspend)
}

// One that comes suspended starts nothing until it is resumed.
func TestComesSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		a := service(map[string]any{"run_for": "1h"}, nil)
		a.DesiredStatus = structs.AllocDesiredSuspend
		r, err := New(n.config(), Dir{}, a)
		if err != nil {
			t.Fatal(err)
		}
		r.StaySuspended()
		wantStatus(t, r, structs.AllocClientSuspended)
		n.want(r, structs.AllocDesiredRun)
		r.Grant()
		wantStatus(t, r, structs.AllocClientRunning)
		n.close(r)
	})
}
