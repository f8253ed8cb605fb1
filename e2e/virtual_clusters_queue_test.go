package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/structs"
)

// TestVirtualClustersFlood: 5,000 jobs of one GPU of namespace b run on all that there is or wait for it; a job of namespace a which
// is entitled to what a owns runs within 2 s of its registration, and one that is not waits behind them.
func TestVirtualClustersFlood(t *testing.T) {
	t.Parallel()
	const jobs = 5000
	a := startLayouts(t, 4, patient, dgx("m", 4, "r1"))
	a.teams("a", "b")
	a.owns(0, "a", "level = \"node\", count = 1", "Successfully applied")
	a.flood("b", jobs)
	within(t, 60*time.Second, "a full cluster and the rest in the queue", func(ctx context.Context) error {
		waiting, err := a.waiting(ctx, "b")
		if err == nil && waiting != jobs-32 {
			err = fmt.Errorf("%d jobs wait", waiting)
		}
		return err
	})
	for _, gpus := range []int{1, 8 - 1} { // the second takes the rest of what is owned
		id := fmt.Sprint("entitled-", gpus)
		began := time.Now()
		a.tenantJob("a", id, gpus, "")
		a.runsAs("a", id, true, 2*time.Second)
		t.Logf("FIGURE %d GPUs that their namespace owns, with %d jobs of another waiting → running: %v", gpus, jobs-32, time.Since(began).Round(time.Millisecond))
	}
	a.tenantJob("a", "beyond", 1, "")
	a.pending("a", "beyond", "owns 8 GPUs")
	a.inOrder()
}

// flood registers many jobs of one GPU.
func (a *agent) flood(namespace string, jobs int) {
	a.t.Helper()
	numbers, errs := make(chan int), make(chan error, jobs)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for n := range numbers {
				job := gangLayout{gpus: []int{1}}.job(fmt.Sprint("flood-", n))
				job.Namespace, job.TaskGroups[0].Gang = namespace, nil
				_, err := a.api.Jobs().Register(a.t.Context(), &structs.JobRegisterRequest{Job: job})
				errs <- err
			}
		})
	}
	for n := range jobs {
		numbers <- n
	}
	close(numbers)
	all.Wait()
	for range jobs {
		if err := <-errs; err != nil {
			a.t.Fatal(err)
		}
	}
}

// waiting counts the jobs of a namespace in the queue.
func (a *agent) waiting(ctx context.Context, namespace string) (n int, err error) {
	for q := (&api.Query{Namespace: namespace}); ; {
		entries, meta, err := a.api.Queue(ctx, "", q)
		if n += len(entries); err != nil || meta.NextToken == "" {
			return n, err
		}
		q.NextToken = meta.NextToken
	}
}

// TestVirtualClustersGoldenLimit: a namespace that was given 4 GPUs and won 2 has a limit of 6; with 5 in guaranteed use, one instance
// of 2 GPUs exceeds it, and one of 1 does not.
func TestVirtualClustersGoldenLimit(t *testing.T) {
	t.Parallel()
	a := startLayouts(t, 2, patient, dgx("m", 2, "r1"))
	a.teams("a", "c")
	a.owns(0, "a", "level = \"gpu\", count = 4", "Successfully applied")
	a.owns(0, "c", "level = \"gpu\", count = 4", "Successfully applied")
	says(t, a, 0, "vc points a 2", "has 2 points")
	from := time.Now().UTC().Add(scaled(3 * time.Second)).Truncate(time.Second)
	when := fmt.Sprintf("-level gpu -count 2 -from %s -until %s ", from.Format(time.RFC3339), from.Add(24*time.Hour).Format(time.RFC3339))
	says(t, a, 0, "vc offer "+when+"c", "Successfully made offer")
	says(t, a, 0, "vc bid -points 1 "+when+"a", "Successfully made bid")
	until(t, a, "vc list", "a     opportunistic  0       6 gpu", "c     opportunistic  2       2 gpu")
	a.manyJob("a", "five", 5, "")
	if n := guaranteed(a.classes("a", "five", 5, 10*time.Second)); n != 5 {
		t.Errorf("%d of 5 are guaranteed", n)
	}
	a.tenantJob("a", "two", 2, "")
	a.runsAs("a", "two", false, 10*time.Second)
	a.tenantJob("a", "one", 1, "")
	a.runsAs("a", "one", true, 10*time.Second)
	a.inOrder()
}
