package raise

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/claim"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// raiser raises the allocations of an evaluation's job.
type raiser struct {
	e    *world.Edit
	job  *structs.Job
	plan *structs.Plan
}

// Raise lets running allocations of a job use what its namespace owns, or lets them, of a system or sysbatch job, be theirs, and adds that to the plan of its evaluation. live are those that the
// plan does not stop.
func Raise(e *world.Edit, job *structs.Job, live []*structs.Allocation, plan *structs.Plan) {
	if job != nil && job.PerNode() && !job.Stopped() && world.Base(e).AnyClaims() {
		(&raiser{e, job, plan}).perNode(live)
		return
	}
	owns := job != nil && world.Base(e).Owns(job.Namespace)
	if job == nil || job.Class == structs.ClassOpportunistic || job.PerNode() || job.Stopped() || !owns && job.Project == "" {
		return
	}
	r := &raiser{e, job, plan}
	live = slices.Clone(live)
	slices.SortStableFunc(live, func(a, b *structs.Allocation) int {
		return cmp.Or(cmp.Compare(a.CreateTime, b.CreateTime), strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	if job.Project != "" {
		defer r.slots(live)
	}
	if !owns {
		return
	}
	for _, a := range live {
		u, counts := world.Usages(world.Base(e)).Get(a.ID)
		if !counts || u.Guaranteed() || len(u.Devices) == 0 || a.AllocatedResources == nil || a.DesiredStatus == structs.AllocDesiredSuspend {
			continue
		}
		if _, gang := u.Owner.Gang(); !gang {
			r.one(a, u)
		}
	}
	r.gangs(live, r.raised)
}

// perNode has the instances of a system or sysbatch job be what no claim takes from, which those are not yet that were placed while nobody
// owned anything: as far as their devices are nobody's to own.
func (r *raiser) perNode(live []*structs.Allocation) {
	for _, a := range live {
		u, counts := world.Usages(world.Base(r.e)).Get(a.ID)
		if !counts || u.PerNode() || a.AllocatedResources == nil || a.DesiredStatus == structs.AllocDesiredSuspend {
			continue
		}
		terms := u.Owner.Terms
		terms.PerNode = true
		if resources, now := withTerms(a, u, terms); world.ClaimLacks(r.e, now) == "" {
			world.Take(r.e, now)
			r.update(a, resources)
		}
	}
}

// one lets one allocation use the smallest of its namespace's cells that hold its devices.
func (r *raiser) one(a *structs.Allocation, u *world.Usage) {
	if resources := r.raised(a, u); resources != nil {
		r.update(a, resources)
	}
}

// raised takes the smallest cells of an allocation's namespace that hold its devices, and returns what it has then; nil: there are none.
func (r *raiser) raised(a *structs.Allocation, u *world.Usage) *structs.AllocatedResources {
	n, known := world.StateOf(r.e, u.NodeID)
	if len(u.Devices) == 0 || !known || n.Node == nil || !besideReservations(r.e, n, u) || claim.BeyondShare(r.e, n, u.Amount, len(u.Devices)) {
		return nil
	}
	for _, d := range u.Devices {
		if d.Share < world.WholeDevice {
			return nil
		}
	}
	for _, t := range n.Capacity.Trees {
		key, ok := world.ChainOf(n.Node, t)
		if !ok || world.Count(world.DeviceMask(t, u)) != len(u.Devices) {
			continue
		}
		ed := world.ChainEdit(r.e, key)
		if ed == nil {
			continue
		}
		for _, k := range kindsFor(ed.View(), u.Owner.Namespace, len(u.Devices)) {
			terms := u.Owner.Terms
			terms.Claim, terms.CellLevel, terms.CellSize, terms.Workflow = structs.ClaimCells, ed.View().LevelName(k), k.Size, nil
			on := ed.View().CellsOf(u.NodeID, k, world.DeviceMask(t, u))
			if !claim.MayRaise(world.Base(r.e), r.job, a.TaskGroup, key, k, on) {
				continue
			}
			resources, raised := withTerms(a, u, terms)
			if world.ClaimLacks(r.e, raised) == "" {
				world.Take(r.e, raised)
				return resources
			}
		}
	}
	return nil
}

// withTerms returns what an allocation has, and uses, by other terms.
func withTerms(a *structs.Allocation, u *world.Usage, terms structs.AllocTerms) (*structs.AllocatedResources, *world.Usage) {
	resources := a.AllocatedResources.Copy()
	resources.Shared.Terms = &terms
	now := world.NewUse(a.ID, u.NodeID, world.NewOwner(u.Owner.RequestName, resources), resources, a.CreateTime)
	now.Ends, now.Requeues = u.Ends, u.Requeues
	return resources, now
}

// gangs lets the gangs of the job use what their namespace owns, or slots of their project, as raised finds it for a member: as many members as must run
// together, or none; then the others one by one. One of which too few use a claim, as some were lost, gives up what it has.
func (r *raiser) gangs(live []*structs.Allocation, raised func(*structs.Allocation, *world.Usage) *structs.AllocatedResources) {
	byID, seen := map[string]*structs.Allocation{}, map[world.GangName]bool{}
	for _, a := range live {
		byID[a.ID] = a
	}
	for _, a := range live {
		u, counts := world.Usages(world.Base(r.e)).Get(a.ID)
		if !counts {
			continue
		}
		if g, some := u.Owner.Gang(); some && !seen[g] {
			seen[g] = true
			r.gang(g, byID, raised)
		}
	}
}

func (r *raiser) gang(g world.GangName, live map[string]*structs.Allocation, raised func(*structs.Allocation, *world.Usage) *structs.AllocatedResources) {
	was := world.GangMembers(r.e, g)
	if slices.ContainsFunc(was, func(u *world.Usage) bool {
		a := live[u.ID]
		return a == nil || a.AllocatedResources == nil || a.DesiredStatus == structs.AllocDesiredSuspend
	}) {
		return
	}
	now := map[string]*structs.AllocatedResources{}
	for _, u := range was {
		if !u.Guaranteed() {
			if resources := raised(live[u.ID], u); resources != nil {
				now[u.ID] = resources
			}
		}
	}
	members := append(world.GangMembers(r.e, g), r.placedOf(was)...)
	if world.GangClaim(members) == "" {
		clear(now)
		for _, u := range was {
			if !u.Guaranteed() {
				world.Take(r.e, u)
				continue
			}
			resources, lowered := withTerms(live[u.ID], u, u.Owner.Terms.Opportunistic())
			world.Take(r.e, lowered)
			now[u.ID] = resources
		}
	}
	for _, u := range was {
		if resources := now[u.ID]; resources != nil {
			r.update(live[u.ID], resources)
		}
	}
}

// update changes what an allocation has, together with its update to the job's newest version if there is one.
func (r *raiser) update(a *structs.Allocation, resources *structs.AllocatedResources) {
	for _, up := range r.plan.Update {
		if up.AllocID == a.ID {
			up.Resources, up.Created = resources, a.CreateTime
			return
		}
	}
	r.plan.Update = append(r.plan.Update, &structs.AllocInPlace{
		AllocID: a.ID, JobVersion: a.JobVersion, EvalID: r.plan.EvalID, Resources: resources, Created: a.CreateTime,
	})
}

// kindsFor returns the kinds of which an owner has cells, those first whose cells hold so many devices, the smallest first; then
// those of which several are needed, the largest first.
func kindsFor(chain *cells.Chain, owner string, devices int) (kinds []cells.Kind) {
	for _, a := range chain.Accounts(owner) {
		if a.Given > 0 {
			kinds = append(kinds, a.Kind)
		}
	}
	several := func(k cells.Kind) bool { return chain.Devices(k) < devices }
	slices.SortStableFunc(kinds, func(a, b cells.Kind) int {
		switch {
		case several(a) != several(b):
			if several(a) {
				return 1
			}
			return -1
		case several(a):
			return b.Compare(a)
		}
		return a.Compare(b)
	})
	return kinds
}

// placedOf returns the members of a gang that the plan places beside others of it, as they will count.
func (r *raiser) placedOf(others []*world.Usage) (list []*world.Usage) {
	for _, b := range r.plan.Place {
		o := world.NewOwner(world.RequestName{Namespace: b.Namespace, Job: b.JobID, Group: b.Group}, b.Resources)
		for range b.Instances {
			if o.Terms.Gang == others[0].Owner.Terms.Gang {
				list = append(list, &world.Usage{Owner: o})
			}
		}
	}
	return list
}
