package state

import (
	"iter"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Licenses reads the licenses of a snapshot.
type Licenses struct{ snap *Snapshot }

// Licenses returns the reads of licenses.
func (s *Snapshot) Licenses() Licenses { return Licenses{s} }

// Get returns a license; nil if there is none of the name.
func (l Licenses) Get(ws *WatchSet, name string) *structs.License {
	return one[structs.License](l.snap.v, ws, TableLicenses, byID, name)
}

// List walks the licenses whose name begins with prefix, by name, or backwards.
func (l Licenses) List(ws *WatchSet, prefix string, reverse bool) iter.Seq[*structs.License] {
	return many[structs.License](l.snap.v, ws, reverse, TableLicenses, byPrefix, prefix)
}

// Names returns the names of all licenses, in order.
func (l Licenses) Names() (names []string) {
	for row := range l.List(nil, "", false) {
		names = append(names, row.Name)
	}
	return names
}

// UseIndex returns the index that last changed which licenses there are, who uses them, or what workflows have reserved. A watch set that is given watches all of it.
func (l Licenses) UseIndex(ws *WatchSet) (index uint64) {
	s := l.snap
	for _, table := range []string{TableLicenses, TableAllocs, TableWorkflows} {
		if ws != nil {
			ws.store = s.v.store
			ws.addTable(s.v, table)
		}
		index = max(index, s.TableIndex(table))
	}
	return index
}

func (x *txn) license(name string) *structs.License {
	return get[structs.License](x.rows, TableLicenses, byID, name)
}

// LicenseUpsert makes a license or replaces it. Its count may be below what is used: what runs goes on.
func (w *Writer) LicenseUpsert(index uint64, e *structs.LicenseUpsertEntry) error {
	return w.commit(index, e.Time, structs.EventLicenseUpserted, "", func(x *txn) error {
		if err := e.License.Validate(); err != nil {
			return err
		}
		was := x.license(e.License.Name)
		if err := checkLicense(e.License.Name, was, e.CAS, e.CheckIndex); err != nil {
			return err
		}
		if n := memtable.Count(x.rows, TableLicenses); was == nil && n >= structs.MaxLicenses {
			return structs.Errorf(structs.CodeTooLarge, "license %q: there are %d licenses, and at most %d are allowed", e.License.Name, n, structs.MaxLicenses).
				WithHint("`nomadish license delete` removes unused ones")
		}
		now := e.License.Copy()
		now.CreateIndex, now.ModifyIndex = x.index, x.index
		if was != nil {
			now.CreateIndex = was.CreateIndex
		}
		x.put(TableLicenses, now)
		scheduler.SetLicense(x.edit, now.Name, now.Count)
		note(x, KindLicense, now.Name, was, now)
		return nil
	})
}

// LicenseDelete removes a license that nobody uses.
func (w *Writer) LicenseDelete(index uint64, e *structs.LicenseDeleteEntry) error {
	return w.commit(index, e.Time, structs.EventLicenseDeleted, "", func(x *txn) error {
		was := x.license(e.Name)
		if was == nil {
			return memtable.Missing("license", e.Name)
		}
		if err := checkLicense(e.Name, was, e.CAS, e.CheckIndex); err != nil {
			return err
		}
		if n := scheduler.LicenseUse(x.edit.World(), was).Used; n > 0 {
			return structs.Errorf(structs.CodeConflict, "license %q is in use: %d", e.Name, n).
				WithHint("`nomadish license status %s` shows who uses it; stop these jobs first", e.Name)
		}
		for _, r := range scheduler.LicenseUsers(x.edit.World(), was).Reservations {
			return structs.Errorf(structs.CodeConflict, "license %q is reserved by workflow %q of namespace %q: %d", e.Name, r.Workflow, r.Namespace, r.Reserved).
				WithHint("wait for the end of the workflow's run, or cancel it with `nomadish workflow cancel`")
		}
		x.drop(TableLicenses, was)
		scheduler.DropLicense(x.edit, was.Name)
		note(x, KindLicense, was.Name, was, nil)
		return nil
	})
}

// checkLicense refuses an edit of a license that somebody else has changed meanwhile.
func checkLicense(name string, was *structs.License, cas bool, index uint64) error {
	switch {
	case !cas:
	case was == nil && index != 0:
		return structs.Errorf(structs.CodeConflict, "license %q: there is none, so it was not last changed at index %d", name, index)
	case was != nil && index != was.ModifyIndex:
		return structs.Errorf(structs.CodeConflict, "license %q: it was last changed at index %d, not %d, and its count is %d now", name, was.ModifyIndex, index, was.Count).
			WithHint("look at what was changed, and apply again with the new index")
	}
	return nil
}
