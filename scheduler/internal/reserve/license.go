package reserve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/licensetake"
	"github.com/nomadish/nomadish/scheduler/internal/together"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// licenses is what a workflow reserves of licenses.
type licenses struct {
	of []structs.RequestedLicense
	// missing says which are not free now; hopeless that there are too few, whoever uses them. "": neither.
	missing, hopeless string
}

// licensesOf returns what is reserved of licenses for stages, beside what is reserved of nodes.
func licensesOf(w *world.World, key string, stages []Stage, rule workflow.Reserve) (l licenses, err error) {
	needs := make([][]workflow.License, len(stages))
	for i, s := range stages {
		for _, r := range licensesFor(s) {
			needs[i] = append(needs[i], workflow.License{Name: r.Name, Count: r.Count})
		}
	}
	counts, err := rule.Counts(needs)
	if err != nil {
		return l, err
	}
	var missing, hopeless []string
	for _, c := range counts {
		if c.Count == 0 {
			continue
		}
		l.of = append(l.of, structs.RequestedLicense{Name: c.Name, Count: c.Count})
		has := w.Licenses().Of(c.Name)
		free := w.Licenses().Reservable(c.Name, key)
		switch {
		case !has.Exists:
			hopeless = append(hopeless, fmt.Sprintf("there is no license %q", c.Name))
		case has.Count < c.Count:
			hopeless = append(hopeless, fmt.Sprintf("%d of license %q are to be reserved, and there are %d", c.Count, c.Name, has.Count))
		case free < c.Count:
			missing = append(missing, fmt.Sprintf("%d of license %q", c.Count-free, c.Name))
		}
	}
	l.missing, l.hopeless = strings.Join(missing, ", "), strings.Join(hopeless, "; ")
	return l, nil
}

// licensesFor returns what the jobs of a stage need of licenses, in the order of their names.
func licensesFor(s Stage) (list []structs.RequestedLicense) {
	var sum structs.WorkflowResources
	for _, job := range s {
		sum.Add((&structs.WorkflowJob{Job: job}).Needs())
	}
	return sum.LicenseList()
}

// withLicenses returns who leaves a workflow's reservation for the jobs of a stage: those that leave the nodes for it, and just enough of those that
// borrow licenses, with the rest of gangs that cannot run on without them; none that could stay beside the rest. left is what each part has at hand beside
// the stage once the former have left. enough reports that the stage has all its licenses then.
func (t *taking) withLicenses(s Stage, onNodes []*world.Usage, left []workflow.Amounts) (victims []*world.Usage, enough bool) {
	needs := licensesFor(s)
	counted := slices.Clone(onNodes)
	leaves := func(list []*world.Usage) {
		for _, u := range list {
			if p := t.partOf(u); p >= 0 && !slices.Contains(counted, u) {
				left[p] = left[p].Plus(amounts(world.ResourcesOf(u)))
			}
		}
		counted = append(counted, list...)
	}
	units := together.UnitsOf(t.e, onNodes)
	gangs := slices.ContainsFunc(units, func(u together.Unit) bool { return len(u) > 1 })
	leaves(together.All(units))
	more, enough := licensetake.FromBorrowers(t.w, t.claim, needs, together.All(units))
	if len(more) == 0 && !gangs {
		return onNodes, enough
	}
	leaves(more)
	units = together.UnitsOf(t.e, slices.Concat(together.All(units), more))
	for i, u := range slices.Backward(units) { // others may return enough of its node by now
		others := slices.Delete(slices.Clone(units), i, i+1)
		if t.fits(u, left) && suffice(t, needs, together.All(others), enough) {
			for _, u := range u {
				if p := t.partOf(u); p >= 0 {
					left[p] = left[p].Minus(amounts(world.ResourcesOf(u)))
				}
			}
			units = others
		}
	}
	return together.All(units), enough
}

// partOf returns the part of the reservation on the node of a usage; -1: there is none.
func (t *taking) partOf(u *world.Usage) int {
	return slices.IndexFunc(t.nodes, func(n *world.NodeState) bool { return n.ID == u.NodeID })
}

// fits reports whether those who leave together could stay beside what is left of the parts.
func (t *taking) fits(unit together.Unit, left []workflow.Amounts) bool {
	uses := make([]workflow.Amounts, len(left))
	for _, u := range unit {
		if p := t.partOf(u); p >= 0 {
			if uses[p] = uses[p].Plus(amounts(world.ResourcesOf(u))); !uses[p].Fits(left[p]) {
				return false
			}
		}
	}
	return true
}

// suffice reports whether a stage has its licenses, as far as it can have them, if those leave.
func suffice(t *taking, needs []structs.RequestedLicense, leave []*world.Usage, enough bool) bool {
	more, all := licensetake.FromBorrowers(t.w, t.claim, needs, leave)
	return len(more) == 0 && all == enough
}

// missingText says what is missing to be reserved, of nodes and of licenses.
func (c *chooser) missingText(of workflow.Packing, r *request) string {
	lacks := "there is not enough free" + besideSlots(c, r, &of) + ": "
	switch {
	case of.Missing.IsZero():
		return lacks + isMissing(r.licenses.missing, "")
	case r.licenses.missing == "":
		return lacks + isMissing(textOf(c, r, of.Missing), where(of, r))
	}
	return lacks + isMissing(textOf(c, r, of.Missing)+where(of, r)+", "+r.licenses.missing, "")
}
