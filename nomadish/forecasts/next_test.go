package forecasts

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/structs"
)

// groups registers a job of so many groups.
func (s *site) groups(n int) {
	s.t.Helper()
	j := testcluster.Job("j", structs.JobTypeBatch, 1)
	for i := range n {
		g := j.TaskGroups[0].Copy()
		g.Name = fmt.Sprint("g-", i)
		j.TaskGroups = append(j.TaskGroups, g)
	}
	s.Put(s.t, &structs.JobRegisterEntry{Job: j})
}

// wait has all of its groups wait up to a number.
func (s *site) wait(groups int) {
	s.t.Helper()
	p := &structs.JudgedPlan{Time: time.Now().UnixNano()}
	for i := range groups {
		p.Requests = append(p.Requests, &structs.RequestUpdate{Namespace: structs.DefaultNamespace, JobID: "j", Group: fmt.Sprint("g-", i), Missing: 1, EvalID: "e"})
	}
	s.Put(s.t, &structs.PlanCommit{Plans: []*structs.JudgedPlan{p}})
	synctest.Wait()
}

// TestNext: it is stated when there is a forecast of what is newer than the last one, about as it comes then, or at the latest where the queue has become longer.
func TestNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Options{})
		s.took = 10 * time.Second
		s.groups(4000)
		s.wait(1000)
		s.run(true)
		// comes waits for the forecast that is of now, which is to come in so many seconds, or a tenth less.
		comes := func(want string, seconds float64) {
			t.Helper()
			synctest.Wait()
			f, why := s.Last()
			begun, index := time.Now(), s.Index()
			if f != nil {
				why = f.NotYet(index, begun)
			}
			if want = "is there " + want; len(why) < len(want) || why[len(why)-len(want):] != want {
				t.Errorf("%q, want %q", why, want)
			}
			s.Await(t.Context(), index-1)
			if took := time.Since(begun).Seconds(); took > seconds+1 || took < 0.9*seconds {
				t.Errorf("it came after %.0f s, not %.0f", took, seconds)
			}
		}
		comes("in about 9 min at most", 127)
		s.commit()
		comes("in about 5 min", 267) // it begins in 140 s
		s.commit()
		time.Sleep(160 * time.Second)
		comes("in about 107 s", 107) // it is being made
		s.commit()
		time.Sleep(160 * time.Second)
		s.commit()
		comes("in about 7 min", 374) // another one is being made
		time.Sleep(5 * time.Minute)
		s.wait(3000)
		comes("in about 9 min at most", 127) // it is the first one of many more
		s.took = 20 * time.Second
		s.wait(3500)
		time.Sleep(5 * time.Minute)
		comes("in about 6 min at most", 100) // it takes longer than the last one
		if f, _ := s.Last(); len(f.Next) != 1 || f.Next[0].Index != 0 || f.Next[0].Begin != s.rested.UnixNano() {
			t.Errorf("%+v come next, the earliest at %s", f.Next, s.rested)
		}
	})
}

// TestNextAfterALateOne: while one takes longer than was expected, the one after it does not begin before it is there, and it is not known when that one is.
func TestNextAfterALateOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Options{})
		now := time.Now()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cost, s.began = cost{work: 10 * time.Second, groups: 1}, start{index: 1, at: now.Add(-300 * time.Second), groups: 1}
		if list := s.next(); len(list) != 2 || list[1].Begin <= now.UnixNano() || list[1].End != 0 {
			t.Errorf("%+v come next, now it is %d", list, now.UnixNano())
		}
	})
}

// TestWaitingCountsTheUndecided: a forecast decides on jobs that have just come, too, so that it takes as long as if their groups waited.
func TestWaitingCountsTheUndecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Options{})
		s.groups(300)
		s.wait(200)
		j := testcluster.Job("new", structs.JobTypeBatch, 1)
		j.TaskGroups = append(j.TaskGroups, &structs.TaskGroup{Name: "more", Count: 1})
		s.Put(s.t, &structs.JobRegisterEntry{Job: j, Eval: structs.NewEval("of-new", j, structs.EvalTriggerJobRegister, time.Now().UnixNano()), Time: time.Now().UnixNano()})
		if n := waiting(s.Store.Snapshot()); n != 202 {
			t.Errorf("%d groups are counted, not 202", n)
		}
	})
}
