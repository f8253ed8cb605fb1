package state

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/structs"
)

// Namespaces reads the namespaces of a snapshot.
type Namespaces struct{ snap *Snapshot }

// Namespaces returns the reads of namespaces.
func (s *Snapshot) Namespaces() Namespaces { return Namespaces{s} }

// Get returns a namespace, the default one too while nobody has changed it; nil if there is none of the name.
func (n Namespaces) Get(ws *WatchSet, name string) *structs.Namespace {
	if is := one[structs.Namespace](n.snap.v, ws, TableNamespaces, byID, name); is != nil {
		return is
	}
	return structs.BuiltInNamespace(name)
}

// List walks the namespaces whose name begins with prefix, by name, or backwards.
func (n Namespaces) List(ws *WatchSet, prefix string, reverse bool) iter.Seq[*structs.Namespace] {
	all := collect(many[structs.Namespace](n.snap.v, ws, false, TableNamespaces, byPrefix, prefix))
	stored := slices.ContainsFunc(all, func(is *structs.Namespace) bool { return is.Name == structs.DefaultNamespace })
	if !stored && strings.HasPrefix(structs.DefaultNamespace, prefix) {
		all = append(all, structs.BuiltInNamespace(structs.DefaultNamespace))
	}
	slices.SortFunc(all, func(a, b *structs.Namespace) int { return cmp.Compare(a.Name, b.Name) })
	if reverse {
		slices.Reverse(all)
	}
	return slices.Values(all)
}

// NamespaceUpsert makes a namespace, or replaces it.
func (w *Writer) NamespaceUpsert(index uint64, e *structs.NamespaceUpsertEntry) error {
	return w.commit(index, e.Time, structs.EventNamespaceUpserted, "", func(x *txn) error {
		if err := e.Namespace.Validate(); err != nil {
			return err
		}
		was := get[structs.Namespace](x.rows, TableNamespaces, byID, e.Namespace.Name)
		now := e.Namespace.Copy()
		now.CreateIndex, now.ModifyIndex = x.index, x.index
		switch {
		case was != nil:
			now.CreateIndex = was.CreateIndex
		case now.Name == structs.DefaultNamespace:
			now.CreateIndex = structs.BuiltInNamespace(now.Name).CreateIndex
		}
		if was == nil && memtable.Count(x.rows, TableNamespaces) >= structs.MaxNamespaces {
			return structs.Errorf(structs.CodeTooLarge, "namespace %q: there are %d namespaces, and no more are allowed", now.Name, structs.MaxNamespaces).
				WithHint("`nomadish namespace delete` removes unused ones")
		}
		x.put(TableNamespaces, now)
		return nil
	})
}

// NamespaceDelete removes a namespace in which no job is that is not dead.
func (w *Writer) NamespaceDelete(index uint64, e *structs.NamespaceDeleteEntry) error {
	return w.commit(index, e.Time, structs.EventNamespaceDeleted, "", func(x *txn) error {
		if e.Name == structs.DefaultNamespace {
			return structs.Errorf(structs.CodeBadRequest, "can not delete default namespace")
		}
		was := get[structs.Namespace](x.rows, TableNamespaces, byID, e.Name)
		if was == nil {
			return memtable.Missing("namespace", e.Name)
		}
		alive, first := 0, ""
		for j := range rows[structs.Job](x.rows, false, TableJobs, byID) {
			if j.Namespace == e.Name && j.Status != structs.JobStatusDead {
				if alive++; first == "" {
					first = j.ID
				}
			}
		}
		if alive > 0 {
			return structs.Errorf(structs.CodeConflict, "namespace %q has non-terminal jobs: %d, such as %q", e.Name, alive, first).
				WithHint("`nomadish job status -namespace %s` lists them; stop them first", e.Name)
		}
		if get[structs.VirtualCluster](x.rows, TableVirtualClusters, byID, e.Name) != nil {
			return structs.Errorf(structs.CodeConflict, "namespace %q has a virtual cluster", e.Name).WithHint("`nomadish vc delete %s` removes it", e.Name)
		}
		if id := (workflows{x}).aliveIn(e.Name); id != "" {
			return structs.Errorf(structs.CodeConflict, "namespace %q has a workflow that has not ended: %q", e.Name, id).
				WithHint("`nomadish workflow cancel -namespace %s %s` ends it", e.Name, id)
		}
		workflows{x}.forget(e.Name)
		x.drop(TableNamespaces, was)
		return nil
	})
}
