package scheduler_test

import (
	"testing"

	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// Whoever reads a failed placement counts itself and CoalescedFailures: that must be how
// many wait, whatever kind of job it is.
func TestCoalescedFailuresCountAllThatWait(t *testing.T) {
	small := func(n *structs.Node) { n.NodeResources.Memory.MemoryMB = 100 }
	f := func(what string, j *structs.Job, wait int) {
		t.Helper()
		c := newCluster(t)
		c.node("n00")
		c.node("s0", small)
		c.node("s1", small)
		c.register(j)
		c.eval()
		m := c.done.FailedTGAllocs["g"]
		if q := c.done.QueuedAllocations["g"]; m == nil || q != wait || m.CoalescedFailures+1 != q {
			t.Errorf("%s: %d wait, want %d; explained as %+v", what, q, wait, m)
		}
	}
	f("a system job", schedtest.Job(structs.JobTypeSystem, 1), 2)
	f("all at once", schedtest.Job(structs.JobTypeBatch, 500, func(j *structs.Job) { j.AllAtOnce = true }), 500)
	f("partial none", schedtest.Job(structs.JobTypeBatch, 500, func(j *structs.Job) { j.Partial = structs.PartialNone }), 500)
}
