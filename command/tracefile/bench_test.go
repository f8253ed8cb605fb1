package tracefile_test

import (
	"fmt"
	"maps"
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

// tracesEnv names the folder in which the published traces lie (docs/design/numbers.md).
const tracesEnv = "NOMADISH_TRACES"

// openBTrace is the published experiment: nodes, the order of those with equal scores, and the arrivals of each
// list.
type openBTrace struct {
	dir   string
	nodes []*structs.Node
	ranks map[uint64]map[string]int
}

// BenchmarkOpenB replays the published experiment on the OpenB trace: tasks arrive in the
// published orders until 130 % of the GPUs are asked for. It reports how many GPUs
// are allocated when as much was asked for as there is, and the CPU time of a decision,
// those that fail among them, less what reading the clock costs. Without the trace it reports nothing.
func BenchmarkOpenB(b *testing.B) {
	dir := os.Getenv(tracesEnv)
	if dir == "" {
		b.Skipf("%s names no folder with the OpenB trace", tracesEnv)
	}
	t := &openBTrace{dir: dir}
	var err error
	if t.nodes, err = tracefile.OpenNodes(filepath.Join(dir, "openb_node_list_gpu_node.csv")); err == nil {
		t.ranks, err = tracefile.OpenRanks(found(dir, "node_rank_default_seeds42-51.csv"))
	}
	if err != nil {
		b.Fatal(err)
	}
	for _, list := range []string{"default", "gpushare40", "gpuspec10", "multigpu20"} {
		rows, order := t.open(b, list)
		arrivals := func(seed uint64) []*trace.Row { return inOrder(rows, order[seed]) }
		for _, policy := range []string{structs.PolicyLeastFragmentation, "binpack"} {
			b.Run(list+"/"+policy, func(b *testing.B) {
				b.ReportMetric(100*openB(b, t.nodes, seedsOf(order), arrivals, func(c *trace.Config) { c.Scheduler.SetNodeOrder(policy) }), "%-allocated")
			})
		}
		switch list {
		case "default":
			b.Run("published/bestfit", func(b *testing.B) { t.bestFit(b, seedsOf(order), arrivals) })
			b.Run("published/fgd", func(b *testing.B) { t.fgd(b, seedsOf(order), rows, arrivals) })
		case "gpuspec10":
			for _, percent := range []int{20, 25, 33} {
				b.Run(fmt.Sprintf("naming-%d/%s", percent, structs.PolicyLeastFragmentation), func(b *testing.B) { t.naming(b, rows, order, percent) })
			}
		}
	}
}

// open reads a list and its arrival orders.
func (t *openBTrace) open(b *testing.B, list string) ([]*trace.Row, tracefile.Order) {
	read, err := tracefile.Open(found(t.dir, "openb_pod_list_"+list+".csv"), tracefile.Options{
		Format: tracefile.FormatOpenB, GPUsPerNode: tracefile.MostGPUs(t.nodes), SortRows: tracefile.DefaultSortRows,
	})
	if err != nil {
		b.Fatal(err)
	}
	order, err := tracefile.OpenOrder(found(t.dir, "arrival_order_"+list+"_seeds42-51.csv"), read.Len())
	if err != nil {
		b.Fatal(err)
	}
	rows := make([]*trace.Row, read.Len())
	for i := range rows {
		rows[i] = read.At(i)
	}
	return rows, order
}

// seedsOf are the seeds of arrival orders; only the first for a short run.
func seedsOf(order tracefile.Order) []uint64 {
	seeds := slices.Sorted(maps.Keys(order))
	if testing.Short() {
		return seeds[:1]
	}
	return seeds
}

// naming compares the policy with the published method where so many percent of the tasks with GPUs name models: a list
// for each order of arrivals, of the tasks of a list in which some do.
func (t *openBTrace) naming(b *testing.B, rows []*trace.Row, order tracefile.Order, percent int) {
	lists := map[uint64][]*trace.Row{}
	published := 0.0
	seeds := seedsOf(order)
	for _, seed := range seeds {
		lists[seed] = namingModels(rows, percent, seed)
		published += 100 * newFGD(t.nodes, t.ranks[seed], lists[seed]).run(inOrder(lists[seed], order[seed]), 1.3).atFull
	}
	allocated := 100 * openB(b, t.nodes, seeds, func(seed uint64) []*trace.Row { return inOrder(lists[seed], order[seed]) },
		func(c *trace.Config) { c.Scheduler.SetNodeOrder(structs.PolicyLeastFragmentation) })
	b.ReportMetric(allocated, "%-allocated")
	b.ReportMetric(published/float64(len(seeds)), "%-by-fgd")
	b.ReportMetric(allocated-published/float64(len(seeds)), "points-above-fgd")
}

// What the published BestFit and FGD allocate on the default list, in percent.
const (
	bestFitPublished = 92.86
	fgdPublished     = 95.23
)

// bestFit replays the published BestFit: how far it is from what was published says how
// right the replay is.
func (t *openBTrace) bestFit(b *testing.B, seeds []uint64, arrivals func(seed uint64) []*trace.Row) {
	allocated := 100 * openB(b, t.nodes, seeds, arrivals, func(c *trace.Config) { c.Chooser = &trace.BestFit{Rank: t.ranks[c.Seed]} })
	b.ReportMetric(allocated, "%-allocated")
	b.ReportMetric(math.Abs(allocated-bestFitPublished), "points-off")
}

// fgd replays the published FGD as the tests have it: how far it is from what was published says how right it is.
func (t *openBTrace) fgd(b *testing.B, seeds []uint64, rows []*trace.Row, arrivals func(seed uint64) []*trace.Row) {
	allocated := 0.0
	for b.Loop() {
		allocated = 0
		for _, seed := range seeds {
			allocated += 100 * newFGD(t.nodes, t.ranks[seed], rows).run(arrivals(seed), 1.3).atFull / float64(len(seeds))
		}
	}
	b.ReportMetric(allocated, "%-allocated")
	b.ReportMetric(math.Abs(allocated-fgdPublished), "points-off")
	b.ReportMetric(0, "ns/op")
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
	b *testing.B, nodes []*structs.Node, seeds []uint64, arrivals func(seed uint64) []*trace.Row, with func(*trace.Config),
) float64 {
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
				Nodes: nodes, Rows: oneByOne(arrivals(seed)), Scheduler: structs.DefaultSchedulerConfiguration(),
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
