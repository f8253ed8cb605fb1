package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// output of two rows, each run three times, with noise around.
const output = `goos: linux
cpu: Test CPU
BenchmarkMany/fast/nodes=1k-2   	     100	  12.5 µs/placement	 3 allocs/placement
BenchmarkMany/fast/nodes=1k-2   	     100	  10.5 µs/placement	 3 allocs/placement
BenchmarkMany/fast/nodes=1k-2   	     100	  99.0 µs/placement	 3 allocs/placement
BenchmarkOther-2
BenchmarkPacking/half-2   	       1	  499 jobs
PASS
ok  	example.org/scheduler	3.1s
`

func testRows() []Row {
	return []Row{
		row("fast work", "Many/fast/(.*)", "µs/placement", "300", 15, 11),
		atLeast("packing", "Packing/(.*)", "jobs", "178", 500),
		info("allocations", "Many/(.*)", "allocs/placement"),
		trace(atLeast("the trace", "Trace/(.*)", "%", "", 95)),
	}
}

func TestJudge(t *testing.T) {
	r, err := parse(strings.NewReader(output), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	lines := judge(testRows(), r)
	if len(lines) != 4 {
		t.Fatalf("%d lines: %+v", len(lines), lines)
	}
	fast := lines[0]
	if fast.Median != 12.5 || fast.Min != 10.5 || fast.Max != 99 || fast.Runs != 3 || fast.On != "nodes=1k" || fast.Verdict != met {
		t.Errorf("the first line is %+v", fast)
	}
	for i, want := range []string{met, missedMust, isInfo, noTrace} {
		if lines[i].Verdict != want {
			t.Errorf("%s: %q, want %q", lines[i].Work, lines[i].Verdict, want)
		}
	}
	if got := missed(lines, r, false, false); len(got) != 1 || !strings.Contains(got[0], "499 jobs, must be 500") {
		t.Errorf("missed: %q", got)
	}
	if got := missed(lines, r, true, false); got != nil {
		t.Errorf("a smoke run judges figures: %q", got)
	}
}

// Of a row that shows the worst, one line is left.
func TestWorst(t *testing.T) {
	r, err := parse(strings.NewReader("BenchmarkA-2 1 5 x\nBenchmarkB-2 1 7 x\nBenchmarkC-2 1 6 x\nok  \tp\n"), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	least := atLeast("most", "(.*)", "x", "", 6)
	least.Worst = true
	lines := judge([]Row{worst(row("least", "(.*)", "x", "", 6, 5)), least}, r)
	if len(lines) != 2 || lines[0].On != "B" || lines[0].Verdict != missedMust || lines[1].On != "A" || lines[1].Verdict != missedMust {
		t.Errorf("%+v", lines)
	}
}

// A partial run leaves out what it did not want.
func TestPartial(t *testing.T) {
	text := "BenchmarkMany/batch/x-2 1 5 µs/placement\nok  \tp\n"
	var out bytes.Buffer
	if ok, err := run([]string{"-partial", "-quiet"}, strings.NewReader(text), &out, nil); err != nil || !ok {
		t.Fatal(ok, err, out.String())
	}
	if s := out.String(); !strings.Contains(s, "batch, 10,000") || strings.Contains(s, notRun) {
		t.Error(s)
	}
}

func TestMissed(t *testing.T) {
	f := func(name, text, want string) {
		t.Helper()
		r, err := parse(strings.NewReader(text), &bytes.Buffer{})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(missed(judge(testRows(), r), r, true, false), "\n")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	f("all ran", output, "")
	f("a row without benchmark", strings.ReplaceAll(output, "Packing", "Backing"), "not run: packing")
	f("a failure", output+"--- FAIL: BenchmarkPacking\n", "failed: --- FAIL: BenchmarkPacking")
	f("a panic", output+"panic: index out of range\n", "failed: panic")
	f("cut off", strings.ReplaceAll(output, "ok  ", ""), "did not end")
	f("no build", "FAIL example.org [build failed]\n", "build failed")
}

func TestParseRefusesWhatIsNoNumber(t *testing.T) {
	if _, err := parse(strings.NewReader("BenchmarkX-2 1 fast µs\n"), &bytes.Buffer{}); err == nil {
		t.Error("no error")
	}
}

func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bench.json")
	var out, echo bytes.Buffer
	ok, err := run([]string{"-json", file}, strings.NewReader(output), &out, &echo)
	if err != nil || ok {
		t.Fatalf("ok %t, %v: most rows did not run", ok, err)
	}
	if echo.String() != output {
		t.Error("the benchmarks' lines are not passed on")
	}
	for _, want := range []string{"Measured on Test CPU", "| NOT RUN", "not run: batch, 10,000 instances"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var back report
	if err := json.Unmarshal(text, &back); err != nil || back.Environment.CPU != "Test CPU" || len(back.Lines) == 0 {
		t.Errorf("the file holds %+v, %v", back.Environment, err)
	}
}

// Every row is met by a value at its "want", and no two rows are the same.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range slices.Concat(decisions(), cluster()) {
		if seen[r.Work] {
			t.Errorf("%q is there twice", r.Work)
		}
		seen[r.Work] = true
		if r.Info {
			continue
		}
		if r.verdict(r.Want) != wanted || r.Match.NumSubexp() != 1 && !regexp.MustCompile(`\(\?:`).MatchString(r.Match.String()) {
			t.Errorf("%q: %+v", r.Work, r)
		}
	}
}
