package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// helped is a cluster of one node of 1000 in which nobody takes anything back and nothing
// is reserved: what a release is wrongly said not to help waits for ever.
func helped(t *testing.T, f func(t *testing.T, c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(true)
		c.configure(t, func(s *structs.SchedulerConfiguration) {
			s.PreemptionConfig.ServiceSchedulerEnabled, s.ReservationAfter = false, -1
		})
		c.node(t, "node", structs.NodePoolDefault, 1000)
		defer c.run(t.Context(), 2)()
		f(t, c)
	})
}

// runs registers a job of so much CPU and memory.
func (c *cluster) runs(t *testing.T, id string, cpu, memory int) *structs.Job {
	t.Helper()
	j := job(id, structs.NodePoolDefault, 50, 1, cpu, memory)
	c.then(func() { c.register(t, j) })
	return j
}

// then does something, and lets the cluster come to rest.
func (c *cluster) then(f func()) {
	f()
	synctest.Wait()
}

// running are the instances of a job that are there and not suspended.
func (c *cluster) running(j *structs.Job) (out []*structs.Allocation) {
	for _, a := range c.store.Snapshot().AllocsByJob(nil, j.Namespace, j.ID, true) {
		if !a.Terminal() && !a.Suspended() {
			out = append(out, a)
		}
	}
	return out
}

// suspend has a user suspend an instance, or with false let it go on.
func (c *cluster) suspend(t *testing.T, j *structs.Job, id string, yes bool) {
	t.Helper()
	c.Put(t, &structs.AllocTransitionEntry{
		Transitions: map[string]*structs.DesiredTransition{id: {Suspend: &yes}}, Time: time.Now().UnixNano(),
		Evals: []*structs.Evaluation{c.eval(j, structs.EvalTriggerAllocStop)},
	})
}

// TestPartOfWhatWaitsFits: of a job of two groups one finds room. That the other does not
// says nothing of the first group of the next job.
func TestPartOfWhatWaitsFits(t *testing.T) {
	helped(t, func(t *testing.T, c *cluster) {
		a := c.runs(t, "a", 250, 250)
		c.runs(t, "b", 750, 750)
		var twins []*structs.Job
		for _, id := range []string{"x", "y"} {
			j := job(id, structs.NodePoolDefault, 50, 1, 100, 100)
			large := j.TaskGroups[0].Copy()
			large.Name = "large"
			large.Tasks[0].Resources.CPU, large.Tasks[0].Resources.MemoryMB = 900, 900
			j.TaskGroups = append(j.TaskGroups, large)
			c.then(func() { c.register(t, j) })
			twins = append(twins, j)
		}
		c.then(func() { c.deregister(t, a) })
		for _, j := range twins {
			if n := len(c.running(j)); n != 1 {
				t.Errorf("%d of job %s run, want the small one", n, j.ID)
			}
		}
	})
}

// TestResumedNeedsLess: what a user suspended and lets go on has its memory still. What
// comes free must be no more than the rest.
func TestResumedNeedsLess(t *testing.T) {
	helped(t, func(t *testing.T, c *cluster) {
		a := c.runs(t, "a", 500, 600)
		suspended := c.running(a)[0].ID
		c.then(func() { c.suspend(t, a, suspended, true) })
		b := c.runs(t, "b", 800, 400)
		c.then(func() { c.suspend(t, a, suspended, false) })
		if len(c.running(b)) != 1 || len(c.running(a)) != 0 {
			t.Fatal("it must wait")
		}
		c.then(func() { c.deregister(t, b) })
		if len(c.running(a)) != 1 {
			t.Error("it does not go on, though its node is empty beside it")
		}
	})
}

// TestResumedSpeaksForNobody: a suspended instance waits for its own node. What is new, of
// the same size, may take any.
func TestResumedSpeaksForNobody(t *testing.T) {
	helped(t, func(t *testing.T, c *cluster) {
		a := c.runs(t, "a", 500, 300)
		suspended := c.running(a)[0].ID
		c.then(func() { c.suspend(t, a, suspended, true) })
		c.runs(t, "b", 800, 600)
		c.then(func() { c.suspend(t, a, suspended, false) })
		c.then(func() { c.node(t, "second", structs.NodePoolDefault, 1000) })
		fill := c.runs(t, "fill", 950, 950)
		x := c.runs(t, "x", 500, 300)
		if len(c.running(a))+len(c.running(x)) != 0 {
			t.Fatal("both must wait")
		}
		c.then(func() { c.deregister(t, fill) })
		if len(c.running(x)) != 1 {
			t.Error("it waits beside an empty node")
		}
	})
}

// TestUpdateNeedsLess: what replaces an instance may take its room. What comes free must be
// no more than the rest.
func TestUpdateNeedsLess(t *testing.T) {
	for name, gang := range map[string]*structs.Gang{"an instance": nil, "a gang": {}} {
		t.Run(name, func(t *testing.T) {
			helped(t, func(t *testing.T, c *cluster) {
				a := job("a", structs.NodePoolDefault, 50, 1, 500, 500)
				if gang != nil {
					a = job("a", structs.NodePoolDefault, 50, 2, 250, 250)
					a.TaskGroups[0].Gang = gang
				}
				c.then(func() { c.register(t, a) })
				b := c.runs(t, "b", 300, 300)
				c.runs(t, "c", 200, 200)
				more := a.Copy()
				r := more.TaskGroups[0].Tasks[0].Resources
				r.CPU, r.MemoryMB = 800/a.TaskGroups[0].Count, 800/a.TaskGroups[0].Count
				c.then(func() { c.register(t, more) })
				c.then(func() { c.deregister(t, b) })
				for _, i := range c.running(a) {
					if of(i) != volume(more) {
						t.Errorf("%v runs still, though there is room for %v", of(i), volume(more))
					}
				}
			})
		})
	}
}
