package project

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/nomadish/identity"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// mayEdit returns an error if a user may not change a project or its calendar: the servers do not trust who states it, or the project has managers
// and the user is none of them. "" is an operator, as long as there are no ACLs. A project that does not exist has no managers yet.
func (e *Endpoint) mayEdit(snap *state.Snapshot, project, user string) error {
	what := fmt.Sprintf("project %q", structs.Clip(project, structs.MaxMemberName))
	if err := e.Identity.Check(what, user); err != nil {
		return err
	}
	return checkManager(what, snap.Projects(nil).Get(project), user)
}

// mayEditFlow returns an error if a user may not change a flow: it has to be one of the managers of every project that follows it and has some.
func (e *Endpoint) mayEditFlow(snap *state.Snapshot, flow, user string) error {
	what := fmt.Sprintf("flow %q", structs.Clip(flow, structs.MaxMemberName))
	if err := e.Identity.Check(what, user); err != nil || user == "" {
		return err
	}
	for p := range snap.Projects(nil).List("", false) {
		if p.Flow != flow {
			continue
		}
		if err := checkManager(fmt.Sprintf("%s: project %q, which follows it", what, p.Name), p, user); err != nil {
			return err
		}
	}
	return nil
}

// managersNamed is how many managers an error names.
const managersNamed = 5

// checkManager returns an error if a project has managers, and a user is none of them.
func checkManager(what string, p *structs.Project, user string) error {
	if user == "" || p == nil || len(p.Managers) == 0 || slices.Contains(p.Managers, user) {
		return nil
	}
	named := strings.Join(p.Managers[:min(len(p.Managers), managersNamed)], ", ")
	if more := len(p.Managers) - managersNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return structs.Errorf(structs.CodeForbidden, "%s: user %q is not one of its managers", what, user).
		WithHint("one of them (%s) or an operator may do that", named)
}

// checkMembers returns an error of CodeBadRequest for a user or a group of a project that the servers' user database does not have. Those that are stored of the
// project already pass: who has left the site must not keep others from changing it.
func (e *Endpoint) checkMembers(ctx context.Context, snap *state.Snapshot, p *structs.Project) error {
	users, groups := stored(snap, p.Name)
	return e.Identity.CheckMembers(ctx, fmt.Sprintf("project %q", p.Name),
		identity.Members{Field: "users", Names: without(p.Users, users)},
		identity.Members{Field: "groups", Names: without(p.Groups, groups), Group: true},
		identity.Members{Field: "managers", Names: without(p.Managers, users)})
}

// checkRows is checkMembers for the rows of a week.
func (e *Endpoint) checkRows(ctx context.Context, snap *state.Snapshot, w *structs.ProjectWeek) error {
	if snap.Projects(nil).Get(w.Project) == nil {
		return nil // which the state refuses
	}
	users, groups := stored(snap, w.Project)
	var lists []identity.Members
	for i, r := range w.Rows {
		switch {
		case r.User != "" && !users[r.User]:
			lists = append(lists, identity.Members{Field: fmt.Sprintf("slots %d: user", i+1), Names: []string{r.User}})
		case r.Group != "" && !groups[r.Group]:
			lists = append(lists, identity.Members{Field: fmt.Sprintf("slots %d: group", i+1), Names: []string{r.Group}, Group: true})
		}
	}
	return e.Identity.CheckMembers(ctx, fmt.Sprintf("project %q: calendar %q", w.Project, w.Week), lists...)
}

// stored returns the users and groups that a project and its calendar have.
func stored(snap *state.Snapshot, project string) (users, groups map[string]bool) {
	users, groups = map[string]bool{}, map[string]bool{}
	reads := snap.Projects(nil)
	p := reads.Get(project)
	if p == nil {
		return users, groups
	}
	for _, name := range slices.Concat(p.Users, p.Managers) {
		users[name] = true
	}
	for _, name := range p.Groups {
		groups[name] = true
	}
	for w := range reads.Weeks(project) {
		for _, r := range w.Rows {
			users[r.User], groups[r.Group] = true, true
		}
	}
	return users, groups
}

// without returns the names that are not in a set.
func without(names []string, set map[string]bool) (out []string) {
	for _, name := range names {
		if !set[name] {
			out = append(out, name)
		}
	}
	return out
}
