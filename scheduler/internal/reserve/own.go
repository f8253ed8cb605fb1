package reserve

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/lend"
	"github.com/nomadish/nomadish/scheduler/internal/reservable"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// An instance of the running stage that was lost with its node is placed again at once, in what is left of the reservation or, where that has no room, without a
// claim (part 0, rule 5): it does not wait for the lost part. When that part is reserved anew, it is reserved where such instances run, and these are raised: they
// use the reservation from then on, in place.

// group names a group of a job of the workflow's namespace.
type group struct{ job, name string }

// unclaimed returns the instances of the running stage that run without a claim on nodes of the pool, as they would use the reservation. Those with devices are
// left out where these are not to be reserved, as somebody owns them. So are those with shares of devices.
func (c *chooser) unclaimed(stage Stage) (list []*world.Usage) {
	jobs := map[string]bool{}
	for _, job := range stage {
		jobs[job.ID] = !job.PerNode() && job.Class != structs.ClassOpportunistic
	}
	namespace := c.namespace()
	for i, n := range c.nodes {
		for _, u := range n.Usages {
			t := &u.Owner.Terms
			if u.Owner.Namespace != namespace || !jobs[u.Owner.Job] || t.Claim != "" || t.BorrowsFrom() != "" || u.IsSuspended || u.PerNode() || sharesDevices(u) || !onReservable(c, i, u) {
				continue
			}
			raised := *u
			raised.Owner = &world.Owner{RequestName: u.Owner.RequestName, Terms: t.Reserved(c.key)}
			list = append(list, &raised)
		}
	}
	return list
}

// onReservable reports whether all devices of a usage of a node are to be had for the reservation, or are named by it.
func onReservable(c *chooser, i int, u *world.Usage) bool {
	is := c.isSpare(i)
	if is == nil {
		return true
	}
	n := c.nodes[i]
	part, _ := n.Part(c.key)
	return !slices.ContainsFunc(u.Devices, func(d world.DeviceUsage) bool {
		return !part.Has(d.ID) && !slices.ContainsFunc(n.Capacity.Trees, func(t *world.DeviceTree) bool {
			at, found := t.Find(d.ID)
			return found && is(t, at)
		})
	})
}

// sharesDevices reports whether a usage has only shares of devices.
func sharesDevices(u *world.Usage) bool {
	return slices.ContainsFunc(u.Devices, func(d world.DeviceUsage) bool { return d.Share != world.WholeDevice })
}

// usedOn returns the devices of a node that instances of the workflow use by the reservation, where these are packed where they are.
func (c *chooser) usedOn(i int) (ids []string) {
	if c.inPlace && !c.taken[i] {
		ids = reservable.UsedDevices(c.nodes[i], c.key)
	}
	return ids
}

// raise returns the World in which those of a list use the reservation that may, and these. Of a gang as many use it as must run together, or none does.
func (c *chooser) raise(list []*world.Usage) (w *world.World, raised []*world.Usage) {
	e := c.w.Edit()
	for _, u := range list {
		was := world.Release(e, u.ID)
		if (world.LicenseEdit{E: e}).Lacks(u, true) != "" {
			world.Take(e, was)
			continue
		}
		world.Take(e, u)
		raised = append(raised, u)
	}
	raised = slices.DeleteFunc(raised, func(u *world.Usage) bool {
		if reservable.GangParted(e, u) {
			was, _ := world.Usages(c.w).Get(u.ID)
			world.Take(e, was)
			return true
		}
		return false
	})
	return e.World(), raised
}

// runs returns on which nodes, by their places in the list, instances of each group run in the reservation that are packed where they are.
func (c *chooser) runs() map[group][]int {
	if !c.inPlace && !c.placed && !c.staying {
		return nil
	}
	out := map[group][]int{} // looked up only
	for i, n := range c.nodes {
		if !c.inPlace && (!c.taken[i] || !c.placed && n.Node.Ready()) {
			continue
		}
		part, _ := n.Part(c.key)
		beside := part.Total.Less(part.Used) // for those without a claim that run on where the part stays
		for _, u := range n.Usages {
			t := &u.Owner.Terms
			is := t.Claim == structs.ClaimWorkflow && t.WorkflowKey() == c.key
			if !is && !n.Node.Ready() && lend.RunsUnclaimed(u, c.key) && beside.Lacks(world.ResourcesOf(u)) == "" {
				is, beside = true, beside.Less(world.ResourcesOf(u))
			}
			if of := (group{u.Owner.Job, u.Owner.Group}); is {
				out[of] = append(out[of], i)
			}
		}
	}
	return out
}

// renewAround is Renew with the instances of the running stage that run without a claim in the reservation, where they are. false: there are none, or the
// reservation cannot be had so; or it can be with less without them, as plain is.
func renewAround(x *chooser, c *structs.WorkflowClaim, stages []Stage, rule workflow.Reserve, plain *Choice) (out Choice, ok bool) {
	if len(c.Jobs) == 0 || len(stages) == 0 {
		return out, false
	}
	list := x.unclaimed(stages[0])
	if len(list) == 0 {
		return out, false
	}
	w, raised := x.raise(list)
	if len(raised) == 0 {
		return out, false
	}
	around := chooser{w: w, e: w.Edit(), key: x.key, pool: x.pool, bands: x.bands, taken: map[int]bool{}, kept: x.kept, renews: true, inPlace: true, bad: x.bad}
	out = around.renewed(c, stages, rule, true)
	if out.Missing != "" || plain.Missing == "" && !sumOf(out.Parts).Fits(sumOf(plain.Parts)) {
		return out, false
	}
	now := *c
	now.Parts = out.Parts
	for _, u := range raised {
		if reservable.BeyondPart(around.e, &now, u) != "" {
			return out, false
		}
		out.Claims = append(out.Claims, u.ID)
	}
	return out, true
}

// sumOf returns what parts hold together.
func sumOf(parts []structs.WorkflowPart) (sum workflow.Amounts) {
	for _, p := range parts {
		if !p.Lost {
			sum = sum.Plus(workflow.Amounts{CPU: p.CPU, MemoryMB: p.MemoryMB, DiskMB: p.DiskMB, Cores: int64(p.Cores), Devices: int64(p.Devices)})
		}
	}
	return sum
}

// MayRaise reports whether instances of a workflow's running stage run without a claim where its reservation has room for one of them.
func MayRaise(w *world.World, c *structs.WorkflowClaim) bool {
	return c.Posted && slices.ContainsFunc(reservable.Unclaimed(w.Edit(), c), func(u *world.Usage) bool {
		n, _ := w.State(u.NodeID)
		part, _ := n.Part(c.Key())
		lost := slices.ContainsFunc(c.Parts, func(p structs.WorkflowPart) bool { return p.NodeID == u.NodeID && p.Lost })
		return !lost && u.Owner.Terms.BorrowsFrom() == "" && !u.IsSuspended && !u.PerNode() && part.Total.Less(part.Used).Lacks(part.Taken(u)) == ""
	})
}

// raisable returns the instances of the running stage that run without a claim, and may use the reservation where they are, as far as it has not been lost.
func raisable(c *chooser, claim *structs.WorkflowClaim, stages []Stage) (ids []string) {
	if len(claim.Jobs) == 0 || len(stages) == 0 {
		return nil
	}
	list := slices.DeleteFunc(c.unclaimed(stages[0]), func(u *world.Usage) bool {
		return !slices.ContainsFunc(claim.Parts, func(p structs.WorkflowPart) bool { return p.NodeID == u.NodeID && !p.Lost })
	})
	slices.SortStableFunc(list, func(a, b *world.Usage) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(a.ID, b.ID))
	})
	e := c.w.Edit()
	for len(list) > 0 {
		first := list[0]
		gang, some := first.Owner.Gang()
		unit := []*world.Usage{first} // of a gang all of them, or none
		list = slices.DeleteFunc(list[1:], func(u *world.Usage) bool {
			g, mate := u.Owner.Gang()
			if mate = mate && some && g == gang; mate {
				unit = append(unit, u)
			}
			return mate
		})
		lacks := false
		for _, u := range unit {
			world.Release(e, u.ID)
			lacks = lacks || (world.LicenseEdit{E: e}).Lacks(u, true) != ""
			world.Take(e, u)
		}
		if lacks || slices.ContainsFunc(unit, func(u *world.Usage) bool { return reservable.BeyondPart(e, claim, u) != "" }) {
			for _, u := range unit {
				was, _ := world.Usages(c.w).Get(u.ID)
				world.Release(e, u.ID)
				world.Take(e, was)
			}
			continue
		}
		for _, u := range unit {
			ids = append(ids, u.ID)
		}
	}
	return ids
}
