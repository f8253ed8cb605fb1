package command

import (
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

func chipProject() *structs.ProjectStatus {
	return &structs.ProjectStatus{
		Name: "chip", Users: []string{"ada"}, Groups: []string{"chip"}, Managers: []string{"lead"}, Flow: "asic", Steps: []string{"synthesis", "place"},
		Objective: "velocity", Week: "2026-W48", Ends: time.Date(2026, 11, 29, 23, 0, 0, 0, time.UTC), TimeZone: "Europe/Berlin",
		Slots: []*structs.ProjectSlots{
			{Type: "batch", Step: "synthesis", Given: 40, Used: 40, Borrowed: 12, Guards: 2, Pending: 7, OldestPendingSeconds: 14.2},
			{Type: "batch", Group: "chip", Job: "sim-*", Given: 4, Used: 1, Lent: 3, Beside: 2},
		},
	}
}

func chipRows() []structs.CalendarRow {
	return []structs.CalendarRow{{Type: "batch", Step: "synthesis", Count: 40}, {Type: "batch", Group: "chip", Job: "sim-*", Count: 4}}
}

func chipCalendar() *structs.ProjectCalendar {
	from := time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC)
	return &structs.ProjectCalendar{Project: "chip", TimeZone: "Europe/Berlin", Weeks: []*structs.CalendarWeek{
		{Week: "2026-W48", From: from, To: from.AddDate(0, 0, 7), Index: 12, Rows: chipRows()},
		{Week: "2026-W49", From: from.AddDate(0, 0, 7), To: from.AddDate(0, 0, 14)},
	}}
}

func chipEdits() []*structs.CalendarEdit {
	return []*structs.CalendarEdit{
		{Project: "chip", Week: "2026-W48", Index: 12, Time: ago(0), By: "lead", Before: chipRows()[:1], After: chipRows()},
		{Project: "chip", Week: "2026-W48", Index: 11, Time: ago(time.Hour), After: chipRows()[:1]},
	}
}

// TestProjectQueue: the jobs of a project that wait follow its slots, with when they start by the forecast.
func TestProjectQueue(t *testing.T) {
	waits := smallQueue()
	waits[0].Project, waits[0].Step = "chip", "place"
	waits[0].Forecast = &structs.QueueForecast{Index: 7, Expected: present.Add(time.Hour).UnixNano(), Latest: present.Add(2 * time.Hour).UnixNano()}
	got := newFake(t).on("GET /v1/projects", []*structs.ProjectStatus{chipProject()}).on("GET /v1/queue", waits).run(t, "project", "status", "chip")
	wants(t, got.out, "Waiting Job  Namespace  Group    Step   Missing  Expected  Latest\ntrain        default    workers  place  4 of 8   13:00:00  14:00:00\n", "by the forecast of index 7")
	if strings.Contains(got.out, "\nlate ") {
		t.Errorf("a job of no project is among them:\n%s", got.out)
	}
}

// The output that the design shows, to the letter, as far as there is something to show.
func TestProjectOutput(t *testing.T) {
	f := cluster(t)
	for line, want := range map[string]string{
		"project status chip": `Week 2026-W48 (until Mon 00:00 Europe/Berlin)   Objective = velocity
Type   Row                     Given  Used  Borrowed  Lent  Beside  Guards  Pending  Oldest
batch  synthesis, any          40     40    12        0     0       2       7        14s
batch  any, group:chip, sim-*  4      1     0         3     2       0       0        <none>

Name     = chip
Users    = ada
Groups   = chip
Managers = lead
Flow     = asic
Steps    = synthesis, place
`,
		"project calendar chip": `Week      Begins (Europe/Berlin)  Type    Row                     Slots
2026-W48  Mon 2026-11-23 00:00    batch   synthesis, any          40
                                  batch   any, group:chip, sim-*  4
2026-W49  Mon 2026-11-30 00:00    <none>
`,
		"project edits chip": `Time                       By        Week      Before                     After
2026-11-21T12:00:00+00:00  lead      2026-W48  40 batch (synthesis, any)  40 batch (synthesis, any); 4 batch (any, group:chip, sim-*)
2026-11-21T11:00:00+00:00  operator  2026-W48  no slots                   40 batch (synthesis, any)
`,
	} {
		if got := f.run(t, strings.Fields(line)...); got.out != want || got.code != exitDone {
			t.Errorf("%s: %d %s, got\n%s\nwant\n%s", line, got.code, got.err, got.out, want)
		}
	}
	empty := &structs.ProjectStatus{Name: "new", Objective: "throughput", Throughput: &structs.Throughput{Jobs: 3000, Per: 24 * time.Hour}, Week: "2026-W48", TimeZone: "nowhere"}
	f = newFake(t).on("GET /v1/projects", []*structs.ProjectStatus{empty}).on("GET /v1/flows", []*structs.Flow{}).on("GET /v1/project/new/edits", []*structs.CalendarEdit{})
	wants(t, f.run(t, "project", "status", "new").out, "Objective = throughput (3000 jobs per 1d0h)\nIt has no slots this week\n")
	wants(t, f.run(t, "project", "edits", "new").out, "No edits\n")
	wants(t, f.run(t, "flow", "list").out, "No flows\n")
}

// chipReport is what project chip had and used in two weeks.
func chipReport() *structs.ProjectReport {
	from := time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC)
	week := func(name string, n int, types ...*structs.ReportSlots) *structs.ReportWeek {
		return &structs.ReportWeek{Week: name, From: from.AddDate(0, 0, 7*n), To: from.AddDate(0, 0, 7*n+7), Types: types}
	}
	return &structs.ProjectReport{Project: "chip", TimeZone: "Europe/Berlin", MeanRunSeconds: 90.4, Weeks: []*structs.ReportWeek{
		week("2026-W48", 0, &structs.ReportSlots{
			Type: "batch", Given: 7200, Used: 3600, Borrowed: 900, Lent: 3600, Beside: 1800, Guards: 360, Placed: 9, Completed: 7, Requeued: 2, Suspended: 1,
			WaitMeanSeconds: 4.4, WaitP95Seconds: 90,
		}, &structs.ReportSlots{Type: "big", Given: 36, Lent: 36}),
		week("2026-W47", -1, &structs.ReportSlots{Type: "batch", Given: 604800 * 4, Lent: 604800 * 4}),
	}}
}

func TestProjectReport(t *testing.T) {
	f := newFake(t).on("GET /v1/projects", []*structs.ProjectStatus{chipProject()}).on("GET /v1/project/chip/report", chipReport())
	got := f.run(t, "project", "report", "chip")
	if want := `Amounts are slot-hours   Time zone = Europe/Berlin   Mean run = 1m30s
Week      Type   Given   Used  Borrowed  Lent    Beside  Guards  Placed  Completed  Requeued  Suspended  Mean Wait  P95 Wait
2026-W48  batch  2.00    1.00  0.25      1.00    0.50    0.10    9       7          2         1          4s         1m30s
2026-W48  big    0.01    0.00  0.00      0.01    0.00    0.00    0       0          0         0          <none>     <none>
2026-W47  batch  672.00  0.00  0.00      672.00  0.00    0.00    0       0          0         0          <none>     <none>
`; got.out != want || got.code != exitDone {
		t.Errorf("%d %s, got\n%s\nwant\n%s", got.code, got.err, got.out, want)
	}
	if got := f.run(t, "project", "report", "-weeks", "1", "chip"); strings.Contains(got.out, "W47") {
		t.Errorf("one week: %s", got.out)
	}
	wants(t, f.run(t, "project", "report", "-json", "-week", "2026-W48", "chip").out, `"WaitP95Seconds": 90`)
	for args, want := range map[string]string{"-weeks 0 chip": "must be 1 or more", "-week 2026-W48 -weeks 2 chip": "both stated", "": "one project is needed"} {
		if got := f.run(t, append([]string{"project", "report"}, strings.Fields(args)...)...); got.code == exitDone || !strings.Contains(got.err, want) {
			t.Errorf("%q: %d %s", args, got.code, got.err)
		}
	}
	f = newFake(t).on("GET /v1/projects", []*structs.ProjectStatus{chipProject()}).on("GET /v1/project/chip/report", &structs.ProjectReport{Project: "chip"})
	wants(t, f.run(t, "project", "report", "chip").out, `Project "chip" had no slots and ran nothing in these weeks`)
}

const chipFile = `flow "asic" {
  steps = ["synthesis", "place"]
}
project "chip" {
  users = ["ada"]
  flow  = "asic"
  calendar "2026-W48" {
    slots {
      type  = "batch"
      step  = "synthesis"
      count = 40
    }
  }
  calendar "2026-W49" {}
}
project "board" {
  objective = "throughput"
  throughput {
    jobs = 3000
    per  = "24h"
  }
}
`

func TestProjectApply(t *testing.T) {
	f := newFake(t).on("PUT /v1/flow/asic", "").on("PUT /v1/project/chip", "").on("PUT /v1/project/board", "").on("PUT /v1/project/chip/calendar", "")
	path := file(t, "chip.hcl", chipFile)
	got := f.run(t, "project", "apply", path)
	want := `Successfully applied flow "asic"!
Successfully applied project "chip"!
Successfully applied week 2026-W48 of project "chip"!
Successfully applied week 2026-W49 of project "chip"!
Successfully applied project "board"!
`
	if got.out != want || got.code != exitDone {
		t.Errorf("exit code %d, %q, %q", got.code, got.out, got.err)
	}
	sent := strings.Join(f.requests("PUT"), "\n") + strings.Join(f.bodies, "\n")
	wants(t, sent, "/v1/project/chip/calendar?week=2026-W48", `{"Rows":[{"Type":"batch","Step":"synthesis","Count":40}]}`, `"Per":86400000000000`, `"Flow":"asic"`)
	if strings.Contains(sent, "force") {
		t.Errorf("it is forced: %s", sent)
	}
	f.run(t, "project", "apply", "-force", path)
	wants(t, strings.Join(f.requests("PUT"), "\n"), "/v1/project/board?force=true", "/v1/project/chip/calendar?force=true&week=2026-W49")
	f.answers["PUT /v1/project/chip/calendar"] = []any{refusal{409, `project "chip": calendar "2026-W48": type "batch": there are 30 slots`}}
	wants(t, f.run(t, "project", "apply", path).err, path+`:7:3: project "chip": calendar "2026-W48": type "batch": there are 30 slots`)
	f.answers["PUT /v1/project/chip/calendar"] = []any{refusal{400, `project "chip": calendar "2026-W48": slots 1: step: the project has no step "synthesis"`}}
	wants(t, f.run(t, "project", "apply", path).err, path+`:10:7: project "chip": calendar "2026-W48": slots 1: step: the project has no step`)
	wants(t, f.run(t, "project", "apply", "-check-index", "3", path).err, "-check-index is of one project")
	wants(t, f.run(t, "flow", "apply", path).err, "has projects: `nomadish project apply` applies them")
	wants(t, f.runIn(t, "flow \"asic\" {\n  steps = [\"a\"]\n}", "flow", "apply", "-").out, `Successfully applied flow "asic"!`)
}

// What an edit takes away that a user may not expect is said.
func TestProjectLosses(t *testing.T) {
	f := cluster(t).on("GET /v1/project/chip", chipProject()).on("PUT /v1/project/chip", "").on("DELETE /v1/project/chip", "")
	wants(t, f.runIn(t, "project \"chip\" {\n  managers = [\"boss\"]\n  groups = [\"chip\"]\n}", "project", "apply", "-").err,
		`Warning: project "chip" has no longer users ada; managers lead: a project block replaces all but the calendar`)
	if got := f.runIn(t, "project \"chip\" {\n  users = [\"ada\"]\n  managers = [\"lead\", \"boss\"]\n  groups = [\"chip\"]\n}", "project", "apply", "-"); got.err != "" {
		t.Errorf("nothing is lost: %q", got.err)
	}
	wants(t, f.run(t, "project", "delete", "chip").out, "Successfully deleted project \"chip\"!\nSlots that were in use: 41. Their instances run on without them")
	f.answers["DELETE /v1/project/chip"] = []any{refusal{404, "project not found"}}
	if got := f.run(t, "project", "delete", "chip"); got.out != "" {
		t.Errorf("it was refused: %q", got.out)
	}
}

// Whatever is wrong with a file, it is said where, and nothing is sent.
func TestProjectFilesThatAreWrong(t *testing.T) {
	in := func(body, want string) {
		t.Helper()
		agent := newFake(t)
		got := agent.runIn(t, body, "project", "apply", "-")
		if got.code != exitFailed || !strings.Contains(got.err, want) || len(agent.requests("PUT")) > 0 {
			t.Errorf("%s: exit code %d, %q, want %q", body, got.code, got.err, want)
		}
	}
	of := func(body, want string) { t.Helper(); in("project \"a\" {\n"+body+"\n}\n", want) }
	in("", "the file has no project and no flow")
	in("a = 1", `unknown attribute "a"`)
	in("job \"a\" {}", `unknown block "job": at the top of the file stand only blocks project and flow`)
	in("project {}", `a project needs a name: write project "NAME" { … }`)
	in("flow \"a\" {}", `-:1:1: flow "a": steps: it has none`)
	in("flow \"a\" {\n steps = [\"b\", \"b\"]\n}", `-:2:2: flow "a": steps: "b" is stated twice`)
	in("project \"a\" {}\nproject \"a\" {}", `project "a": the file states it twice`)
	of(`usrs = []`, `unknown attribute "usrs"; did you mean "users"?`)
	of("flow = \"f\"\nsteps = [\"s\"]", `-:2:1: project "a": flow and steps are both stated`)
	of(`objective = "speed"`, `-:2:1: project "a": objective: must be "velocity" or "throughput", not "speed"`)
	of("throughput {\n jobs = 1\n per = \"1h\"\n}", "throughput is stated, and the objective is not")
	of("calendar \"2026-W54\" {}", `-:2:1: project "a": calendar "2026-W54": there is no such week`)
	of("calendar \"2026-W48\" {}\ncalendar \"2026-W48\" {}", "the week is stated twice")
	of("calendar \"2026-W48\" {\n slots {\n  type = \"batch\"\n  count = -1\n }\n}", `-:5:3: project "a": calendar "2026-W48": slots 1: count: must be 0 to 1000000, not -1`)
	of("calendar \"2026-W48\" {\n slots {\n  type = \"overflow\"\n }\n}", `-:4:3: project "a": calendar "2026-W48": slots 1: type: "overflow"`)
}

// A row is changed beside the others, and only if the week is as it was read.
func TestProjectCalendarEdit(t *testing.T) {
	f := cluster(t).on("GET /v1/project/chip", chipProject()).on("PUT /v1/project/chip/calendar", "")
	edit := func(args, requested, body string) {
		t.Helper()
		got := f.run(t, append([]string{"project", "calendar"}, strings.Fields(args)...)...)
		if got.code != exitDone || !strings.HasPrefix(got.out, "Week 2026-W48 of project \"chip\" has ") {
			t.Errorf("%s: %d %q %q", args, got.code, got.out, got.err)
		}
		puts := f.requests("PUT")
		wants(t, puts[len(puts)-1], requested)
		wants(t, f.lastPut(), body)
	}
	edit("-type batch -slots 3 chip", "/v1/project/chip/calendar?cas=12&week=2026-W48", `{"Type":"batch","Group":"chip","Job":"sim-*","Count":4},{"Type":"batch","Count":3}]`)
	edit("-type batch -slots 3 -force -user ada chip", "/v1/project/chip/calendar?cas=12&force=true&week=2026-W48", `"User":"ada","Count":3}]`)
	edit("-type batch -slots 0 -step synthesis chip", "cas=12", `{"Rows":[{"Type":"batch","Group":"chip","Job":"sim-*","Count":4}]}`)
	edit("-type batch -slots 7 -group chip -job sim-* chip", "cas=12", `{"Type":"batch","Group":"chip","Job":"sim-*","Count":7}`)
	for args, want := range map[string]string{
		"-type batch chip":             "-slots is missing",
		"-slots 3 chip":                "-type is missing",
		"-slots -3 -type batch chip":   "-slots -3: must be 0 or more",
		"-slots 3 -type batch":         "one project is needed, 0 given",
		"-slots many -type batch chip": "-slots",
	} {
		if got := f.run(t, append([]string{"project", "calendar"}, strings.Fields(args)...)...); got.code != exitFailed || !strings.Contains(got.err, want) {
			t.Errorf("%s: %d %q, want %q", args, got.code, got.err, want)
		}
	}
	wants(t, f.run(t, "project", "calendar", "-type", "batch", "-slots", "1", "-user", "bin", "chip").err,
		`Warning: user "bin" is not one of the users of project "chip": the row counts only if the user is in one of its groups (chip)`)
	if got := f.run(t, "project", "calendar", "-type", "batch", "-slots", "1", "-user", "ada", "chip"); got.err != "" {
		t.Errorf("a member: %q", got.err)
	}
	puts := len(f.requests("PUT"))
	got := f.run(t, "project", "calendar", "-type", "batch", "-slots", "0", "-step", "place", "chip")
	if want := `week 2026-W48 of project "chip" has no row batch (place, any): it has 40 batch (synthesis, any); 4 batch (any, group:chip, sim-*)`; got.code != exitFailed ||
		!strings.Contains(got.err, want) || len(f.requests("PUT")) != puts {
		t.Errorf("a row that does not exist: %d %q, want %q", got.code, got.err, want)
	}
	f.answers["PUT /v1/project/chip/calendar"] = []any{refusal{400, `project "chip": calendar "2026-W48": slots 2: step: there is none`}}
	wants(t, f.run(t, "project", "calendar", "-type", "batch", "-slots", "3", "chip").err, `project "chip": calendar "2026-W48": step: there is none (HTTP 400)`)
	f.answers["PUT /v1/project/chip/calendar"] = []any{refusal{409, "it was last edited at index 13, not 12"}}
	wants(t, f.run(t, "project", "calendar", "-type", "batch", "-slots", "3", "chip").err, "it was last edited at index 13, not 12 (HTTP 409)")
}
