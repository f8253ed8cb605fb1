package report

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/nomadish/nomadish/scheduler/trace"
)

// Names of the files that are written.
const (
	FiguresJSON = "figures.json"
	FiguresCSV  = "figures.csv"
	Page        = "report.html"
	TimingJSON  = "timing.json"
)

// Ready makes the folder for a report if need be, and returns an error for what would keep its files from
// being written, before the work that fills them. Files that are there stay as they are.
func Ready(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { // it is for others to read
		return fmt.Errorf("report: %w", err)
	}
	probe, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	for _, name := range []string{FiguresJSON, FiguresCSV, Page, TimingJSON} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
		if err == nil {
			err = f.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("report: %w", err)
		}
	}
	return nil
}

// Write writes the report's files into a folder, which it makes if need be.
func (r *Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { // it is for others to read
		return fmt.Errorf("report: %w", err)
	}
	for _, f := range []struct {
		name  string
		write func(w io.Writer) error
	}{{FiguresJSON, r.JSON}, {FiguresCSV, r.CSV}, {Page, r.HTML}} {
		if err := writeFile(filepath.Join(dir, f.name), f.write); err != nil {
			return fmt.Errorf("report: %w", err)
		}
	}
	return nil
}

func writeFile(path string, write func(w io.Writer) error) (err error) {
	f, err := os.Create(path) // the user names the folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := bufio.NewWriter(f)
	if err := write(b); err != nil {
		return err
	}
	return b.Flush()
}

// WriteTiming writes how fast replays were. It is apart from the figures, as it differs
// from run to run.
func WriteTiming(dir string, timing any) error {
	return writeFile(filepath.Join(dir, TimingJSON), func(w io.Writer) error { return encode(w, timing) })
}

func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(v)
}

// JSON writes all figures.
func (r *Report) JSON(w io.Writer) error { return encode(w, r) }

// CSV writes all figures, one a line: which policy and seed, which table, of what (a
// size, a tenant, a time in seconds, a percent), which figure, and its value.
func (r *Report) CSV(w io.Writer) error {
	c := &lines{w: csv.NewWriter(w)}
	c.row("policy", "seed", "table", "of", "figure", "value")
	for _, f := range r.Runs {
		c.policy, c.seed = f.Policy, strconv.FormatUint(f.Seed, 10)
		c.run(f)
	}
	c.w.Flush()
	if c.err == nil {
		c.err = c.w.Error()
	}
	return c.err
}

// lines writes the lines of one run after the other.
type lines struct {
	w            *csv.Writer
	policy, seed string
	err          error
}

func (c *lines) row(fields ...string) {
	if c.err == nil {
		c.err = c.w.Write(fields)
	}
}

func (c *lines) put(table, of, figure string, value float64) {
	c.row(c.policy, c.seed, table, of, figure, number(value))
}

// number prints a figure as briefly as it can be read back.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func (c *lines) run(f *trace.Figures) {
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"jobs", f.Counts.Jobs}, {"instances", f.Counts.Instances}, {"placed", f.Counts.Placed}, {"completed", f.Counts.Completed},
		{"cut short", f.Counts.CutShort}, {"dropped", f.Counts.Dropped}, {"never placed", f.Counts.Never}, {"starts", f.Counts.Starts},
		{"requeued", f.Counts.Requeued}, {"suspended", f.Counts.Suspended}, {"resumed", f.Counts.Resumed},
		{"decisions", f.Counts.Decisions}, {"reservations", f.Counts.Reserved},
		{"arrived GPU thousandths", f.Counts.Arrived}, {"used GPU thousandths", f.Final.GPUMilli},
	} {
		c.put("count", "", n.name, float64(n.value))
	}
	c.put("count", "", "lost GPU hours", f.Counts.LostGPUHrs)
	c.put("count", "", "final fragmentation", f.FinalFragmentation)
	if !drops(f) {
		c.put("time", "", "last arrival", f.Span.LastArrival)
		c.put("time", "", "end", f.Span.End)
		c.sample("until the last arrival", "", &f.Loaded)
		c.sample("until the end", "", &f.All)
	}
	c.waits("wait", &f.Waits)
	for i := range f.BySize {
		c.waits("wait by size", &f.BySize[i])
	}
	for i := range f.ByTenant {
		c.waits("wait by tenant", &f.ByTenant[i])
	}
	c.tenants(f)
	c.workflows(f)
	c.forecasts(f)
	for i := range f.OverTime {
		c.sample("over time", number(f.OverTime[i].From), &f.OverTime[i])
		c.put("over time", number(f.OverTime[i].From), "fragmentation", f.OverTime[i].Fragmentation)
	}
	for _, p := range f.Arrived {
		of := strconv.Itoa(p.Arrived)
		c.put("by arrived demand", of, "allocated", p.Allocated)
		c.put("by arrived demand", of, "fragmentation", p.Fragmentation)
	}
}

func (c *lines) sample(table, of string, s *trace.Sample) {
	c.put(table, of, "gpu", s.GPU)
	c.put(table, of, "cpu", s.CPU)
	c.put(table, of, "memory", s.Memory)
	c.put(table, of, "waiting jobs", s.Waiting)
	c.put(table, of, "waiting for gpu", s.WaitingGPU)
}

func (c *lines) waits(table string, w *trace.WaitFigures) {
	c.put(table, w.Of, "jobs", float64(w.Jobs))
	c.put(table, w.Of, "never", float64(w.Never))
	c.put(table, w.Of, "mean", w.Mean)
	c.put(table, w.Of, "p50", w.P50)
	c.put(table, w.Of, "p95", w.P95)
	c.put(table, w.Of, "p99", w.P99)
	c.put(table, w.Of, "max", w.Max)
	c.put(table, w.Of, "gpu hours", w.GPUHours)
}
