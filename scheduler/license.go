package scheduler

import (
	"github.com/nomadish/nomadish/scheduler/internal/lend"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// SetLicense states how many there are of a license.
func SetLicense(e *Edit, name string, count int64) { world.LicenseEdit{E: e}.Set(name, count) }

// DropLicense forgets a license. What uses it stays counted.
func DropLicense(e *Edit, name string) { world.LicenseEdit{E: e}.Drop(name) }

// LicenseUse returns a license with how many are used, and how many any job may take now.
func LicenseUse(w *World, l *structs.License) *structs.LicenseStub {
	stub := &structs.LicenseStub{License: *l, Used: w.Licenses().Of(l.Name).Used, Free: w.Licenses().FreeForAny(l.Name)}
	for _, s := range w.Licenses().Shares(l.Name) {
		if !s.Pending {
			stub.Reserved += s.Total
		}
	}
	return stub
}

// LicenseUsers returns a license with who uses it.
func LicenseUsers(w *World, l *structs.License) *structs.LicenseStatus {
	out := &structs.LicenseStatus{LicenseStub: *LicenseUse(w, l)}
	out.Reservations = lend.LicenseReservations(w, l.Name)
	type userOf struct {
		structs.RequestName
		workflow, borrows string
	}
	at := map[userOf]int{}
	reserving := map[string]bool{"": true} // an instance may have borrowed from a workflow that has ended: that is no longer where its licenses are from
	for _, r := range out.Reservations {
		reserving[structs.WorkflowKey(r.Namespace, r.Workflow)] = true
	}
	for id, n := range w.Licenses().Users(l.Name) {
		u, counts := world.Usages(w).Get(id)
		if !counts {
			continue
		}
		of := userOf{
			structs.RequestName{Namespace: u.Owner.Namespace, JobID: u.Owner.Job, Group: u.Owner.Group}, u.Owner.Terms.LicensesOf(), u.Owner.Terms.BorrowsFrom(),
		}
		if !reserving[of.workflow] {
			of.workflow = ""
		}
		if !reserving[of.borrows] {
			of.borrows = ""
		}
		i, known := at[of]
		if !known {
			i = len(out.Users)
			at[of] = i
			out.Users = append(out.Users, structs.LicenseUser{
				Namespace: of.Namespace, JobID: of.JobID, TaskGroup: of.Group, Workflow: of.workflow, Borrows: of.borrows,
			})
		}
		out.Users[i].Allocs++
		out.Users[i].Count += n
	}
	out.SortUsers()
	return out
}
