package state

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// TestNamespaces: namespaces are made, replaced and deleted; the default one stays; one in which jobs are alive stays; and no job is
// registered in one that is gone.
func TestNamespaces(t *testing.T) {
	w := newWorld(t)
	names := func(s *Snapshot, prefix string, reverse bool) string {
		var list []string
		for n := range s.Namespaces().List(nil, prefix, reverse) {
			list = append(list, n.Name)
		}
		return strings.Join(list, " ")
	}
	upsert := func(n *structs.Namespace) *structs.NamespaceUpsertEntry {
		return &structs.NamespaceUpsertEntry{Namespace: n, Time: w.now()}
	}
	empty := w.store.Snapshot().Hash()
	check(t, "in a new state", names(w.store.Snapshot(), "", false), "default")
	w.must(upsert(&structs.Namespace{Name: "team", Description: "old", Meta: map[string]string{"a": "b"}}))
	snap := w.must(upsert(&structs.Namespace{Name: "dev"}))
	check(t, "backwards", names(snap, "", true), "team dev default")
	check(t, "by prefix", names(snap, "de", false), "default dev")
	snap = w.must(upsert(&structs.Namespace{Name: "team", Description: "new"}))
	got := snap.Namespaces().Get(nil, "team")
	check(t, "replaced", fmt.Sprint(got.Description, got.Meta, got.CreateIndex, got.ModifyIndex), "newmap[] 1 3")
	snap = w.must(upsert(&structs.Namespace{Name: "default", Description: "changed"}))
	check(t, "the default one changed", names(snap, "", false)+snap.Namespaces().Get(nil, "default").Description, "default dev teamchanged")

	refused := func(what string, e any, want string) {
		t.Helper()
		if err := w.apply(e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	job := &structs.Job{Namespace: "team", ID: "web", Type: structs.JobTypeService, TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1}}}
	register := &structs.JobRegisterEntry{Job: job, Time: w.now()}
	w.must(register)
	refused("with a job", &structs.NamespaceDeleteEntry{Name: "team"}, `has non-terminal jobs: 1, such as "web"`)
	refused("the default one", &structs.NamespaceDeleteEntry{Name: "default"}, "can not delete default namespace")
	refused("unknown", &structs.NamespaceDeleteEntry{Name: "nope"}, "not found")
	refused("without a name", upsert(&structs.Namespace{}), "missing namespace name")
	w.must(&structs.JobDeregisterEntry{Namespace: "team", JobID: "web", Purge: true, Time: w.now()})
	w.must(&structs.NamespaceDeleteEntry{Name: "team"})
	refused("a job of what is gone", register, `namespace "team" does not exist`)
	w.must(&structs.NamespaceDeleteEntry{Name: "dev"})
	if snap = w.store.Snapshot(); names(snap, "", false) != "default" || snap.Hash() == empty {
		t.Errorf("in the end: %s", names(snap, "", false))
	}
}
