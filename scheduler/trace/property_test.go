package trace

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

func drawRows(t *rapid.T) []Row {
	rows := make([]Row, rapid.IntRange(1, 16).Draw(t, "rows"))
	at := 0
	for i := range rows {
		at += rapid.IntRange(0, 20).Draw(t, "pause")
		r := Row{
			Name: fmt.Sprint(i), Arrival: sec(at), Duration: sec(rapid.IntRange(0, 60).Draw(t, "duration")),
			Count: rapid.SampledFrom([]int{1, 1, 1, 2, 5}).Draw(t, "count"), CPU: rapid.SampledFrom([]int{0, 500, 3000}).Draw(t, "cpu"),
			MemoryMB: rapid.SampledFrom([]int{0, 100, 900}).Draw(t, "memory"), GPUs: rapid.IntRange(0, 3).Draw(t, "gpus"),
			Gang: rapid.Bool().Draw(t, "gang"), Priority: rapid.SampledFrom([]int{0, 10, 50, 90}).Draw(t, "priority"),
			Tenant: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "tenant"),
		}
		if r.GPUs == 1 {
			r.Share = rapid.SampledFrom([]int{0, 250, 600}).Draw(t, "share")
		}
		if r.GPUs > 0 {
			r.Models = rapid.SampledFrom([][]string{nil, {"A"}, {"A", "B"}}).Draw(t, "models")
		}
		if rapid.Bool().Draw(t, "limited") {
			r.MaxRun = r.Duration + sec(rapid.IntRange(0, 10).Draw(t, "spare"))
		}
		r.Reclaim = rapid.SampledFrom([]string{"", structs.ReclaimSuspend}).Draw(t, "reclaim")
		rows[i] = r
	}
	return rows
}

// Whatever comes, nothing is held twice (the ledger refuses it), every job ends once or
// never found room, nothing is held in the end, and a second replay gives the same.
func TestReplayProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := append(modelMachines("a", rapid.IntRange(1, 3).Draw(t, "a"), 6000, 2000, 2, "A"),
			modelMachines("b", rapid.IntRange(0, 2).Draw(t, "b"), 3000, 1000, 3, "B")...)
		rows := drawRows(t)
		p := replayOf(nodes, rows...)
		p.c.Scheduler.PreemptionConfig.BatchSchedulerEnabled = rapid.Bool().Draw(t, "preempt")
		p.c.Scheduler.ReservationAfter = rapid.SampledFrom([]time.Duration{-1, sec(20), sec(60)}).Draw(t, "reserve")
		p.c.Scheduler.SetNodeOrder(rapid.SampledFrom([]string{"binpack", "spread", "first-fit", "random"}).Draw(t, "policy"))
		p.c.Drop = rapid.Bool().Draw(t, "drop")
		f := p.run(t)
		c := f.Counts
		if ends := c.Completed + c.Never; c.Jobs != int64(len(rows)) || !p.c.Drop && ends != c.Jobs || p.c.Drop && c.Placed+c.Dropped != c.Jobs {
			t.Errorf("of %d jobs %+v", len(rows), c)
		}
		if p.c.Drop {
			if c.Completed != 0 || c.Requeued+c.Suspended > 0 && !p.c.Scheduler.PreemptionConfig.BatchSchedulerEnabled {
				t.Errorf("nobody leaves: %+v", c)
			}
		} else if c.Completed > c.Placed || c.Never == 0 && (f.Final != Amounts{} || c.Completed != c.Jobs) {
			t.Errorf("held in the end %+v, counts %+v", f.Final, c)
		}
		instances := int64(0)
		for _, r := range rows {
			if r.Count > 0 {
				instances += int64(r.Count)
			}
		}
		if c.Never == 0 && !p.c.Drop && c.Starts != instances+c.Requeued {
			t.Errorf("%d starts of %d instances, %d of which began again", c.Starts, instances, c.Requeued)
		}
		if f.All.GPU < 0 || f.All.GPU > 1 || f.All.CPU > 1 || f.All.Memory > 1 {
			t.Errorf("held %+v", f.All)
		}
		q := replayOf(nodes, rows...)
		q.c.Scheduler, q.c.Drop = p.c.Scheduler, p.c.Drop
		if a, b := asJSON(t, f), asJSON(t, q.run(t)); a != b {
			t.Errorf("a second replay gives\n%s\nnot\n%s", b, a)
		}
	})
}

// Among requests of one key the better rank is placed first.
func TestOrderOfWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows []Row
		at := 0
		for i := range rapid.IntRange(2, 30).Draw(t, "rows") {
			at += rapid.IntRange(0, 30).Draw(t, "pause")
			rows = append(rows, gpuRow(at, rapid.IntRange(1, 100).Draw(t, "duration"), 1).with(func(r *Row) {
				r.Name, r.Priority = fmt.Sprint(i), rapid.SampledFrom([]int{10, 12, 50, 90}).Draw(t, "priority")
			}))
		}
		p := replayOf(machines(rapid.IntRange(1, 2).Draw(t, "nodes"), 1000, 1000, 1), rows...)
		p.run(t)
		rank := func(r *Row, number int) structs.Rank {
			return p.c.Scheduler.Rank(&structs.Job{Priority: r.Priority, CreateIndex: uint64(number)}, nil, epoch+int64(r.Arrival)) // small
		}
		for i := range rows {
			for j := range rows {
				a, b := rank(&rows[i], i), rank(&rows[j], j)
				begins := p.at[rows[i].Name]
				// j waited already when i was placed, ranks better, and was placed later.
				if a.Compare(&b) > 0 && int(rows[j].Arrival.Seconds()) <= begins && p.at[rows[j].Name] > begins {
					t.Errorf("row %d (%+v) was placed at %d, row %d before it in rank (%+v) at %d", i, a, begins, j, b, p.at[rows[j].Name])
				}
			}
		}
		if !slices.ContainsFunc(rows, func(r Row) bool { return p.at[r.Name] >= 0 }) {
			t.Errorf("nothing was placed")
		}
	})
}
