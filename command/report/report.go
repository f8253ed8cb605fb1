package report

import (
	"math"
	"slices"

	"github.com/nomadish/nomadish/scheduler/trace"
)

// Report is all that is written of a number of replays.
type Report struct {
	Trace  string // the file's name, without its folder
	Nodes  string
	Format string
	// Notes state what was chosen and assumed.
	Notes []string
	Runs  []*trace.Figures
	// Policies sum up the runs of each, in the order in which policies were named.
	Policies []Policy
}

// Policy sums up the runs of one policy: means over its seeds.
type Policy struct {
	Policy string
	Seeds  int
	// GPU and CPU are what was held from the start to the last arrival, in parts of all.
	GPU Mean
	CPU Mean
	// AtFull is what was allocated when the demand that had arrived was 100 % of all GPUs;
	// only where nobody leaves.
	AtFull        *Mean `json:",omitempty"`
	Final         Mean  // GPUs held in the end, in parts of all
	Fragmentation Mean  // in the end where nobody leaves, else over time
	WaitMean      Mean  // seconds
	WaitP95       Mean  // seconds
	Placed        Mean  // jobs
	Dropped       Mean  // jobs
	Never         Mean  // jobs
	Requeued      Mean  // instances
	Suspended     Mean  // instances
	Redone        Mean  // GPU hours that requeued instances had held, and were to do again
	End           Mean  // seconds: when the last job ended
	// Sharing is nil if nobody owns anything.
	Sharing *Sharing `json:",omitempty"`
	// Workflows is nil if there are none.
	Workflows *Workflows `json:",omitempty"`
}

// Mean is a mean over seeds and its standard deviation (of a sample; 0 for one seed).
type Mean struct{ Mean, SD float64 }

func newMean(values []float64) Mean {
	if len(values) == 0 {
		return Mean{}
	}
	sum, sq := 0.0, 0.0
	for _, v := range values {
		sum += v
	}
	mean := sum / float64(len(values))
	for _, v := range values {
		sq += (v - mean) * (v - mean)
	}
	sd := 0.0
	if len(values) > 1 {
		sd = math.Sqrt(sq / float64(len(values)-1))
	}
	return Mean{cut(mean), cut(sd)}
}

// cut leaves six digits behind the point.
func cut(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// New sums up runs.
func New(runs []*trace.Figures) *Report {
	r := &Report{Runs: runs}
	var names []string
	for _, f := range runs {
		if !slices.Contains(names, f.Policy) {
			names = append(names, f.Policy)
		}
	}
	for _, name := range names {
		of := slices.DeleteFunc(slices.Clone(runs), func(f *trace.Figures) bool { return f.Policy != name })
		r.Policies = append(r.Policies, sumUp(name, of))
	}
	return r
}

func sumUp(name string, runs []*trace.Figures) Policy {
	over := func(get func(f *trace.Figures) float64) Mean {
		values := make([]float64, len(runs))
		for i, f := range runs {
			values[i] = get(f)
		}
		return newMean(values)
	}
	p := Policy{
		Policy: name, Seeds: len(runs),
		GPU: over(func(f *trace.Figures) float64 { return f.Loaded.GPU }), CPU: over(func(f *trace.Figures) float64 { return f.Loaded.CPU }),
		Final:         over(func(f *trace.Figures) float64 { return part(f.Final.GPUMilli, f.Has.GPUMilli) }),
		Fragmentation: over(fragmentation),
		WaitMean:      over(func(f *trace.Figures) float64 { return f.Waits.Mean }), WaitP95: over(func(f *trace.Figures) float64 { return f.Waits.P95 }),
		Placed: over(func(f *trace.Figures) float64 { return float64(f.Counts.Placed) }), Dropped: over(func(f *trace.Figures) float64 { return float64(f.Counts.Dropped) }),
		Never:     over(func(f *trace.Figures) float64 { return float64(f.Counts.Never) }),
		Requeued:  over(func(f *trace.Figures) float64 { return float64(f.Counts.Requeued) }),
		Suspended: over(func(f *trace.Figures) float64 { return float64(f.Counts.Suspended) }),
		Redone:    over(func(f *trace.Figures) float64 { return f.Counts.LostGPUHrs }),
		End:       over(func(f *trace.Figures) float64 { return f.Span.End }),
	}
	p.Sharing = sumUpSharing(runs, over)
	p.Workflows = sumUpWorkflows(runs, over)
	var full []float64
	for _, f := range runs {
		at := slices.IndexFunc(f.Arrived, func(p trace.Point) bool { return p.Arrived == fullDemand })
		if drops(f) && at >= 0 {
			full = append(full, f.Arrived[at].Allocated)
		}
	}
	if len(full) > 0 {
		m := newMean(full)
		p.AtFull = &m
	}
	return p
}

// fullDemand is the percent of arrived demand at which policies are compared.
const fullDemand = 100

// drops reports whether nobody left in a run.
func drops(f *trace.Figures) bool { return f.Mode == "drop" }

// fragmentation is that of the end where nobody leaves, else the mean over time.
func fragmentation(f *trace.Figures) float64 {
	if drops(f) || len(f.OverTime) == 0 {
		return f.FinalFragmentation
	}
	sum := 0.0
	for i := range f.OverTime {
		sum += f.OverTime[i].Fragmentation
	}
	return sum / float64(len(f.OverTime))
}

func part(v, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(v) / float64(of)
}
