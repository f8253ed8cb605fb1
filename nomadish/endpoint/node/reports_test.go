package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/nomadish/nomadish/structs"
)

// slowApplier commits an entry when it is let.
type slowApplier struct {
	let     chan error
	mu      sync.Mutex
	entries []*structs.AllocClientEntry
}

func (s *slowApplier) Apply(ctx context.Context, _ structs.LogType, payload any) (uint64, error) {
	s.mu.Lock()
	s.entries = append(s.entries, payload.(*structs.AllocClientEntry)) // a test's
	n := len(s.entries)
	s.mu.Unlock()
	select {
	case err := <-s.let:
		return uint64(n), err // small
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func reportOf(alloc, job string, time int64) *structs.AllocClientEntry {
	e := &structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{{ID: alloc}}, Time: time}
	if job != "" {
		e.Evals = []*structs.Evaluation{{ID: "of " + alloc, JobID: job, Namespace: "default"}}
	}
	return e
}

// What comes while others are committed goes into one entry, in order, and all hear what came of it.
func TestReportsTogether(t *testing.T) {
	for _, failure := range []error{nil, errors.New("no leader")} {
		synctest.Test(t, func(t *testing.T) {
			to, r := &slowApplier{let: make(chan error)}, &reports{}
			var wg sync.WaitGroup
			answers := make([]string, 5)
			send := func(i int, job string) {
				wg.Go(func() {
					index, err := r.commit(t.Context(), to, reportOf(fmt.Sprint("a", i), job, int64(10-i)))
					answers[i] = fmt.Sprint(index, " ", err)
				})
				synctest.Wait()
			}
			send(0, "")
			send(1, "x")
			send(2, "y")
			send(3, "x")
			to.let <- nil
			synctest.Wait()
			send(4, "x") // too late for the second entry
			to.let <- failure
			to.let <- nil
			wg.Wait()
			var got [][]string
			for _, e := range to.entries {
				var ids []string
				for _, u := range e.Updates {
					ids = append(ids, u.ID)
				}
				for _, eval := range e.Evals {
					ids = append(ids, eval.ID)
				}
				got = append(got, append(ids, fmt.Sprint(e.Time)))
			}
			want := [][]string{{"a0", "10"}, {"a1", "a2", "a3", "of a1", "of a2", "9"}, {"a4", "of a4", "6"}}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("entries: %v, want %v", got, want)
			}
			second := "2 <nil>"
			if failure != nil {
				second = "2 no leader"
			}
			if want := []string{"1 <nil>", second, second, second, "3 <nil>"}; !slices.Equal(answers, want) {
				t.Errorf("answers: %q, want %q", answers, want)
			}
			if r.committing != 0 || len(r.waiting) > 0 || r.updates != 0 {
				t.Errorf("after all: %d are being committed, %d wait with %d", r.committing, len(r.waiting), r.updates)
			}
		})
	}
}

// An entry contains no more than so many reports.
func TestReportsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, r := &slowApplier{let: make(chan error)}, &reports{}
		var wg sync.WaitGroup
		for _, n := range []int{1, maxReports - 1, 1, 1, 3 * maxReports} {
			wg.Go(func() {
				e := &structs.AllocClientEntry{Updates: make([]*structs.AllocClientUpdate, n)}
				if _, err := r.commit(t.Context(), to, e); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for range 4 {
			to.let <- nil
		}
		wg.Wait()
		var sizes []int
		for _, e := range to.entries {
			sizes = append(sizes, len(e.Updates))
		}
		if want := []int{1, maxReports, 1, 3 * maxReports}; !slices.Equal(sizes, want) {
			t.Errorf("entries of %v reports, want %v", sizes, want)
		}
	})
}

// While whole entries wait, several are on their way at once, but not more than so many; less than a whole one waits for one of
// them to end.
func TestReportsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, r := &slowApplier{let: make(chan error)}, &reports{}
		var wg sync.WaitGroup
		send := func(n, want int) {
			wg.Go(func() {
				if _, err := r.commit(t.Context(), to, &structs.AllocClientEntry{Updates: make([]*structs.AllocClientUpdate, n)}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
			to.mu.Lock()
			defer to.mu.Unlock()
			if got := len(to.entries); got != want {
				t.Errorf("%d entries on their way, want %d", got, want)
			}
		}
		send(1, 1)
		send(maxReports-1, 1)
		send(1, 2)
		send(maxReports, 3)
		send(maxReports, maxCommitting)
		send(maxReports, maxCommitting)
		send(1, maxCommitting)
		for range maxCommitting + 2 {
			to.let <- nil
		}
		wg.Wait()
		if len(to.entries) != maxCommitting+2 || r.committing != 0 || r.updates != 0 {
			t.Errorf("%d entries; then %+v", len(to.entries), r)
		}
	})
}

// A call that is over takes its report with it if nobody has begun with it, and takes nothing of the others'.
func TestReportsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, r := &slowApplier{let: make(chan error)}, &reports{}
		var wg sync.WaitGroup
		answers := make([]error, 4)
		var over [4]context.CancelFunc
		for i := range answers {
			ctx, cancel := context.WithCancel(t.Context())
			over[i] = cancel
			wg.Go(func() { _, answers[i] = r.commit(ctx, to, reportOf(fmt.Sprint("a", i), "", 1)) })
			synctest.Wait()
		}
		over[1]() // it waits still
		synctest.Wait()
		to.let <- nil
		synctest.Wait()
		over[2]() // it commits a3 too
		synctest.Wait()
		to.let <- nil
		wg.Wait()
		over[0]()
		over[3]()
		if len(to.entries) != 2 || len(to.entries[1].Updates) != 2 || to.entries[1].Updates[0].ID != "a2" {
			t.Errorf("entries: %+v", to.entries)
		}
		for i, want := range []error{nil, context.Canceled, nil, nil} {
			if !errors.Is(answers[i], want) {
				t.Errorf("answer %d: %v, want %v", i, answers[i], want)
			}
		}
	})
}
