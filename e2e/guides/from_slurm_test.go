package guides

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
)

// guide is a guide of docs/guides whose commands a test runs: what is left of them at its end was not.
type guide struct {
	t    *testing.T
	a    *harness.Agent
	text string
	left map[string]bool
}

var guideCommands = regexp.MustCompile("`nomadish ([^`]+)`|(?m)^    \\$ nomadish (.+)$")

func readGuide(t *testing.T, a *harness.Agent, name string) *guide {
	t.Helper()
	text, err := os.ReadFile("../../docs/guides/" + name)
	if err != nil {
		t.Fatal(err)
	}
	g := &guide{t: t, a: a, text: string(text), left: map[string]bool{}}
	for _, found := range guideCommands.FindAllStringSubmatch(g.text, -1) {
		g.left[found[1]+found[2]] = true
	}
	return g
}

// runs runs a command as the guide has it, in which names replaces the words in capitals by what they stand for here. It must end with a code and say all parts.
func (g *guide) runs(code int, line string, names map[string]string, parts ...string) {
	g.t.Helper()
	if !g.left[line] {
		g.t.Errorf("the guide has no `nomadish %s`", line)
	}
	delete(g.left, line)
	var words []string
	for i, quoted := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, quoted)
		} else {
			words = append(words, strings.Fields(quoted)...)
		}
	}
	for i, word := range words {
		for capitals, name := range names {
			word = strings.ReplaceAll(word, capitals, name)
		}
		if strings.HasPrefix(word, "examples/") {
			word = "../../" + word
		}
		words[i] = word
	}
	out, got := g.a.CLI(words...)
	for _, part := range parts {
		if !strings.Contains(out, part) {
			g.t.Errorf("nomadish %s: %q is missing in\n%s", line, part, out)
		}
	}
	if got != code {
		g.t.Errorf("nomadish %s: exit code %d, want %d\n%s", line, got, code, out)
	}
}

// shows reports whether the guide has a file as it is, but for the comment at its beginning.
func (g *guide) shows(path string) {
	g.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		g.t.Fatal(err)
	}
	body := string(text)
	for strings.HasPrefix(body, "# ") {
		_, body, _ = strings.Cut(body, "\n")
	}
	if !strings.Contains(g.text, "\n"+body+"```\n") {
		g.t.Errorf("the guide does not show %s as it is", path)
	}
}

// TestFromSlurmGuide runs all commands of docs/guides/from-slurm.md.
func TestFromSlurmGuide(t *testing.T) {
	t.Parallel()
	nodes, err := filepath.Abs("../../examples/slurm/nodes.hcl")
	if err != nil {
		t.Fatal(err)
	}
	a := harness.NewAgent(t, true, fmt.Sprintf("client {\n  simulate = %q\n  simulate_beside = true\n}\n", nodes))
	a.Start()
	a.WaitReady(3)
	g := readGuide(t, a, "from-slurm.md")
	g.shows("../../examples/slurm/train.sh")
	g.shows("../../examples/slurm/train.nomad.hcl")
	delete(g.left, "agent -dev -simulate examples/slurm/nodes.hcl -simulate-beside") // it runs

	g.runs(0, "license apply -count 10 vcs", nil)
	g.runs(1, "job plan examples/slurm/train.nomad.hcl", nil, `+ Job: "train"`)
	g.runs(0, "job run -detach examples/slurm/train.nomad.hcl", nil)
	harness.WaitOutput(t, a, "job status train", "part        0       0         0        0       4         0     0\n")
	g.runs(0, "job status train", nil)
	g.runs(0, "alloc logs -job train", nil, "part ")
	g.runs(0, "job run examples/slurm/train.nomad.hcl", nil, "Nothing is placed")
	g.runs(0, "workflow run examples/slurm/steps.nomad.hcl", nil, `Workflow "steps" is complete`)

	// Of a user's two jobs one runs on the GPUs, and the other waits for them.
	file := func(name string) string {
		return a.JobFile(name, fmt.Sprintf(`job %q {
  type = "batch"
  group "g" {
    max_run_duration = "1h"
    count            = 2
    task "t" {
      driver = "mock_driver"
      config { run_for = "1h" }
      resources {
        cpu    = 10
        memory = 10
        device "nvidia/gpu" { count = 4 }
      }
    }
  }
}
`, name))
	}
	harness.CheckOutput(t, a, 0, "job run -detach -user ada "+file("runs"))
	runs := a.WaitRunning("runs", 2, 20*time.Second)
	harness.CheckOutput(t, a, 0, "job run -detach -user ada "+file("waits"))
	harness.WaitOutput(t, a, "queue", "waits")
	names := map[string]string{"JOB": "runs", "ALLOC": runs[0].ID, "NODE": runs[0].NodeName, "PROJECT": "chip-a"}
	waits := map[string]string{"JOB": "waits"}
	g.runs(0, "job status", nil, "runs  ", "train  ")
	g.runs(0, "queue", nil, "waits")
	g.runs(0, "queue -verbose", nil, "waits")
	g.runs(0, "job status -filter 'Submitter == \"ada\"'", nil, "runs ", "waits ")
	g.runs(0, "job explain JOB", waits, "nvidia/gpu: 4 are requested, at most 0 are free")
	g.runs(0, "job allocs JOB", names, runs[0].ID[:8])
	g.runs(0, "job status JOB", names, "Submitted By  = ada")
	g.runs(0, "alloc status ALLOC", names, "max_run_duration")
	g.runs(0, "alloc status -stats ALLOC", names)
	g.runs(0, "job inspect -hcl JOB", names, "job \"runs\" {")
	g.runs(0, "alloc signal -s SIGUSR1 ALLOC", names)
	g.runs(0, "alloc suspend ALLOC", names, "is suspended")
	g.runs(0, "alloc resume ALLOC", names, "is running")
	g.runs(0, "alloc restart ALLOC", names)
	g.runs(0, "alloc logs -job JOB", map[string]string{"JOB": "train"}, "part ")
	g.runs(0, "job stop -yes -filter 'Status == \"pending\" and Submitter == \"ada\"'", nil, `Job "waits"`)
	g.runs(0, "job restart -yes -reschedule JOB", names, "All allocations rescheduled successfully!")

	g.runs(0, "node status", nil, "gpu-0", "gpu-1")
	g.runs(0, "node status NODE", names, "nvidia/gpu/H100  4    4     0     0")
	g.runs(0, "topology", nil, "8 devices on 2 nodes: 8 used, 0 free")
	g.runs(0, "node pool list", nil, "default")
	g.runs(0, "node pool nodes default", nil, "gpu-0")
	g.runs(0, "node eligibility -disable NODE", names)
	g.runs(0, "node eligibility -enable NODE", names)
	g.runs(0, "what-if drain:NODE:at=18:00", names, "Figure")
	g.runs(0, "license status vcs", nil, "Count       = 10")
	g.runs(0, "operator scheduler set-config -preempt-batch-scheduler=true", nil)
	g.runs(0, "operator metrics", nil, "Gauges")
	g.runs(0, "check", nil)
	harness.CheckOutput(t, a, 0, "project apply -force ../../examples/projects/projects.hcl")
	g.runs(0, "project report PROJECT", names)

	// One less, and then none; what ended is in the history.
	g.runs(0, "job scale -detach JOB 1", names)
	a.WaitRunning("runs", 1, 20*time.Second)
	g.runs(0, "job stop JOB", names)
	g.runs(0, "job start -detach JOB", names)
	g.runs(0, `operator api '/v1/history?filter=JobID=="JOB"'`, names, `"Submitter":"ada"`)
	a.WaitRunning("runs", 1, 20*time.Second)
	g.runs(0, "node drain -enable -detach -yes -m disk NODE", names)
	g.runs(0, `node status -t '{{range .}}{{if .LastDrain}}{{.Name}} {{.LastDrain.Status}} {{.LastDrain.Meta.message}}{{"\n"}}{{end}}{{end}}'`, nil, " disk\n")
	g.runs(0, "node drain -disable -yes NODE", names)
	g.runsScripts()
	g.placesByBlocks()
	for line := range g.left {
		t.Errorf("no test runs `nomadish %s`", line)
	}
}

// slurmJob is a job file of which each instance is a script that ends with its first failure.
func slurmJob(a *harness.Agent, name string, count, priority int, script string) string {
	return a.JobFile(name, fmt.Sprintf(`job %q {
  type     = "batch"
  priority = %d
  group "g" {
    count = %d
    restart {
      attempts = 0
    }
    reschedule {
      attempts  = 0
      unlimited = false
    }
    task "t" {
      driver = "raw_exec"
      env { NODE = "${node.unique.name}" }
      config {
        command = "/bin/sh"
        args    = ["-c", %q, "train.sh", "a"]
      }
      resources {
        cpu    = 10
        memory = 20
      }
    }
  }
}
`, name, priority, count, script))
}

// runsScripts runs the commands of the guide that are about instances of jobs with a script.
func (g *guide) runsScripts() {
	g.t.Helper()
	t, a, out := g.t, g.a, g.t.TempDir()
	for _, says := range []string{"`exec >/shared/out-$NOMAD_ALLOC_INDEX 2>&1`", `args = ["-c", file("train.sh"), "train.sh", "a", "b"]`, "`env { NODE = \"${node.unique.name}\" }`"} {
		if !strings.Contains(g.text, says) {
			t.Errorf("the guide does not say %s", says)
		}
	}
	script := strings.ReplaceAll(`exec >>OUT/out-$NOMAD_ALLOC_INDEX 2>&1; echo "$0 $1 on $NODE"; [ $NOMAD_ALLOC_INDEX != 1 ]`, "OUT", out)
	ran := func(want ...int) {
		t.Helper()
		for i, n := range want {
			text, err := os.ReadFile(fmt.Sprintf("%s/out-%d", out, i))
			if got := len(regexp.MustCompile(`(?m)^train.sh a on \S+$`).FindAll(text, -1)); err != nil || got != n {
				t.Errorf("instance %d ran %d times, want %d: %s, %v", i, got, n, text, err)
			}
		}
	}

	// One instance fails: submitted again the job has failed, and that instance runs again on request. A change runs again what has completed.
	fails := map[string]string{"JOB": "fails"}
	harness.CheckOutput(t, a, 1, "job run "+slurmJob(a, "fails", 2, 50, script), "1 of 2 allocations failed")
	g.runs(0, `job allocs -t '{{range .}}{{.Name}} {{.ClientStatus}} {{.NodeName}}{{"\n"}}{{end}}' JOB`, fails, "fails.g[0] complete ", "fails.g[1] failed ")
	harness.CheckOutput(t, a, 1, "job run "+slurmJob(a, "fails", 2, 50, script), "1 of 2 allocations failed", "Nothing is placed")
	ran(1, 1)
	g.runs(1, "job eval -force-reschedule JOB", fails)
	ran(1, 2)
	harness.CheckOutput(t, a, 1, "job run "+slurmJob(a, "fails", 2, 45, script), "1 of 2 allocations failed")
	ran(2, 3)
	harness.CheckOutput(t, a, 0, "job scale fails 1")
	ran(3, 3)

	// A signal reaches what the script has started, too.
	const started = `sh -c 'trap "echo started got it; exit" USR1; echo ready; while :; do sleep 0.1; done' & wait; wait`
	harness.CheckOutput(t, a, 0, "job run -detach "+slurmJob(a, "signals", 1, 50, "trap 'echo script got it' USR1; "+started))
	signals := a.WaitRunning("signals", 1, 20*time.Second)[0].ID
	harness.WaitOutput(t, a, "alloc logs "+signals, "ready\n")
	harness.CheckOutput(t, a, 0, "alloc signal -s SIGUSR1 "+signals)
	harness.WaitOutput(t, a, "alloc logs "+signals, "started got it\n", "script got it\n")

	// One is ended for good, and one is submitted that does not start until it is scaled.
	harness.CheckOutput(t, a, 0, "job run -detach "+slurmJob(a, "many-1", 2, 50, "exec sleep 3600"))
	many := a.WaitRunning("many-1", 2, 20*time.Second)
	g.runs(0, "alloc signal -s SIGKILL ALLOC", map[string]string{"ALLOC": many[0].ID})
	harness.WaitOutput(t, a, "job status many-1", "g           0       0         1        1       0         0     0\n")
	g.runs(0, "job stop -yes -prefix PREFIX", map[string]string{"PREFIX": "many"}, `Job "many-1"`)
	harness.CheckOutput(t, a, 0, "job run -detach -user ada "+slurmJob(a, "later", 0, 50, "exec sleep 3600"))
	g.runs(0, "job scale -detach JOB 4", map[string]string{"JOB": "later"})
	a.WaitRunning("later", 4, 20*time.Second)
	harness.CheckOutput(t, a, 0, "job run -detach -user ada "+slurmJob(a, "ends", 1, 50, "exec sleep 3600"))
	g.runs(0, `job stop -yes -filter 'Submitter == "ada" and Status != "dead"'`, nil, `Job "ends"`)
	g.runs(0, `operator api '/v1/history?filter=Submitter=="ada"'`, nil, `"Submitter":"ada"`)
}

// placesByBlocks runs a job with the constraints that the guide shows, and jobs with the settings of a group that it names.
func (g *guide) placesByBlocks() {
	g.t.Helper()
	_, where, _ := strings.Cut(g.text, "```hcl\nconstraint {")
	where, _, _ = strings.Cut("constraint {"+where, "```")
	for name, of := range map[string]string{
		"where": where, "kept": "prevent_reschedule_on_lost = true\n", "unknown": "disconnect { replace = false }\n",
	} {
		if !strings.Contains(g.text, strings.TrimSpace(of)) {
			g.t.Errorf("the guide does not say %s", of)
		}
		harness.CheckOutput(g.t, g.a, 0, "job run -detach "+g.a.JobFile(name, fmt.Sprintf(`job %q {
  group "g" {
    %s
    task "t" {
      driver      = "mock_driver"
      kill_signal = "SIGUSR1"
      kill_timeout = "30s"
      config { run_for = "1h" }
      resources {
        cpu    = 10
        memory = 10
      }
    }
  }
}
`, name, of)))
	}
	if on := g.a.WaitRunning("where", 1, 20*time.Second)[0].NodeName; on != "gpu-0" {
		g.t.Errorf("it runs on %s, want gpu-0", on)
	}
}
