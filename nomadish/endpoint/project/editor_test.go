package project

import (
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/identity"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// users is a user database with two users and a group.
type users struct{}

// Groups implements identity.Database.
func (users) Groups(user string) ([]string, bool) { return nil, user == "ada" || user == "lead" }

// HasGroup implements identity.Database.
func (users) HasGroup(name string) bool { return name == "chip" }

// editorSite is an endpoint in the middle of 2026-W48 that believes who sends a request.
func editorSite(t *testing.T, trust bool) *Endpoint {
	site := endpointtest.New(t, endpointtest.Node("n1"))
	now := func() time.Time { return time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC) }
	return New(Deps{Parts: rpc.Parts{Router: site.Router, Applier: site.Log, NewID: func() string { return "id" }, Now: now}, Identity: identity.New(identity.Options{Trust: trust, Database: users{}})})
}

// refused fails the test unless an error has a code and a text; "": unless there is none.
func refused(t *testing.T, what string, err error, code structs.Code, text string) {
	t.Helper()
	if code == "" && err != nil || code != "" && (structs.CodeOf(err) != code || !strings.Contains(err.Error(), text)) {
		t.Errorf("%s: %v, want %s %q", what, err, code, text)
	}
}

// TestManagers: a project that has managers is changed by them and by operators alone, and an edit keeps who made it.
func TestManagers(t *testing.T) {
	e := editorSite(t, true)
	as := func(user string) structs.WriteRequest { return structs.WriteRequest{User: user} }
	put := func(user string, p structs.Project) error {
		_, err := e.upsert(t.Context(), &structs.ProjectUpsertRequest{Project: &p, WriteRequest: as(user)})
		return err
	}
	edit := func(user string, count int) error {
		_, err := e.calendarEdit(t.Context(), &structs.ProjectCalendarRequest{
			Project: "chip", Week: "2026-W48", Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Count: count}}, WriteRequest: as(user),
		})
		return err
	}
	remove := func(user string) error {
		_, err := e.delete(t.Context(), &structs.ProjectDeleteRequest{Name: "chip", WriteRequest: as(user)})
		return err
	}
	flow := func(user string, steps ...string) error {
		_, err := e.flowUpsert(t.Context(), &structs.FlowUpsertRequest{Flow: &structs.Flow{Name: "asic", Steps: steps}, WriteRequest: as(user)})
		return err
	}
	refused(t, "a flow that nobody follows", flow("ada", "a", "b"), "", "")
	refused(t, "a project without managers", put("ada", structs.Project{Name: "chip"}), "", "")
	refused(t, "its calendar", edit("ada", 1), "", "")
	refused(t, "managers", put("ada", structs.Project{Name: "chip", Users: []string{"ada"}, Managers: []string{"lead"}, Flow: "asic"}), "", "")
	const text = `user "ada" is not one of its managers (one of them (lead) or an operator may do that)`
	refused(t, "a member edits", edit("ada", 2), structs.CodeForbidden, `project "chip": `+text)
	refused(t, "a member becomes a manager", put("ada", structs.Project{Name: "chip", Managers: []string{"ada"}}), structs.CodeForbidden, text)
	refused(t, "a member deletes", remove("ada"), structs.CodeForbidden, text)
	refused(t, "a member changes the flow", flow("ada", "a"), structs.CodeForbidden, `flow "asic": project "chip", which follows it: user "ada" is not one of its managers`)
	_, err := e.flowDelete(t.Context(), &structs.FlowDeleteRequest{Name: "asic", WriteRequest: as("ada")})
	refused(t, "a member deletes the flow", err, structs.CodeForbidden, text)
	refused(t, "the manager edits", edit("lead", 3), "", "")
	refused(t, "the manager changes the flow", flow("lead", "a", "b", "c"), "", "")
	refused(t, "the operator edits", edit("", 4), "", "")
	edits, err := e.edits(t.Context(), &structs.IDRequest{ID: "chip"})
	var by []string
	for _, edit := range edits.Edits {
		by = append(by, edit.By)
	}
	if err != nil || strings.Join(by, ",") != ",lead,ada" {
		t.Errorf("edits by %q, %v", by, err)
	}
	refused(t, "a name that no user has", edit("a b", 1), structs.CodeBadRequest, "letters, digits")
	refused(t, "the manager deletes", remove("lead"), "", "")
}

// TestEditorNotTrusted: where the header is not trusted, nothing of projects is changed for who states a user, manager or not.
func TestEditorNotTrusted(t *testing.T) {
	e := editorSite(t, false)
	if _, err := e.upsert(t.Context(), &structs.ProjectUpsertRequest{Project: &structs.Project{Name: "chip", Managers: []string{"lead"}}}); err != nil {
		t.Fatal(err)
	}
	by := structs.WriteRequest{User: "lead"}
	_, err := e.upsert(t.Context(), &structs.ProjectUpsertRequest{Project: &structs.Project{Name: "chip"}, WriteRequest: by})
	refused(t, "upsert", err, structs.CodeForbidden, "trust_user_header")
	_, err = e.calendarEdit(t.Context(), &structs.ProjectCalendarRequest{Project: "chip", Week: "2026-W48", WriteRequest: by})
	refused(t, "calendar", err, structs.CodeForbidden, "trust_user_header")
	_, err = e.delete(t.Context(), &structs.ProjectDeleteRequest{Name: "chip", WriteRequest: by})
	refused(t, "delete", err, structs.CodeForbidden, "trust_user_header")
	_, err = e.flowUpsert(t.Context(), &structs.FlowUpsertRequest{Flow: &structs.Flow{Name: "f", Steps: []string{"a"}}, WriteRequest: by})
	refused(t, "flow", err, structs.CodeForbidden, "trust_user_header")
	_, err = e.flowDelete(t.Context(), &structs.FlowDeleteRequest{Name: "f", WriteRequest: by})
	refused(t, "flow delete", err, structs.CodeForbidden, "trust_user_header")
}

// TestUnknownMembers: users and groups that the database does not have are refused where they are stated first, unless that is forced.
func TestUnknownMembers(t *testing.T) {
	e := editorSite(t, true)
	put := func(force bool, p structs.Project) error {
		p.Name = "chip"
		_, err := e.upsert(t.Context(), &structs.ProjectUpsertRequest{Project: &p, Force: force})
		return err
	}
	edit := func(force bool, rows ...structs.CalendarRow) error {
		for i := range rows {
			rows[i].Type, rows[i].Count = structs.SlotBatch, 0
		}
		_, err := e.calendarEdit(t.Context(), &structs.ProjectCalendarRequest{Project: "chip", Week: "2026-W48", Rows: rows, Force: force})
		return err
	}
	const bad = structs.CodeBadRequest
	refused(t, "no project", edit(false, structs.CalendarRow{User: "eve"}), structs.CodeNotFound, "not found")
	refused(t, "users", put(false, structs.Project{Users: []string{"ada", "eve"}}), bad, `project "chip": users: the servers' user database has no user "eve"`)
	refused(t, "groups", put(false, structs.Project{Groups: []string{"chip", "ada"}}), bad, `project "chip": groups: the servers' user database has no group "ada"`)
	refused(t, "managers", put(false, structs.Project{Managers: []string{"eve"}}), bad, `project "chip": managers: the servers' user database has no user "eve"`)
	refused(t, "those that are known", put(false, structs.Project{Users: []string{"ada"}, Groups: []string{"chip"}, Managers: []string{"lead"}}), "", "")
	refused(t, "forced", put(true, structs.Project{Users: []string{"ada", "eve"}, Groups: []string{"board"}}), "", "")
	refused(t, "those that are stored", put(false, structs.Project{Users: []string{"eve"}, Groups: []string{"board"}}), "", "")
	refused(t, "one more", put(false, structs.Project{Users: []string{"eve", "bob"}}), bad, `"bob"`)
	refused(t, "a row's user", edit(false, structs.CalendarRow{User: "ada"}, structs.CalendarRow{User: "bob"}), bad,
		`project "chip": calendar "2026-W48": slots 2: user: the servers' user database has no user "bob"`)
	refused(t, "a row's group", edit(false, structs.CalendarRow{Group: "ada"}), bad, `slots 1: group: the servers' user database has no group "ada"`)
	refused(t, "members", edit(false, structs.CalendarRow{User: "eve"}, structs.CalendarRow{Group: "board"}), "", "")
	refused(t, "forced in a row", edit(true, structs.CalendarRow{User: "bob"}), "", "")
	refused(t, "stored in a row", edit(false, structs.CalendarRow{User: "bob"}, structs.CalendarRow{Step: ""}), "", "")
}
