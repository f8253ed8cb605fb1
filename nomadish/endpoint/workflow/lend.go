package workflow

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/nomadish/identity"
	"github.com/nomadish/nomadish/structs"
)

// checkLend returns an error if a workflow lends to somebody who does not exist, so that nobody could borrow. Users and groups are those of the
// servers' user database, by which jobs have their submitters.
func (e *Endpoint) checkLend(ctx context.Context, w *structs.Workflow) error {
	snap := e.Router.Snapshot()
	for _, l := range w.Lend {
		kind, name, _ := strings.Cut(l.To, ":")
		known := true
		switch kind {
		case "namespace":
			known = snap.Namespaces().Get(nil, name) != nil
		case "project":
			known = snap.Projects(nil).Get(name) != nil
		case "user", "group":
			if err := e.checkMember(ctx, w.ID, l.To, identity.Members{Field: fmt.Sprintf("lend %q", l.To), Names: []string{name}, Group: kind == "group"}); err != nil {
				return err
			}
		}
		if !known {
			return structs.Errorf(structs.CodeBadRequest, "workflow %q: lend %q: there is no %s %q", w.ID, l.To, kind, name).
				WithHint("`nomadish %s list` shows those that there are", kind)
		}
	}
	return nil
}

// checkMember returns an error if the servers' user database does not have a user or a group.
func (e *Endpoint) checkMember(ctx context.Context, id, to string, of identity.Members) error {
	if e.Identity == nil {
		return nil
	}
	err := e.Identity.CheckMembers(ctx, fmt.Sprintf("workflow %q", id), of)
	var refused *structs.Error
	if errors.As(err, &refused) && refused.Code == structs.CodeBadRequest {
		if !of.Group {
			return refused.WithHint("correct the name, or let the servers' machines know it first: jobs of users that they do not know have none")
		}
		return refused.WithHint("correct the name, or let the servers' machines know it first: a job has the groups that its submitter has there")
	}
	return err
}
