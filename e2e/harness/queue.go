package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/structs"
)

// WaitBlocked waits until a job has an evaluation that waits for room, whose reasons have each of want.
func (a *Agent) WaitBlocked(job string, want ...string) {
	a.T.Helper()
	Within(a.T, 20*time.Second, "job "+job+" waiting: "+strings.Join(want, ", "), func(ctx context.Context) error {
		evals, _, err := a.API.Jobs().Evaluations(ctx, job, nil)
		if err != nil {
			return err
		}
		reported := "no evaluation waits"
		for _, e := range evals {
			if e.Status != structs.EvalStatusBlocked {
				continue
			}
			reported = ""
			for group, m := range e.FailedTGAllocs {
				reported += fmt.Sprintf("%s: filtered %v, exhausted %v; ", group, m.ConstraintFiltered, m.DimensionExhausted)
			}
			if !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(reported, w) }) {
				return nil
			}
		}
		return fmt.Errorf("%s", reported)
	})
}

// WaitMissing waits until n instances of a job wait for room.
func (a *Agent) WaitMissing(job string, n int) {
	a.T.Helper()
	Within(a.T, 20*time.Second, fmt.Sprintf("%d instances of %s waiting", n, job), func(ctx context.Context) error {
		have, err := a.Queued(ctx, job)
		if err == nil && have != n {
			err = fmt.Errorf("%d wait", have)
		}
		return err
	})
}

// Queued returns how many instances of a job wait for room.
func (a *Agent) Queued(ctx context.Context, job string) (n int, err error) {
	entries, err := a.Queue(ctx)
	for _, e := range entries {
		if e.JobID == job {
			n += e.Missing
		}
	}
	return n, err
}

// Queue reads the whole queue.
func (a *Agent) Queue(ctx context.Context) (out []*structs.QueueEntry, err error) {
	q := &api.Query{}
	for {
		entries, meta, err := a.API.Queue(ctx, "", q)
		if err != nil {
			return nil, err
		}
		out = append(out, entries...)
		if q.NextToken = meta.NextToken; q.NextToken == "" {
			return out, nil
		}
	}
}

// WaitQueue waits until the queue has these jobs in this order.
func (a *Agent) WaitQueue(want ...string) {
	a.T.Helper()
	Within(a.T, 20*time.Second, "the queue "+strings.Join(want, ", "), func(ctx context.Context) error {
		entries, err := a.Queue(ctx)
		if err != nil {
			return err
		}
		var have []string
		for i, e := range entries {
			have = append(have, e.JobID)
			if e.Place != i+1 {
				return fmt.Errorf("%s has place %d, not %d", e.JobID, e.Place, i+1)
			}
		}
		if !slices.Equal(have, want) {
			return fmt.Errorf("it is %v", have)
		}
		return nil
	})
}

// QueueEntry returns a job's entry in the queue, and ends the test if it has none.
func (a *Agent) QueueEntry(job string) *structs.QueueEntry {
	a.T.Helper()
	entries, err := a.Queue(a.T.Context())
	if err != nil {
		a.T.Fatal(err)
	}
	for _, e := range entries {
		if e.JobID == job {
			return e
		}
	}
	a.T.Fatalf("%s does not wait", job)
	return nil
}
