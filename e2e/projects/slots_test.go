package projects

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// slotsNode is the configuration of an agent whose own node has two slots of 1000 MHz, and so much memory in MiB.
func slotsNode(memory int) string {
	return fmt.Sprintf("client {\n  enabled = true\n  cpu_total_compute = 2000\n  memory_total_mb = %d\n  slots {\n    batch = 2\n  }\n}\nplugin \"raw_exec\" {\n  config {\n    enabled = true\n  }\n}\n", memory)
}

// counts is a script that writes its process ID once and then its progress, a line each, until a file is there.
func counts(file string) string {
	return `echo $$ >> ` + file + `.pid; while [ ! -e ` + file + `.end ]; do echo x >> ` + file + `; sleep 0.05; done`
}

// TestSlotsTakeover: a project gets its slots with real processes. A counter of no project is suspended for the instance of a project, in whose place that
// runs and ends; then the counter goes on as the same process. Where its memory cannot stay beside the other's, it starts anew and knows why.
func TestSlotsTakeover(t *testing.T) {
	t.Parallel()
	for name, memory := range map[string]int{"both fit": 200, "one fits": 100} {
		t.Run(name, func(t *testing.T) {
			a := harness.StartDev(t, slotsNode(memory))
			harness.CheckOutput(t, a, 0, "operator scheduler set-config -grace 1s -max-requeues 100")
			harness.CheckOutput(t, a, 0, "project apply "+a.JobFile("projects", "project \"chip\" {\n  users = [\"root\"]\n}\n"))
			harness.CheckOutput(t, a, 0, "project calendar -type batch -slots 1 chip")
			file := filepath.Join(a.Dir, "progress")
			counter := harness.WithResources(harness.ProcessJob("counter", 50, "type = \"batch\"\n  reclaim = \"suspend\"", "", counts(file)), 2000, 60)
			a.Submit("counter", counter)
			first := a.WaitRunning("counter", 1, 20*time.Second)[0].ID
			harness.WaitFileLines(t, file+".pid", 1)

			own := harness.WithResources(harness.ProcessJob("own", 50, "type = \"batch\"\n  project = \"chip\"", "", "while [ ! -e "+file+".go ]; do sleep 0.05; done"), 1000, 60)
			harness.CheckOutput(t, a, 0, "job run -detach -user root "+a.JobFile("own", own), "Recognised")
			on := a.WaitRunning("own", 1, 20*time.Second)[0].ID
			alloc := a.ReadAllocs([]*structs.AllocListStub{{ID: on}})[0]
			if terms := alloc.AllocatedResources.Shared.Terms; terms == nil || terms.Claim != structs.ClaimSlots || terms.Slots.Project != "chip" {
				t.Errorf("its terms are %+v", terms)
			}
			victim := a.ReadAllocs([]*structs.AllocListStub{{ID: first}})[0]
			if victim.PreemptedByAllocation != on {
				t.Errorf("the counter left for %q, not for %s", victim.PreemptedByAllocation, on)
			}
			if name == "both fit" {
				a.WaitInStatus("counter", structs.AllocClientSuspended, 1, 10*time.Second)
				size := func() int64 {
					info, err := os.Stat(file)
					if err != nil {
						t.Fatal(err)
					}
					return info.Size()
				}
				stopped := size()
				harness.CheckOutput(t, a, 0, "job status own", "Project       = chip (recognised)", "took the place of 1 allocation of job \"counter\"")
				if now := size(); now != stopped {
					t.Errorf("the counter went on from %d to %d while it was suspended", stopped, now)
				}
			}
			if err := os.WriteFile(file+".go", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			next := a.WaitRunning("counter", 1, 30*time.Second)[0]
			if name == "both fit" {
				harness.WaitFileLines(t, file+".pid", 1)
				if next.ID != first {
					t.Errorf("%s goes on, not %s", next.ID, first)
				}
			} else {
				harness.WaitFileLines(t, file+".pid", 2)
				if next.Requeues != 1 || next.RequeueReason != "reclaimed for a slot of project chip" {
					t.Errorf("it was requeued %d times: %q", next.Requeues, next.RequeueReason)
				}
			}
			if err := os.WriteFile(file+".end", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			a.WaitInStatus("counter", structs.AllocClientComplete, 1, 20*time.Second)
		})
	}
}

// TestSlotsGolden: part 4's example of priorities through the API, with a short cycle: a recognised job has its bonus from the first boundary of a cycle
// after it was recognised, and ages by one each further cycle; a normal one ages from the start.
func TestSlotsGolden(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, slotsNode(200))
	harness.CheckOutput(t, a, 0, "operator scheduler set-config -cycle 1s -grace 1h")
	harness.CheckOutput(t, a, 0, "project apply "+a.JobFile("projects", "project \"chip\" {\n  users = [\"root\"]\n}\n"))
	harness.CheckOutput(t, a, 0, "project calendar -type batch -slots 1 chip")
	never := func(id, lines string) string {
		return a.JobFile(id, harness.WithResources(harness.ProcessJob(id, 20, "type = \"batch\"\n"+lines, "", "true"), 1_000_000, 16))
	}
	harness.CheckOutput(t, a, 0, "job run -detach -user root "+never("recognised", "  project = \"chip\"\n"))
	harness.CheckOutput(t, a, 0, "job run -detach "+never("normal", ""))
	seen := map[int64]bool{} // how many cycles the recognised job had waited
	harness.Within(t, 30*time.Second, "four cycles", func(ctx context.Context) error {
		list, _, err := a.API.Queue(ctx, "", nil)
		if err != nil {
			return err
		}
		for _, e := range list {
			cycles := (e.Since+int64(e.Waited))/int64(time.Second) - e.Since/int64(time.Second)
			want := 20 + cycles
			if e.JobID == "recognised" && cycles > 0 {
				want = 120 + cycles - 1
			}
			if e.Priority.Total != want {
				t.Errorf("after %d cycles the effective priority of %s is %d, want %d", cycles, e.JobID, e.Priority.Total, want)
			}
			seen[cycles] = seen[cycles] || e.JobID == "recognised"
		}
		if len(seen) < 4 {
			return fmt.Errorf("%v", seen)
		}
		return nil
	})
}

// TestProjectsShareNodes: the guide's two projects on one machine: what one does not use the other borrows until it is needed.
func TestProjectsShareNodes(t *testing.T) {
	t.Parallel()
	nodes, err := filepath.Abs("../../examples/projects/nodes.hcl")
	if err != nil {
		t.Fatal(err)
	}
	a := harness.NewAgent(t, true, "")
	a.Args = append(a.Args, "-simulate", nodes)
	a.Start()
	a.WaitReady(4)
	harness.CheckOutput(t, a, 0, "project apply -force ../../examples/projects/projects.hcl")
	harness.CheckOutput(t, a, 0, "project calendar -type batch -slots 40 -step synthesis chip-a")
	harness.CheckOutput(t, a, 0, "project calendar -type batch -slots 20 regress")
	harness.CheckOutput(t, a, 0, "operator scheduler set-config -grace 1s -max-requeues 100")
	harness.CheckOutput(t, a, 0, "job run -detach -user bob ../../examples/projects/sims.nomad.hcl", "Recognised")
	harness.WaitOutput(t, a, "project status regress", "batch  any, any  20     20    44        0     0       0       0        <none>")
	harness.CheckOutput(t, a, 0, "job run -detach -user ada ../../examples/projects/synth.nomad.hcl", "Recognised")
	harness.WaitOutput(t, a, "project status chip-a", "batch  synthesis, any  40     40    0         0     0       0       10")
	harness.WaitOutput(t, a, "project status regress", "batch  any, any  20     20    4         0     0       0       40")
	harness.CheckOutput(t, a, 0, "job explain synth", `Submission check: recognised: project "chip-a" has slots for it this week`,
		`10: slots: project "chip-a" uses all slots of type "batch" that this job may use this week (used: 40 by job "synth")`)
	harness.CheckOutput(t, a, 0, "job explain -verbose sims", `4: placed without a slot: project "regress" uses all 20 slots of type "batch"`, `guaranteed to others: 3 instances of job "synth"`)
	harness.CheckOutput(t, a, 0, "job status synth", `Its allocations took the place of 40 allocations of job "sims"`)
	harness.CheckOutput(t, a, 0, "job run -detach -user eve ../../examples/projects/synth.nomad.hcl", `is not a member of project "chip-a"`)
	harness.CheckOutput(t, a, 0, "job explain synth", `Submission check: not-a-member: user "eve", who submits it`, "members are user ada, group chip")
	harness.CheckOutput(t, a, 0, "job stop synth")
	harness.WaitOutput(t, a, "project status regress", "batch  any, any  20     20    44        0     0       0       0        <none>")
}
