package report

import (
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/scheduler/trace"
)

// Sharing sums up how tenants fared who own something: means over the seeds of a policy.
type Sharing struct {
	// Useful is what was used of all GPUs, without what had to be done again, Guaranteed what was used by right; from the start to the last
	// arrival, in parts of all.
	Useful     Mean
	Guaranteed Mean
	// LossJobs waited although what their tenants own would have held them beside these tenants' own work, for so many LossGPUHours;
	// LossAlone is what they are beside clusters of the tenants' own.
	LossJobs     Mean
	LossGPUHours Mean
	LossAlone    Mean
}

// shares reports whether tenants own something in a run.
func shares(f *trace.Figures) bool { return f.AllTenants != nil }

func sumUpSharing(runs []*trace.Figures, over func(get func(f *trace.Figures) float64) Mean) *Sharing {
	if !shares(runs[0]) {
		return nil
	}
	return &Sharing{
		Useful:       over(func(f *trace.Figures) float64 { return f.Useful }),
		Guaranteed:   over(func(f *trace.Figures) float64 { return f.Loaded.Guaranteed }),
		LossJobs:     over(func(f *trace.Figures) float64 { return float64(f.AllTenants.LossJobs) }),
		LossGPUHours: over(func(f *trace.Figures) float64 { return f.AllTenants.LossGPUHours }),
		LossAlone:    over(func(f *trace.Figures) float64 { return f.AllTenants.LossAloneGPUHours }),
	}
}

// sharingColumns are the heads of the columns of sharing, and sharingMeanings say what they are.
var (
	sharingColumns  = []string{"useful GPUs", "guaranteed", "sharing loss, jobs", "sharing loss, GPU h"}
	sharingMeanings = []string{
		"useful GPUs: GPUs in use, without what had to be done again; guaranteed: what was used by right of what tenants own.",
		"sharing loss: jobs that waited although what their tenant owns would have held them beside the tenant's own work, and the GPUs that " +
			"they waited for times how long.",
	}
)

func (s *Sharing) cells() []string {
	return []string{spread(s.Useful, 100, " %"), spread(s.Guaranteed, 100, " %"), spread(s.LossJobs, 1, ""), spread(s.LossGPUHours, 1, "")}
}

// sharingPlots show what tenants own, use and lose.
func (v *view) sharingPlots() {
	r := v.Report
	if !shares(r.Runs[0]) {
		return
	}
	v.Plots = append(v.Plots,
		plotView{
			Title: "Sharing loss over time", Text: "GPUs that jobs waited for although what their tenants own would have held them, in parts of all.",
			SVG:    svg(r.overTime("Sharing loss over time", "waited for", percent, 0, func(s *trace.Sample) float64 { return s.LossGPU })),
			Legend: true,
		},
		plotView{
			Title: "Guaranteed use over time", Text: "GPUs that are used by right of what tenants own, in parts of all; the rest is lent, or beyond it.",
			SVG:    svg(r.overTime("Guaranteed use over time", "guaranteed", percent, 1, func(s *trace.Sample) float64 { return s.Guaranteed })),
			Legend: true,
		},
		plotView{
			Title: "Sharing loss by tenant", Text: fmt.Sprintf("GPU hours; the %d who own the most.", mostBars),
			SVG: svg(r.tenantBars("Sharing loss by tenant", []string{"sharing loss"}, func(t *trace.TenantFigures) []float64 {
				return []float64{t.LossGPUHours}
			}, func(t *trace.TenantFigures) string {
				return fmt.Sprintf("%s jobs, %s GPU h", count(float64(t.LossJobs)), count(t.LossGPUHours))
			})),
		},
		plotView{
			Title: "Use by tenant", Text: fmt.Sprintf("GPU hours that were used by right, and beyond it; the %d who own the most.", mostBars),
			Keys: []legend{{"h0", "guaranteed"}, {"h1", "opportunistic"}},
			SVG: svg(r.tenantBars("Use by tenant", []string{"guaranteed", "opportunistic"}, func(t *trace.TenantFigures) []float64 {
				return []float64{t.GuaranteedGPUHours, t.OpportunisticGPUHours}
			}, func(t *trace.TenantFigures) string {
				return fmt.Sprintf("owns %s, used %s", count(float64(t.GPUs)), percent(t.Used))
			})),
		})
	v.tenantTable()
}

// tenantBars draws a figure of each tenant, a bar for each policy's first run, in parts of the largest.
func (r *Report) tenantBars(title string, of []string, get func(t *trace.TenantFigures) []float64, note func(t *trace.TenantFigures) string) string {
	most, names := 0.0, []string{}
	for _, f := range r.Runs {
		for i := range f.Tenants {
			t, sum := &f.Tenants[i], 0.0
			for _, v := range get(t) {
				sum += v
			}
			most = max(most, sum)
			if !slices.Contains(names, t.Of) && len(names) < mostBars {
				names = append(names, t.Of)
			}
		}
	}
	var list []bar
	for i, name := range names {
		for k, p := range r.Policies {
			first := slices.IndexFunc(r.Runs, func(f *trace.Figures) bool { return f.Policy == p.Policy })
			tenants := r.Runs[first].Tenants
			at := slices.IndexFunc(tenants, func(t trace.TenantFigures) bool { return t.Of == name })
			if at < 0 {
				continue
			}
			x := bar{name: name, parts: get(&tenants[at]), note: note(&tenants[at]), gap: i > 0 && k == 0 && len(r.Policies) > 1}
			if len(r.Policies) > 1 {
				x.name = name + ", " + p.Policy
			}
			for b := range x.parts {
				x.parts[b] /= max(most, 1e-9)
			}
			list = append(list, x)
		}
	}
	return bars(title, of, list)
}

// tenantTable lists the tenants of each policy's first run.
func (v *view) tenantTable() {
	t := tableView{Title: "Tenants", Head: []string{
		"", "policy", "owns GPUs", "used, of what it owns", "guaranteed GPU h", "opportunistic GPU h", "requeued", "sharing loss, jobs", "sharing loss, GPU h",
		"beside a cluster of its own, jobs", "beside a cluster of its own, GPU h",
	}}
	for _, p := range v.Policies {
		at := slices.IndexFunc(v.Runs, func(f *trace.Figures) bool { return f.Policy == p.Policy })
		for _, x := range append([]trace.TenantFigures{*v.Runs[at].AllTenants}, v.Runs[at].Tenants...) {
			t.Rows = append(t.Rows, []string{
				x.Of, p.Policy, count(float64(x.GPUs)), percent(x.Used), count(x.GuaranteedGPUHours), count(x.OpportunisticGPUHours), count(float64(x.Requeued)),
				count(float64(x.LossJobs)), count(x.LossGPUHours), count(float64(x.LossAloneJobs)), count(x.LossAloneGPUHours),
			})
		}
	}
	v.Tables = append(v.Tables, t)
}

// tenants writes what became of tenants, each and all.
func (c *lines) tenants(f *trace.Figures) {
	if !shares(f) {
		return
	}
	c.put("sharing", "", "useful gpu", f.Useful)
	c.put("sharing", "", "guaranteed gpu", f.Loaded.Guaranteed)
	for _, t := range append([]trace.TenantFigures{*f.AllTenants}, f.Tenants...) {
		for _, n := range []struct {
			name  string
			value float64
		}{
			{"gpus", float64(t.GPUs)}, {"used", t.Used}, {"guaranteed gpu hours", t.GuaranteedGPUHours},
			{"opportunistic gpu hours", t.OpportunisticGPUHours}, {"requeued", float64(t.Requeued)},
			{"loss jobs", float64(t.LossJobs)}, {"loss gpu hours", t.LossGPUHours},
			{"loss jobs alone", float64(t.LossAloneJobs)}, {"loss gpu hours alone", t.LossAloneGPUHours},
		} {
			c.put("tenant", t.Of, n.name, n.value)
		}
	}
	for i := range f.OverTime {
		c.put("over time", number(f.OverTime[i].From), "guaranteed", f.OverTime[i].Guaranteed)
		c.put("over time", number(f.OverTime[i].From), "sharing loss", f.OverTime[i].LossGPU)
	}
}
