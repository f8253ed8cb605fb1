package project

import (
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// at is an endpoint of which the time is what now points to.
func at(t *testing.T, now *time.Time) (*Endpoint, *endpointtest.Site) {
	site := endpointtest.New(t, endpointtest.Node("n1"))
	return New(Deps{Parts: rpc.Parts{Router: site.Router, Applier: site.Log, NewID: func() string { return "id" }, Now: func() time.Time { return *now }}}), site
}

// TestWeeksRoll: which weeks may be edited, and which slots a project has, follows the clock in the time zone of the calendar, over a turn of
// the year with 53 weeks.
func TestWeeksRoll(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 12, 27, 23, 59, 59, 0, berlin)
	e, site := at(t, &now)
	config := structs.DefaultSchedulerConfiguration()
	config.Calendar = &structs.CalendarConfiguration{TimeZone: "Europe/Berlin"}
	site.Put(&structs.SchedulerConfigEntry{Config: config})
	if _, err := e.upsert(t.Context(), &structs.ProjectUpsertRequest{Project: &structs.Project{Name: "chip"}}); err != nil {
		t.Fatal(err)
	}
	edit := func(week string, count int, want string) {
		t.Helper()
		_, err := e.calendarEdit(t.Context(), &structs.ProjectCalendarRequest{Project: "chip", Week: week, Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Count: count}}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", week, err, want)
		}
	}
	given := func(week string, count int) {
		t.Helper()
		reply, err := e.get(t.Context(), &structs.IDRequest{ID: "chip"})
		if err != nil || reply.Project.Week != week || len(reply.Project.Slots) != 1 || reply.Project.Slots[0].Given != count || reply.Project.TimeZone != "Europe/Berlin" {
			t.Errorf("at %s: %+v %v, want %d slots in week %s", now, reply.Project, err, count, week)
		}
	}
	edit("2026-W52", 1, "")
	edit("2026-W53", 2, "")
	edit("2027-W01", 3, "")
	edit("2026-W51", 1, `the week is over, and cannot be edited; this is week 2026-W52`)
	edit("2026-W54", 1, "the year 2026 has the weeks W01 to W53")
	edit("2028-W51", 1, "") // 104 ahead
	edit("2028-W52", 1, "weeks up to 104 ahead may be edited, the last one is 2028-W51")
	given("2026-W52", 1)
	now = now.Add(time.Second)
	given("2026-W53", 2)
	edit("2026-W52", 2, "the week is over")
	now = now.Add(7*24*time.Hour - 1)
	given("2026-W53", 2)
	now = now.Add(1)
	given("2027-W01", 3)
	calendar, err := e.calendar(t.Context(), &structs.ProjectCalendarQuery{Project: "chip"})
	if err != nil || calendar.Calendar.Weeks[0].Week != "2027-W01" || calendar.Calendar.Weeks[len(calendar.Calendar.Weeks)-1].Week != "2028-W51" {
		t.Fatalf("%+v %v", calendar, err)
	}
	one, err := e.calendar(t.Context(), &structs.ProjectCalendarQuery{Project: "chip", Week: "2026-W53"})
	if err != nil || len(one.Calendar.Weeks) != 1 || one.Calendar.Weeks[0].Rows[0].Count != 2 || one.Calendar.Weeks[0].Index == 0 {
		t.Errorf("%+v %v", one, err)
	}
	edits, err := e.edits(t.Context(), &structs.IDRequest{ID: "chip"})
	if err != nil || len(edits.Edits) != 4 || edits.Edits[0].Week != "2028-W51" {
		t.Errorf("%+v %v", edits, err)
	}
}

// TestWeeksKeepTheirTimes: a week that was edited keeps its times when the calendar's time zone changes, and is shown so, until it is edited again.
func TestWeeksKeepTheirTimes(t *testing.T) {
	now := time.Date(2026, 11, 29, 23, 30, 0, 0, time.UTC) // a Sunday; in Berlin it is Monday
	e, site := at(t, &now)
	if _, err := e.upsert(t.Context(), &structs.ProjectUpsertRequest{Project: &structs.Project{Name: "chip"}}); err != nil {
		t.Fatal(err)
	}
	edit := func(week string, count int) {
		t.Helper()
		if _, err := e.calendarEdit(t.Context(), &structs.ProjectCalendarRequest{Project: "chip", Week: week, Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Count: count}}}); err != nil {
			t.Fatal(err)
		}
	}
	is := func(week, ends string, given int) {
		t.Helper()
		reply, err := e.get(t.Context(), &structs.IDRequest{ID: "chip"})
		if err != nil || reply.Project.Week != week || reply.Project.Ends.Format(time.RFC3339) != ends || len(reply.Project.Slots) > 0 != (given > 0) ||
			given > 0 && reply.Project.Slots[0].Given != given {
			t.Errorf("at %s: %+v %v, want %d slots in week %s until %s", now, reply.Project, err, given, week, ends)
		}
	}
	edit("2026-W48", 1)
	config := structs.DefaultSchedulerConfiguration()
	config.Calendar = &structs.CalendarConfiguration{TimeZone: "Europe/Berlin"}
	site.Put(&structs.SchedulerConfigEntry{Config: config})
	is("2026-W48", "2026-11-30T00:00:00Z", 1)
	reply, err := e.calendar(t.Context(), &structs.ProjectCalendarQuery{Project: "chip", Week: "2026-W48"})
	if w := reply.Calendar.Weeks[0]; err != nil || w.From.Format(time.RFC3339) != "2026-11-23T00:00:00Z" || w.To.Format(time.RFC3339) != "2026-11-30T00:00:00Z" {
		t.Errorf("%+v %v", w, err)
	}
	now = now.Add(time.Hour)
	is("2026-W49", "2026-12-06T23:00:00Z", 0)
	edit("2026-W49", 2)
	is("2026-W49", "2026-12-06T23:00:00Z", 2)
}

// TestWhatIsReadMayBeWritten: a project that follows a flow is shown with its steps, and may be written so.
func TestWhatIsReadMayBeWritten(t *testing.T) {
	now := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	e, _ := at(t, &now)
	if _, err := e.flowUpsert(t.Context(), &structs.FlowUpsertRequest{Flow: &structs.Flow{Name: "asic", Steps: []string{"a", "b"}}}); err != nil {
		t.Fatal(err)
	}
	put := func(steps ...string) error {
		_, err := e.upsert(t.Context(), &structs.ProjectUpsertRequest{Project: &structs.Project{Name: "chip", Flow: "asic", Steps: steps}})
		return err
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	reply, err := e.get(t.Context(), &structs.IDRequest{ID: "chip"})
	if err != nil || len(reply.Project.Steps) != 2 {
		t.Fatalf("%+v %v", reply.Project, err)
	}
	if err := put(reply.Project.Steps...); err != nil {
		t.Error(err)
	}
	if err := put("a"); err == nil || !strings.Contains(err.Error(), "flow and steps are both stated") {
		t.Errorf("%v", err)
	}
	if reply, err := e.get(t.Context(), &structs.IDRequest{ID: "nobody"}); err != nil || reply.Project != nil {
		t.Errorf("%+v %v", reply.Project, err)
	}
	if list, err := e.list(t.Context(), &structs.ListRequest{}); err != nil || len(list.Projects) != 1 || list.Index == 0 {
		t.Errorf("%+v %v", list, err)
	}
	if list, err := e.flowList(t.Context(), &structs.ListRequest{}); err != nil || len(list.Flows) != 1 {
		t.Errorf("%+v %v", list, err)
	}
}
