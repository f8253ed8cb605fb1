package report

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/trace"
)

// Workflows sums up how workflows ran, and single jobs beside them: means over the seeds of a policy.
type Workflows struct {
	Reservations string
	// UsefulCPU and UsefulGPU are what was used without what had to be done again, from the start to the last arrival, in parts of all.
	UsefulCPU Mean
	UsefulGPU Mean
	// StageWait and StageWaitMax are the median and the longest time from the end of a stage until all jobs of the next one ran, Start is from a
	// workflow's arrival until all jobs of its first stage ran, Makespan until its end. Seconds.
	StageWait    Mean
	StageWaitMax Mean
	Start        Mean
	Makespan     Mean
	SingleMean   Mean
	SingleP95    Mean
	// Used, Lent and Idle are parts of what was reserved: of GPUs, or of processors where there are no GPUs.
	Used, Lent, Idle Mean
	TakenBack        Mean // instances
	Never            Mean // workflows that did not end
}

// hasWorkflows reports whether a run was of workflows.
func hasWorkflows(f *trace.Figures) bool { return f.Workflows != nil }

// reservedHours returns how the reservations of a run were used: of GPUs, or of processors where there are no GPUs.
func reservedHours(f *trace.Figures) trace.ReservedHours {
	if f.Has.GPUMilli > 0 {
		return f.Workflows.GPU
	}
	return f.Workflows.CPU
}

func sumUpWorkflows(runs []*trace.Figures, over func(get func(f *trace.Figures) float64) Mean) *Workflows {
	if !hasWorkflows(runs[0]) {
		return nil
	}
	share := func(get func(h trace.ReservedHours) float64) Mean {
		return over(func(f *trace.Figures) float64 {
			h := reservedHours(f)
			if h.Reserved == 0 {
				return 0
			}
			return get(h) / h.Reserved
		})
	}
	return &Workflows{
		Reservations: runs[0].Workflows.Reservations,
		UsefulCPU:    over(func(f *trace.Figures) float64 { return f.Workflows.UsefulCPU }),
		UsefulGPU:    over(func(f *trace.Figures) float64 { return f.Workflows.UsefulGPU }),
		StageWait:    over(func(f *trace.Figures) float64 { return f.Workflows.StageWaits.P50 }),
		StageWaitMax: over(func(f *trace.Figures) float64 { return f.Workflows.StageWaits.Max }),
		Start:        over(func(f *trace.Figures) float64 { return f.Workflows.Start.Mean }),
		Makespan:     over(func(f *trace.Figures) float64 { return f.Workflows.Makespan.Mean }),
		SingleMean:   over(func(f *trace.Figures) float64 { return f.Workflows.Singles.Mean }),
		SingleP95:    over(func(f *trace.Figures) float64 { return f.Workflows.Singles.P95 }),
		Used:         share(func(h trace.ReservedHours) float64 { return h.Used }),
		Lent:         share(func(h trace.ReservedHours) float64 { return h.Lent }),
		Idle:         share(func(h trace.ReservedHours) float64 { return h.Idle }),
		TakenBack:    over(func(f *trace.Figures) float64 { return float64(f.Workflows.TakenBack) }),
		Never:        over(func(f *trace.Figures) float64 { return float64(f.Workflows.Never) }),
	}
}

// resource names what utilisation is measured by, and returns what a policy used of it.
func (r *Report) resource() (name string, used func(p *Policy) (all, useful Mean)) {
	if r.Runs[0].Has.GPUMilli > 0 {
		return "GPUs", func(p *Policy) (all, useful Mean) { return p.GPU, p.Workflows.UsefulGPU }
	}
	return "CPU", func(p *Policy) (all, useful Mean) { return p.CPU, p.Workflows.UsefulCPU }
}

// base returns the policy without reservations that the others are compared with; nil: there is none, or several.
func (r *Report) base() (base *Policy) {
	for i := range r.Policies {
		if w := r.Policies[i].Workflows; w != nil && w.Reservations == trace.ReservationsNone {
			if base != nil {
				return nil
			}
			base = &r.Policies[i]
		}
	}
	return base
}

// WorkflowRows are the table of workflows with its head; nil: there are none.
func (r *Report) WorkflowRows() [][]string {
	if !hasWorkflows(r.Runs[0]) {
		return nil
	}
	name, used := r.resource()
	base := r.base()
	head := []string{"Workflows", name + " in use"}
	if base != nil {
		head = append(head, "of no reservation")
	}
	head = append(head, "useful", "stage wait, p50", "stage wait, max", "wait for start", "arrival to end", "single wait, mean", "single wait, p95",
		"reserved: used", "lent", "idle", "taken back", "not ended")
	rows := [][]string{head}
	for i := range r.Policies {
		p := &r.Policies[i]
		w := p.Workflows
		all, useful := used(p)
		row := []string{p.Policy, spread(all, 100, " %")}
		if base != nil {
			than, _ := used(base)
			row = append(row, percent(all.Mean/max(than.Mean, 1e-9)))
		}
		row = append(row, spread(useful, 100, " %"), span(w.StageWait.Mean), span(w.StageWaitMax.Mean), span(w.Start.Mean), span(w.Makespan.Mean),
			span(w.SingleMean.Mean), span(w.SingleP95.Mean))
		if w.Reservations == trace.ReservationsNone {
			row = append(row, "–", "–", "–", "–")
		} else {
			row = append(row, percent(w.Used.Mean), percent(w.Lent.Mean), percent(w.Idle.Mean), spread(w.TakenBack, 1, ""))
		}
		rows = append(rows, append(row, spread(w.Never, 1, "")))
	}
	return rows
}

// WorkflowMeanings explain the table of workflows.
func (r *Report) WorkflowMeanings() []string {
	name, _ := r.resource()
	lines := []string{
		name + " in use: as above; of no reservation: in parts of what is in use where workflows reserve nothing; useful: without what was to be done again.",
		"stage wait: from the end of a stage until all jobs of the next one run; wait for start: from a workflow's arrival until all jobs of its first stage run, " +
			"mean; arrival to end: of workflows, mean.",
		"single wait: of jobs of no workflow, from arrival until all instances had a place for the first time.",
		"reserved: what workflows had reserved of " + name + ", over all times: used by themselves, lent, idle; taken back: instances that left for a stage.",
	}
	if r.base() == nil {
		lines[0] = name + " in use: as above; useful: without what was to be done again."
	}
	return lines
}

// workflowPlots show how workflows waited, and how what they reserved was used.
func (v *view) workflowPlots() {
	r := v.Report
	if !hasWorkflows(r.Runs[0]) {
		return
	}
	v.Plots = append(v.Plots,
		plotView{
			Title: "Reserved and idle over time", Text: "What workflows had reserved and nobody used, in parts of all.",
			SVG:    svg(r.overTime("Reserved and idle over time", "idle", percent, 0, func(s *trace.Sample) float64 { return s.Idle })),
			Legend: true,
		},
		plotView{
			Title: "Use of reservations", Text: "What became of what workflows had reserved, over all times.",
			Keys: []legend{{"h0", "used by the workflow"}, {"h3", "lent"}, {"h7", "idle"}},
			SVG:  svg(r.reservationBars()),
		},
		plotView{
			Title: "Waits of stages, workflows and single jobs",
			Text:  "Stages: from the end of the one before. Start of workflows: from arrival until the first stage runs.",
			SVG: svg(r.waitBars("Waits of stages, workflows and single jobs", func(f *trace.Figures) []trace.WaitFigures {
				return []trace.WaitFigures{f.Workflows.StageWaits, f.Workflows.Start, f.Workflows.Singles}
			})),
			Heat: true,
		})
	v.workflowTable()
}

// reservationBars draws what became of reservations, a bar for each policy.
func (r *Report) reservationBars() string {
	var list []bar
	for i := range r.Policies {
		w := r.Policies[i].Workflows
		if w.Reservations == trace.ReservationsNone {
			continue
		}
		// The colours are those of the scale of waits: its first, fourth and eighth.
		parts := []float64{w.Used.Mean, 0, 0, w.Lent.Mean, 0, 0, 0, w.Idle.Mean}
		list = append(list, bar{name: r.Policies[i].Policy, parts: parts, note: "idle " + percent(w.Idle.Mean)})
	}
	return bars("Use of reservations", []string{"used", "", "", "lent", "", "", "", "idle"}, list)
}

// workflowTable lists the times of each policy's first run.
func (v *view) workflowTable() {
	t := tableView{Title: "Workflows", Head: []string{"", "policy", "count", "mean", "p50", "p95", "p99", "max"}}
	for _, p := range v.Policies {
		at := slices.IndexFunc(v.Runs, func(f *trace.Figures) bool { return f.Policy == p.Policy })
		for _, w := range times(v.Runs[at].Workflows) {
			t.Rows = append(t.Rows, []string{w.Of, p.Policy, count(float64(w.Jobs)), span(w.Mean), span(w.P50), span(w.P95), span(w.P99), span(w.Max)})
		}
	}
	v.Tables = append(v.Tables, t)
}

// times are all times that are measured of workflows.
func times(w *trace.WorkflowFigures) []trace.WaitFigures {
	return []trace.WaitFigures{w.StageWaits, w.Start, w.Running, w.Makespan, w.Singles}
}

// workflows writes what became of workflows.
func (c *lines) workflows(f *trace.Figures) {
	w := f.Workflows
	if w == nil {
		return
	}
	for _, n := range []struct {
		name  string
		value float64
	}{
		{"workflows", float64(w.Workflows)}, {"stages", float64(w.Stages)}, {"completed", float64(w.Completed)}, {"never ended", float64(w.Never)},
		{"taken back", float64(w.TakenBack)}, {"lost cpu hours", w.LostCPUHours}, {"useful cpu", w.UsefulCPU}, {"useful gpu", w.UsefulGPU},
	} {
		c.put("workflows", "", n.name, n.value)
	}
	for _, h := range []struct {
		of string
		is trace.ReservedHours
	}{{"cpu", w.CPU}, {"gpu", w.GPU}} {
		c.put("reserved hours", h.of, "reserved", h.is.Reserved)
		c.put("reserved hours", h.of, "used", h.is.Used)
		c.put("reserved hours", h.of, "lent", h.is.Lent)
		c.put("reserved hours", h.of, "idle", h.is.Idle)
	}
	for _, t := range times(w) {
		c.waits("workflow times", &t)
	}
	for i := range f.OverTime {
		s := &f.OverTime[i]
		c.put("over time", number(s.From), "reserved", s.Reserved)
		c.put("over time", number(s.From), "lent", s.Lent)
		c.put("over time", number(s.From), "reserved and idle", s.Idle)
	}
}
