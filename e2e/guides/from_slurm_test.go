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
	g.runs(0, "job run examples/slurm/train.nomad.hcl", nil, `finished with status "complete"`) // and nothing runs anew
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
	for line := range g.left {
		t.Errorf("no test runs `nomadish %s`", line)
	}
}
