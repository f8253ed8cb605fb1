package reservable

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// usedOf returns what instances of a workflow use of a node by its reservation.
func usedOf(n *world.NodeState, key string) (sum world.Resources) {
	for _, u := range n.Usages {
		if t := &u.Owner.Terms; t.Claim == structs.ClaimWorkflow && t.WorkflowKey() == key {
			sum = sum.Plus(world.ResourcesOf(u))
		}
	}
	return sum
}

// UsedDevices returns the devices of a node that instances of a workflow use by its reservation.
func UsedDevices(n *world.NodeState, key string) (ids []string) {
	for _, u := range n.Usages {
		if t := &u.Owner.Terms; t.Claim == structs.ClaimWorkflow && t.WorkflowKey() == key {
			for _, d := range u.Devices {
				ids = append(ids, d.ID)
			}
		}
	}
	return ids
}

// FreeWithUsed is [Free] with what instances of the workflow use by its reservation where it has reserved nothing yet.
func FreeWithUsed(n *world.NodeState, key string) world.Resources {
	free := Free(n, key)
	if _, has := n.Part(key); has || n.Capacity == nil {
		return free
	}
	return free.Plus(usedOf(n, key))
}

// BeyondPart returns why an instance of a workflow that runs does not fit into its reservation, beside the others that use it on its node, or may not use it
// as too few of its gang do; "": it may.
func BeyondPart(e *world.Edit, c *structs.WorkflowClaim, u *world.Usage) string {
	if GangParted(e, u) {
		return "too few of the gang of allocation " + structs.ShortID(u.ID) + " use the reservation"
	}
	for i := range c.Parts {
		p := &c.Parts[i]
		if p.NodeID != u.NodeID || p.Lost {
			continue
		}
		n, _ := world.StateOf(e, u.NodeID)
		has := world.Resources{Amount: world.Vector{CPU: p.CPU, MemoryMB: p.MemoryMB, DiskMB: p.DiskMB}, Cores: p.Cores, Devices: p.Devices}
		if lack := has.Lacks(usedOf(n, c.Key())); lack != "" {
			return "allocation " + structs.ShortID(u.ID) + " does not fit into it: " + lack
		}
		for _, d := range u.Devices {
			if len(p.DeviceIDs) > 0 && !slices.Contains(p.DeviceIDs, d.ID) {
				return "allocation " + structs.ShortID(u.ID) + " uses other devices than it names"
			}
		}
		return ""
	}
	return "nothing is reserved where allocation " + structs.ShortID(u.ID) + " runs"
}

// GangParted reports whether a usage is of a gang of which too few use the reservation of their workflow for those to use it that do.
func GangParted(e *world.Edit, u *world.Usage) bool {
	g, some := u.Owner.Gang()
	return some && world.GangClaim(world.GangMembers(e, g)) != structs.ClaimWorkflow
}

// Spares reports whether so much idles of a workflow's reservation, or is lent, beside what its other jobs have still to take that an instance of the running stage, which
// needs so much on each node at most, may use it without a claim: borrowers leave for all of these. Unlike a borrower it does not leave. So what is to be placed again of
// another job is still to be taken, too, whatever else of that job runs; what of it has completed is not known here, and counts as well until the job ends. A job of which no
// instance fits into what is left of any part does not come by its claim, and is not left anything. What the reservation has none of is taken from what is free. own are
// the jobs for which nothing is left.
func Spares(e *world.Edit, c *structs.WorkflowClaim, own func(job string) bool, needs func(*world.NodeState) world.Resources) bool {
	var all, need world.Resources
	var mhz int64
	var parts []part
	for i := range c.Parts {
		n, known := world.StateOf(e, c.Parts[i].NodeID)
		if !known || n.Node == nil || !n.Node.Ready() || n.Capacity == nil {
			continue
		}
		borrowed, idle := n.Lends(c.Key())
		left := borrowed.Plus(idle)
		all, need, mhz = all.Plus(left), need.Plus(needs(n).Less(need)), max(mhz, n.Capacity.MHzPerCore)
		parts = append(parts, part{left, n.Capacity.MHzPerCore})
	}
	others := *c
	others.Jobs = make([]structs.WorkflowClaimJob, 0, len(c.Jobs))
	for _, j := range c.Jobs {
		if !own(j.JobID) && fitsSome(parts, &j) {
			j.Starting = true // all that it needs and has not
			others.Jobs = append(others.Jobs, j)
		}
	}
	return all.Less(world.WorkflowEdit{E: e}.Awaited(&others, mhz)).Lacks(need.Within(all)) == ""
}

// part is what is left of a part of a reservation, and how many MHz a core of its node has.
type part struct {
	left world.Resources
	mhz  int64
}

// fitsSome reports whether an instance of a job fits into what is left of some part; so it counts if what its instances need is not stated.
func fitsSome(parts []part, j *structs.WorkflowClaimJob) bool {
	return len(j.Each) == 0 || slices.ContainsFunc(j.Each, func(one structs.WorkflowPart) bool {
		return slices.ContainsFunc(parts, func(p part) bool { return p.left.Lacks(world.NeedsOf(&one, p.mhz)) == "" })
	})
}
