package explain

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/decide"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Bounds of the look into the future: how many allocations with a time limit are let
// end, one after the other, and how many of them where the scheduler itself decides.
const (
	maxEndings  = 4096
	maxScripted = 256
)

// ending is an allocation that ends by its time limit.
type ending struct {
	at int64
	n  *world.NodeState
	u  *world.Usage
}

// expected returns when the missing instances will have room, if all that is in their way ends by
// its time limit, and nobody takes the room before.
func (x *explainer) expected(out *structs.GroupExplanation, sv *survey, left int) *structs.Expected {
	endings, endless := endingsOf(sv, x.in.Now.UnixNano())
	work := x.works[out.Group]
	exp := &structs.Expected{}
	var last *ending
	if work.Gang != nil || feasible.AllOrNone(x.in.Job) || len(sv.find.Refusals) > 0 || sv.find.Request.LeavesOwned() {
		last = x.scripted(exp, endings[:min(len(endings), maxScripted)], out.Group)
	} else {
		last = endOneByOne(exp, sv, endings[:min(len(endings), maxEndings)], left)
	}
	exp.Known = exp.All > 0
	switch {
	case exp.Known:
		job := structs.NamespacedID{ID: last.u.Owner.Job, Namespace: last.u.Owner.Namespace}
		exp.Because = fmt.Sprintf("allocation %s of %s ends by its max_run_duration at the latest then, if nobody takes the room before",
			structs.ShortID(last.u.ID), job.JobText(x.in.Job.Namespace))
	case exp.First > 0:
		exp.Because = "known for the first only: " + x.unknown(out.Group, sv, endless)
	default:
		exp.Because = "unknown, because " + x.unknown(out.Group, sv, endless)
	}
	return exp
}

// endingsOf returns what ends on the nodes that nothing refuses, the first first, and how many
// allocations there do not end.
func endingsOf(sv *survey, now int64) (out []ending, endless int) {
	for i := range sv.short {
		n := sv.short[i].n
		for _, u := range n.Usages {
			if u.Ends == 0 {
				endless++
				continue
			}
			out = append(out, ending{max(now, u.Ends), n, u})
		}
	}
	slices.SortFunc(out, func(a, b ending) int { return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.u.ID, b.u.ID)) })
	return out, endless
}

// endOneByOne lets allocations end and puts instances where there is room.
func endOneByOne(exp *structs.Expected, sv *survey, endings []ending, left int) (last *ending) {
	tok, placed := &world.Token{}, 0
	later := map[string]*world.NodeState{}
	for i := range endings {
		e := &endings[i]
		n := later[e.n.ID]
		if n == nil {
			n = e.n.Own(tok)
			later[e.n.ID] = n
		}
		n.Give(e.u)
		for placed < left {
			g, what := sv.find.Request.Grant(n, sv.find.Fit.Matcher, sv.about.rng)
			if what != "" {
				break
			}
			n.Take(g.Usage)
			placed++
			last = e
			if placed == 1 {
				exp.First = e.at
			}
		}
		if placed == left {
			exp.All = e.at
			return last
		}
	}
	return last
}

// scripted runs the scheduler on Worlds of later times: for what must be placed
// together, or depends on where the others are.
func (x *explainer) scripted(exp *structs.Expected, endings []ending, group string) *ending {
	before := x.queued(x.after, group)
	find := func(enough func(queued int) bool) *ending {
		at := sort.Search(len(endings), func(i int) bool {
			e := x.after.Edit()
			for _, end := range endings[:i+1] {
				world.Release(e, end.u.ID)
			}
			return enough(x.queued(e.World(), group))
		})
		if at == len(endings) {
			return nil
		}
		return &endings[at]
	}
	first := find(func(queued int) bool { return queued < before })
	if first == nil {
		return nil
	}
	exp.First = first.at
	all := find(func(queued int) bool { return queued == 0 })
	if all == nil {
		return first
	}
	exp.All = all.at
	return all
}

// queued is how many instances of a group would wait on a World.
func (x *explainer) queued(w *world.World, group string) int {
	in := x.in.Input
	in.Allocs = x.allocs
	return queuedOn(w, in, group)
}

// queuedOn runs the scheduler and returns how many instances of a group find no room.
func queuedOn(w *world.World, in search.Input, group string) int {
	in.Brief, in.CountOnly = true, true
	eval := evaluation(in.Job, &in)
	eval.Status, eval.FailedTGAllocs = structs.EvalStatusBlocked, map[string]*structs.AllocMetric{}
	for _, g := range in.Job.TaskGroups {
		eval.FailedTGAllocs[g.Name] = &structs.AllocMetric{} // so that nobody counts why
	}
	plan, err := decide.Schedule(w, eval, in)
	if err != nil {
		return 1 << 30
	}
	return plan.Evals[0].QueuedAllocations[group]
}

// unknown returns why nobody knows.
func (x *explainer) unknown(group string, sv *survey, endless int) string {
	tooMany := x.tooManyLicenses(group)
	switch {
	case tooMany != "":
		return tooMany
	case sv.counts.InPool == 0:
		return fmt.Sprintf("node pool %q has no node", cmp.Or(x.in.Job.NodePool, structs.DefaultNodePool))
	case len(sv.short) == 0 && sv.counts.Fitting == 0:
		return "every node is ruled out, and by nothing that passes with time"
	case sv.tally[reason{structs.ReasonOwned, world.LacksUnowned}] != nil:
		return "the devices that are free are guaranteed to namespaces, which own them whatever ends"
	case !fitsEmpty(sv):
		if reservedHere(sv) {
			return "workflows have reserved room of the nodes that it may use, and when their runs end is not known (`nomadish workflow list` shows them)"
		}
		return "none of the nodes that it may use has room for an instance, even when empty"
	case endless > 0:
		have := "have"
		if endless == 1 {
			have = "has"
		}
		return fmt.Sprintf("%s on the nodes that it may use %s no max_run_duration", allocations(endless), have)
	}
	return "what ends first does not make enough room for it"
}

// emptyTried bounds the nodes that are emptied in thought.
const emptyTried = 64

// fitsEmpty reports whether some node would take an instance if nothing ran there.
func fitsEmpty(sv *survey) bool {
	if len(sv.fitting) > 0 {
		return true
	}
	tried := 0
	for i := range sv.short {
		n := sv.short[i].n
		if !sv.holds(n) {
			continue
		}
		if tried++; tried > emptyTried {
			return true // it is not known better
		}
		if len(sv.about.lacks(emptied(n))) == 0 {
			return true
		}
	}
	return false
}

// holds reports whether a node has as much as an instance requests, in use or not.
func (x *survey) holds(n *world.NodeState) bool {
	a, total := x.find.Request, n.Capacity.Amount
	return a.Amount.CPU <= total.CPU && a.Amount.MemoryMB <= total.MemoryMB && a.Amount.DiskMB <= total.DiskMB &&
		a.Need[world.DimCores] <= int64(len(n.Capacity.Cores)) && a.Need[world.DimGPUs] <= n.Capacity.WellDevices()
}

// reservedHere reports whether workflows have reserved room of a node that would hold an instance.
func reservedHere(sv *survey) bool {
	return slices.ContainsFunc(sv.short, func(s shortNode) bool { return len(s.n.Parts()) > 0 && sv.holds(s.n) })
}

// emptied is a node without allocations.
func emptied(n *world.NodeState) *world.NodeState {
	out := n.Own(&world.Token{})
	for _, u := range n.Usages {
		out.Give(u)
	}
	return out
}
