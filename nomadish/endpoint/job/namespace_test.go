package job

import (
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// TestPagesOfAllNamespaces: each job is on one page, also where the name of one namespace begins with that of another.
func TestPagesOfAllNamespaces(t *testing.T) {
	s := newSite(t)
	for _, ns := range []string{"a", "a-b", "a0", "A"} {
		s.Put(&structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: ns}})
		for _, id := range []string{"web", "web-1", "Web"} {
			s.Put(&structs.JobRegisterEntry{Job: &structs.Job{Namespace: ns, ID: id, Type: structs.JobTypeBatch}})
		}
	}
	for _, reverse := range []bool{false, true} {
		args := structs.ListRequest{QueryOptions: structs.QueryOptions{Namespace: "*", PerPage: 1, Reverse: reverse}}
		seen := map[structs.NamespacedID]bool{}
		for range 12 {
			reply, err := s.list(t.Context(), &args)
			if err != nil || len(reply.Jobs) != 1 {
				t.Fatalf("%+v: %+v %v", args, reply, err)
			}
			seen[structs.NamespacedID{Namespace: reply.Jobs[0].Namespace, ID: reply.Jobs[0].ID}] = true
			args.NextToken = reply.NextToken
		}
		if len(seen) != 12 || args.NextToken != "" {
			t.Errorf("reverse %t: %v, next %q", reverse, seen, args.NextToken)
		}
	}
}
