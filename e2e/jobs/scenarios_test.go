package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// scenario is a file of testdata/scenarios: jobs, steps, and the end state that Nomad's documentation specifies.
//
// It begins with what it shows. "-- job NAME --" begins the HCL of a job whose ID is the file's name, "-- steps --" the
// steps, one a line:
//
//	run NAME                  registers a job of the file
//	cli ARGS                  runs a command, which must succeed
//	expect KEY = VALUE        waits until it holds; the other operators are != has lacks >=
//	before A.EVENT B.EVENT    demands that task A's last event of a type came before task B's first
//
// In jobs and commands {alloc} is the ID of the last allocation, {alloc@0} of the first, {dir} a directory of the scenario's
// own, {user} a user as whom the agent may run tasks. Keys are those of scenarioKeys, @ and a number behind them choose an
// allocation. In events _ stands for a space.
type scenario struct {
	a           *harness.Agent
	name, about string
	jobs        map[string]string
	steps       []string
	vars        map[string]string
}

// scenarioLimit is how long a step may take: see harness.Scaled.
const scenarioLimit = 30 * time.Second

// TestScenarios runs every scenario, all at once, on one agent.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) < 48 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	a := harness.StartDev(t, "client {\n  cpu_total_compute = 100000\n  memory_total_mb = 100000\n  disk_total_mb = 1000000\n  disk_free_mb = 1000000\n  gc_max_allocs = 1000\n}\n")
	harness.OpenDataDir(t, a)
	dir := t.TempDir()
	var all sync.WaitGroup
	for _, file := range files {
		s, err := readScenario(a, file, dir)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		all.Go(func() {
			for i, step := range s.steps {
				ctx, cancel := context.WithTimeout(t.Context(), harness.Scaled(scenarioLimit))
				err := s.step(ctx, step)
				cancel()
				if err != nil {
					t.Errorf("%s (%s): step %d, %q: %v", s.name, s.about, i+1, step, err)
					return
				}
			}
		})
	}
	all.Wait()
}

func readScenario(a *harness.Agent, file, dir string) (*scenario, error) {
	text, err := os.ReadFile(file) // a file of the test's own
	if err != nil {
		return nil, err
	}
	s := &scenario{a: a, name: strings.TrimSuffix(filepath.Base(file), ".txt"), jobs: map[string]string{}}
	s.vars = map[string]string{"{dir}": filepath.Join(dir, s.name), "{user}": "nobody"}
	if os.Geteuid() != 0 { // such an agent runs tasks as itself
		self, err := user.Current()
		if err != nil {
			return nil, err
		}
		s.vars["{user}"] = self.Username
	}
	if err := os.Mkdir(s.vars["{dir}"], 0o777); err != nil { // tasks write there
		return nil, err
	}
	section := ""
	for line := range strings.Lines(string(text)) {
		bare := strings.TrimSpace(line)
		head, ok := strings.CutPrefix(bare, "-- ")
		switch {
		case ok:
			section = strings.TrimSuffix(head, " --")
		case section == "":
			s.about = cmp.Or(s.about, bare)
		case section == "steps" && bare != "":
			s.steps = append(s.steps, bare)
		case section != "steps":
			s.jobs[strings.TrimPrefix(section, "job ")] += line
		}
	}
	if s.about == "" || len(s.jobs) == 0 || len(s.steps) < 2 {
		return nil, errors.New("it needs a description, jobs and steps")
	}
	return s, nil
}

func (s *scenario) step(ctx context.Context, line string) error {
	do, rest, _ := strings.Cut(line, " ")
	switch do {
	case "run":
		text, ok := s.jobs[rest]
		if !ok || !strings.Contains(text, strconv.Quote(s.name)) {
			return errors.New("the file has no such job, or one of another ID")
		}
		text, err := s.fill(ctx, text)
		if err != nil {
			return err
		}
		return s.cli("job", "run", "-detach", s.a.JobFile(s.name+"-"+rest, text))
	case "cli":
		filled, err := s.fill(ctx, rest)
		if err != nil {
			return err
		}
		return s.cli(strings.Fields(filled)...)
	case "expect", "before":
		return s.eventually(ctx, func() error {
			if do == "before" {
				return s.before(ctx, strings.Fields(rest))
			}
			return s.expect(ctx, rest)
		})
	}
	return errors.New("no such step")
}

// eventually tries until it succeeds, and returns the last error when the time is up.
func (s *scenario) eventually(ctx context.Context, try func() error) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-tick.C:
		}
	}
}

func (s *scenario) cli(args ...string) error {
	if out, code := s.a.CLI(args...); code != 0 {
		return fmt.Errorf("exit code %d: %s", code, out)
	}
	return nil
}

// fill replaces what stands in braces.
func (s *scenario) fill(ctx context.Context, text string) (string, error) {
	for name, value := range s.vars {
		text = strings.ReplaceAll(text, name, value)
	}
	for _, name := range []string{"{alloc}", "{alloc@0}"} {
		if !strings.Contains(text, name) {
			continue
		}
		allocs, err := s.allocs(ctx)
		if err != nil || len(allocs) == 0 {
			return "", fmt.Errorf("%d allocations, %w", len(allocs), err)
		}
		at := len(allocs) - 1
		if name == "{alloc@0}" {
			at = 0
		}
		text = strings.ReplaceAll(text, name, allocs[at].ID)
	}
	return text, nil
}

// allocs are the job's allocations in the order in which they were made.
func (s *scenario) allocs(ctx context.Context) ([]*structs.AllocListStub, error) {
	allocs, _, err := s.a.API.Jobs().Allocations(ctx, s.name, true, nil)
	slices.SortFunc(allocs, func(a, b *structs.AllocListStub) int {
		return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.Name, b.Name))
	})
	return allocs, err
}

// expect compares the value of a key.
func (s *scenario) expect(ctx context.Context, line string) error {
	parts := strings.SplitN(line, " ", 3)
	if len(parts) != 3 {
		return errors.New("write expect KEY = VALUE")
	}
	key, op, want := parts[0], parts[1], parts[2]
	got, err := s.value(ctx, key)
	if err != nil {
		return err
	}
	ok := false
	switch op {
	case "=":
		ok = got == want
	case "!=":
		ok = got != want
	case "has":
		ok = strings.Contains(got, want)
	case "lacks":
		ok = !strings.Contains(got, want)
	case ">=":
		ok, err = atLeast(got, want)
	default:
		err = errors.New("no such operator")
	}
	if err == nil && !ok {
		err = fmt.Errorf("it is %q", got)
	}
	return err
}

// atLeast compares durations or numbers.
func atLeast(got, want string) (bool, error) {
	least, err := time.ParseDuration(want)
	if err != nil {
		n, err := strconv.Atoi(want)
		if err != nil {
			return false, err
		}
		have, err := strconv.Atoi(got)
		return have >= n, err
	}
	have, err := time.ParseDuration(got)
	return have >= least, err
}

// value returns what a key says of the job, of all its allocations, or of one.
func (s *scenario) value(ctx context.Context, key string) (string, error) {
	switch key {
	case "job":
		job, _, err := s.a.API.Jobs().Info(ctx, s.name, nil)
		if api.IsNotFound(err) {
			return "unknown", nil
		}
		if err != nil {
			return "", err
		}
		return job.Status, nil
	case "blocked":
		evals, _, err := s.a.API.Jobs().Evaluations(ctx, s.name, nil)
		blocked := 0
		for _, e := range evals {
			if e.Status == structs.EvalStatusBlocked {
				blocked++
			}
		}
		return strconv.Itoa(blocked), err
	}
	allocs, err := s.allocs(ctx)
	if err != nil {
		return "", err
	}
	var statuses, versions []string
	for _, alloc := range allocs {
		statuses = append(statuses, alloc.ClientStatus)
		if alloc.ClientStatus == structs.AllocClientRunning && alloc.DesiredStatus == structs.AllocDesiredRun {
			versions = append(versions, strconv.FormatUint(alloc.JobVersion, 10))
		}
	}
	switch key {
	case "allocs": // their states
		return strings.Join(statuses, " "), nil
	case "running": // how many run that are to run
		return strconv.Itoa(len(versions)), nil
	case "versions": // of the job, of those
		return strings.Join(versions, " "), nil
	}
	key, index, chosen := strings.Cut(key, "@")
	at := len(allocs) - 1
	if chosen {
		if at, err = strconv.Atoi(index); err != nil {
			return "", err
		}
	}
	if at < 0 || at >= len(allocs) {
		return "", fmt.Errorf("there are %d allocations", len(allocs))
	}
	if key == "apart" { // the time between the allocation and the one before it
		return time.Duration(allocs[at].CreateTime - allocs[at-1].CreateTime).String(), nil
	}
	alloc, _, err := s.a.API.Allocations().Info(ctx, allocs[at].ID, nil)
	if err != nil {
		return "", err
	}
	what, task, _ := strings.Cut(key, ".")
	read := scenarioKeys[what]
	if read == nil {
		return "", errors.New("no such key")
	}
	state := alloc.TaskStates[task]
	if state == nil {
		state = &structs.TaskState{}
	}
	return read(ctx, s, alloc, task, state)
}

// scenarioKeys are what is known of one allocation, and of one task of it.
var scenarioKeys = map[string]func(context.Context, *scenario, *structs.Allocation, string, *structs.TaskState) (string, error){
	"description": func(_ context.Context, _ *scenario, alloc *structs.Allocation, _ string, _ *structs.TaskState) (string, error) {
		return alloc.ClientDescription, nil
	},
	// task is its state, whether it failed, and how often it was started again.
	"task": func(_ context.Context, _ *scenario, _ *structs.Allocation, _ string, state *structs.TaskState) (string, error) {
		end := "ok"
		if state.Failed {
			end = "failed"
		}
		return fmt.Sprintf("%s %s %d", state.State, end, state.Restarts), nil
	},
	"restarts": func(_ context.Context, _ *scenario, _ *structs.Allocation, _ string, state *structs.TaskState) (string, error) {
		return strconv.FormatUint(state.Restarts, 10), nil
	},
	// exit is the exit code and the signal of its last end.
	"exit": func(_ context.Context, _ *scenario, _ *structs.Allocation, _ string, state *structs.TaskState) (string, error) {
		e := lastEvent(state, structs.TaskTerminated)
		if e == nil {
			return "", errors.New("it has not ended")
		}
		return fmt.Sprintf("%d %d", e.ExitCode, e.Signal), nil
	},
	"events": func(_ context.Context, _ *scenario, _ *structs.Allocation, _ string, state *structs.TaskState) (string, error) {
		var names []string
		for _, e := range state.Events {
			names = append(names, strings.ReplaceAll(e.Type, " ", "_"))
		}
		return strings.Join(names, " "), nil
	},
	// pause is the longest time between an end and the next start, end is that between the first sign of stopping and the end.
	"pause": func(_ context.Context, _ *scenario, _ *structs.Allocation, _ string, state *structs.TaskState) (string, error) {
		return longest(state, structs.TaskTerminated, structs.TaskStarted).String(), nil
	},
	"delay": func(_ context.Context, _ *scenario, _ *structs.Allocation, _ string, state *structs.TaskState) (string, error) {
		return longest(state, structs.TaskWaitingShutDelay, structs.TaskTerminated).String(), nil
	},
	"kill": func(_ context.Context, _ *scenario, _ *structs.Allocation, _ string, state *structs.TaskState) (string, error) {
		return longest(state, structs.TaskKilling, structs.TaskTerminated).String(), nil
	},
	// out is what it has written, one line behind the other.
	"out": func(ctx context.Context, s *scenario, alloc *structs.Allocation, task string, _ *structs.TaskState) (string, error) {
		from, err := s.a.API.AllocFS().Cat(ctx, alloc.ID, "alloc/logs/"+task+".stdout.0")
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(io.LimitReader(from, 1<<16))
		_ = from.Close() // it was only read
		return strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "|"), err
	},
	"files": func(ctx context.Context, s *scenario, alloc *structs.Allocation, task string, _ *structs.TaskState) (string, error) {
		files, err := s.a.API.AllocFS().List(ctx, alloc.ID, "alloc/logs")
		n := 0
		for _, f := range files {
			if strings.HasPrefix(f.Name, task+".stdout.") {
				n++
			}
		}
		return strconv.Itoa(n), err
	},
}

func lastEvent(state *structs.TaskState, kind string) *structs.TaskEvent {
	for _, e := range slices.Backward(state.Events) {
		if e.Type == kind {
			return e
		}
	}
	return nil
}

// longest is the longest time from an event of one type to the next of another.
func longest(state *structs.TaskState, from, to string) time.Duration {
	var most time.Duration
	var since int64
	for _, e := range state.Events {
		switch {
		case e.Type == from:
			since = e.Time
		case e.Type == to && since > 0:
			most = max(most, time.Duration(e.Time-since))
			since = 0
		}
	}
	return most
}

// before compares the last event of one task with the first of another, in the last allocation.
func (s *scenario) before(ctx context.Context, names []string) error {
	if len(names) != 2 {
		return errors.New("write before TASK.EVENT TASK.EVENT")
	}
	allocs, err := s.allocs(ctx)
	if err != nil || len(allocs) == 0 {
		return fmt.Errorf("%d allocations, %w", len(allocs), err)
	}
	alloc, _, err := s.a.API.Allocations().Info(ctx, allocs[len(allocs)-1].ID, nil)
	if err != nil {
		return err
	}
	var at [2]int64
	for i, name := range names {
		task, kind, _ := strings.Cut(name, ".")
		state := alloc.TaskStates[task]
		if state == nil {
			return fmt.Errorf("there is nothing of the task %q yet", task)
		}
		for _, e := range state.Events {
			if e.Type == strings.ReplaceAll(kind, "_", " ") && (i == 0 || at[i] == 0) {
				at[i] = e.Time
			}
		}
	}
	if at[0] == 0 || at[1] == 0 || at[0] > at[1] {
		return fmt.Errorf("the first was at %d, the second at %d", at[0], at[1])
	}
	return nil
}
