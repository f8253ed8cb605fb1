package tenants

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// TestVirtualClustersFlood: 5,000 jobs of one GPU of namespace b run on all that there is or wait for it; a job of namespace a which
// is entitled to what a owns runs within 2 s of its registration, and one that is not waits behind them.
func TestVirtualClustersFlood(t *testing.T) {
	t.Parallel()
	const jobs = 5000
	a := harness.StartSimulated(t, 4, harness.PatientServer, harness.DGXNodes("m", 4, "r1"))
	teams(a, "a", "b")
	owns(a, 0, "a", "level = \"node\", count = 1", "Successfully applied")
	flood(a, "b", jobs)
	harness.Within(t, 60*time.Second, "a full cluster and the rest in the queue", func(ctx context.Context) error {
		waiting, err := waiting(ctx, a, "b")
		if err == nil && waiting != jobs-32 {
			err = fmt.Errorf("%d jobs wait", waiting)
		}
		return err
	})
	for _, gpus := range []int{1, 8 - 1} { // the second takes the rest of what is owned
		id := fmt.Sprint("entitled-", gpus)
		began := time.Now()
		tenantJob(a, "a", id, gpus, "")
		runsAs(a, "a", id, true, 2*time.Second)
		t.Logf("FIGURE %d GPUs that their namespace owns, with %d jobs of another waiting → running: %v", gpus, jobs-32, time.Since(began).Round(time.Millisecond))
	}
	tenantJob(a, "a", "beyond", 1, "")
	pending(a, "a", "beyond", "owns 8 GPUs")
	a.CheckState()
}

// flood registers many jobs of one GPU.
func flood(a *harness.Agent, namespace string, jobs int) {
	a.T.Helper()
	numbers, errs := make(chan int), make(chan error, jobs)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for n := range numbers {
				job := harness.GangLayout{GPUs: []int{1}}.Job(fmt.Sprint("flood-", n))
				job.Namespace, job.TaskGroups[0].Gang = namespace, nil
				_, err := a.API.Jobs().Register(a.T.Context(), &structs.JobRegisterRequest{Job: job})
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
			a.T.Fatal(err)
		}
	}
}

// waiting counts the jobs of a namespace in the queue.
func waiting(ctx context.Context, a *harness.Agent, namespace string) (n int, err error) {
	for q := (&api.Query{Namespace: namespace}); ; {
		entries, meta, err := a.API.Queue(ctx, "", q)
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
	a := harness.StartSimulated(t, 2, harness.PatientServer, harness.DGXNodes("m", 2, "r1"))
	teams(a, "a", "c")
	owns(a, 0, "a", "level = \"gpu\", count = 4", "Successfully applied")
	owns(a, 0, "c", "level = \"gpu\", count = 4", "Successfully applied")
	harness.CheckOutput(t, a, 0, "vc points a 2", "has 2 points")
	from := time.Now().UTC().Add(harness.Scaled(3 * time.Second)).Truncate(time.Second)
	when := fmt.Sprintf("-level gpu -count 2 -from %s -until %s ", from.Format(time.RFC3339), from.Add(24*time.Hour).Format(time.RFC3339))
	harness.CheckOutput(t, a, 0, "vc offer "+when+"c", "Successfully made offer")
	harness.CheckOutput(t, a, 0, "vc bid -points 1 "+when+"a", "Successfully made bid")
	harness.WaitOutput(t, a, "vc list", "a     opportunistic  0       6 gpu", "c     opportunistic  2       2 gpu")
	manyJob(a, "a", "five", 5, "")
	if n := guaranteed(classes(a, "a", "five", 5, 10*time.Second)); n != 5 {
		t.Errorf("%d of 5 are guaranteed", n)
	}
	tenantJob(a, "a", "two", 2, "")
	runsAs(a, "a", "two", false, 10*time.Second)
	tenantJob(a, "a", "one", 1, "")
	runsAs(a, "a", "one", true, 10*time.Second)
	a.CheckState()
}
