package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
)

// bombs are job files that are small for what they make of a parser that counts nothing.
var bombs = []struct{ name, source, want string }{
	{"three loops", bombJob("[for x in range(1000) : [for y in range(1000) : [for z in range(1000) : x]]]"), "CPU"},
	{"two loops in jsonencode", bombJob("jsonencode([for x in range(1000) : [for y in range(1000) : \"${x}${y}\"]])"), ""},
	{"YAML aliases", bombJob("yamldecode(<<Y\n" + yamlBomb() + "Y\n)"), ""},
	{"parseint of 3,000,000 digits", bombJob(`parseint("` + strings.Repeat("9", 3_000_000) + `", 10)`), ""},
	{"5,000,000 brackets", bombJob(strings.Repeat("[", 5_000_000)), "nested deeper than 200 levels"},
	{"5,000,000 brackets after a long file", strings.Repeat("# nothing\n", 100) + bombJob(strings.Repeat("{", 5_000_000)), "nested deeper than 200 levels"},
	{"dynamic blocks, 1,000 times 1,000", `job "x" {
  dynamic "group" {
    for_each = range(1000)
    labels   = ["g${group.value}"]
    content {
      dynamic "task" {
        for_each = range(1000)
        labels   = ["t${task.value}"]
        content { driver = "raw_exec" }
      }
    }
  }
}`, ""},
	{"9 MB of commas", bombJob("[" + strings.Repeat("1,", 4_500_000) + "]"), ""},
	{"an exponent", bombJob("pow(9, 999999999)"), ""},
}

func bombJob(expr string) string {
	return "job \"x\" {\n  group \"g\" {\n    task \"t\" {\n      driver = \"raw_exec\"\n      config { command = " + expr + " }\n    }\n  }\n}\n"
}

// yamlBomb has fewer aliases than are counted, each of a list of all those before.
func yamlBomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return b.String()
}

// TestDoorParse: whatever the job file, /v1/jobs/parse takes at most one second of CPU and 100 MiB for it, and nothing once the
// caller has hung up.
func TestDoorParse(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	for _, b := range bombs {
		t.Run(b.name, func(t *testing.T) {
			cost := cost(t, a)
			code, text := post(t, a, "/v1/jobs/parse", map[string]any{"JobHCL": b.source, "Canonicalize": true})
			cpu, memory := cost()
			if code != http.StatusBadRequest || !strings.Contains(text, b.want) || len(text) > 1024 {
				t.Errorf("status %d, want 400 with %q:\n%.300s", code, b.want, text)
			}
			mostCPU, mostMemory := time.Second+200*time.Millisecond, 100<<20 // the agent reads the body as well
			if harness.Raced {
				mostCPU, mostMemory = 8*mostCPU, 16*mostMemory
			}
			t.Logf("%v CPU, %d MiB: %.100q", cpu, memory>>20, text)
			if cpu > mostCPU || memory > mostMemory {
				t.Errorf("it took %v of CPU and %d MiB, want at most 1s and 100 MiB", cpu, memory>>20)
			}
		})
	}
	t.Run("a caller who hangs up", func(t *testing.T) { hangUp(t, a) })
}

// hangUp has several callers hang up while their files are parsed or wait for that.
func hangUp(t *testing.T, a *harness.Agent) {
	var callers sync.WaitGroup
	for range 6 {
		callers.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			body, _ := json.Marshal(map[string]any{"JobHCL": bombs[0].source})
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.HTTP+"/v1/jobs/parse", bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_ = resp.Body.Close()
				t.Errorf("a file that takes longer was answered with %s", resp.Status)
			}
		})
	}
	callers.Wait()
	harness.Within(t, 10*time.Second, "the end of what was parsed for nobody", func(context.Context) error {
		if pids := parsing(a); len(pids) > 0 {
			return fmt.Errorf("processes %v", pids)
		}
		return nil
	})
	cost := cost(t, a)
	time.Sleep(time.Second) // what is measured
	cpu, _ := cost()
	if most := 500 * time.Millisecond; cpu > most && !harness.Raced {
		t.Errorf("in the second after six callers hung up the agent took %v of CPU, want at most %v", cpu, most)
	}
	code, text := post(t, a, "/v1/jobs/parse", map[string]any{"JobHCL": bombJob(`"true"`)})
	if code != http.StatusOK || !strings.Contains(text, `"raw_exec"`) {
		t.Errorf("a small file afterwards: status %d: %s", code, text)
	}
}

// parsing are the processes that the agent has started to parse job files.
func parsing(a *harness.Agent) []int {
	var pids []int
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range all {
		dir := filepath.Dir(file)
		pid, _ := strconv.Atoi(filepath.Base(dir))
		raw, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if f := statFields(raw); len(f) < 2 || f[1] != strconv.Itoa(a.Cmd.Process.Pid) {
			continue
		}
		// Before it runs a program of its own, a child has its parent's memory.
		if command, _ := os.ReadFile(filepath.Join(dir, "cmdline")); bytes.Contains(command, []byte("parse-job")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// statFields are the fields of a process's stat after its name: its state is the first.
func statFields(raw []byte) []string {
	return strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
}

// cost begins to measure what the agent and its children take. The result ends it: the CPU time of both, and the memory of
// the largest child or what the agent grew by, whichever is more.
func cost(t *testing.T, a *harness.Agent) func() (cpu time.Duration, memory int) {
	t.Helper()
	own := filepath.Join("/proc", strconv.Itoa(a.Cmd.Process.Pid))
	if err := os.WriteFile(filepath.Join(own, "clear_refs"), []byte("5"), 0); err != nil { // the peak begins anew
		t.Fatal(err)
	}
	used := func() time.Duration {
		raw, err := os.ReadFile(filepath.Join(own, "stat"))
		if err != nil {
			t.Fatal(err)
		}
		var ticks int64
		for _, f := range statFields(raw)[11:15] { // utime, stime, cutime, cstime
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			ticks += n
		}
		return time.Duration(ticks) * 10 * time.Millisecond
	}
	before, began := peak(own), used()
	largest, stop, done := 0, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			for _, pid := range parsing(a) {
				largest = max(largest, peak(filepath.Join("/proc", strconv.Itoa(pid))))
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() (time.Duration, int) {
		close(stop)
		<-done
		return used() - began, max(largest, peak(own)-before)
	}
}

// peak is the most memory that a process has had, in bytes.
func peak(dir string) int {
	raw, _ := os.ReadFile(filepath.Join(dir, "status"))
	_, after, _ := strings.Cut(string(raw), "VmHWM:")
	f := strings.Fields(after)
	if len(f) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(f[0])
	return n << 10
}

// post sends a JSON body and returns the status and the text of the answer.
func post(t *testing.T, a *harness.Agent, path string, body any) (int, string) {
	t.Helper()
	raw, ok := body.([]byte)
	if !ok {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.HTTP+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestDoorJobSize: a job that is too large is refused with 400, in words that are short whatever they quote, and before it has
// cost much. So is JSON that is nested too deep or longer than a request may be.
func TestDoorJobSize(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "server {\n  job_max_size = \"3MiB\"\n}\n")
	long, task := strings.Repeat("n", 1<<20), map[string]any{"Name": "t", "Driver": "raw_exec", "Config": map[string]any{"command": "true"}}
	group := func(name string, tasks int) map[string]any {
		g := map[string]any{"Name": name, "Count": 0}
		list := make([]any, tasks)
		for i := range list {
			list[i] = map[string]any{"Name": fmt.Sprint("t", i), "Driver": "raw_exec", "Config": task["Config"]}
		}
		g["Tasks"] = list
		return g
	}
	job := func(change func(job map[string]any)) map[string]any {
		j := map[string]any{"ID": "big", "Name": "big", "Type": "batch", "Datacenters": []any{"*"}, "TaskGroups": []any{group("g", 1)}}
		change(j)
		return j
	}
	groups := func(n, tasks int) map[string]any {
		return job(func(j map[string]any) {
			list := make([]any, n)
			for i := range list {
				list[i] = group(fmt.Sprint("g", i), tasks)
			}
			j["TaskGroups"] = list
		})
	}
	meta := func(n int) map[string]any { return map[string]any{"key": strings.Repeat("m", n)} }
	rows := []struct {
		name string
		job  map[string]any
		want string
	}{
		{"50,000 groups", groups(50_000, 1), "more than 200000 objects and lists"},
		{"20,000 groups", groups(20_000, 1), "at most 1000 groups, not 20000"},
		{"1,000 groups of 50,000", job(func(j map[string]any) {
			list := make([]any, 1000)
			for i := range list {
				g := group(fmt.Sprint("g", i), 1)
				g["Count"] = 50_000
				list[i] = g
			}
			j["TaskGroups"] = list
		}), "at most 50000 instances of a job"},
		{"a million groups of nothing", job(func(j map[string]any) { j["TaskGroups"] = slices.Repeat([]any{map[string]any{}}, 1_000_000) }), "more than 200000 objects and lists"},
		{"1,001 groups", groups(1001, 1), "at most 1000 groups, not 1001"},
		{"a group of 251 tasks", groups(1, 251), "at most 250 tasks, not 251"},
		{"5,200 tasks", groups(26, 200), "at most 5000 tasks"},
		{"10 MB of meta", job(func(j map[string]any) { j["Meta"] = meta(10_000_000) }), "meta: must be at most 1048576 bytes"},
		{"meta of job, group and task", job(func(j map[string]any) {
			g := group("g", 1)
			g["Meta"], g["Tasks"].([]any)[0].(map[string]any)["Meta"] = meta(400_000), meta(400_000)
			j["Meta"], j["TaskGroups"] = meta(400_000), []any{g}
		}), "meta: must be at most 1048576 bytes"},
		{"a template of 4 MiB", job(func(j map[string]any) {
			g := group("g", 1)
			g["Tasks"].([]any)[0].(map[string]any)["Templates"] = []any{map[string]any{"EmbeddedTmpl": strings.Repeat("x", 4<<20), "DestPath": "local/x"}}
			j["TaskGroups"] = []any{g}
		}), "more than 3145728 bytes, which this cluster allows (job_max_size)"},
		{"an ID of 1 MiB", job(func(j map[string]any) { j["ID"] = long }), "at most 512 bytes long"},
		{"a name of 1 MiB", job(func(j map[string]any) { j["Name"] = long }), "at most 512 bytes long"},
		{"a group's name of 1 MiB", job(func(j map[string]any) { j["TaskGroups"] = []any{group(long, 1)} }), "at most 512 bytes long"},
		{"a type of 1 MiB", job(func(j map[string]any) { j["Type"] = long }), "type"},
		{"a namespace of 1 MiB", job(func(j map[string]any) { j["Namespace"] = long }), "namespace"},
		{"a region of 1 MiB", job(func(j map[string]any) { j["Region"] = long }), "region"},
		{"500 groups without a driver", job(func(j map[string]any) {
			list := make([]any, 500)
			for i := range list {
				list[i] = map[string]any{"Name": fmt.Sprint("g", i), "Tasks": []any{map[string]any{"Name": "t"}}}
			}
			j["TaskGroups"] = list
		}), " more errors"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			cost := cost(t, a)
			for _, path := range []string{"/v1/jobs", "/v1/job/big/plan", "/v1/validate/job"} {
				if id, _ := r.job["ID"].(string); id != "big" && strings.Contains(path, "big") {
					continue
				}
				code, text := post(t, a, path, map[string]any{"Job": r.job})
				most, want := 1024, http.StatusBadRequest
				if strings.Contains(path, "validate") && code == http.StatusOK { // it has the error twice, in JSON
					most, want = 4096, http.StatusOK
				}
				if code != want || len(text) > most || !strings.Contains(text, r.want) {
					t.Errorf("%s: status %d and %d bytes, want %d and at most %d with %q:\n%.300s", path, code, len(text), want, most, r.want, text)
				}
			}
			cpu, memory := cost()
			t.Logf("%v, %d MiB", cpu, memory>>20)
			mostCPU, mostMemory := 3*time.Second, 400<<20 // of three requests
			if harness.Raced {
				mostCPU, mostMemory = 8*mostCPU, 16*mostMemory
			}
			if cpu > mostCPU || memory > mostMemory {
				t.Errorf("it took %v of CPU and %d MiB, want at most %v and %d MiB", cpu, memory>>20, mostCPU, mostMemory>>20)
			}
		})
	}
	code, text := post(t, a, "/v1/jobs", map[string]any{"Job": groups(1000, 1)})
	if code != http.StatusOK {
		t.Errorf("1,000 groups: status %d: %.300s", code, text)
	}
	code, text = post(t, a, "/v1/jobs", map[string]any{"Job": groups(1, 1), "Submission": map[string]any{"Source": "x", "Variables": long + long}})
	if code != http.StatusOK || !strings.Contains(text, "job_max_source_size") {
		t.Errorf("variables of 2 MiB: status %d: %.300s", code, text)
	}
	for what, body := range map[string]map[string]any{
		"message": {"Message": long}, "meta": {"Meta": map[string]any{"m": long}},
	} {
		body["Target"], body["Error"] = map[string]any{"Group": "g0"}, true
		if code, text := post(t, a, "/v1/job/big/scale", body); code != http.StatusBadRequest || len(text) > 1024 {
			t.Errorf("a scaling with a %s of 1 MiB: status %d: %.300s", what, code, text)
		}
	}
	deep := []byte(`{"Job":{"ID":"big","Meta":` + strings.Repeat("[", 100_000))
	if code, text := post(t, a, "/v1/jobs", deep); code != http.StatusBadRequest || len(text) > 1024 {
		t.Errorf("deep JSON: status %d: %.300s", code, text)
	}
	if code, text := post(t, a, "/v1/jobs/parse", deep); code != http.StatusBadRequest || len(text) > 1024 {
		t.Errorf("deep JSON to parse: status %d: %.300s", code, text)
	}
	if code, text := post(t, a, "/v1/jobs", bytes.Repeat([]byte(" "), 17<<20)); code != http.StatusRequestEntityTooLarge || len(text) > 1024 {
		t.Errorf("a long body: status %d: %.300s", code, text)
	}
	resp, err := http.Get(a.HTTP + "/v1/job/" + strings.Repeat("n", 30_000))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode/100 != 4 || len(text) > 1024 {
		t.Errorf("a job of a long name: status %d and %d bytes (%v)", resp.StatusCode, len(text), err)
	}
}
