package queue

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// TestWrongScheduling: bands that overlap, go from high to low or out of range, and a policy that there is not are refused with what
// is allowed, by HTTP and on the command line; nothing is changed by it.
func TestWrongScheduling(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	set(a, "-bands", "1-9,10-100", "-keep-whole")
	before, err := a.API.Operator().SchedulerConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	put := func(body, want string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "PUT", a.HTTP+"/v1/operator/scheduler/configuration", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), want) {
			t.Errorf("%s: %d %s, want %s", body, resp.StatusCode, text, want)
		}
	}
	put(`{"Bands":[{"Low":1,"High":40},{"Low":40,"High":100}]}`, "overlaps or goes before [1, 40]; state them lowest first")
	put(`{"Bands":[{"Low":40,"High":1}]}`, "a band goes from a lower to a higher priority, of 1 to 100")
	put(`{"Bands":[{"Low":0,"High":40}]}`, "of 1 to 100")
	put(`{"Bands":[{"Low":41,"High":1000}]}`, "of 1 to 100")
	put(`{"Bands":[{"Low":"one","High":40}]}`, "Bands[0].Low")
	put(`{"Bands":[[1,40]]}`, "write bands as in")
	put(`{"Policy":"tightest"}`, "least-fragmentation")
	put(`{"Cycle":"-1s"}`, "must not be negative")
	put(`{"Aging":7}`, "must be 1, or 0")
	cli := func(want string, args ...string) {
		t.Helper()
		out, code := a.CLI(append([]string{"operator", "scheduler", "set-config"}, args...)...)
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("%v: exit %d\n%s\nwant %s", args, code, out, want)
		}
	}
	cli("-bands: [40, 100] overlaps or goes before [1, 40]", "-bands", "1-40,40-100")
	cli("-bands: [40, 1]: a band goes", "-bands", "40-1")
	cli("write ranges of priorities from 1 to 100, as 1-40,41-70,71-100", "-bands", "low-high")
	cli(`-policy "tightest": must be`, "-policy", "tightest")
	cli("-aging", "-aging", "often")
	after, err := a.API.Operator().SchedulerConfig(t.Context())
	if err != nil || after.ModifyIndex != before.ModifyIndex || len(after.Bands) != 2 || !after.KeepWhole {
		t.Errorf("it was changed: %+v (%v)", after, err)
	}
	if out, code := a.CLI("operator", "scheduler", "get-config"); code != 0 || !strings.Contains(out, "1-9,10-100") {
		t.Errorf("get-config: exit %d\n%s", code, out)
	}
	out, code := a.CLI("job", "run", a.JobFile("wrong", harness.MockJob{ID: "wrong", Priority: 50, Count: 1, CPU: 1, Memory: 1,
		Job: "reclaim = \"freeze\"\n  partial = \"half\"\n  policy = \"tightest\""}.Text()))
	if code != 1 || !strings.Contains(out, "requeue") || !strings.Contains(out, "preempt") || !strings.Contains(out, "least-fragmentation") {
		t.Errorf("job run: exit %d\n%s", code, out)
	}
	if allocs, _, err := a.API.Allocations().List(t.Context(), nil); err != nil || len(allocs) != 0 {
		t.Errorf("%d allocations, %v", len(allocs), err)
	}
}

// TestWrongSchedulingFile: an agent whose file says such things does not start, and names file and line.
func TestWrongSchedulingFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, want string }{
		{`bands = [[1, 50], [50, 100]]`, "[50, 100] overlaps or goes before [1, 50]"},
		{`bands = [[50, 1]]`, "[50, 1]: a band goes from a lower to a higher priority, of 1 to 100"},
		{`bands = [["low", 40]]`, "want a number"},
		{`bands = "1-40"`, "write it as in bands = [[1, 40], [41, 70], [71, 100]]"},
		{`policy = "tightest"`, `must be "binpack"`},
		{`cycle = "-3s"`, "must not be negative"},
		{`aging = 3`, "must be 1, or 0"},
		{`keep_hole = true`, `did you mean "keep_whole"?`},
	} {
		a := harness.NewAgent(t, true, "server {\n  scheduling {\n    "+c.line+"\n  }\n}\n")
		a.Start()
		err := a.Wait()
		a.Exited <- err // for cleanup
		if err == nil || !strings.Contains(a.Log.Tail(100), "more.hcl:3: ") || !strings.Contains(a.Log.Tail(100), c.want) {
			t.Errorf("%s: %v\n%s\nwant %s", c.line, err, a.Log.Tail(20), c.want)
		}
	}
}

// TestWrongTraces: sim run refuses a trace without a column, with times that are none, or an unknown policy, names file and line,
// and writes nothing.
func TestWrongTraces(t *testing.T) {
	t.Parallel()
	a := harness.NewAgent(t, true, "") // not started: sim run needs none
	nodes := filepath.Join(a.Dir, "nodes.hcl")
	if err := os.WriteFile(nodes, []byte(harness.PlainNodes("n", 2, 1000, 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	n := 0
	f := func(trace, want string, args ...string) {
		t.Helper()
		n++
		file, out := filepath.Join(a.Dir, "trace.csv"), filepath.Join(a.Dir, "out-"+strconv.Itoa(n))
		if err := os.WriteFile(file, []byte(trace), 0o600); err != nil {
			t.Fatal(err)
		}
		text, code := a.CLI(append([]string{"sim", "run", "-nodes", nodes, "-trace", file, "-out", out}, args...)...)
		if want == "" {
			if _, err := os.Stat(filepath.Join(out, "figures.json")); code != 0 || err != nil {
				t.Errorf("%q: exit %d %v\n%s", trace, code, err, text)
			}
			return
		}
		if code != 1 || !strings.Contains(text, want) {
			t.Errorf("%q %v: exit %d\n%s\nwant %s", trace, args, code, text, want)
		}
		if made, err := os.ReadDir(out); err == nil && len(made) > 0 {
			t.Errorf("%q: it wrote %v", trace, made)
		}
	}
	const head = "arrival,duration,count,cpu,memory\n"
	f(head+"0,60,1,100,10\n", "")
	f("arrival,count,cpu,memory\n0,1,100,10\n", "duration")
	f("duration,count,cpu,memory\n60,1,100,10\n", "arrival")
	f(head+"0,60,1,100,10\n5,-60,1,100,10\n", "trace.csv:3")
	f(head+"-5,60,1,100,10\n", "trace.csv:2")
	f(head+"soon,60,1,100,10\n", "trace.csv:2")
	f(head+"0,60,1,100\n", "trace.csv:2")
	f("", "trace.csv")
	f(head+"0,60,1,100,10\n", "tightest", "-policy", "tightest")
	for _, policy := range structs.Policies() {
		f(head+"0,60,1,100,10\n", "", "-policy", policy)
	}
}
