package reserve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/licensetake"
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
// borrow licenses; none that could stay beside the rest. left is what each part has at hand beside the stage once the former have left. enough reports
// that the stage has all its licenses then.
func (t *taking) withLicenses(s Stage, onNodes []*world.Usage, left []workflow.Amounts) (victims []*world.Usage, enough bool) {
	needs := licensesFor(s)
	more, enough := licensetake.FromBorrowers(t.w, t.claim, needs, onNodes)
	if len(more) == 0 {
		return onNodes, enough
	}
	partOf := func(u *world.Usage) int {
		return slices.IndexFunc(t.nodes, func(n *world.NodeState) bool { return n.ID == u.NodeID })
	}
	for _, u := range more {
		if p := partOf(u); p >= 0 {
			left[p] = left[p].Plus(amounts(world.ResourcesOf(u)))
		}
	}
	victims = slices.Concat(onNodes, more)
	for _, u := range slices.Backward(onNodes) { // others may return enough of its node by now
		p, others := partOf(u), slices.DeleteFunc(slices.Clone(victims), func(v *world.Usage) bool { return v == u })
		if uses := amounts(world.ResourcesOf(u)); uses.Fits(left[p]) && suffice(t, needs, others, enough) {
			left[p] = left[p].Minus(uses)
			victims = others
		}
	}
	return victims, enough
}

// suffice reports whether a stage has its licenses, as far as it can have them, if those leave.
func suffice(t *taking, needs []structs.RequestedLicense, leave []*world.Usage, enough bool) bool {
	more, all := licensetake.FromBorrowers(t.w, t.claim, needs, leave)
	return len(more) == 0 && all == enough
}

// missingText says what is missing to be reserved, of nodes and of licenses.
func missingText(of workflow.Amounts, licenses string) string {
	nodes := ""
	if !of.IsZero() {
		nodes = text(of)
	}
	if nodes != "" && licenses != "" {
		nodes += ", "
	}
	return "there is not enough free: " + nodes + licenses + " are missing"
}
