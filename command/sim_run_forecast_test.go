package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Forecasts are compared with what happens; the report has them as a table, as figures and as plots.
func TestSimRunForecast(t *testing.T) {
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace.csv")
	text := "arrival,duration,cpu,memory,gpus,max_run_duration,tenant\n" +
		"0,3600,1000,1000,8,7200,a\n0,3600,1000,1000,8,7200,a\n0,3600,1000,1000,8,7200,a\n0,3600,1000,1000,8,7200,a\n" +
		"60,600,1000,1000,4,,b\n120,600,1000,1000,8,,b\n"
	unlimited := filepath.Join(dir, "unlimited.csv")
	for name, text := range map[string]string{trace: text, unlimited: "arrival,duration,cpu,memory\n0,1,1,1\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(more ...string) result {
		t.Helper()
		return line(t, append([]string{"sim", "run", "-nodes", exampleNodes, "-trace", trace, "-policy", "binpack", "-out", filepath.Join(dir, "out")}, more...)...)
	}
	got := run("-forecast", "30m", "-limits", "1.1")
	if got.code != exitDone {
		t.Fatalf("exit code %d, stderr %q", got.code, got.err)
	}
	wants(t, got.out, "Forecasts", "keeps whole nodes", "A forecast every 30 min of virtual time", "2 forecasts, of which 2 knew the latest start; exceeded: 0")
	for name, want := range map[string][]string{
		"figures.json": {`"Forecasts": {`, `"Exceeded": 0`},
		"figures.csv":  {"binpack,1,forecasts,first,latest known,2\n", "binpack,1,forecast errors,first latest,n,2\n"},
		"report.html":  {"Error of first forecasts", "Later than at the latest, by cause", "Rows that state no time limit state 1.1 times"},
	} {
		src, err := os.ReadFile(filepath.Join(dir, "out", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(src), w) {
				t.Errorf("%s has no %q", name, w)
			}
		}
	}
	for _, bad := range []struct {
		want string
		args []string
	}{
		{`-forecast "soon": must be a time of 1s or more`, []string{"-forecast", "soon"}},
		{"state which forecasts are made", []string{"-forecast-horizon", "1h"}},
		{"-forecast-until 1h0m0s: must not be before -forecast-from 2h0m0s", []string{"-forecast", "1h", "-forecast-from", "2h", "-forecast-until", "1h"}},
		{`-forecast-from "x": must be a time since`, []string{"-forecast", "1h", "-forecast-from", "x"}},
		{`-forecast-horizon "3000h": must be a time of at most 2160h0m0s`, []string{"-forecast", "1h", "-forecast-horizon", "3000h"}},
		{`-limits "0.5": must be a number from 1 to 1000`, []string{"-limits", "0.5"}},
		{"leave out -virtual-clusters", []string{"-forecast", "1h", "-virtual-clusters", "peaks"}},
		{"-forecast: nobody waits with -drop", []string{"-forecast", "1h", "-drop", "-until", "1"}},
		{"no row states a time limit", []string{"-forecast", "1h", "-trace", unlimited}},
	} {
		if got := run(bad.args...); got.code != exitFailed || !strings.Contains(got.err, bad.want) {
			t.Errorf("%q: exit code %d, stderr %q, want %q", bad.args, got.code, got.err, bad.want)
		}
	}
}
