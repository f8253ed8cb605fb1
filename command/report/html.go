package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"
	"sync"

	"github.com/nomadish/nomadish/scheduler/trace"
)

//go:embed page.html
var pageText string

// styleText is the look of all pages.
//
//go:embed style.html
var styleText string

// page is parsed when a report is written, not by every command.
var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.Must(template.New("page").Parse(pageText)).Parse(styleText))
})

// view is what the page shows.
type view struct {
	*Report
	Drop    bool
	Seeds   string
	Machine string
	Jobs    string
	Rows    []rowView
	Legend  []legend
	Heat    []legend
	Plots   []plotView
	Tables  []tableView
}

type rowView struct {
	Class string
	Name  string
	Cells []string
}

type legend struct{ Class, Name string }

type plotView struct {
	Title, Text string
	SVG         template.HTML
	Legend      bool // of policies
	Heat        bool // of waits
	Keys        []legend
}

type tableView struct {
	Title string
	Head  []string
	Rows  [][]string
	Open  bool
}

// HTML writes the page.
func (r *Report) HTML(w io.Writer) error {
	if len(r.Runs) == 0 {
		return fmt.Errorf("report: there are no runs")
	}
	f := r.Runs[0]
	v := &view{
		Report: r, Drop: drops(f), Machine: machine(f), Jobs: count(float64(f.Counts.Jobs)),
		Seeds: strconv.Itoa(r.Policies[0].Seeds),
	}
	for i, p := range r.Policies {
		v.Legend = append(v.Legend, legend{class(i), p.Policy})
		v.Rows = append(v.Rows, rowView{class(i), p.Policy, r.Cells(p)})
	}
	for i, name := range boundNames() {
		v.Heat = append(v.Heat, legend{"h" + strconv.Itoa(i), name})
	}
	if v.Drop {
		v.dropPlots()
	} else {
		v.timePlots()
	}
	return page().Execute(w, v)
}

func machine(f *trace.Figures) string {
	return fmt.Sprintf("%s nodes: %s GPUs, %s GHz, %s GiB of memory", count(float64(f.Nodes)), count(float64(f.Has.GPUMilli)/1000),
		count(float64(f.Has.CPU)/1000), count(float64(f.Has.MemoryMB)/1024))
}

// Columns are the heads of the table of policies, behind their names.
func (r *Report) Columns() []string {
	if drops(r.Runs[0]) {
		return []string{"allocated at 100 %", "allocated in the end", "fragmentation", "jobs placed", "dropped"}
	}
	columns := []string{
		"GPUs in use", "CPU in use", "wait, mean", "wait, p95", "fragmentation", "jobs placed", "never placed", "requeued", "suspended",
		"GPU h redone", "all done after",
	}
	if shares(r.Runs[0]) {
		columns = append(columns, sharingColumns...)
	}
	return columns
}

// Meanings explain what the columns of the table are, and in what unit.
func (r *Report) Meanings() (lines []string) {
	if drops(r.Runs[0]) {
		lines = []string{
			"allocated: the share of all GPUs that is allocated, when the requested GPUs equal the capacity (100 %; –: no arrival at that percentage), and at the last arrival.",
			"fragmentation: the share of all GPUs that is idle and that typical requests cannot use, at the last arrival.",
			"jobs placed, dropped: how many found all their room when they arrived, how many did not and were turned away.",
		}
	} else {
		lines = []string{
			"GPUs in use, CPU in use: the share of all resources that was in use, as the mean over the time from the start to the last arrival.",
			"wait: from a job's arrival until all its instances had a place for the first time; 95 of 100 jobs waited p95 or less.",
			"fragmentation: the share of all GPUs that is idle and that typical requests cannot use, mean over time.",
			"jobs placed, never placed: jobs; requeued, suspended: instances, each time that one was taken back.",
			"GPU h redone: what requeued instances had held and were to do again: it is within GPUs in use.",
			"all done after: virtual time until the last work had ended.",
		}
		if shares(r.Runs[0]) {
			lines = append(lines, sharingMeanings...)
		}
	}
	for i := range r.Policies {
		if r.Policies[i].Seeds > 1 {
			return append(lines, "a ± b: mean over the seeds and its standard deviation.")
		}
	}
	return lines
}

// Cells are a policy's row of the table.
func (r *Report) Cells(p Policy) []string {
	if drops(r.Runs[0]) {
		full := "–"
		if p.AtFull != nil {
			full = spread(*p.AtFull, 100, " %")
		}
		return []string{full, spread(p.Final, 100, " %"), spread(p.Fragmentation, 100, " %"), spread(p.Placed, 1, ""), spread(p.Dropped, 1, "")}
	}
	cells := []string{
		spread(p.GPU, 100, " %"), spread(p.CPU, 100, " %"), span(p.WaitMean.Mean), span(p.WaitP95.Mean), spread(p.Fragmentation, 100, " %"),
		spread(p.Placed, 1, ""), spread(p.Never, 1, ""), spread(p.Requeued, 1, ""), spread(p.Suspended, 1, ""), spread(p.Redone, 1, ""), span(p.End.Mean),
	}
	if p.Sharing != nil {
		cells = append(cells, p.Sharing.cells()...)
	}
	return cells
}

// spread prints a mean with its deviation, if there is any.
func spread(m Mean, times float64, unit string) string {
	digits := 2
	if whole := m.Mean == math.Trunc(m.Mean) && m.SD == 0; unit == "" && (whole || math.Abs(m.Mean) >= 10) {
		digits = 0
	}
	text := strconv.FormatFloat(m.Mean*times, 'f', digits, 64)
	if m.Mean == 0 {
		text = "0"
	}
	if m.SD > 0 {
		text += " ± " + strconv.FormatFloat(m.SD*times, 'f', digits, 64)
	}
	return text + unit
}

// count prints a number with blanks between thousands.
func count(v float64) string {
	s := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

func (v *view) dropPlots() {
	r := v.Report
	v.Plots = append(v.Plots, plotView{
		"Allocation by arrived demand", "Nobody leaves; what does not fit is dropped. Grey: all that arrived.",
		svg(r.byArrived("Allocation by arrived demand", "allocated, of all GPUs", true, func(p *trace.Point) float64 { return p.Allocated })), true, false, nil,
	}, plotView{
		"Fragmentation by arrived demand", "The share of all GPUs that is idle and that typical requests cannot use.",
		svg(r.byArrived("Fragmentation by arrived demand", "of all GPUs", false, func(p *trace.Point) float64 { return p.Fragmentation })), true, false, nil,
	})
}

func (v *view) timePlots() {
	r := v.Report
	resource, get := "GPUs", func(s *trace.Sample) float64 { return s.GPU }
	if r.Runs[0].Has.GPUMilli == 0 {
		resource, get = "CPU", func(s *trace.Sample) float64 { return s.CPU }
	}
	plain := func(x float64) string { return count(x) }
	v.Plots = append(v.Plots,
		plotView{"Utilisation over time", resource + " held, in parts of all.",
			svg(r.overTime("Utilisation over time", resource+" in use", percent, 1, get)), true, false, nil},
		plotView{"Waiting over time", "Jobs that wait with some instance.",
			svg(r.overTime("Waiting over time", "jobs", plain, 0, func(s *trace.Sample) float64 { return s.Waiting })), true, false, nil})
	if resource == "GPUs" {
		v.Plots = append(v.Plots,
			plotView{"Demand over time", "GPUs held and waited for, in parts of all.",
				svg(r.overTime("Demand over time", "held and waited for", percent, 0, func(s *trace.Sample) float64 { return s.GPU + s.WaitingGPU })), true, false, nil},
			plotView{"Fragmentation over time", "The share of all GPUs that is idle and that typical requests cannot use.",
				svg(r.overTime("Fragmentation over time", "of all GPUs", percent, 0, func(s *trace.Sample) float64 { return s.Fragmentation })), true, false, nil})
	}
	v.sharingPlots()
	v.workflowPlots()
	v.forecastPlots()
	v.Plots = append(v.Plots,
		plotView{"Waits by size", "From arrival until all instances had a place.",
			svg(r.waitBars("Waits by size", func(f *trace.Figures) []trace.WaitFigures { return f.BySize })), false, true, nil},
		plotView{"Waits by tenant", fmt.Sprintf("The %d with the most GPU hours.", mostBars),
			svg(r.waitBars("Waits by tenant", func(f *trace.Figures) []trace.WaitFigures { return f.ByTenant })), false, true, nil})
	v.waitTable("Waits by size", func(f *trace.Figures) []trace.WaitFigures { return f.BySize })
	v.waitTable("Waits by tenant", func(f *trace.Figures) []trace.WaitFigures { return f.ByTenant })
}

// svg marks what this package drew as safe: its texts are escaped where they are put in.
func svg(s string) template.HTML { return template.HTML(s) } // see above

// waitTable lists waits of each policy's first run.
func (v *view) waitTable(title string, groups func(f *trace.Figures) []trace.WaitFigures) {
	t := tableView{Title: title, Head: []string{"", "policy", "jobs", "never", "mean", "p50", "p95", "p99", "max", "GPU hours"}}
	for _, p := range v.Policies {
		for _, f := range v.Runs {
			if f.Policy != p.Policy {
				continue
			}
			for _, w := range append([]trace.WaitFigures{f.Waits}, groups(f)...) {
				t.Rows = append(t.Rows, []string{
					w.Of, p.Policy, count(float64(w.Jobs)), count(float64(w.Never)), span(w.Mean), span(w.P50), span(w.P95), span(w.P99), span(w.Max),
					count(w.GPUHours),
				})
			}
			break
		}
	}
	v.Tables = append(v.Tables, t)
}
