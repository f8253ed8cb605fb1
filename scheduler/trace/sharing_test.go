package trace

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

// treeMachines makes nodes of 2 sockets of 2 switches of 2 GPUs.
func treeMachines(n int) []*structs.Node {
	nodes := machines(n, 8000, 8000, 8)
	for _, node := range nodes {
		tree := &structs.NodeTopology{}
		for i, d := range node.NodeResources.Devices[0].Instances {
			socket, pcie := fmt.Sprint("socket-", i/4), fmt.Sprint("pcie-", i/2)
			if i%4 == 0 {
				tree.Cells = append(tree.Cells, &structs.TopologyCell{ID: socket, Level: structs.LevelSocket})
			}
			if i%2 == 0 {
				tree.Cells = append(tree.Cells, &structs.TopologyCell{ID: pcie, Level: structs.LevelPCIe, Parent: socket})
			}
			last := tree.Cells[len(tree.Cells)-1]
			last.Devices = append(last.Devices, d.ID)
		}
		node.NodeResources.Topology = tree
	}
	return nodes
}

// owned is a virtual cluster of cells of the one kind that there is: "node 2".
func owned(name string, cells ...string) *structs.VirtualCluster {
	v := &structs.VirtualCluster{Name: name}
	for _, one := range cells {
		c := &structs.CellQuota{}
		if _, err := fmt.Sscan(one, &c.Level, &c.Count); err != nil {
			panic(err)
		}
		v.Cells = append(v.Cells, c)
	}
	return v
}

func of(tenant string) func(*Row) { return func(r *Row) { r.Tenant = tenant } }

func (p *placed) sharing(how string, owns ...*structs.VirtualCluster) *placed {
	p.c.Sharing, p.c.VirtualClusters = how, owns
	return p
}

// One tenant floods both nodes with work of one GPU; the other's job of a whole node runs as soon as it comes where tenants own cells,
// and 8 instances run again later. Where all stand in one queue it waits.
func TestSharingFlood(t *testing.T) {
	var rows []Row
	for i := range 16 {
		rows = append(rows, gpuRow(0, 100, 1).with(named(fmt.Sprintf("b%d", i))).with(of("b")))
	}
	rows = append(rows, gpuRow(10, 100, 8).with(named("a")).with(of("a")))
	for _, c := range []struct {
		how                  string
		starts, requeued     int
		lossJobs             int64
		lossHours, waited    float64
		guaranteedB, borrowB float64
	}{
		{SharingCells, 10, 8, 0, 0, 0, 1600, 80},
		{SharingQueue, 100, 0, 1, 8 * 90, 90, 0, 1600},
		{SharingCounts, 10, 8, 0, 0, 0, 1600, 80},
	} {
		p := replayOf(treeMachines(2), rows...).sharing(c.how, owned("a", "node 1"), owned("b", "node 1"))
		f := p.run(t)
		p.starts(t, map[string]int{"a": c.starts})
		all := f.AllTenants
		if int(f.Counts.Requeued) != c.requeued || all.LossJobs != c.lossJobs || all.LossGPUHours != round(c.lossHours/3600, 6) {
			t.Errorf("%s: %d requeued, %d jobs lost %v GPU hours; want %d, %d, %v", c.how, f.Counts.Requeued, all.LossJobs, all.LossGPUHours*3600,
				c.requeued, c.lossJobs, c.lossHours)
		}
		for _, x := range f.Tenants {
			if x.Of == "b" && (x.GuaranteedGPUHours != round(c.guaranteedB/3600, 6) || x.OpportunisticGPUHours != round(c.borrowB/3600, 6)) {
				t.Errorf("%s: b used %v guaranteed and %v opportunistic", c.how, x.GuaranteedGPUHours*3600, x.OpportunisticGPUHours*3600)
			}
		}
	}
}

// Two tenants own 8 GPUs each, of which each uses one on each of two nodes: who owns a number finds no whole node then, who owns a cell
// does.
func TestSharingNumbersAreNoCells(t *testing.T) {
	rows := []Row{}
	for i := range 10 { // those of b that are left lie on both nodes when others beside them have ended
		rows = append(rows, gpuRow(0, 1000-990*(i/2%2), 1).with(named(fmt.Sprintf("b%d", i))).with(of("b")))
	}
	rows = append(rows, gpuRow(20, 50, 8).with(named("a")).with(of("a")))
	for how, want := range map[string]int{SharingCells: 20, SharingCounts: 1000} {
		p := replayOf(treeMachines(2), rows...).sharing(how, owned("a", "node 1"), owned("b", "node 1"))
		p.c.Scheduler.SetNodeOrder("spread")
		f := p.run(t)
		p.starts(t, map[string]int{"a": want})
		if lost := f.AllTenants.LossJobs; (lost > 0) != (want > 20) {
			t.Errorf("%s: %d jobs lost", how, lost)
		}
	}
}

func TestSharingRefuses(t *testing.T) {
	for want, owns := range map[string][]*structs.VirtualCluster{
		`virtual cluster "b": level node: 1 short`:   {owned("a", "node 1"), owned("b", "node 2")},
		`virtual cluster "a": cells 1: level "rack"`: {owned("a", "rack 1")},
		`virtual cluster "a": stated twice`:          {owned("a", "node 1"), owned("a", "node 1")},
		`virtual cluster "a": cells 1: kind "x/y/z"`: {{Name: "a", Cells: []*structs.CellQuota{{Kind: "x/y/z", Level: "node", Count: 1}}}},
		`virtual cluster "a": cells 1: pin "none"`:   {{Name: "a", Cells: []*structs.CellQuota{{Level: "node", Count: 1, Pin: []string{"none"}}}}},
		`virtual cluster "a": windows are not replayed`: {{Name: "a", Windows: []*structs.CellWindow{{
			From: time.Unix(0, 0), To: time.Unix(1, 0), Cells: []*structs.CellQuota{{Level: "node", Count: 1}},
		}}}},
	} {
		p := replayOf(treeMachines(2), gpuRow(0, 1, 1)).sharing("", owns...)
		if _, _, err := Run(p.c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	p := replayOf(treeMachines(2), gpuRow(0, 1, 1)).sharing("best", owned("a", "node 1"))
	if _, _, err := Run(p.c); err == nil || !strings.Contains(err.Error(), "must be one of cells, queue, counts") {
		t.Errorf("error %v", err)
	}
	p = replayOf(treeMachines(2), gpuRow(0, 1, 1)).sharing("", owned("a", "node 1"))
	p.c.Drop = true
	if _, _, err := Run(p.c); err == nil {
		t.Error("virtual clusters go with the mode drop")
	}
}

// drawOwned gives three tenants cells that so many nodes have together.
func drawOwned(t *rapid.T, nodes int) (owns []*structs.VirtualCluster) {
	left := 8 * nodes
	for _, name := range []string{"a", "b", "c"} {
		v := &structs.VirtualCluster{Name: name, OverLimit: rapid.SampledFrom([]string{"", structs.OverLimitWait}).Draw(t, "over limit")}
		for i, level := range []string{"node", "socket", "pcie", "gpu"} {
			n := rapid.IntRange(0, 3).Draw(t, level)
			if n = min(n, left/(8>>i)); n > 0 {
				v.Cells = append(v.Cells, &structs.CellQuota{Level: level, Count: n})
				if level == "node" && name == "a" && rapid.Bool().Draw(t, "pin") {
					v.Cells[0].Pin = []string{"m-000"}
				}
				left -= n * (8 >> i)
			}
		}
		owns = append(owns, v)
	}
	return owns
}

func drawGPURows(t *rapid.T) []Row {
	rows, at := make([]Row, rapid.IntRange(1, 40).Draw(t, "rows")), 0
	for i := range rows {
		at += rapid.IntRange(0, 15).Draw(t, "pause")
		rows[i] = Row{
			Name: fmt.Sprint(i), Arrival: sec(at), Duration: sec(rapid.IntRange(0, 200).Draw(t, "duration")),
			Count: rapid.SampledFrom([]int{1, 1, 1, 2, 5}).Draw(t, "count"), GPUs: rapid.SampledFrom([]int{0, 1, 1, 2, 3, 4, 5, 8}).Draw(t, "gpus"),
			CPU: rapid.SampledFrom([]int{0, 500, 3000}).Draw(t, "cpu"), Priority: rapid.SampledFrom([]int{0, 10, 90}).Draw(t, "priority"),
			Gang: rapid.Bool().Draw(t, "gang"), Tenant: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "tenant"),
		}
	}
	return rows
}

// Whoever owns cells never waits for another's work, whatever comes: the account of each tenant's cells, which is kept apart from the
// scheduler's, finds no job that waits and would fit. Nor does any other way of sharing break a replay.
func TestSharingProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 3).Draw(t, "nodes")
		owns, rows := drawOwned(t, nodes), drawGPURows(t)
		how := rapid.SampledFrom([]string{SharingCells, SharingCells, SharingQueue, SharingCounts}).Draw(t, "sharing")
		p := replayOf(treeMachines(nodes), rows...).sharing(how, owns...)
		p.c.Scheduler.PreemptionConfig.BatchSchedulerEnabled = rapid.Bool().Draw(t, "preempt")
		p.c.Scheduler.ReservationAfter = rapid.SampledFrom([]time.Duration{-1, sec(20), sec(60)}).Draw(t, "reserve")
		p.c.Scheduler.SetNodeOrder(rapid.SampledFrom([]string{"binpack", "spread", "random", "least-fragmentation"}).Draw(t, "policy"))
		f := p.run(t)
		if how == SharingCells && (f.AllTenants.LossJobs > 0 || f.AllTenants.LossGPUHours > 0) {
			t.Errorf("%d jobs lost %v GPU hours: %+v", f.AllTenants.LossJobs, f.AllTenants.LossGPUHours, f.Tenants)
		}
		c, used := f.Counts, f.AllTenants.GuaranteedGPUHours+f.AllTenants.OpportunisticGPUHours
		if c.Completed+c.Never != c.Jobs || c.Never == 0 && f.Final != (Amounts{}) {
			t.Errorf("counts %+v, in use in the end %+v", c, f.Final)
		}
		if all := f.All.GPU * float64(f.Has.GPUMilli) / 1000 * f.Span.End / 3600; math.Abs(used-all) > 1e-3 {
			t.Errorf("tenants used %v GPU hours, all %v: %+v %+v %+v", used, all, f.Span, c, f.All)
		}
		q := replayOf(treeMachines(nodes), rows...).sharing(how, owns...)
		q.c.Scheduler = p.c.Scheduler
		if a, b := asJSON(t, f), asJSON(t, q.run(t)); a != b {
			t.Errorf("a second replay gives\n%s\nnot\n%s", b, a)
		}
	})
}

// What comes free goes to the tenant that has less of it, though nobody owns anything: of eight GPUs that eight jobs of a used, four jobs
// of b get half, which came after sixteen others of a.
func TestTenantsShare(t *testing.T) {
	var rows []Row
	want := map[string]int{}
	add := func(tenant string, from, to, arrival, start int) {
		for i := from; i < to; i++ {
			name := fmt.Sprint(tenant, i)
			rows = append(rows, gpuRow(arrival, 100, 1).with(named(name)).with(of(tenant)))
			want[name] = start
		}
	}
	add("a", 0, 8, 0, 0)
	add("a", 8, 12, 1, 100)
	add("a", 12, 16, 1, 200)
	add("b", 0, 4, 2, 100)
	p := replayOf(treeMachines(1), rows...)
	p.run(t)
	p.starts(t, want)
}
