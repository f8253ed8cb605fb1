package jobspec

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/command/jobspec/hclfile"
)

const task = `group "g" {
      task "t" {
        driver = "mock_driver"
        config {
          run_for = "${var.time}"
        }
      }
    }`

// workflowFile parses a workflow whose jobs are written JOB, and are read from files.
func workflowFile(text string, files map[string]string) (*WorkflowFile, error) {
	src := "variable \"time\" {\n  default = \"1s\"\n}\nworkflow \"chip\" {\n" + strings.ReplaceAll(text, "TASK", task) + "\n}\n"
	opts := Options{Options: hclfile.Options{Vars: map[string]string{"time": "7s"}}}
	return ParseWorkflow("w.hcl", []byte(src), opts, func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, errors.New("no such file")
	})
}

func TestWorkflow(t *testing.T) {
	t.Parallel()
	f, err := workflowFile(`
  priority   = 70
  reserve    = { cores = 64, gpus = 8, licenses = { vcs = 2 } }
  on_failure = "retry-stage"
  lend {
    to    = "group:interns"
    share = 2
  }
  lend {
    to          = "project:regress"
    share       = 1
    lend_longer = true
  }
  lend_max = { cores = "4" }
  stage "synth" {
    job "a" {
      retries = 2
      TASK
    }
    job "b" {
      depends_on = ["a"]
      job_file   = "b.hcl"
    }
  }
  stage "place" {
    job_file = "c.hcl"
  }`, map[string]string{
		"b.hcl": "variable \"time\" {}\njob \"other\" {\n  priority = 20\n  type = \"sysbatch\"\n" + task + "\n}\n",
		"c.hcl": "job \"c\" {\n" + strings.ReplaceAll(task, "${var.time}", "2s") + "\n}\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	w := f.Workflow
	if w.ID != "chip" || w.Priority != 70 || w.OnFailure != "retry-stage" || w.Reserve.Rule != "" || w.Reserve.Amounts.Cores != 64 || w.Reserve.Amounts.GPUs != 8 ||
		w.Reserve.Amounts.Licenses["vcs"] != 2 || w.LendMax.Cores != 4 || len(w.Lend) != 2 || w.Lend[0].Share != 2 || !w.Lend[1].LendLonger {
		t.Errorf("%+v %+v", w, w.Reserve.Amounts)
	}
	var got []string
	for _, s := range w.Stages {
		for _, j := range s.Jobs {
			got = append(got, fmt.Sprintf("%s/%s %s %s %d %d %v %v", s.Name, j.Name, j.Job.ID, j.Job.Type, j.Job.Priority, j.Retries, j.DependsOn,
				j.Job.TaskGroups[0].Tasks[0].Config["run_for"]))
		}
	}
	want := "synth/a a batch 70 2 [] 7s; synth/b b sysbatch 20 0 [a] 7s; place/c c batch 70 0 [] 2s"
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("have %s\nwant %s", text, want)
	}
}

// TestVariablesOfJobFiles: a job file that is named gets the values of the workflow's variables that it declares, defaults included.
func TestVariablesOfJobFiles(t *testing.T) {
	t.Parallel()
	const declared = `
variable "stated" {
  type    = number
  default = 1
}
variable "set" { default = "workflow" }
variable "list" { default = ["a", "b"] }
variable "unused" { default = 3 }
workflow "chip" {
  stage "place" {
    job_file = "c.hcl"
  }
}`
	const jobFile = `
variable "stated" {}
variable "set" { default = "job" }
variable "list" { type = list(string) }
variable "own" { default = "job" }
job "c" {
  group "g" {
    task "t" {
      driver = "mock_driver"
      config {
        run_for = "${var.stated} ${var.set} ${var.own} ${join(".", var.list)} ${local.env}"
      }
    }
  }
}
variable "env" { default = "job" }
locals { env = var.env }`
	parse := func(src string, opts Options) (string, error) {
		f, err := ParseWorkflow("w.hcl", []byte(src), opts, func(string) ([]byte, error) { return []byte(jobFile), nil })
		if err != nil {
			return "", err
		}
		return fmt.Sprint(f.Workflow.Stages[0].Jobs[0].Job.TaskGroups[0].Tasks[0].Config["run_for"]), nil
	}
	opts := Options{Options: hclfile.Options{Env: []string{"NOMAD_VAR_env=environment"}}}
	if got, err := parse(declared, opts); err != nil || got != "1 workflow job a.b environment" {
		t.Error(got, err)
	}
	opts.Vars = map[string]string{"set": "flag"}
	if got, err := parse(declared, opts); err != nil || got != "1 flag job a.b environment" {
		t.Error(got, err)
	}
	wrong := strings.Replace(declared, `["a", "b"]`, `{ x = [1] }`, 1)
	if _, err := parse(wrong, opts); err == nil || !strings.Contains(err.Error(), `c.hcl:4:1: variable "list" must be of type list(string)`) {
		t.Error(err)
	}
}

func TestWrongWorkflow(t *testing.T) {
	t.Parallel()
	f := func(text, want string) {
		t.Helper()
		_, err := workflowFile(text, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v, want %q", text, err, want)
		}
	}
	const stage = "stage \"s\" {\n  job \"a\" {\n    TASK\n  }\n}\n"
	f("", `w.hcl:4:1: workflow "chip": it has no stage`)
	f("stage \"s\" {\n}\n", `w.hcl:5:1: workflow "chip": stage "s": it has no job`)
	f("prioritty = 3\n"+stage, `w.hcl:5:1: workflow "chip": unknown attribute "prioritty"; did you mean "priority"?`)
	f("priority = 101\n"+stage, `w.hcl:5:12: workflow "chip": priority: must be between 1 and 100, not 101`)
	f("reserve = \"most\"\n"+stage, `w.hcl:5:1: workflow "chip": reserve: must be "max", "sum" or amounts`)
	f("reserve = { corse = 3 }\n"+stage, `w.hcl:5:1: workflow "chip": reserve: unknown amount "corse"; known are cores, cpu, gpus, licenses, memory`)
	f("reserve = { gpus = -1 }\n"+stage, `reserve: gpus: must be a whole number from 1 to 1000000000, not -1`)
	f("reserve = { gpus = 0 }\n"+stage, `reserve: gpus: must be a whole number from 1 to 1000000000, not 0: leave it out`)
	f("reserve = { licenses = { vcs = 2000000000 } }\n"+stage, `reserve: licenses: vcs: must be a whole number from 1 to 1000000000, not 2000000000`)
	f("reserve = { cores = 1.5 }\n"+stage, `reserve: cores: must be a whole number from 1 to 1000000000, not 1.5`)
	f("reserve = { licenses = var.time }\n"+stage, `reserve: licenses: must be an object, such as { vcs = 2 }, not the string "7s"`)
	f("reserve = 5\n"+stage, `reserve: must be "max", "sum" or amounts such as { cores = 64, gpus = 8 }, not 5`)
	f("lend_max = { cores = var.time }\n"+stage, `w.hcl:5:1: workflow "chip": lend_max: cores: must be a whole number from 1 to 1000000000, not the string "7s"`)
	f("lend_max = var.time\n"+stage, `lend_max: must be an object of amounts, such as { cores = 64, gpus = 8 }, not the string "7s"`)
	f("node_pool = \"a b\"\n"+stage, `w.hcl:5:1: workflow "chip": node_pool: must be 1 to 128 letters`)
	f("lend_max = 4\n"+stage, `lend_max: must be an object of amounts`)
	f("lend {\n  to = \"team:x\"\n}\n"+stage, `workflow "chip": lend "team:x": to: must be a kind and a name`)
	f("lend {\n  to = \"group:x\"\n}\nlend {\n  to    = \"group:y\"\n  share = 1\n}\n"+stage, `w.hcl:5:1: workflow "chip": lend "group:x": share: it is 0 or not stated, and others have one`)
	f("lend {\n  to    = \"group:x\"\n  share = 1\n}\nlend {\n  to    = \"group:y\"\n  share = 0\n}\n"+stage, `w.hcl:11:3: workflow "chip": lend "group:y": share: it is 0`)
	f("lend {\n  to = \"group:x\"\n}\nlend {\n  to = \"group:y\"\n}\nlend {\n  to = \"group:x\"\n}\n"+stage, `w.hcl:11:1: workflow "chip": lend "group:x": it is stated twice`)
	f("lend {\n  to    = \"group:y\"\n  share = 0\n}\n"+stage, `w.hcl:7:3: workflow "chip": lend "group:y": share: must be 1 to 1000000, not 0`)
	f(stage+stage, `w.hcl:17:1: workflow "chip": two stages have the name "s"; the first is on line 5`)
	f(stage+strings.Replace(stage, `"s"`, `"s2"`, 1), `w.hcl:18:3: workflow "chip": two jobs have the name "a"; the first is on line 6`)
	f("stage \"s\" {\n  job \"a\" {\n    type = \"service\"\n    TASK\n  }\n}\n", `w.hcl:7:5: workflow "chip": stage "s": job "a": type: must be "batch" or "sysbatch", not "service"`)
	f("stage \"s\" {\n  job \"a\" {\n    group \"g\" {\n      cuont = 2\n    }\n  }\n}\n", `w.hcl:8:7: workflow "chip" > stage "s" > job "a" > group "g": unknown attribute "cuont"; did you mean "count"?`)
	f("stage \"s\" {\n  job \"a\" {\n    group \"g\" {\n      task \"t\" {}\n    }\n  }\n}\n", `w.hcl:8:7: job "a" > group "g" > task "t": driver`)
	f("stage \"s\" {\n  job \"a\" {\n    depends_on = [\"b\"]\n    TASK\n  }\n  job \"b\" {\n    depends_on = [\"a\"]\n    TASK\n  }\n}\n", "jobs wait for each other: a → b → a")
	f("stage \"s\" {\n  job_file = \"none.hcl\"\n}\n", `w.hcl:6:3: workflow "chip" > stage "s": job_file: no such file`)
	f("stage \"s\" {\n  job \"a\" {\n    job_file = \"none.hcl\"\n    TASK\n  }\n}\n", `w.hcl:8:5: workflow "chip" > stage "s" > job "a": group: job_file is stated, too, and that file has the whole job: state it there`)
	f("stage \"s\" {\n  job \"a\" {\n    job_file   = \"none.hcl\"\n    retries    = 1\n    depends_on = []\n    priority   = 5\n    constraint {\n      distinct_hosts = true\n    }\n  }\n}\n",
		"w.hcl:10:5: workflow \"chip\" > stage \"s\" > job \"a\": priority: job_file is stated, too, and that file has the whole job: state it there, or leave job_file out\n"+
			"w.hcl:11:5: workflow \"chip\" > stage \"s\" > job \"a\": constraint: job_file is stated, too")
	f(stage+"}\njob \"x\" {\n", "a job at the top of a file is no workflow")
	f("stage \"s\" { job \"a\" {\n    TASK\n  }\n}\n", `w.hcl:5:13: a block in a block begins on a line of its own`)
	f(stage+"}\nworkflow \"y\" {\n", "a file may hold only one workflow; the first is on line 4")
}

// TestWorkflowIsNoJob: who runs a workflow as a job sees the command that runs it.
func TestWorkflowIsNoJob(t *testing.T) {
	t.Parallel()
	_, _, err := Parse("w.hcl", []byte("workflow \"chip\" {\n}\n"), Options{})
	if err == nil || !strings.Contains(err.Error(), "w.hcl:1:1: a workflow is no job: `nomadish workflow run` runs it") {
		t.Error(err)
	}
}

// TestWideWorkflow: reading a file takes memory, and so time, in proportion to its jobs: eight times the jobs take less than sixteen times as much, if they
// are read from files, too.
func TestWideWorkflow(t *testing.T) { // not parallel: what others allocate would count
	stage := strings.Repeat("s", 128) // to compare the path of a job with others takes memory if it is long
	read := func(jobs int, body string) (bytes uint64) {
		var text strings.Builder
		fmt.Fprintf(&text, "stage %q {\n", stage)
		for i := range jobs {
			fmt.Fprintf(&text, "job \"j%d\" {\n %s\n}\n", i, body)
		}
		text.WriteString("}")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f, err := workflowFile(text.String(), map[string]string{"c.hcl": "job \"c\" {\n" + strings.ReplaceAll(task, "${var.time}", "1s") + "\n}\n"})
		runtime.ReadMemStats(&after)
		if err != nil || len(f.Workflow.Stages[0].Jobs) != jobs {
			t.Fatalf("%d jobs: %v", jobs, err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	for _, body := range []string{"TASK", "job_file = \"c.hcl\""} {
		read(50, body)
		few, many := read(50, body), read(400, body)
		if many > 16*few {
			t.Errorf("%s: 50 jobs take %d bytes, 400 take %d", body, few, many)
		}
	}
}
