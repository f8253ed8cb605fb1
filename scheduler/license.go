package scheduler

import (
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// SetLicense states how many there are of a license.
func SetLicense(e *Edit, name string, count int64) { world.LicenseEdit{E: e}.Set(name, count) }

// DropLicense forgets a license. What uses it stays counted.
func DropLicense(e *Edit, name string) { world.LicenseEdit{E: e}.Drop(name) }

// LicenseUse returns a license with how many are used.
func LicenseUse(w *World, l *structs.License) *structs.LicenseStub {
	c := w.Licenses().Of(l.Name)
	return &structs.LicenseStub{License: *l, Used: c.Used, Free: max(0, l.Count-c.Used)}
}

// LicenseUsers returns a license with who uses it.
func LicenseUsers(w *World, l *structs.License) *structs.LicenseStatus {
	out := &structs.LicenseStatus{LicenseStub: *LicenseUse(w, l)}
	at := map[structs.RequestName]int{}
	for id, n := range w.Licenses().Users(l.Name) {
		u, counts := world.Usages(w).Get(id)
		if !counts {
			continue
		}
		of := structs.RequestName{Namespace: u.Owner.Namespace, JobID: u.Owner.Job, Group: u.Owner.Group}
		i, known := at[of]
		if !known {
			i = len(out.Users)
			at[of] = i
			out.Users = append(out.Users, structs.LicenseUser{Namespace: of.Namespace, JobID: of.JobID, TaskGroup: of.Group})
		}
		out.Users[i].Allocs++
		out.Users[i].Count += n
	}
	out.SortUsers()
	return out
}
