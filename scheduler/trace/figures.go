package trace

import "time"

// Figures are what a replay found. They are the same for the same input; how fast it
// was is in Timing.
type Figures struct {
	Policy string
	Seed   uint64
	Mode   string // "time" or "drop"

	Nodes int
	Has   Amounts
	Span  Span

	Counts Counts
	// Loaded are means from the start to the last arrival, All to the end of all work.
	Loaded Sample
	All    Sample
	// Final is what was in use when the replay ended.
	Final Amounts
	// FinalFragmentation is of what was idle then, in parts of all GPUs.
	FinalFragmentation float64

	Waits    WaitFigures
	BySize   []WaitFigures
	ByTenant []WaitFigures // those with the most GPU hours first

	// Sharing is how tenants shared the nodes, one of the Sharing constants, Tenants what became of what they own, those first who
	// own the most, and AllTenants the sum; empty if nobody owns anything.
	Sharing    string          `json:",omitempty"`
	Tenants    []TenantFigures `json:",omitempty"`
	AllTenants *TenantFigures  `json:",omitempty"`
	// Useful is Loaded.GPU without what had to be done again later.
	Useful float64 `json:",omitempty"`

	// Workflows is what became of workflows; nil: the trace has none.
	Workflows *WorkflowFigures `json:",omitempty"`

	// Forecasts is how right forecasts were that were made during a replay by the parts of a leader; nil: none were.
	Forecasts *ForecastFigures `json:",omitempty"`

	// OverTime is how things stood, in the mode "time".
	OverTime []Sample `json:",omitempty"`
	// Arrived is what was allocated by how much had arrived, in the mode "drop".
	Arrived []Point `json:",omitempty"`
}

// Span is how long the trace and its replay are, in seconds.
type Span struct {
	LastArrival float64
	End         float64 // of the last job that ended
	Stretch     float64 // of a sample of OverTime
}

// Counts are how often what happened.
type Counts struct {
	Jobs       int64 // that arrived
	Instances  int64
	Placed     int64 // jobs of which all instances had a place
	Completed  int64
	CutShort   int64 // jobs ended by their time limit
	Dropped    int64 // mode drop: jobs that did not fit
	Never      int64 // jobs that still waited when nothing was left to happen
	Starts     int64 // of instances
	Requeued   int64 // instances that were taken back and began again
	Suspended  int64
	Resumed    int64
	Decisions  int64
	Reserved   int64 // reservations made
	Arrived    int64 // demand of all jobs, in thousandths of GPUs
	LostGPUHrs float64
}

// Progress is how far a replay is.
type Progress struct {
	Rows    int64
	Waiting int
	At      time.Duration // virtual
}

// figures puts together what was found.
func (r *replay) figures() *Figures {
	for _, s := range r.queue.waiting { // each job has its own place: the order cannot show
		for _, j := range s.requests {
			r.counts.Never++
			if j.whole {
				continue // it was taken back, and found no room again
			}
			for _, w := range r.tally.of(j) {
				w.never++
			}
		}
	}
	r.counts.Never += r.flows.unregistered()
	frag := r.frag.measure(r.ledger, r.census)
	f := &Figures{
		Policy: r.policy, Seed: r.c.Seed, Mode: "time", Nodes: len(r.ledger.Machines), Has: r.ledger.Has,
		Counts: r.counts, Final: r.ledger.Used, OverTime: r.series.samples(r.ledger.Has, frag), Arrived: r.curve.points(),
		Loaded: r.series.until.parts(r.ledger.Has, float64(r.series.last-epoch)),
		All:    r.series.total.parts(r.ledger.Has, float64(r.series.at-epoch)),
		Span: Span{
			LastArrival: seconds(r.series.last), End: seconds(r.series.at), Stretch: float64(r.series.stretch) / 1e9,
		},
	}
	f.Counts.LostGPUHrs = round(r.lost/1000/3600, 6)
	if r.ledger.Has.GPUMilli > 0 {
		f.FinalFragmentation = round(frag/float64(r.ledger.Has.GPUMilli), 6)
	}
	if r.c.Drop { // its time shows only in which order rows came
		f.Mode, f.OverTime, f.Loaded, f.All = "drop", nil, Sample{}, Sample{}
	} else {
		f.Arrived = nil
	}
	f.Waits, f.BySize, f.ByTenant = r.tally.figures()
	f.Workflows = workflowDriver{r}.workflowFigures(f.Loaded)
	if r.tenants != nil {
		f.Sharing = r.tenants.sharing
		f.Tenants, f.AllTenants = r.tenantFigures()
		if has := float64(r.ledger.Has.GPUMilli) * float64(r.series.last-epoch) / 1e9; has > 0 {
			f.Useful = round(f.Loaded.GPU-r.lostUntil/has, 6)
		}
	}
	return f
}

// seconds is a virtual time since the trace's start.
func seconds(at int64) float64 { return round(float64(at-epoch)/1e9, 3) }
