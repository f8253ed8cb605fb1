package httpapi

import (
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
