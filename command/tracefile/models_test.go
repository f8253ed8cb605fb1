package tracefile_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler/trace"
	"github.com/nomadish/nomadish/structs"
)

// namingModels is a list as long as another, resampled from it: each task is drawn, with replacement, from the
// tasks of the other that take GPUs and name models, from those that take GPUs and name none, or from those that take
// none, so that so many percent of the tasks with GPUs name models, and tasks without GPUs are as many as they were.
func namingModels(rows []*trace.Row, percent int, seed uint64) []*trace.Row {
	var plain, naming, free []*trace.Row
	for _, r := range rows {
		switch {
		case r.GPUs == 0:
			plain = append(plain, r)
		case len(r.Models) > 0:
			naming = append(naming, r)
		default:
			free = append(free, r)
		}
	}
	draw := rand.New(rand.NewPCG(seed, uint64(percent))) // the same list each time
	out := make([]*trace.Row, 0, len(rows))
	add := func(n int, from []*trace.Row) {
		for range n {
			out = append(out, from[draw.IntN(len(from))])
		}
	}
	gpus := len(naming) + len(free)
	want := (gpus*percent + 50) / 100
	add(len(plain), plain)
	add(want, naming)
	add(gpus-want, free)
	draw.Shuffle(len(out), func(i, k int) { out[i], out[k] = out[k], out[i] })
	return out
}

// inOrder returns rows in an order of arrival, a second apart; nobody leaves.
func inOrder(rows []*trace.Row, order []int32) []*trace.Row {
	out := make([]*trace.Row, len(order))
	for pos, at := range order {
		row := *rows[at]
		row.Arrival, row.Duration = time.Duration(pos)*time.Second, trace.Forever
		out[pos] = &row
	}
	return out
}

func oneByOne(rows []*trace.Row) iter.Seq2[*trace.Row, error] {
	return func(yield func(*trace.Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// smallCluster is a common model, and a scarce one whose nodes have little CPU.
func smallCluster() (nodes []*structs.Node) {
	add := func(n int, model string, gpus, cpu int) {
		for range n {
			name := fmt.Sprintf("n%03d", len(nodes))
			d := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: model}
			for g := range gpus {
				d.Instances = append(d.Instances, &structs.NodeDevice{ID: fmt.Sprint(name, "-", g), Healthy: true})
			}
			node := &structs.Node{
				ID: name, Name: name, Datacenter: "dc1", NodePool: structs.NodePoolDefault, Status: structs.NodeStatusReady,
				SchedulingEligibility: structs.NodeEligible, Drivers: map[string]*structs.DriverInfo{trace.DriverName: {Detected: true, Healthy: true}},
				NodeResources: &structs.NodeResources{
					Cpu: structs.NodeCpuResources{CpuShares: int64(cpu)}, Memory: structs.NodeMemoryResources{MemoryMB: 400_000},
					Devices: []*structs.NodeDeviceResource{d},
				},
			}
			node.ComputeClass()
			nodes = append(nodes, node)
		}
	}
	add(40, "common", 8, 96_000)
	add(25, "scarce", 2, 20_000)
	return nodes
}

// smallTasks is tasks of which a part names the scarce model, twice as many as there is room for.
func smallTasks(percent int, seed uint64) (rows []*trace.Row) {
	draw := rand.New(rand.NewPCG(seed, 0)) // the same tasks each time
	for i := range 1200 {
		r := &trace.Row{Name: fmt.Sprint("t", i), Arrival: time.Duration(i) * time.Second, Duration: trace.Forever, Count: 1, GPUs: 1, MemoryMB: 8192}
		r.CPU = []int{3000, 6000, 9000, 12_000}[draw.IntN(4)]
		switch k := draw.IntN(10); {
		case k < 4:
			r.Share = []int{250, 460, 500, 810}[draw.IntN(4)]
		case k == 9:
			r.GPUs, r.CPU = 8, 64_000
		}
		if r.GPUs == 1 && draw.IntN(100) < percent {
			r.Models = []string{"scarce"}
			r.CPU = min(r.CPU, 9000)
		}
		rows = append(rows, r)
	}
	return rows
}

// Where tasks name a scarce model, the policy allocates more than the published method on the same arrivals, and
// where none does as much: a small sample of what BenchmarkOpenB measures.
func TestScarceModelsAgainstThePublishedMethod(t *testing.T) {
	nodes := smallCluster()
	f := func(percent int, least float64) {
		t.Helper()
		ours, published := 0.0, 0.0
		const runs = 4
		for seed := range uint64(runs) {
			rows := smallTasks(percent, seed)
			published += 100 * newFGD(nodes, nil, rows).run(rows, 1.1).atFull / runs
			c := trace.Config{
				Nodes: nodes, Rows: oneByOne(rows), Scheduler: structs.DefaultSchedulerConfiguration(), Drop: true, Until: 1.1, Typical: trace.Learn(),
			}
			c.Scheduler.SetNodeOrder(structs.PolicyLeastFragmentation)
			figures, _, err := trace.Run(c)
			if err != nil {
				t.Fatal(err)
			}
			ours += 100 * atFull(figures) / runs
		}
		if ours-published < least {
			t.Errorf("%d %% of the tasks name a model: %.2f %% are allocated, want %.1f points above the published method's %.2f", percent, ours, least, published)
		}
	}
	f(0, 0)
	f(10, 0)
	f(20, 1)
	f(30, 4)
}
