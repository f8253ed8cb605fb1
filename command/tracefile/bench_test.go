package tracefile_test

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/command/tracefile"
	"github.com/nomadish/nomadish/scheduler/trace"
	"github.com/nomadish/nomadish/structs"
)

// tracesEnv names the folder in which the published traces lie (docs/benchmarks.md).
const tracesEnv = "NOMADISH_TRACES"

// BenchmarkOpenB replays the published experiment on the OpenB trace: tasks arrive in the
// published orders until 130 % of the GPUs are asked for. It reports how many GPUs
// are allocated when as much was asked for as there is, and the CPU time of a decision,
// those that fail among them, less what reading the clock costs. Without the trace it reports nothing.
func BenchmarkOpenB(b *testing.B) {
	dir := os.Getenv(tracesEnv)
	if dir == "" {
		b.Skipf("%s names no folder with the OpenB trace", tracesEnv)
	}
	nodes, err := tracefile.OpenNodes(filepath.Join(dir, "openb_node_list_gpu_node.csv"))
	if err != nil {
		b.Fatal(err)
	}
	for _, list := range []string{"default", "gpushare40", "gpuspec10", "multigpu20"} {
		rows, err := tracefile.Open(found(dir, "openb_pod_list_"+list+".csv"), tracefile.Options{
			Format: tracefile.FormatOpenB, GPUsPerNode: tracefile.MostGPUs(nodes), SortRows: tracefile.DefaultSortRows,
		})
		if err != nil {
			b.Fatal(err)
		}
		order, err := tracefile.OpenOrder(found(dir, "arrival_order_"+list+"_seeds42-51.csv"), rows.Len())
		if err != nil {
			b.Fatal(err)
		}
		for _, policy := range []string{structs.PolicyLeastFragmentation, "binpack"} {
			b.Run(list+"/"+policy, func(b *testing.B) {
				b.ReportMetric(100*openB(b, nodes, rows, order, func(c *trace.Config) { c.Scheduler.SetNodeOrder(policy) }), "%-allocated")
			})
		}
		if list == "default" {
			b.Run("published/bestfit", func(b *testing.B) { bestFit(b, dir, nodes, rows, order) })
		}
	}
}

// bestFitPublished is what the published BestFit allocates on the default list, in percent.
const bestFitPublished = 92.86

// bestFit replays the published BestFit: how far it is from what was published says how
// right the replay is.
func bestFit(b *testing.B, dir string, nodes []*structs.Node, rows *tracefile.Trace, order tracefile.Order) {
	ranks, err := tracefile.OpenRanks(found(dir, "node_rank_default_seeds42-51.csv"))
	if err != nil {
		b.Fatal(err)
	}
	allocated := 100 * openB(b, nodes, rows, order, func(c *trace.Config) { c.Chooser = &trace.BestFit{Rank: ranks[c.Seed]} })
	b.ReportMetric(allocated, "%-allocated")
	b.ReportMetric(math.Abs(allocated-bestFitPublished), "points-off")
}

// found is a file as it is, or packed.
func found(dir, name string) string {
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		return path + ".gz"
	}
	return path
}

// openB returns what part of all GPUs is allocated when as much was asked for as there is.
func openB(
	b *testing.B, nodes []*structs.Node, rows *tracefile.Trace, order tracefile.Order, with func(*trace.Config),
) float64 {
	seeds := make([]uint64, 0, len(order))
	for seed := range order {
		seeds = append(seeds, seed)
	}
	slices.Sort(seeds)
	if testing.Short() {
		seeds = seeds[:1]
	}
	defer debug.SetGCPercent(debug.SetGCPercent(200)) // as `sim run` has it
	runtime.LockOSThread()                            // for the clock of this thread
	defer runtime.UnlockOSThread()
	var allocated float64
	var medians []time.Duration
	var took, following time.Duration
	var decisions int64
	n := 0
	for b.Loop() {
		for _, seed := range seeds {
			c := trace.Config{
				Nodes: nodes, Rows: rows.InOrder(order[seed]), Scheduler: structs.DefaultSchedulerConfiguration(),
				Seed: seed, Drop: true, Until: 1.3, Typical: trace.Learn(), Clock: threadTime,
			}
			with(&c)
			figures, timing, err := trace.Run(c)
			if err != nil {
				b.Fatal(err)
			}
			n++
			medians = append(medians, timing.Quantile(0.5))
			allocated += atFull(figures)
			took, following, decisions = took+timing.Deciding, following+timing.Following, decisions+timing.Decisions
		}
	}
	clock := clockCost()
	each := func(total time.Duration) float64 {
		return float64(max(0, total-time.Duration(decisions)*clock).Nanoseconds()) / float64(decisions) / 1000
	}
	b.ReportMetric(each(took), "µs/decision-mean")
	slices.Sort(medians)
	b.ReportMetric(float64(max(0, medians[len(medians)/2]-clock).Nanoseconds())/1000, "µs/decision")
	b.ReportMetric(each(following), "µs/commit")
	b.ReportMetric(0, "ns/op")
	return allocated / float64(n)
}

// atFull is what part of all GPUs is allocated when as much was asked for as there is.
func atFull(f *trace.Figures) float64 {
	for _, p := range f.Arrived {
		if p.Arrived == 100 {
			return p.Allocated
		}
	}
	return 0
}

// clockCost is what reading the clock adds to what is measured, as in the other benchmarks.
func clockCost() time.Duration {
	cost := time.Hour
	for range 1000 {
		start := threadTime()
		cost = min(cost, threadTime()-start)
	}
	return cost
}

// threadTime is the CPU time that this thread has used so far.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}
