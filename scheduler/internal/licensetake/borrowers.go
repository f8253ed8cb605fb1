package licensetake

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/license"
	"github.com/nomadish/nomadish/scheduler/internal/together"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// FromBorrowers returns who of those that borrow licenses from a workflow leaves for instances of it that need so many, beside those that leave anyway;
// enough reports that it has all of them then. Of each license that is lacking those above their share leave first, as in [workflow.TakeBack], of
// which a license is one part with one resource; at last whoever could stay beside the rest stays.
func FromBorrowers(
	w *world.World, c *structs.WorkflowClaim, needs []structs.RequestedLicense, leaving []*world.Usage,
) (victims []*world.Usage, enough bool) {
	t := taking{w: w, claim: c, left: map[string]int64{}}
	for _, r := range needs {
		t.left[r.Name] = w.Licenses().FreeFor(r.Name, &license.Taker{Workflow: c.Key(), Precedes: true}) - r.Count
	}
	for _, u := range leaving {
		t.returns(u, 1)
	}
	enough = true
	for _, r := range needs {
		if t.left[r.Name] < 0 {
			t.of(r.Name, r.Count)
		}
		enough = enough && t.left[r.Name] >= 0
	}
	units := t.units(leaving)
	for i, of := range slices.Backward(units) {
		if t.all(of, -1); slices.ContainsFunc(needs, func(r structs.RequestedLicense) bool { return t.left[r.Name] < 0 && uses(of, r.Name) }) {
			t.all(of, 1)
			continue
		}
		units = slices.Delete(units, i, i+1)
	}
	return together.All(units), enough
}

// taking is the work of taking licenses back.
type taking struct {
	w     *world.World
	claim *structs.WorkflowClaim
	// left is how many of each license are at hand beside what is needed; below 0: so many are lacking.
	left    map[string]int64
	gone    map[string]bool // the IDs of those that leave
	victims []*world.Usage  // those that were chosen here
}

// returns counts what a usage returns, or (-1) does not return after all.
func (t *taking) returns(u *world.Usage, sign int64) {
	world.PutInto(&t.gone, u.ID, sign > 0)
	if u.IsSuspended {
		return
	}
	for _, r := range u.Owner.Terms.Licenses.List() {
		if _, needed := t.left[r.Name]; needed {
			t.left[r.Name] += sign * r.Count
		}
	}
}

// all counts what some return, or (-1) do not return after all.
func (t *taking) all(of together.Unit, sign int64) {
	for _, u := range of {
		t.returns(u, sign)
	}
}

// units returns those that were chosen by who leaves together, of gangs that cannot run on without them all others, too, without those that leave
// anyway.
func (t *taking) units(leaving []*world.Usage) (units []together.Unit) {
	for _, of := range together.UnitsOf(t.w.Edit(), slices.Concat(leaving, t.victims)) {
		of = slices.DeleteFunc(slices.Clone(of), func(u *world.Usage) bool { return slices.Contains(leaving, u) })
		for _, u := range of {
			if !t.gone[u.ID] { // with the rest of its gang
				t.returns(u, 1)
			}
		}
		if len(of) > 0 {
			units = append(units, of)
		}
	}
	return units
}

// of takes back what is lacking of one license, of which so much is needed, as far as it is lent.
func (t *taking) of(name string, needed int64) {
	part := workflow.PartState{Idle: workflow.Amounts{Devices: max(0, t.left[name]+needed)}}
	byID := map[string]*world.Usage{}
	all := part.Idle.Devices
	for id, n := range t.w.Licenses().Users(name) {
		u, counts := world.Usages(t.w).Get(id)
		if !counts || t.gone[id] || u.Owner.Terms.BorrowsFrom() != t.claim.Key() {
			continue
		}
		lend := slices.IndexFunc(t.claim.Lend, func(l *structs.WorkflowLend) bool { return l.To == u.Owner.Terms.LentTo() })
		part.Borrowers = append(part.Borrowers, workflow.Borrower{ID: id, Lend: lend, Uses: workflow.Amounts{Devices: n}, Since: u.Created})
		byID[id] = u
		all += n
	}
	shares := make([]int64, len(t.claim.Lend))
	for i, l := range t.claim.Lend {
		shares[i] = int64(l.Share)
	}
	stage := []workflow.Instance{{Needs: workflow.Amounts{Devices: min(needed, all)}}}
	for _, id := range workflow.TakeBack([]workflow.PartState{part}, stage, shares).Victims {
		t.returns(byID[id], 1)
		t.victims = append(t.victims, byID[id])
	}
}

// uses reports whether one of some uses a license.
func uses(of together.Unit, name string) bool {
	return slices.ContainsFunc(of, func(u *world.Usage) bool { return usesOf(u, name) > 0 })
}

// usesOf returns how many of a license a usage uses.
func usesOf(u *world.Usage, name string) int64 {
	for _, r := range u.Owner.Terms.Licenses.List() {
		if r.Name == name {
			return r.Count
		}
	}
	return 0
}
