package httpapi

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// What the path and the parameters of an edit state reaches the servers.
func TestProjectEdit(t *testing.T) {
	fk := newFake()
	ts := newTestServer(t, testConfig(fk))
	if resp, text := post(t, ts, "PUT", "/v1/project/chip/calendar?week=2026-W48&cas=7", `{"Rows":[{"Type":"batch","Group":"chip","Count":4}]}`); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	args := fk.args[wire.MethodProjectCalendarEdit].(*structs.ProjectCalendarRequest)
	if args.Project != "chip" || args.Week != "2026-W48" || !args.CAS || args.CheckIndex != 7 || len(args.Rows) != 1 || args.Rows[0].Group != "chip" {
		t.Errorf("%+v", args)
	}
	if resp, text := post(t, ts, "PUT", "/v1/project/chip", `{"Objective":"throughput","Throughput":{"Jobs":3,"Per":"24h"}}`); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	if p := fk.args[wire.MethodProjectUpsert].(*structs.ProjectUpsertRequest); p.CAS || p.Project.Name != "chip" || p.Project.Throughput.Per.Hours() != 24 {
		t.Errorf("%+v", p.Project)
	}
}

// An edit of what Nomad does not have is refused if it has a key that nobody knows, or lacks the rows: it would remove what that was to state. What was read
// may be written.
func TestUnknownKeys(t *testing.T) {
	fk := newFake()
	ts := newTestServer(t, testConfig(fk))
	const week, rows = "/v1/project/chip/calendar?week=2026-W48", `{"Rows":[{"Type":"batch","Step":"a","User":"u","Group":"","Job":"","Count":1}],`
	for _, row := range []struct{ path, body, want string }{
		{week, `{"Slots":[{"Type":"batch","Count":4}]}`, `unknown key "Slots" (known are Rows)`},
		{week, `{"Row":[]}`, `unknown key "Row" (did you mean "Rows"?)`},
		{week, `{}`, "Rows: missing: state all rows of the week, or [] to remove them"},
		{week, `{"Rows":[{"Type":"batch","Count":4},{"Type":"batch","Cnt":5}]}`, `unknown key "Rows[1].Cnt" (known are Type, Step, User, Group, Job, Count)`},
		{week, `{"Rows":{}}`, "does not fit here"},
		{week, `{"Rows":[]}`, ""}, {week, `{"Rows":null}`, "Rows: missing"}, {week, rows + `"Week":"2026-W48","From":"2026-11-23T00:00:00Z","To":"2026-11-30T00:00:00Z","Index":5}`, ""},
		{"/v1/project/chip", `{"Name":"chip","Usrs":["root"]}`, `unknown key "Usrs" (did you mean "Users"?)`},
		{"/v1/project/chip", `{"Throughput":{"Jobs":3,"Hours":1}}`, `unknown key "Throughput.Hours" (known are Jobs, Per)`},
		{"/v1/project/chip", `{"users":["root"],"Week":"2026-W48","Ends":"2026-11-30T00:00:00Z","TimeZone":"UTC","Slots":[{"Type":"batch","Given":4}],"CreateIndex":3}`, ""},
		{"/v1/flow/f", `{"Stepps":["a"]}`, `unknown key "Stepps" (did you mean "Steps"?)`},
		{"/v1/flow/f", `{"Name":"f","Steps":["a"],"CreateIndex":3,"ModifyIndex":4}`, ""},
		{"/v1/virtual-cluster/vc", `{"Cells":[{"Level":"node","Coun":5}]}`, `unknown key "Cells[0].Coun" (did you mean "Count"?)`},
		{"/v1/virtual-cluster/vc/points", `{"Points":5,"Point":6}`, `unknown key "Point"`},
		{"/v1/exchange/bid", `{"Point":5}`, `unknown key "Point" (did you mean "Points"?)`},
	} {
		delete(fk.args, wire.MethodProjectCalendarEdit)
		resp, text := post(t, ts, "PUT", row.path, row.body)
		if want := 200; row.want == "" && resp.StatusCode != want || row.want != "" && (resp.StatusCode != 400 || !strings.Contains(text, row.want)) {
			t.Errorf("%s %s: %d %s, want %s", row.path, row.body, resp.StatusCode, text, row.want)
		}
		if row.want != "" && fk.args[wire.MethodProjectCalendarEdit] != nil {
			t.Errorf("%s %s: it reached the servers", row.path, row.body)
		}
	}
}

// A client gets lists where there are none of something, and null nowhere.
func TestProjectListsAreLists(t *testing.T) {
	fk := newFake()
	ts := newTestServer(t, testConfig(fk))
	fk.answer[wire.MethodProjectGet] = structs.ProjectReply{Project: &structs.ProjectStatus{Name: "chip"}}
	fk.answer[wire.MethodProjectEdits] = structs.ProjectEditsReply{Edits: []*structs.CalendarEdit{{Project: "chip", Week: "2026-W48"}}}
	fk.answer[wire.MethodProjectCalendar] = structs.ProjectCalendarReply{Calendar: &structs.ProjectCalendar{Project: "chip", Weeks: []*structs.CalendarWeek{{Week: "2026-W48"}}}}
	fk.answer[wire.MethodProjectReport] = structs.ProjectReportReply{Report: &structs.ProjectReport{Project: "chip", Weeks: []*structs.ReportWeek{{Week: "2026-W48"}}}}
	for path, want := range map[string]string{
		"/v1/project/chip/report": `{"Project":"chip","TimeZone":"","MeanRunSeconds":0,"Weeks":[{"Week":"2026-W48","From":"0001-01-01T00:00:00Z","To":"0001-01-01T00:00:00Z","Types":[]}]}`,
		"/v1/project/chip": `{"Name":"chip","Users":[],"Groups":[],"Managers":[],"Flow":"","Steps":[],"Objective":"","Week":"","Ends":"0001-01-01T00:00:00Z",` +
			`"TimeZone":"","Slots":[],"CreateIndex":0,"ModifyIndex":0}`,
		"/v1/project/chip/edits": `[{"Project":"chip","Week":"2026-W48","Index":0,"Time":0,"By":"","Before":[],"After":[]}]`,
		"/v1/project/chip/calendar": `{"Project":"chip","TimeZone":"","Weeks":[{"Week":"2026-W48","From":"0001-01-01T00:00:00Z","To":"0001-01-01T00:00:00Z",` +
			`"Index":0,"Rows":[]}]}`,
		"/v1/projects": `[]`, "/v1/flows": `[]`,
	} {
		if _, text := post(t, ts, "GET", path, ""); text != want {
			t.Errorf("%s: %s", path, text)
		}
	}
}
