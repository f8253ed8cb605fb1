package lend

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// licenses adds how the licenses are used that a workflow has reserved, and who borrows them, on whatever nodes.
func (l *Loans) licenses(w *world.World, c *structs.WorkflowClaim) {
	shares := make([]int64, len(c.Lend))
	for i := range c.Lend {
		shares[i] = int64(c.Lend[i].Share)
	}
	noRoom := world.WorkflowEdit{E: w.Edit()}.NoRoom(c.Key())
	for _, r := range c.Licenses {
		s := w.Licenses().ShareOf(r.Name, c.Key())
		for _, of := range []struct {
			into   *structs.WorkflowResources
			amount int64
		}{{&l.Reserved, s.Total}, {&l.Used, s.Used}, {&l.Lent, s.Lent}, {&l.Idle, s.Idle - s.Lost}, {&l.Lost, s.Lost}} {
			addLicense(of.into, r.Name, of.amount)
		}
		most := s.Lent + min(w.Licenses().Lendable(r.Name, c.Key(), noRoom), s.Idle-s.Lost)
		if c.LendMax != nil && c.LendMax.Licenses[r.Name] > 0 {
			most = min(most, c.LendMax.Licenses[r.Name])
		}
		due := workflow.Shares(most, shares)
		for i := range l.To {
			if !c.Shared() {
				due[i] = most
			}
			addLicense(&l.To[i].Due, r.Name, due[i])
		}
		if len(l.To) == 0 {
			continue
		}
		lent := s.Lent
		for id, n := range w.Licenses().Users(r.Name) {
			u, counts := world.Usages(w).Get(id)
			if !counts || u.Owner.Terms.BorrowsFrom() != c.Key() {
				continue
			}
			to := &l.To[indexOf(c, u.Owner.Terms.LentTo())]
			if addLicense(&to.Amount, r.Name, n); !slices.Contains(to.Allocs, id) {
				to.Allocs = append(to.Allocs, id)
			}
			addLicense(&to.Lent, r.Name, min(n, lent))
			lent -= min(n, lent)
		}
	}
}

// addLicense adds so many of a license; of none nothing is noted.
func addLicense(to *structs.WorkflowResources, name string, n int64) {
	if n > 0 {
		to.Add(structs.WorkflowResources{Licenses: map[string]int64{name: n}})
	}
}

// LicenseReservations returns what workflows have reserved of a license, and how it is used.
func LicenseReservations(w *world.World, name string) (list []structs.LicenseReservation) {
	for _, s := range w.Licenses().Shares(name) {
		c := w.Workflow(s.Workflow)
		if c == nil {
			continue
		}
		list = append(list, structs.LicenseReservation{
			Namespace: c.Namespace, Workflow: c.ID, Pending: s.Pending, Reserved: s.Total, Used: s.Used, Lent: s.Lent, Idle: s.Idle - s.Lost, Lost: s.Lost,
		})
	}
	return list
}
