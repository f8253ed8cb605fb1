package projects

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// TestStatedSlots: nodes state their slots, in the agent's file and in shapes, and these are what a calendar may give out.
func TestStatedSlots(t *testing.T) {
	t.Parallel()
	layouts := "shape \"gpu\" {\n  count = 2\n  cores = 8\n  slots {\n    batch = 3\n    wide  = 1\n  }\n  gpus \"nvidia/gpu/H100\" {}\n}\n" +
		"shape \"none\" {\n  cores = 8\n  slots {}\n}\n"
	a := harness.NewAgent(t, true, strings.Replace(harness.Simulate(t, layouts), "client {", "name = \"own\"\nclient {\n  simulate_beside = true\n  slots {\n    wide = 1\n  }\n", 1)+
		"server {\n  scheduling {\n    slot \"wide\" {\n      cores = 2\n    }\n  }\n}\n")
	a.Start()
	a.WaitReady(4)
	harness.CheckOutput(t, a, 0, "operator scheduler get-config", "Slot wide                     = cores:2,grace:1m0s")
	harness.CheckOutput(t, a, 0, "node status own", "= wide: 1")
	harness.CheckOutput(t, a, 0, "node status gpu-1", "= batch: 3, wide: 1")
	harness.CheckOutput(t, a, 0, "node status none-0", "= <none>")
	file := filepath.Join(a.Dir, "p.hcl")
	if err := os.WriteFile(file, []byte("project \"chip\" {\n  users = [\"root\"]\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	harness.CheckOutput(t, a, 0, "project apply "+file)
	harness.CheckOutput(t, a, 1, "project calendar -type batch -slots 7 chip", "there are 6 slots")
	harness.CheckOutput(t, a, 1, "project calendar -type wide -slots 4 chip", "there are 3 slots")
	harness.CheckOutput(t, a, 0, "project calendar -type wide -slots 3 chip")
}

// TestProjectsGuide walks docs/guides/projects.md, and what it tells stays after a restart.
func TestProjectsGuide(t *testing.T) {
	t.Parallel()
	nodes, err := filepath.Abs("../../examples/projects/nodes.hcl")
	if err != nil {
		t.Fatal(err)
	}
	a := harness.NewAgent(t, false, fmt.Sprintf("server {\n  enabled          = true\n  bootstrap_expect = 1\n  calendar {\n    time_zone = \"Europe/Berlin\"\n  }\n}\nclient {\n  enabled = true\n  simulate = %q\n}\n", nodes))
	a.Start()
	a.WaitReady(4)
	harness.CheckOutput(t, a, 0, "operator scheduler get-config", "weeks begin at mon 00:00 in Europe/Berlin")
	harness.CheckOutput(t, a, 0, "project list", "No projects")
	harness.CheckOutput(t, a, 1, "project apply ../../examples/projects/projects.hcl", `has no user "ada"`, "-force")
	harness.CheckOutput(t, a, 0, "project apply -force ../../examples/projects/projects.hcl", `Successfully applied flow "chip"!`, `Successfully applied project "chip-a"!`, `Successfully applied project "regress"!`)
	harness.CheckOutput(t, a, 0, "project calendar -type batch -slots 40 -step synthesis chip-a", "has 40 batch (synthesis, any)")
	harness.CheckOutput(t, a, 0, "project calendar -type batch -slots 4 -group chip -job sim-* chip-a", "has 40 batch (synthesis, any); 4 batch (any, group:chip, sim-*)")
	harness.CheckOutput(t, a, 1, "project calendar -type batch -slots 21 regress", "there are 64 slots, 44 of them are given to other projects, and 21 are requested: 1 too many", "(HTTP 409)")
	harness.CheckOutput(t, a, 0, "project calendar -type batch -slots 20 regress")
	harness.CheckOutput(t, a, 1, "project calendar -week 2020-W01 -type batch -slots 1 regress", "the week is over, and cannot be edited; this is week 2", "(HTTP 400)")
	harness.CheckOutput(t, a, 1, "project calendar -week 2026-W54 -type batch -slots 1 regress", "the year 2026 has the weeks W01 to W53")
	harness.CheckOutput(t, a, 1, "project calendar -type batch -slots 1 -step paint chip-a", `the project has no step "paint" (its steps are synthesis, place, route)`)
	harness.CheckOutput(t, a, 1, "project calendar -type large -slots 1 chip-a", "known types are batch, interactive-heavy, interactive-light")
	harness.CheckOutput(t, a, 1, "flow delete chip", `project "chip-a" follows it`)

	// Two edits of one week: the second is shown what it would have overwritten.
	ctx, projects := t.Context(), a.API.Projects()
	calendar, _, err := projects.Calendar(ctx, "regress", "", nil)
	if err != nil || len(calendar.Weeks) != 13 {
		t.Fatalf("%+v %v", calendar, err)
	}
	week := calendar.Weeks[2]
	row := []structs.CalendarRow{{Type: "batch", Count: 7}}
	if _, err := projects.EditWeek(ctx, "regress", week.Week, row, api.Check{CAS: true, Index: week.Index}); err != nil {
		t.Fatal(err)
	}
	if _, err := projects.EditWeek(ctx, "regress", week.Week, nil, api.Check{CAS: true, Index: week.Index}); harness.HTTPStatus(err) != 409 {
		t.Errorf("the second edit: %v", err)
	}

	a.Kill()
	a.Start()
	harness.WaitOutput(t, a, "project status chip-a", "batch  synthesis, any          40", "batch  any, group:chip, sim-*  4", "Steps    = synthesis, place, route")
	harness.CheckOutput(t, a, 0, "project edits chip-a", "operator", "40 batch (synthesis, any); 4 batch (any, group:chip, sim-*)")
	harness.CheckOutput(t, a, 0, "project list", "regress  2      0       <none>  1      throughput (3000 jobs per 1d0h)  20 batch")
	harness.CheckOutput(t, a, 0, "project delete chip-a", `Successfully deleted project "chip-a"!`)
	harness.CheckOutput(t, a, 0, "project calendar -type batch -slots 64 regress", "has 64 batch (any, any)")
	harness.CheckOutput(t, a, 0, "flow delete chip", `Successfully deleted flow "chip"!`)
	harness.CheckOutput(t, a, 0, "flow list", "No flows")
}

// TestProjectReport: what instances of a project use is shown while they run, and in the report after they, their job and the server's process have gone.
func TestProjectReport(t *testing.T) {
	t.Parallel()
	nodes, err := filepath.Abs("../../examples/projects/nodes.hcl")
	if err != nil {
		t.Fatal(err)
	}
	a := harness.NewAgent(t, false, fmt.Sprintf("server {\n  enabled           = true\n  bootstrap_expect  = 1\n  trust_user_header = true\n}\nclient {\n  enabled = true\n  simulate = %q\n}\n", nodes))
	a.Start()
	a.WaitReady(4)
	harness.CheckOutput(t, a, 0, "project apply -force ../../examples/projects/projects.hcl")
	harness.CheckOutput(t, a, 0, "project calendar -type batch -slots 4 -step synthesis chip-a")
	file := filepath.Join(t.TempDir(), "sim.nomad.hcl")
	if err := os.WriteFile(file, []byte(`job "sim" {
  type    = "batch"
  project = "chip-a"
  step    = "synthesis"
  group "g" {
    count = 66
    task "t" {
      driver = "mock_driver"
      config {
        run_for = "5s"
      }
      resources {
        cores  = 1
        memory = 64
      }
    }
  }
}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	harness.CheckOutput(t, a, 0, "job run -detach -user ada "+file, `Recognised: project "chip-a"`)
	harness.WaitOutput(t, a, "project status chip-a", "batch  synthesis, any  4      4     60        0     0       0       2 ")
	harness.WaitOutput(t, a, "project status chip-a", "batch  synthesis, any  4      0     0         4     0       0       0        <none>")
	harness.CheckOutput(t, a, 0, "job stop -detach -purge sim")
	harness.CheckOutput(t, a, 0, "system gc")
	a.Kill()
	a.Start()
	harness.WaitOutput(t, a, "project report chip-a", "Mean run = 5s", "  66      66         0         0 ")
	report, _, err := a.API.Projects().Report(t.Context(), "chip-a", "", nil)
	if err != nil || len(report.Weeks) == 0 || len(report.Weeks[0].Types) != 1 {
		t.Fatalf("%+v %v", report, err)
	}
	// Of 66 runs of 5 seconds 4 or 5 were on slots at a time. A run lasts a little longer than its task.
	s := report.Weeks[0].Types[0]
	if s.Used < 15 || s.Borrowed < 280 || s.Used+s.Borrowed < 66*5-15 || s.Given < s.Used || s.WaitP95Seconds > 60 {
		t.Errorf("%+v", s)
	}
	harness.CheckOutput(t, a, 0, "project report -week 2020-W01 chip-a", "had no slots and ran nothing in these weeks")
	harness.CheckOutput(t, a, 1, "project report -week W01 chip-a", "write an ISO week")
}
