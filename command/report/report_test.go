package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler/trace"
)

func figures(policy string, seed uint64, gpu float64) *trace.Figures {
	f := &trace.Figures{
		Policy: policy, Seed: seed, Mode: "time", Nodes: 2, Has: trace.Amounts{CPU: 8000, MemoryMB: 1024, GPUMilli: 16_000},
		Span: trace.Span{LastArrival: 100, End: 200, Stretch: 60}, Counts: trace.Counts{Jobs: 10, Placed: 10, Completed: 10},
		Loaded: trace.Sample{GPU: gpu},
	}
	for i := range 4 {
		f.OverTime = append(f.OverTime, trace.Sample{From: float64(i) * 60, GPU: gpu, Waiting: 3, Fragmentation: 0.1})
	}
	spread := make([]int64, len(trace.WaitBounds)+1)
	spread[0], spread[3] = 6, 4
	f.Waits = trace.WaitFigures{Of: "all", Jobs: 10, Mean: 12, P50: 0, P95: 40, P99: 50, Max: 55, Spread: spread}
	f.BySize = []trace.WaitFigures{{Of: "1 GPU", Jobs: 10, Mean: 12, P95: 40, Max: 55, Spread: spread}}
	f.ByTenant = []trace.WaitFigures{{Of: "a<b>&", Jobs: 10, Spread: spread}}
	return f
}

func dropped(policy string, seed uint64, at100 float64) *trace.Figures {
	f := figures(policy, seed, 0)
	f.Mode, f.OverTime = "drop", nil
	f.Arrived = []trace.Point{{Arrived: 50, Allocated: 0.5, N: 4}, {Arrived: 100, Allocated: at100, N: 4}, {Arrived: 130, Allocated: 0.97, N: 4}}
	return f
}

func TestSums(t *testing.T) {
	r := New([]*trace.Figures{figures("binpack", 1, 0.5), figures("binpack", 2, 0.7), figures("spread", 1, 0.4)})
	if len(r.Policies) != 2 || r.Policies[0].Policy != "binpack" || r.Policies[0].Seeds != 2 {
		t.Fatalf("%+v", r.Policies)
	}
	if m := r.Policies[0].GPU; m.Mean != 0.6 || m.SD != 0.141421 {
		t.Errorf("%+v", m)
	}
	if r.Policies[0].AtFull != nil || r.Policies[0].Fragmentation.Mean != 0.1 {
		t.Errorf("%+v", r.Policies[0])
	}
	d := New([]*trace.Figures{dropped("x", 1, 0.92), dropped("x", 2, 0.94)})
	if m := d.Policies[0].AtFull; m == nil || m.Mean != 0.93 {
		t.Errorf("%+v", m)
	}
}

// Counts that are whole are written so.
func TestSpread(t *testing.T) {
	f := func(m Mean, times float64, unit, want string) {
		t.Helper()
		if got := spread(m, times, unit); got != want {
			t.Errorf("%+v: %q, want %q", m, got, want)
		}
	}
	f(Mean{Mean: 6}, 1, "", "6")
	f(Mean{}, 1, "", "0")
	f(Mean{Mean: 6.5, SD: 0.5}, 1, "", "6.50 ± 0.50")
	f(Mean{Mean: 6, SD: 1.5}, 1, "", "6.00 ± 1.50")
	f(Mean{Mean: 60.4, SD: 2.2}, 1, "", "60 ± 2")
	f(Mean{Mean: 1}, 100, " %", "100.00 %")
}

// What keeps files from being written is told before there is anything to write.
func TestReady(t *testing.T) {
	dir := t.TempDir()
	made := filepath.Join(dir, "a", "b")
	for range 2 {
		if err := Ready(made); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(made); err != nil || len(left) != 0 {
		t.Errorf("%v lie in it, %v", left, err)
	}
	old := filepath.Join(made, FiguresCSV)
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Ready(made); err != nil || read(t, made, FiguresCSV).String() != "old" {
		t.Errorf("what was there is gone, or %v", err)
	}
	if err := os.Mkdir(filepath.Join(made, Page), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Ready(made); err == nil || !strings.Contains(err.Error(), Page) {
		t.Errorf("error %v where a folder has the name of a file", err)
	}
	if err := Ready(old); err == nil || !strings.Contains(err.Error(), FiguresCSV) {
		t.Errorf("error %v where a file has the name of the folder", err)
	}
}

func TestFiles(t *testing.T) {
	for _, runs := range [][]*trace.Figures{
		{figures("binpack", 1, 0.5), figures("spread", 1, 0.4)}, {dropped("x", 1, 0.92), dropped("y", 1, 0.94)}, {figures("one", 3, 0)},
	} {
		r := New(runs)
		r.Trace, r.Nodes, r.Notes = "t<r>.csv", "n.hcl", []string{"a note & more"}
		dir := filepath.Join(t.TempDir(), "made")
		if err := r.Write(dir); err != nil {
			t.Fatal(err)
		}
		var back Report
		if src, err := os.ReadFile(filepath.Join(dir, FiguresJSON)); err != nil || json.Unmarshal(src, &back) != nil || len(back.Runs) != len(runs) {
			t.Errorf("%s: %v, %d runs", FiguresJSON, err, len(back.Runs))
		}
		lines, err := csv.NewReader(read(t, dir, FiguresCSV)).ReadAll()
		if err != nil || len(lines) < 30 || strings.Join(lines[0], ",") != "policy,seed,table,of,figure,value" {
			t.Errorf("%s: %v, %d lines", FiguresCSV, err, len(lines))
		}
		page := read(t, dir, Page).String()
		selfContained(t, page)
		for _, want := range []string{"t&lt;r&gt;.csv", "a note &amp; more", runs[0].Policy, "<svg", "prefers-color-scheme: dark", "<table"} {
			if !strings.Contains(page, want) {
				t.Errorf("the page does not hold %q", want)
			}
		}
		if strings.Contains(page, "a<b>") || strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
			t.Error("the page holds a name that is not escaped, or what is no number")
		}
		again := filepath.Join(t.TempDir(), "again")
		if err := r.Write(again); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{FiguresJSON, FiguresCSV, Page} {
			if !bytes.Equal(read(t, dir, name).Bytes(), read(t, again, name).Bytes()) {
				t.Errorf("%s differs when it is written again", name)
			}
		}
	}
}

func read(t *testing.T, dir, name string) *bytes.Buffer {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewBuffer(b)
}

var svgs = regexp.MustCompile(`(?s)<svg.*?</svg>`)

// selfContained checks that a page asks nothing of anybody, and that its plots are whole.
func selfContained(t *testing.T, page string) {
	t.Helper()
	for _, never := range []string{"http:", "https:", "src=", "@import", "url(", "<script", "<link"} {
		if strings.Contains(page, never) {
			t.Errorf("the page holds %q", never)
		}
	}
	for _, s := range svgs.FindAllString(page, -1) {
		d := xml.NewDecoder(strings.NewReader(s))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("a plot is no XML: %v\n%s", err, s)
			}
		}
	}
}

func TestSteps(t *testing.T) {
	f := func(most, want float64) {
		t.Helper()
		if got := roundStep(most); got != want {
			t.Errorf("step of %v is %v, want %v", most, got, want)
		}
	}
	f(0, 1)
	f(0.03, 0.05)
	f(1, 1)
	f(1.5, 2)
	f(70, 100)
}

func TestNoRuns(t *testing.T) {
	if err := New(nil).HTML(io.Discard); err == nil {
		t.Error("a page without runs was written")
	}
}

// Where tenants own something, what they lose is in the table, the page and the list; else nothing of it is.
func TestSharingIsWritten(t *testing.T) {
	shared := func(policy string, loss float64) *trace.Figures {
		f := figures(policy, 1, 0.5)
		f.Sharing, f.Useful = trace.SharingCells, 0.4
		f.Tenants = []trace.TenantFigures{{Of: "a<b>&", GPUs: 8, GuaranteedGPUHours: 30, OpportunisticGPUHours: 10, Used: 1.5, LossJobs: 3, LossGPUHours: loss}}
		f.AllTenants = &trace.TenantFigures{Of: "all", GPUs: 8, LossJobs: 3, LossGPUHours: loss}
		return f
	}
	r := New([]*trace.Figures{shared("virtual clusters", 0), shared("one queue", 47)})
	if s := r.Policies[1].Sharing; s == nil || s.LossGPUHours.Mean != 47 || s.Useful.Mean != 0.4 || len(r.Cells(r.Policies[1])) != len(r.Columns()) {
		t.Fatalf("%+v", r.Policies[1])
	}
	var page, list bytes.Buffer
	if err := errors.Join(r.HTML(&page), r.CSV(&list)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Sharing loss by tenant", "Use by tenant", "sharing loss, GPU h", "a&lt;b&gt;&amp;, one queue", "3 jobs, 47 GPU h", "opportunistic"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if want := "one queue,1,tenant,a<b>&,loss gpu hours,47"; !strings.Contains(list.String(), want) {
		t.Errorf("the list has no %q", want)
	}
	page.Reset()
	plain := New([]*trace.Figures{figures("binpack", 1, 0.5)})
	if err := plain.HTML(&page); err != nil || strings.Contains(page.String(), "haring loss") || plain.Policies[0].Sharing != nil {
		t.Errorf("sharing is shown where nobody owns anything: %v", err)
	}
}
