package projects

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// sends sends a body as it is, for a user if one is given, and returns the status and the text of the answer.
func sends(t *testing.T, a *harness.Agent, method, path, user, body string) (status int, text string) {
	t.Helper()
	header := http.Header{"Content-Type": {"application/json"}}
	if user != "" {
		header.Set("X-Nomadish-User", user)
	}
	resp, err := a.API.Send(t.Context(), method, path, header, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is read to its end
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// oneProject starts an agent that offers 4 slots on a simulated node, with a project that root manages.
func oneProject(t *testing.T, config string) *harness.Agent {
	t.Helper()
	a := harness.StartDev(t, config+harness.Simulate(t, "shape \"n\" {\n  cores = 4\n}\n"))
	harness.CheckOutput(t, a, 0, "project apply "+a.JobFile("chip", "project \"chip\" {\n  users    = [\"root\", \"daemon\"]\n  groups   = [\"root\"]\n  managers = [\"root\"]\n  steps    = [\"place\"]\n}\n"))
	return a
}

// TestWrongProjects walks what is refused of projects and of their calendars, through the commands, from files, and over HTTP.
func TestWrongProjects(t *testing.T) {
	t.Parallel()
	a := oneProject(t, "")
	next := nextWeek(t, a, "chip").Week
	for _, row := range []struct {
		name, week, options, row string
		status                   int
		text                     string
	}{
		{"a week in the past", "2020-W01", "-type batch -slots 1", `"Type":"batch","Count":1`, 400, `calendar "2020-W01": the week is over`},
		{"no such week", "2026-W54", "-type batch -slots 1", `"Type":"batch","Count":1`, 400, "the year 2026 has the weeks W01 to W53"},
		{"no week at all", "soon", "-type batch -slots 1", `"Type":"batch","Count":1`, 400, "write an ISO week with its year"},
		{"negative", next, "", `"Type":"batch","Count":-3`, 400, "count: must be 0 to 1000000, not -3"},
		{"too many", next, "-type batch -slots 7", `"Type":"batch","Count":7`, 409, fmt.Sprintf(`calendar %q: type "batch": there are 4 slots, 0 of them are given to other projects, and 7 are requested: 3 too many`, next)},
		{"step", next, "-type batch -slots 1 -step paint", `"Type":"batch","Step":"paint","Count":1`, 400, `the project has no step "paint" (its steps are place)`},
		{"user", next, "-type batch -slots 1 -user no-such-user", `"Type":"batch","User":"no-such-user","Count":1`, 400, `user: the servers' user database has no user "no-such-user"`},
		{"group", next, "-type batch -slots 1 -group no-such-group", `"Type":"batch","Group":"no-such-group","Count":1`, 400, `group: the servers' user database has no group "no-such-group"`},
		{"type", next, "-type paper -slots 1", `"Type":"paper","Count":1`, 400, `no node has slots of type "paper"`},
	} {
		if row.options != "" {
			harness.CheckOutput(t, a, 1, "project calendar -week "+row.week+" "+row.options+" chip", row.text, fmt.Sprintf("HTTP %d", row.status))
		}
		if status, text := sends(t, a, http.MethodPut, "/v1/project/chip/calendar?week="+row.week, "", `{"Rows":[{`+row.row+`}]}`); status != row.status || !strings.Contains(text, row.text) {
			t.Errorf("%s over HTTP: %d %s", row.name, status, text)
		}
	}
	harness.CheckOutput(t, a, 1, "project calendar -week "+next+" -type batch -slots -3 chip", "-slots -3: must be 0 or more")
	file := func(body string) string { return a.JobFile("wrong", "project \"chip\" {\n"+body+"\n}\n") }
	week := func(row string) string { return "calendar \"" + next + "\" {\n slots {\n" + row + "\n }\n}" }
	harness.CheckOutput(t, a, 1, "project apply "+file(`users = ["no-such-user"]`), `:2:1: project "chip": users: the servers' user database has no user "no-such-user"`, "-force")
	harness.CheckOutput(t, a, 1, "project apply "+file(`groups = ["no-such-group"]`), `groups: the servers' user database has no group "no-such-group"`)
	harness.CheckOutput(t, a, 1, "project apply "+file(`managers = ["no-such-user"]`), `managers: the servers' user database has no user "no-such-user"`)
	harness.CheckOutput(t, a, 1, "project apply "+file(week("type = \"batch\"\ncount = -1")), "count: must be 0 to 1000000, not -1")
	harness.CheckOutput(t, a, 1, "project apply "+file(week("type = \"batch\"\ncount = 1\nuser = \"no-such-user\"")), ":6:1: project", `has no user "no-such-user"`)
	if status, text := sends(t, a, http.MethodPut, "/v1/project/new", "", `{"Groups":["no-such-group"]}`); status != 400 || !strings.Contains(text, `no group "no-such-group"`) {
		t.Errorf("a group over HTTP: %d %s", status, text)
	}
	harness.CheckOutput(t, a, 1, "project status new", `no project has a name that starts with "new"`)
	// What is not known here may be known elsewhere, or tomorrow.
	harness.CheckOutput(t, a, 0, "project apply -force "+file("users = [\"no-such-user\"]\n"+week("type = \"batch\"\ncount = 1\nuser = \"no-such-user\"")))
	harness.CheckOutput(t, a, 0, "project calendar -week "+next+" -type batch -slots 2 -user no-such-user chip")

	system := "job \"all\" {\n  type    = \"system\"\n  reclaim = \"suspend\"\n  group \"g\" {\n    task \"t\" {\n      driver = \"mock_driver\"\n    }\n  }\n}\n"
	const refusal = "reclaim: a system job runs on every fitting node beside what others own, and is not suspended"
	harness.CheckOutput(t, a, 1, "job run -detach "+a.JobFile("system", system), refusal)
	harness.CheckOutput(t, a, 1, "job validate "+a.JobFile("system", system), refusal)
	body := `{"Job":{"ID":"all","Type":"system","Reclaim":"suspend","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t","Driver":"mock_driver"}]}]}}`
	if status, text := sends(t, a, http.MethodPut, "/v1/jobs", "", body); status != 400 || !strings.Contains(text, refusal) {
		t.Errorf("suspend on a system job over HTTP: %d %s", status, text)
	}
}

// nextWeek returns the week after this one in a project's calendar.
func nextWeek(t *testing.T, a *harness.Agent, project string) *structs.CalendarWeek {
	t.Helper()
	calendar, _, err := a.API.Projects().Calendar(t.Context(), project, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return calendar.Weeks[1]
}

// editedBy returns who made the edits of a project's calendar, the last one first.
func editedBy(t *testing.T, a *harness.Agent, project string) string {
	t.Helper()
	edits, _, err := a.API.Projects().Edits(t.Context(), project, nil)
	if err != nil {
		t.Fatal(err)
	}
	var by []string
	for _, e := range edits {
		by = append(by, e.By)
	}
	return strings.Join(by, ",")
}

// TestForgedEditors: who edits a project is the user of the header, where that is trusted, and by no other door.
func TestForgedEditors(t *testing.T) {
	t.Parallel()
	a := oneProject(t, "")
	week := nextWeek(t, a, "chip").Week
	path := "/v1/project/chip/calendar?week=" + week
	for _, forged := range []string{`"By":"root"`, `"User":"root"`, `"Submitter":{"User":"root"}`} {
		if status, text := sends(t, a, http.MethodPut, path, "", `{"Rows":[{"Type":"batch","Count":3}],`+forged+`}`); status != 400 || !strings.Contains(text, "unknown key") {
			t.Errorf("%s in the body: %d %s", forged, status, text)
		}
	}
	if status, text := sends(t, a, http.MethodPut, path, "", `{"Rows":[{"Type":"batch","Count":3}]}`); status != 200 {
		t.Errorf("an operator: %d %s", status, text)
	}
	if by := editedBy(t, a, "chip"); by != "" {
		t.Errorf("an operator's edit is by %q", by)
	}
	harness.CheckOutput(t, a, 1, "project apply "+a.JobFile("by", "project \"chip\" {\n  by = \"root\"\n}\n"), `unknown attribute "by"`)
	harness.CheckOutput(t, a, 1, "project apply "+a.JobFile("by", "project \"chip\" {\n  calendar \""+week+"\" {\n    by = \"root\"\n  }\n}\n"), `unknown attribute "by"`)
	harness.CheckOutput(t, a, 1, "project apply -json "+a.JobFile("by", `{"Name":"chip","Calendar":[{"Week":"`+week+`","By":"root"}]}`), `"By"`)
	// A member is believed to be itself, and may not edit.
	const text = `user "daemon" is not one of its managers (one of them (root) or an operator may do that)`
	if status, answer := sends(t, a, http.MethodPut, path, "daemon", `{"Rows":[]}`); status != 403 || !strings.Contains(answer, text) {
		t.Errorf("a member: %d %s", status, answer)
	}
	harness.CheckOutput(t, a, 1, "project calendar -as daemon -type batch -slots 1 chip", text, "HTTP 403")
	harness.CheckOutput(t, a, 1, "project apply -user daemon "+a.JobFile("chip", "project \"chip\" {\n  managers = [\"daemon\"]\n}\n"), text)
	harness.CheckOutput(t, a, 1, "project delete -user daemon chip", text)
	if status, answer := sends(t, a, http.MethodDelete, "/v1/project/chip", "daemon", ""); status != 403 || !strings.Contains(answer, text) {
		t.Errorf("a member deletes: %d %s", status, answer)
	}
	harness.CheckOutput(t, a, 1, "project calendar -as ../root -type batch -slots 1 chip", "letters, digits")
	harness.CheckOutput(t, a, 0, "project calendar -as root -week "+week+" -type batch -slots 1 chip")
	harness.CheckOutput(t, a, 0, "project apply -user root "+a.JobFile("chip", "project \"chip\" {\n  users    = [\"daemon\"]\n  managers = [\"root\"]\n  calendar \""+week+"\" {}\n}\n"))
	harness.CheckOutput(t, a, 0, "project edits chip", "root", "operator", "1 batch (any, any)")
	if by := editedBy(t, a, "chip"); by != "root,root," {
		t.Errorf("edits by %q", by)
	}
	harness.CheckOutput(t, a, 0, "project delete -user root chip")
}

// TestEditorsNotTrusted: without trust_user_header whoever states a user changes nothing, manager or not.
func TestEditorsNotTrusted(t *testing.T) {
	t.Parallel()
	a := oneProject(t, "server {\n  enabled = true\n  trust_user_header = false\n}\n")
	for _, user := range []string{"root", "daemon"} {
		harness.CheckOutput(t, a, 1, "project calendar -as "+user+" -type batch -slots 1 chip", "403", "trust_user_header")
		for _, call := range []struct{ method, path, body string }{
			{http.MethodPut, "/v1/project/chip/calendar?week=" + nextWeek(t, a, "chip").Week, `{"Rows":[{"Type":"batch","Count":1}]}`},
			{http.MethodPut, "/v1/project/chip", `{"Managers":["daemon"]}`},
			{http.MethodDelete, "/v1/project/chip", ""},
			{http.MethodPut, "/v1/flow/f", `{"Steps":["a"]}`},
		} {
			if status, text := sends(t, a, call.method, call.path, user, call.body); status != 403 {
				t.Errorf("%s %s of %s: %d %s", call.method, call.path, user, status, text)
			}
		}
	}
	if p, _, err := a.API.Projects().Info(t.Context(), "chip", nil); err != nil || strings.Join(p.Managers, ",") != "root" || editedBy(t, a, "chip") != "" {
		t.Errorf("%+v %v", p, err)
	}
}

// TestTwoEditors: of two edits of one week at once one wins, and the other is shown what it would have overwritten, and whose edit that is.
func TestTwoEditors(t *testing.T) {
	t.Parallel()
	a := oneProject(t, "")
	for round := range 5 {
		week := nextWeek(t, a, "chip")
		type outcome struct {
			user string
			err  error
		}
		outcomes := make(chan outcome)
		editors := map[string][]structs.CalendarRow{
			"root": {{Type: structs.SlotBatch, Count: 1 + round%2}}, "": {{Type: structs.SlotBatch, Step: "place", Count: 3 + round%2}},
		}
		for user, rows := range editors { // order does not matter: they race
			go func() {
				_, err := a.API.As(user).Projects().EditWeek(t.Context(), "chip", week.Week, rows, api.Check{CAS: true, Index: week.Index})
				outcomes <- outcome{user, err}
			}()
		}
		first, second := <-outcomes, <-outcomes
		won, lost := first, second
		if won.err != nil {
			won, lost = second, first
		}
		winner, now := "operator", nextWeek(t, a, "chip")
		if won.user != "" {
			winner = won.user
		}
		want := fmt.Sprintf("it was last edited at index %d by %s, not %d, and has %s now", now.Index, winner, week.Index, structs.RowsText(editors[won.user]))
		if won.err != nil || harness.HTTPStatus(lost.err) != 409 || !strings.Contains(lost.err.Error(), want) {
			t.Fatalf("%v; %v, want %q", won.err, lost.err, want)
		}
		if got := structs.RowsText(now.Rows); got != structs.RowsText(editors[won.user]) {
			t.Errorf("the week has %s", got)
		}
	}
	edits, _, err := a.API.Projects().Edits(t.Context(), "chip", nil)
	if err != nil || len(edits) != 5 {
		text, _ := json.Marshal(edits) // a failing test prints what it can
		t.Errorf("%s, %v", text, err)
	}
}
