package structs

import (
	"fmt"
	"strings"
	"testing"
)

// workflowOf returns a canonical workflow of jobs by stage, each written as its name and after a colon what it depends on: "b:a".
func workflowOf(stages ...[]string) *Workflow {
	w := &Workflow{ID: "chip"}
	for i, jobs := range stages {
		s := &WorkflowStage{Name: fmt.Sprintf("s%d", i)}
		for _, text := range jobs {
			name, depends, _ := strings.Cut(text, ":")
			task := &Task{Name: "t", Driver: "mock_driver", Resources: &Resources{Cores: 2, MemoryMB: 100, Licenses: map[string]int{"vcs": 1}}}
			j := &WorkflowJob{Name: name, Job: &Job{TaskGroups: []*TaskGroup{{Name: "g", Count: 2, Tasks: []*Task{task}}}}}
			if depends != "" {
				j.DependsOn = strings.Split(depends, ",")
			}
			s.Jobs = append(s.Jobs, j)
		}
		w.Stages = append(w.Stages, s)
	}
	w.Canonicalize()
	return w
}

// TestWorkflowLevels: the stages of a workflow are its stages as written, or where jobs of one depend on each other their levels.
func TestWorkflowLevels(t *testing.T) {
	f := func(want string, stages ...[]string) {
		t.Helper()
		levels, err := workflowOf(stages...).Levels()
		if err != nil {
			t.Errorf("%v: %v", stages, err)
			return
		}
		var got []string
		for _, l := range levels {
			var names []string
			for _, j := range l.Jobs {
				names = append(names, j.Name)
			}
			got = append(got, l.Name+"="+strings.Join(names, ","))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%v: have %s, want %s", stages, text, want)
		}
	}
	f("s0=a,b s1=c", []string{"a", "b"}, []string{"c"})
	f("s0-1=a s0-2=b,c s0-3=d", []string{"d:b,c", "b:a", "c:a", "a"})
	f("s0=a s1-1=c s1-2=b", []string{"a"}, []string{"b:a,c", "c:a"})
}

// TestLargeWorkflow: the largest workflows are validated in the time of a request, which is minutes if something is compared with everything.
func TestLargeWorkflow(t *testing.T) {
	w := workflowOf([]string{"a"})
	w.Reserve = WorkflowReserve{Amounts: &WorkflowResources{Licenses: map[string]int64{}}}
	needs := map[string]int{}
	for i := range MaxLicenses {
		name := fmt.Sprintf("license-%05d", i)
		needs[name], w.Reserve.Amounts.Licenses[name] = 1, 5
	}
	w.Stages[0].Jobs[0].Job.TaskGroups[0].Tasks[0].Resources.Licenses = needs
	if err := w.Validate(); err != nil {
		t.Error(err)
	}
	var chain []string
	for i := range MaxWorkflowJobs {
		chain = append(chain, fmt.Sprintf("j%d:j%d", i, i+1))
	}
	chain[MaxWorkflowJobs-1] = fmt.Sprintf("j%d", MaxWorkflowJobs-1)
	if err := workflowOf(chain).Validate(); err == nil || !strings.Contains(err.Error(), "it has 10000 stages, at most 256 are allowed") {
		t.Error(err)
	}
}

// TestWorkflowsAsSubmitted: what has no meaning is refused when it is submitted, and accepted of what is stored.
func TestWorkflowsAsSubmitted(t *testing.T) {
	f := func(change func(*Workflow), want string) {
		t.Helper()
		w := workflowOf([]string{"a"})
		change(w)
		w.Canonicalize()
		if err := w.Validate(); err != nil {
			t.Errorf("stored: %v", err)
		}
		if err := w.CheckSubmitted(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("submitted: %v, want %q", err, want)
		}
	}
	f(func(*Workflow) {}, "")
	f(func(w *Workflow) { w.LendMax = &WorkflowResources{CPU: 100} }, "")
	f(func(w *Workflow) { w.LendMax = &WorkflowResources{} }, "lend_max: it states no amount")
	f(func(w *Workflow) { w.Reserve = WorkflowReserve{Amounts: &WorkflowResources{}} }, "reserve: it states no amount")
	f(func(w *Workflow) { w.LendMax = &WorkflowResources{Licenses: map[string]int64{"vcs": 0}, Cores: 2} }, "lend_max: licenses: vcs: must be a whole number from 1 to")
	f(func(w *Workflow) { w.Stages[0].Jobs[0].Job.Class = ClassOpportunistic }, "is not opportunistic")
}

// TestWorkflowPlan: what is reserved is of each resource what the largest stage needs, what all need, or what is stated.
func TestWorkflowPlan(t *testing.T) {
	w := workflowOf([]string{"a"}, []string{"b", "c"})
	w.Stages[0].Jobs[0].Job.TaskGroups[0].Tasks[0].Resources.MemoryMB = 1000
	f := func(reserve WorkflowReserve, want string) {
		t.Helper()
		w.Reserve = reserve
		p, err := w.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%d cores, %d MiB, %d vcs", p.Reserved.Cores, p.Reserved.MemoryMB, p.Reserved.Licenses["vcs"]); got != want {
			t.Errorf("%+v: have %s, want %s", reserve, got, want)
		}
	}
	f(WorkflowReserve{Rule: ReserveMax}, "8 cores, 2000 MiB, 4 vcs")
	f(WorkflowReserve{Rule: ReserveSum}, "12 cores, 2400 MiB, 6 vcs")
	f(WorkflowReserve{Amounts: &WorkflowResources{Cores: 10, Licenses: map[string]int64{"vcs": 5}}}, "10 cores, 2000 MiB, 5 vcs")
}

// TestWorkflowPlanMHz: of the processor a plan states as reserved and lent beside whole cores what the ledger has, in which these have their MHz. Disk follows from
// the stages.
func TestWorkflowPlanMHz(t *testing.T) {
	w := workflowOf([]string{"a"}, []string{"b"})
	w.Stages[1].Jobs[0].Job.TaskGroups[0].Tasks[0].Resources = &Resources{CPU: 1500, MemoryMB: 100}
	w.Lend = []*WorkflowLend{{To: "user:ann"}}
	f := func(reserved int64, want string) {
		t.Helper()
		p, err := w.Plan()
		if err != nil {
			t.Fatal(err)
		}
		w.CountMHz(p, reserved, 1000)
		text := func(r WorkflowResources) string {
			return fmt.Sprintf("%d cores %d MHz %d MiB", r.Cores, r.CPU, r.DiskMB)
		}
		if got := text(p.Reserved) + "; " + text(p.Stages[0].Lends) + "; " + text(p.Stages[1].Lends); got != want || p.MHzPerCore != 1000 {
			t.Errorf("%d MHz: have %s, want %s", reserved, got, want)
		}
	}
	f(4000, "4 cores 0 MHz 600 MiB; 0 cores 0 MHz 0 MiB; 1 cores 0 MHz 0 MiB")
	w.Reserve = WorkflowReserve{Amounts: &WorkflowResources{Cores: 6, CPU: 3200}}
	f(9200, "6 cores 3200 MHz 600 MiB; 2 cores 3200 MHz 0 MiB; 6 cores 200 MHz 0 MiB")
	w.LendMax = &WorkflowResources{Cores: 1, CPU: 500}
	f(9200, "6 cores 3200 MHz 600 MiB; 1 cores 500 MHz 0 MiB; 1 cores 500 MHz 0 MiB")
}

// TestWorkflowPlanLends: during each stage what it does not need is lent, no more than lend_max states, and nothing without a borrower.
func TestWorkflowPlanLends(t *testing.T) {
	w := workflowOf([]string{"a"}, []string{"b", "c"})
	f := func(want string) {
		t.Helper()
		p, err := w.Plan()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range p.Stages {
			got = append(got, fmt.Sprintf("%d cores, %d MiB, %d vcs", s.Lends.Cores, s.Lends.MemoryMB, s.Lends.Licenses["vcs"]))
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("have %s, want %s", text, want)
		}
	}
	f("0 cores, 0 MiB, 0 vcs; 0 cores, 0 MiB, 0 vcs")
	w.Lend = []*WorkflowLend{{To: "user:ann"}}
	f("4 cores, 200 MiB, 2 vcs; 0 cores, 0 MiB, 0 vcs")
	w.LendMax = &WorkflowResources{Cores: 3, Licenses: map[string]int64{"vcs": 1}}
	f("3 cores, 200 MiB, 1 vcs; 0 cores, 0 MiB, 0 vcs")
}

func TestWrongWorkflows(t *testing.T) {
	f := func(want string, change func(w *Workflow), stages ...[]string) {
		t.Helper()
		if len(stages) == 0 {
			stages = [][]string{{"a", "b"}, {"c"}}
		}
		w := workflowOf(stages...)
		if change != nil {
			change(w)
		}
		if err := w.Validate(); err == nil || CodeOf(err) != CodeBadRequest || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	job := func(change func(j *WorkflowJob)) func(*Workflow) {
		return func(w *Workflow) { change(w.Stages[0].Jobs[0]) }
	}
	f("missing name of the workflow", func(w *Workflow) { w.ID = "" })
	f(`workflow "a/b": invalid name`, func(w *Workflow) { w.ID = "a/b" })
	f("priority: must be between 1 and 100, not 101", func(w *Workflow) { w.Priority = 101 })
	f(`on_failure: must be "stop", "continue" or "retry-stage", not "stopp"; did you mean "stop"?`, func(w *Workflow) { w.OnFailure = "stopp" })
	f("it has no stage", func(w *Workflow) { w.Stages = nil })
	f(`stage "s1": it has no job`, func(w *Workflow) { w.Stages[1].Jobs = nil })
	f(`stage "s0": two stages have this name`, func(w *Workflow) { w.Stages[1].Name = "s0" })
	f(`stage "s1": job "a": two jobs of the workflow have this name`, nil, []string{"a"}, []string{"a"})
	f("depends_on: jobs wait for each other: a → b → a", nil, []string{"a:b", "b:a"})
	f("depends_on: jobs wait for each other: b → c → d → b", nil, []string{"a:b", "b:c", "c:d", "d:b"})
	f("depends_on: jobs wait for each other: a → a", nil, []string{"a:a"})
	f("depends_on: jobs wait for each other: a → c → a", nil, []string{"a:c"}, []string{"c"})
	f(`job "b": depends_on: the workflow has no job "x"`, nil, []string{"a", "b:x"})
	f(`job "b": depends_on: "a" is named twice`, nil, []string{"a", "b:a,a"})
	f(`stage "s0-1": two stages have this name`, func(w *Workflow) { w.Stages[1].Name = "s0-1" }, []string{"a", "b:a"}, []string{"c"})
	f(`job "a": type: must be "batch" or "sysbatch", not "service"`, job(func(j *WorkflowJob) { j.Job.Type = JobTypeService }))
	f("periodic: a job of a workflow cannot be periodic", job(func(j *WorkflowJob) { j.Job.Periodic = &PeriodicConfig{} }))
	f("parameterized: a job", job(func(j *WorkflowJob) { j.Job.ParameterizedJob = &ParameterizedJobConfig{} }))
	f("multiregion: a workflow runs in one region", job(func(j *WorkflowJob) { j.Job.Multiregion = &Multiregion{} }))
	f(`namespace: must be that of the workflow, "default", or be left out, not "x"`, job(func(j *WorkflowJob) { j.Job.Namespace = "x" }))
	f(`node_pool: must be that of the workflow, "default"`, job(func(j *WorkflowJob) { j.Job.NodePool = "gpu" }))
	f("retries: must be 0 to 100, not -1", job(func(j *WorkflowJob) { j.Retries = -1 }))
	f(`id: must be the job's name in the workflow or be left out, not "x"`, job(func(j *WorkflowJob) { j.Job.ID = "x" }))
	f(`job "a" > group "g" > task "t"`, job(func(j *WorkflowJob) { j.Job.TaskGroups[0].Tasks[0].Driver = "" }))
	f("the jobs of the workflow have more than", func(w *Workflow) {
		for _, j := range w.Stages[0].Jobs {
			j.Job.Meta = map[string]string{"a": strings.Repeat("x", MaxJobMeta-1)}
		}
	},
		[]string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q"})
	f(`reserve: must be "max", "sum" or amounts`, func(w *Workflow) { w.Reserve.Rule = "most" })
	f("reserve: a rule and amounts are both stated", func(w *Workflow) { w.Reserve.Amounts = &WorkflowResources{Cores: 9} })
	f(`reserve: cores: 7 are less than the 8 that stage "s0" needs`, func(w *Workflow) { w.Reserve = WorkflowReserve{Amounts: &WorkflowResources{Cores: 7}} })
	f(`reserve: cpu: 199 MHz are less than the 200 MHz that stage "s1" needs`, func(w *Workflow) {
		w.Stages[1].Jobs[0].Job.TaskGroups[0].Tasks[0].Resources = &Resources{CPU: 100, MemoryMB: 100}
		w.Reserve = WorkflowReserve{Amounts: &WorkflowResources{CPU: 199}}
	})
	f("reserve: disk cannot be stated", func(w *Workflow) { w.Reserve = WorkflowReserve{Amounts: &WorkflowResources{DiskMB: 9000}} })
	f("lend_max: disk cannot be stated", func(w *Workflow) { w.LendMax = &WorkflowResources{DiskMB: 9000} })
	f("lend_max: gpus: must be a whole number from 1 to", func(w *Workflow) { w.LendMax = &WorkflowResources{GPUs: -1} })
	lend := func(lends ...*WorkflowLend) func(*Workflow) { return func(w *Workflow) { w.Lend = lends } }
	f(`lend "team:x": to: must be a kind and a name`, lend(&WorkflowLend{To: "team:x"}))
	f(`lend "user:a b": to: "a b" cannot be the name of a user`, lend(&WorkflowLend{To: "user:a b"}))
	f("to: must be the workflow's own node pool", lend(&WorkflowLend{To: "node_pool:gpu"}))
	f("share: must be 1 to", lend(&WorkflowLend{To: "user:a", Share: -1}))
	f("share: it is 0 or not stated, and others have one", lend(&WorkflowLend{To: "user:a", Share: 1}, &WorkflowLend{To: "user:b"}))
	f(`lend "user:a": it is stated twice`, lend(&WorkflowLend{To: "user:a"}, &WorkflowLend{To: "user:a"}))
}

// TestManyStages: a chain of jobs longer than the stages that are allowed is refused, and found at once.
func TestManyStages(t *testing.T) {
	jobs := []string{"j0"}
	for i := range MaxWorkflowStages {
		jobs = append(jobs, fmt.Sprintf("j%d:j%d", i+1, i))
	}
	if err := workflowOf(jobs).Validate(); err == nil || !strings.Contains(err.Error(), "it has 257 stages, at most 256 are allowed") {
		t.Error(err)
	}
	if err := workflowOf(jobs[:MaxWorkflowStages]).Validate(); err != nil {
		t.Error(err)
	}
}
