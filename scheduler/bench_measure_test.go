package scheduler_test

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// benchJob is one group "g" of one mock task: 500 MHz, 256 MiB, 10 MiB of disk.
func benchJob(kind string, count int, change ...func(*structs.Job)) *structs.Job {
	j := &structs.Job{
		ID: "j", Type: kind, Priority: 50, CreateIndex: 1,
		TaskGroups: []*structs.TaskGroup{{
			Name: "g", Count: count, EphemeralDisk: &structs.EphemeralDisk{SizeMB: 10},
			Tasks: []*structs.Task{{
				Name: "t", Driver: "mock_driver", Config: map[string]any{"run_for": "1s"},
				Resources: &structs.Resources{CPU: 500, MemoryMB: 256},
			}},
		}},
	}
	for _, f := range change {
		f(j)
	}
	j.Canonicalize()
	return j
}

// volume sets what each instance asks for.
func volume(cpu, memoryMB int) func(*structs.Job) {
	return func(j *structs.Job) {
		r := j.TaskGroups[0].Tasks[0].Resources
		r.CPU, r.MemoryMB = cpu, memoryMB
	}
}

// gpus asks for GPUs; level, if not empty, is the level that they must share.
func gpus(count int, level string) func(*structs.Job) {
	return func(j *structs.Job) {
		d := &structs.RequestedDevice{Name: "nvidia/gpu", Count: count}
		if level != "" {
			d.Topology = &structs.TopologyConstraint{Level: level, Required: true}
		}
		j.TaskGroups[0].Tasks[0].Resources.Devices = []*structs.RequestedDevice{d}
	}
}

// anyNumber of instances may be placed.
const anyNumber = -1

// decision is an evaluation of a new job, to be decided again and again.
type decision struct {
	job    *structs.Job
	config structs.SchedulerConfiguration
	want   int // instances that must be placed, or anyNumber
	// typical is what the policy least-fragmentation goes by.
	typical *scheduler.Typical
	ids     uint64
}

func newDecision(j *structs.Job, want int) *decision {
	return &decision{job: j, config: structs.DefaultSchedulerConfiguration(), want: want}
}

// on decides on a World and gives how long that took.
func (d *decision) on(tb testing.TB, w *scheduler.World) (*structs.Plan, time.Duration) {
	d.ids++
	ev := &structs.Evaluation{
		ID: structs.DeriveID("eval", d.ids), Namespace: cmp.Or(d.job.Namespace, "default"), Priority: 50, JobID: d.job.ID, Type: d.job.Type,
		Status: structs.EvalStatusPending, TriggeredBy: structs.EvalTriggerJobRegister,
	}
	minted := uint64(0)
	in := scheduler.Input{
		Job: d.job, Config: d.config, Now: time.Unix(1_700_000_000, 0), Seed: d.ids, SnapshotIndex: 1, Typical: d.typical,
		NewID: func() string { minted++; return structs.DeriveID(ev.ID, minted) },
	}
	stop := stopwatch()
	plan, err := scheduler.Schedule(w, ev, in)
	took := stop()
	if err != nil {
		tb.Fatal(err)
	}
	if n := countPlaced(plan); n != d.want && d.want != anyNumber {
		tb.Fatalf("%d instances are placed, want %d", n, d.want)
	}
	return plan, took
}

// verify decides once, and fails if what is decided is wrong.
func (d *decision) verify(tb testing.TB, w *scheduler.World) {
	plan, _ := d.on(tb, w)
	if err := checkPlan(w, d.job, d.config.Levels, plan); err != nil {
		tb.Fatal(err)
	}
}

// commit returns the World with what the plan places.
func commit(tb testing.TB, w *scheduler.World, plan *structs.Plan) *scheduler.World {
	e := w.Edit()
	if _, refused, why := scheduler.Judge(e, plan); len(refused) > 0 {
		tb.Fatalf("the World that the plan was made on refuses it: %s", why)
	}
	return e.World()
}

func countPlaced(p *structs.Plan) (n int) {
	for _, b := range p.Place {
		n += len(b.Instances)
	}
	return n
}

// stopwatch starts one on this thread. What it gives when it is stopped is CPU time,
// less what reading the clock costs.
func stopwatch() func() time.Duration {
	runtime.LockOSThread()
	start := threadTime()
	return func() time.Duration {
		defer runtime.UnlockOSThread()
		return max(0, threadTime()-start-clockCost)
	}
}

// clockCost is what reading the clock adds to what is measured.
var clockCost = func() time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var costs []time.Duration
	for range 1001 {
		costs = append(costs, -threadTime()+threadTime())
	}
	return median(costs)
}()

// round decides the same job several times, each on what the one before left, and
// gives the time of the decisions alone.
func (d *decision) round(tb testing.TB, w *scheduler.World, times int) (sum time.Duration) {
	for range times {
		plan, took := d.on(tb, w)
		sum += took
		if times > 1 {
			w = commit(tb, w, plan)
		}
	}
	return sum
}

// measure reports the median cost of a round, per instance and in microseconds,
// and the mean of its heap allocations.
func (d *decision) measure(b *testing.B, w *scheduler.World, times int, unit string, per int) {
	b.Helper()
	d.verify(b, w)
	var took []time.Duration
	b.ResetTimer()
	for b.Loop() {
		took = append(took, d.round(b, w, times))
	}
	b.ReportMetric(micros(median(took))/float64(times*per), "µs/"+unit)
	d.reportAllocs(b, w, unit, per)
}

// reportAllocs counts apart from the clock: a decision that is not committed.
func (d *decision) reportAllocs(b *testing.B, w *scheduler.World, unit string, per int) {
	const runs = 3
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		d.on(b, w)
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(runs*per), "allocs/"+unit)
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(runs*per), "B/"+unit)
	b.ReportMetric(0, "ns/op") // of the loop with what is not measured: it would only mislead
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// median of a list, which it sorts.
func median[T time.Duration | float64](list []T) T {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// sizes returns the numbers of nodes to measure; -short means the smallest world only.
func sizes(of ...int) []int {
	if testing.Short() {
		return []int{1000}
	}
	return of
}

// bench runs the benchmark of a decision in a world, which is built when it is
// needed, outside the measurement.
func bench(b *testing.B, name string, d *decision, s worldSpec) {
	b.Run(fmt.Sprintf("%s/%s", name, s), func(b *testing.B) {
		d.measure(b, worlds.get(s), 1, "placement", d.want)
	})
}
