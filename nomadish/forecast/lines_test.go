package forecast

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// TestTwoLines: a group of which a part is entitled has two lines in the queue. Those that are entitled start first, to the second as is forecast of them, and
// the others when that is forecast of these.
func TestTwoLines(t *testing.T) {
	begin := func(fills, count int) *reality {
		r := newReality(t)
		r.slotNodes()
		r.slots("chip-a", monday, 6) // each instance needs two
		for i := range fills {
			j := cpuJob("fill-"+string(rune('a'+i)), 50, 30_000, time.Duration(2+i)*time.Hour)
			j.Submitter = &structs.Submitter{User: "bob"}
			r.comes(j)
		}
		r.until(r.now.Add(time.Minute))
		j := cpuJob("synth", 50, 30_000, 10*time.Hour)
		j.Project, j.Submitter, j.TaskGroups[0].Count = "chip-a", &structs.Submitter{User: "ada"}, count
		r.comes(j)
		return r
	}
	r := begin(6, 7)
	f := r.holds(2)
	parts := f.Requests
	if len(parts) != 2 || parts[0].Missing != 3 || !parts[0].Entitled || parts[1].Missing != 4 || parts[1].Entitled {
		t.Fatalf("%d lines: %+v, %+v", len(parts), parts[0], parts[1])
	}
	if a, b := parts[0].Latest, parts[1].Latest; a.All >= b.First || b.First == b.All || len(b.WaitsFor) == 0 {
		t.Errorf("those that are entitled start from %d to %d, the others from %d to %d, for %v", a.First, a.All, b.First, b.All, b.WaitsFor)
	}
	id := structs.NamespacedID{Namespace: structs.DefaultNamespace, ID: "synth"}
	r = begin(6, 7) // of it alone, the same
	alone := r.forecast(Options{Only: &id}).Requests
	if len(alone) != 2 || alone[0].Latest.All != parts[0].Latest.All || alone[1].Latest.All != parts[1].Latest.All {
		t.Errorf("of the job alone: %+v", alone)
	}
	r = begin(6, 7) // and in one, of both
	if g := r.forecast(Options{}).Of(id.Namespace, id.ID, "g"); g == nil || g.Missing != 7 || g.Entitled || g.Latest.First != parts[0].Latest.First || g.Latest.All != parts[1].Latest.All {
		t.Errorf("of the group: %+v", g)
	}
}

// TestTwoLinesOfAChangedJob: so it is of a job that has more instances now and on which nobody has decided.
func TestTwoLinesOfAChangedJob(t *testing.T) {
	r := newReality(t)
	r.slotNodes()
	r.slots("chip-a", monday, 8) // each instance needs two
	for i := range 4 {
		r.comes(cpuJob("fill-"+string(rune('a'+i)), 50, 30_000, time.Duration(2+i)*time.Hour))
	}
	synth := func(count int) *structs.Job {
		j := cpuJob("synth", 50, 30_000, 10*time.Hour)
		j.Project, j.Submitter, j.TaskGroups[0].Count = "chip-a", &structs.Submitter{User: "ada"}, count
		return j
	}
	r.comes(synth(1))
	r.submit(synth(6))
	from := r.now
	f := r.forecast(Options{Only: &structs.NamespacedID{Namespace: structs.DefaultNamespace, ID: "synth"}})
	if len(f.Requests) != 2 || f.Requests[0].Missing != 3 || !f.Requests[0].Entitled || f.Requests[1].Missing != 2 {
		t.Fatalf("%d lines: %+v", len(f.Requests), f.Requests[0])
	}
	r.until(last(f).Add(time.Minute))
	for _, q := range f.Requests {
		if first, all, waits := r.differs(q, goBefore(f, q), from); waits > 0 || first.Abs() >= time.Second || all.Abs() >= time.Second {
			t.Errorf("of %d instances (entitled: %t) %d have not started, the first %s after what was forecast, the last %s", q.Missing, q.Entitled, waits, first, all)
		}
	}
}
