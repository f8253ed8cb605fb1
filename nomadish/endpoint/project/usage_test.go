package project

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/structs"
)

// usageSite is an endpoint with project chip, which has two rows of slots in this week, and two jobs of it; now is the time.
func usageSite(t *testing.T, now *time.Time) (*Endpoint, *endpointtest.Site) {
	e, site := at(t, now)
	n := endpointtest.Node("n2")
	n.NodeResources.Slots = map[string]int{structs.SlotBatch: 20}
	site.Put(&structs.NodeRegisterEntry{Node: n, Time: 1, EvalSeed: "e"})
	site.Put(&structs.ProjectUpsertEntry{Project: &structs.Project{Name: "chip", Users: []string{"ada"}, Steps: []string{"place", "route"}}, Time: now.UnixNano()})
	site.Put(&structs.ProjectUpsertEntry{Project: &structs.Project{Name: "other"}, Time: now.UnixNano()})
	weeks, err := calendarOf(nil, site.Router.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	id := weeks.At(*now)
	span := &structs.WeekSpan{Week: id.String(), From: weeks.Begin(id).UnixNano(), To: weeks.End(id).UnixNano()}
	site.Put(&structs.ProjectCalendarEntry{Week: &structs.ProjectWeek{
		Project: "chip", Week: span.Week, From: span.From, To: span.To,
		Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Step: "place", Count: 3}, {Type: structs.SlotBatch, Step: "route", Count: 2}},
	}, Time: now.UnixNano()})
	site.Put(&structs.ClaimsTimeEntry{Now: now.UnixNano(), EvalSeed: "e", Week: span})
	for _, name := range []string{"place", "route", "alone"} {
		j := endpointtest.Job(name, 1)
		j.Project, j.Step, j.Submitter = "chip", strings.TrimSuffix(name, "alone"), &structs.Submitter{User: "ada"}
		if name == "alone" {
			j.Slot = "big"
		}
		site.Put(&structs.JobRegisterEntry{Job: j, Time: now.UnixNano()})
	}
	return e, site
}

// instances places instances of a job of project chip.
func instances(site *endpointtest.Site, at time.Time, job, step, claim string, n int) {
	resources := &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{"t": {Cpu: structs.AllocatedCpuResources{CpuShares: 1}}}}
	resources.Shared.Terms = &structs.AllocTerms{Priority: 50, Claim: claim, Slots: &structs.SlotTerms{
		Project: "chip", Step: step, User: "ada", Type: structs.SlotBatch, Cost: 1,
	}}
	if claim == structs.ClaimSlots {
		resources.Shared.Terms.Slots.Guards = 2
	}
	b := &structs.PlacementBatch{
		Namespace: structs.DefaultNamespace, JobID: job, Group: "g", Seed: job + claim, CreateTime: at.UnixNano(), Resources: resources,
		Nodes: []structs.PlacedNode{{ID: "n2", Name: "n2"}},
	}
	for i := range n {
		b.Instances = append(b.Instances, structs.Instance{Ordinal: uint32(i), Index: i}) // small
	}
	site.Put(testcluster.Place("e", at.UnixNano(), b))
}

// TestUsageIsShown: each row shows what is used of it, borrowed, lent and pending; what no row matches has a line of its own.
func TestUsageIsShown(t *testing.T) {
	now := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	e, site := usageSite(t, &now)
	instances(site, now, "place", "place", structs.ClaimSlots, 2)
	instances(site, now, "place", "place", "", 1)
	instances(site, now, "route", "elsewhere", "", 4)
	site.Put(testcluster.Commit(&structs.JudgedPlan{Time: now.UnixNano(), Requests: []*structs.RequestUpdate{
		{Namespace: structs.DefaultNamespace, JobID: "route", Group: "g", Missing: 7, EvalID: "b", Since: now.Add(-14 * time.Second).UnixNano()},
		{Namespace: structs.DefaultNamespace, JobID: "alone", Group: "g", Missing: 1, EvalID: "b", Since: now.UnixNano()},
	}}))
	want := []structs.ProjectSlots{
		{Type: structs.SlotBatch, Step: "place", Given: 3, Used: 2, Borrowed: 1, Lent: 1, Guards: 4},
		{Type: structs.SlotBatch, Step: "route", Given: 2, Lent: 2, Pending: 7, OldestPendingSeconds: 14},
		{Type: structs.SlotBatch, Borrowed: 4},
		{Type: "big", Pending: 1},
	}
	compare := func(what string, p *structs.ProjectStatus) {
		t.Helper()
		if len(p.Slots) != len(want) {
			t.Fatalf("%s: %d lines", what, len(p.Slots))
		}
		for i, s := range p.Slots {
			if *s != want[i] {
				t.Errorf("%s: line %d: %+v, want %+v", what, i, *s, want[i])
			}
		}
	}
	reply, err := e.get(t.Context(), &structs.IDRequest{ID: "chip"})
	if err != nil {
		t.Fatal(err)
	}
	compare("get", reply.Project)
	list, err := e.list(t.Context(), &structs.ListRequest{})
	if err != nil || len(list.Projects) != 2 {
		t.Fatalf("%+v %v", list, err)
	}
	compare("list", list.Projects[0])
}

// TestUsageWakes: who waits for a change of a project is woken when an instance of it is placed, and when a request of it waits.
func TestUsageWakes(t *testing.T) {
	now := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	e, site := usageSite(t, &now)
	for what, change := range map[string]func(){
		"a placement": func() { instances(site, now, "place", "place", structs.ClaimSlots, 1) },
		"a request": func() {
			site.Put(testcluster.Commit(&structs.JudgedPlan{Time: now.UnixNano(), Requests: []*structs.RequestUpdate{
				{Namespace: structs.DefaultNamespace, JobID: "route", Group: "g", Missing: 1, EvalID: "b", Since: now.UnixNano()},
			}}))
		},
	} {
		before, err := e.get(t.Context(), &structs.IDRequest{ID: "chip"})
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan *structs.ProjectReply, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		go func() {
			reply, err := e.get(ctx, &structs.IDRequest{ID: "chip", QueryOptions: structs.QueryOptions{MinQueryIndex: before.Index, MaxQueryTime: 15 * time.Second}})
			if err == nil {
				got <- reply
			}
			close(got)
		}()
		change()
		if reply := <-got; reply == nil || reply.Index <= before.Index {
			t.Errorf("%s: %+v, was at %d", what, reply, before.Index)
		}
		cancel()
	}
}

// TestReport: a report has what was used up to now, of one week or of all.
func TestReport(t *testing.T) {
	now := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	e, site := usageSite(t, &now)
	instances(site, now, "place", "place", structs.ClaimSlots, 2)
	now = now.Add(time.Minute)
	reply, err := e.report(t.Context(), &structs.ProjectReportQuery{Project: "chip"})
	if err != nil || reply.Report == nil || len(reply.Report.Weeks) != 1 || reply.Index == 0 {
		t.Fatalf("%+v %v", reply, err)
	}
	w := reply.Report.Weeks[0]
	if want := (structs.ReportSlots{Type: structs.SlotBatch, Given: 300, Used: 120, Lent: 180, Guards: 240, Placed: 2}); len(w.Types) != 1 || *w.Types[0] != want || w.Week != "2026-W48" {
		t.Errorf("%+v, want %+v", w.Types[0], want)
	}
	for week, n := range map[string]int{"2026-W48": 1, "2026-W47": 0} {
		if reply, err := e.report(t.Context(), &structs.ProjectReportQuery{Project: "chip", Week: week}); err != nil || len(reply.Report.Weeks) != n {
			t.Errorf("%s: %+v %v", week, reply, err)
		}
	}
	if _, err := e.report(t.Context(), &structs.ProjectReportQuery{Project: "chip", Week: "W48"}); structs.CodeOf(err) != structs.CodeBadRequest {
		t.Errorf("a wrong week: %v", err)
	}
	if reply, err := e.report(t.Context(), &structs.ProjectReportQuery{Project: "nobody"}); err != nil || reply.Report != nil {
		t.Errorf("no project: %+v %v", reply, err)
	}
}
