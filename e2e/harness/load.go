package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/structs"
)

// Load registers jobs, one after the other, through whoever answers, until it is
// stopped.
type Load struct {
	All   Servers
	Mu    sync.Mutex
	Acked []string
	Stop  chan struct{}
	Done  sync.WaitGroup
}

// StartLoad has three workers register jobs, one of them each time that every passes, until the load ends.
func StartLoad(t testing.TB, all Servers, every time.Duration) *Load {
	l := &Load{All: all, Stop: make(chan struct{})}
	for w := range 3 {
		l.Done.Go(func() {
			tick := time.NewTicker(3 * every)
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-tick.C:
				case <-l.Stop:
					return
				}
				id := fmt.Sprintf("load-%d-%d", w, i)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				if err := Register(ctx, all[(w+i)%len(all)].API, id); err == nil {
					l.Mu.Lock()
					l.Acked = append(l.Acked, id)
					l.Mu.Unlock()
				}
				cancel()
			}
		})
	}
	return l
}

// WaitMore waits until n more jobs are acknowledged.
func (l *Load) WaitMore(t testing.TB, n int) {
	t.Helper()
	count := func() int {
		l.Mu.Lock()
		defer l.Mu.Unlock()
		return len(l.Acked)
	}
	was := count()
	Within(t, 30*time.Second, "more jobs", func(context.Context) error {
		if now := count(); now < was+n {
			return fmt.Errorf("%d after %d", now, was)
		}
		return nil
	})
}

// End stops the load and returns the IDs of all jobs that were acknowledged.
func (l *Load) End() []string {
	close(l.Stop)
	l.Done.Wait()
	return l.Acked
}

// Register registers a job of one pretended instance.
func Register(ctx context.Context, c *api.Client, id string) error {
	job := &structs.Job{ID: id, Name: id, Type: structs.JobTypeBatch, Priority: 50, TaskGroups: []*structs.TaskGroup{{
		Name: "g", Count: 1, Tasks: []*structs.Task{{
			Name: "t", Driver: "mock_driver", Config: map[string]any{"run_for": "1h"}, Resources: &structs.Resources{CPU: 1, MemoryMB: 10},
		}},
	}}}
	_, err := c.Jobs().Register(ctx, &structs.JobRegisterRequest{Job: job})
	return err
}

// AllRunOnce returns which jobs have not exactly one allocation that shall run and runs. An
// instance that stands twice will not get better.
func AllRunOnce(ctx context.Context, c *api.Client, jobs []string) error {
	allocs, _, err := c.Allocations().List(ctx, nil)
	if err != nil {
		return err
	}
	running, wanted := map[string]int{}, map[string]int{}
	last := map[string]*structs.AllocListStub{} // of each job
	for _, a := range allocs {
		last[a.JobID] = a
		if a.DesiredStatus == structs.AllocDesiredRun {
			wanted[a.JobID]++
			if a.ClientStatus == structs.AllocClientRunning {
				running[a.JobID]++
			}
		}
	}
	var wrong []string
	for _, id := range jobs {
		if wanted[id] != 1 || running[id] != 1 {
			wrong = append(wrong, fmt.Sprintf("%s: %d wanted, %d run", id, wanted[id], running[id]))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	n := len(wrong)
	wrong = wrong[:min(3, n)]
	first, _, _ := strings.Cut(wrong[0], ":")
	evals, _, err := c.Jobs().Evaluations(ctx, first, nil)
	if err != nil {
		return err
	}
	reported, err := json.Marshal([]any{last[first], evals})
	if err != nil {
		return err
	}
	return fmt.Errorf("%d of %d jobs: %s; an allocation and the evaluations of the first: %s", n, len(jobs), strings.Join(wrong, "; "), reported)
}
