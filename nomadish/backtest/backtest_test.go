package backtest

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler/trace"
	"github.com/nomadish/nomadish/structs"
)

// nodes are so many nodes of 8 GPUs.
func nodes(n int) (list []*structs.Node) {
	for i := range n {
		id := fmt.Sprintf("00000000-0000-0000-0000-%012d", i+1)
		gpus := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "P100"}
		for g := range 8 {
			gpus.Instances = append(gpus.Instances, &structs.NodeDevice{ID: fmt.Sprintf("n%d-%d", i, g), Healthy: true})
		}
		node := &structs.Node{
			ID: id, Name: fmt.Sprint("n", i), Datacenter: "dc1", NodePool: structs.DefaultNodePool, Status: structs.NodeStatusReady,
			SchedulingEligibility: structs.NodeEligible, Attributes: map[string]string{}, Meta: map[string]string{},
			NodeResources: &structs.NodeResources{
				Cpu: structs.NodeCpuResources{CpuShares: 64_000, TotalCpuCores: 64}, Memory: structs.NodeMemoryResources{MemoryMB: 1 << 19},
				Devices: []*structs.NodeDeviceResource{gpus},
			},
			Drivers: map[string]*structs.DriverInfo{trace.DriverName: {Detected: true, Healthy: true}},
		}
		node.ComputeClass()
		list = append(list, node)
	}
	return list
}

// row is a job of one instance that arrives at a minute, and takes so many minutes of so many that it may.
func row(name string, arrival, gpus, takes, limit int) *trace.Row {
	return &trace.Row{
		Name: name, Arrival: time.Duration(arrival) * time.Minute, Count: 1, GPUs: gpus,
		Duration: time.Duration(takes) * time.Minute, MaxRun: time.Duration(limit) * time.Minute,
	}
}

func rows(list ...*trace.Row) iter.Seq2[*trace.Row, error] {
	return func(yield func(*trace.Row, error) bool) {
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func run(t *testing.T, n int, list ...*trace.Row) *trace.ForecastFigures {
	t.Helper()
	f, err := Run(t.Context(), Config{Nodes: nodes(n), Rows: rows(list...), Scheduler: structs.DefaultSchedulerConfiguration(), Every: 30 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// near reports whether a figure is within 1 % of another.
func near(v, want float64) bool {
	return v >= min(want*0.99, want*1.01)-0.1 && v <= max(want*0.99, want*1.01)+0.1
}

// TestErrors: two jobs wait for one that ends after an hour of two that it has. The plan that keeps whole nodes has one of them wait for the other.
func TestErrors(t *testing.T) {
	f := run(t, 1, row("fills", 0, 8, 60, 120), row("a", 1, 4, 10, 60), row("b", 2, 4, 10, 60))
	if f.Forecasts != 2 || f.Jobs != 3 || f.Waited != 2 || f.First.Stated != 2 || f.First.Exceeded != 0 {
		t.Fatalf("%+v", f)
	}
	hour := 3600.0
	for i, want := range []struct{ p50, p90 float64 }{{hour, hour}, {hour, hour}, {hour, 2 * hour}, {hour, hour}} {
		e := f.First.Errors[i]
		if !near(e.P50, want.p50) || !near(e.P90, want.p90) || !near(e.Bias, want.p50) || e.N != 2 || e.Late != 0 {
			t.Errorf("%s: %+v, not %+v", e.Of, e.Errors, want)
		}
	}
}

// TestExpected: what a tenant's runs took before is what its next one is expected to take.
func TestExpected(t *testing.T) {
	list := []*trace.Row{row("done", 0, 8, 20, 120), row("fills", 25, 8, 20, 120), row("waits", 26, 8, 20, 120)}
	for _, r := range list {
		r.Tenant = "a"
	}
	f := run(t, 1, list...)
	if late, e := f.First.Errors[0], f.First.Errors[1]; !near(late.P50, 100*60) || e.P50 != 0 || e.N != 1 {
		t.Errorf("%+v %+v", late, e)
	}
}

// TestCommon: what one estimate alone knows of a start is no part of the errors that are compared, neither in all nor by how long it still was until the start.
func TestCommon(t *testing.T) {
	list := []*trace.Row{row("done", 0, 8, 20, 120), row("beside", 0, 8, 40, 120), row("fills", 25, 8, 20, 0), row("waits", 26, 8, 20, 0), row("also", 26, 8, 20, 120)}
	for _, r := range list {
		r.Tenant = "a"
	}
	f := run(t, 2, list...)
	known, lead := int64(0), int64(0)
	for _, e := range f.All.Errors {
		known = max(known, e.N)
		sum := int64(0)
		for _, l := range e.ByLead {
			sum += l.N
		}
		if lead = max(lead, sum); sum != e.Common.N || e.Common.N != f.All.Errors[0].Common.N {
			t.Errorf("%s: %d by the time until the start, %d in common, of another estimate %d", e.Of, sum, e.Common.N, f.All.Errors[0].Common.N)
		}
	}
	if lead == 0 || known == lead {
		t.Errorf("%d starts are known to one, %d to all: this shows nothing", known, lead)
	}
}

// TestCauses: each job that starts later than was forecast at the latest has the job named that has its room.
func TestCauses(t *testing.T) {
	// A job that waits for five minutes reserves room, so that nobody may pass it any more: these come before.
	urgent := row("urgent", 31, 8, 100, 100)
	urgent.Priority = 90
	for _, x := range []struct {
		cause, who string
		nodes      int
		rows       []*trace.Row
	}{
		{trace.CauseArrived, "default/urgent-3.work[0]", 1, []*trace.Row{row("fills", 0, 8, 32, 120), row("waits", 29, 8, 10, 60), urgent}},
		{trace.CauseArrived, "default/waits-2.work[0]: late itself", 1, []*trace.Row{
			row("fills", 0, 8, 32, 120), row("waits", 29, 8, 60, 60), row("last", 29, 8, 10, 60), urgent,
		}},
		{trace.CauseCame, "default/small-4.work[0]", 1, []*trace.Row{
			row("ends", 0, 4, 32, 120), row("stays", 0, 4, 300, 300), row("waits", 29, 8, 10, 60), row("small", 31, 4, 400, 400),
		}},
	} {
		f := run(t, x.nodes, x.rows...)
		if len(f.Late) == 0 || len(f.First.Causes) != 1 || f.First.Causes[0].Cause != x.cause || f.First.Exceeded != int64(len(f.Late)) {
			t.Errorf("%s: %+v", x.cause, f.First)
			continue
		}
		last := f.Late[len(f.Late)-1]
		if !strings.HasPrefix(strings.Join(last.Who, " "), x.who) {
			t.Errorf("%+v: %s is not named", last, x.who)
		}
	}
}

// TestCauseElsewhere: a job that alone may use one node is late as another one, which was to run on the other node, is there: others ended so early that it
// started there first. If that ranks higher it is its right; else it passed in backfill.
func TestCauseElsewhere(t *testing.T) {
	other := nodes(2)
	other[1].NodeResources.Devices[0].Name = "V100"
	other[1].ComputeClass()
	on := func(model string, r *trace.Row) *trace.Row {
		r.Models = []string{model}
		return r
	}
	for _, x := range []struct {
		cause string
		rows  []*trace.Row
	}{
		{trace.CauseElsewhere, []*trace.Row{
			on("P100", row("fills", 0, 8, 120, 120)), on("V100", row("ends", 0, 8, 32, 200)), row("first", 28, 1, 300, 300), on("V100", row("waits", 29, 8, 10, 60)),
		}},
		{trace.CausePassedElsewhere, []*trace.Row{
			on("P100", row("fills", 0, 8, 120, 120)), on("V100", row("ends", 0, 4, 32, 200)), on("V100", row("stays", 0, 4, 200, 200)),
			on("V100", row("waits", 28, 8, 10, 60)), row("passes", 29, 1, 300, 300),
		}},
	} {
		f, err := Run(t.Context(), Config{Nodes: other, Rows: rows(x.rows...), Scheduler: structs.DefaultSchedulerConfiguration(), Every: 30 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Late) != 1 || f.Late[0].Cause != x.cause {
			t.Errorf("%s: %+v, %+v", x.cause, f.First, f.Late)
		}
	}
}

// TestSame: the same trace gives the same bytes.
func TestSame(t *testing.T) {
	var was string
	for range 2 {
		f := run(t, 2, row("a", 0, 8, 60, 120), row("b", 0, 4, 70, 120), row("c", 1, 8, 10, 60), row("d", 2, 8, 10, 60), row("e", 3, 4, 100, 120))
		text, err := json.Marshal(f)
		if err != nil || was != "" && was != string(text) {
			t.Fatalf("%v: %s is not %s", err, text, was)
		}
		was = string(text)
	}
}
