package raise

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/slots"
	"github.com/nomadish/nomadish/scheduler/internal/slot"
	"github.com/nomadish/nomadish/scheduler/internal/slotbook"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Instances of a project that run where room was free use its slots in place as soon as a row has room for them and their node slots left (semantics
// part 4).

// mayRaiseLooks bounds the instances beside a project's slots that are looked at to see whether any could use them: most are alike.
const mayRaiseLooks = 256

// OfProject returns the name by which a project is among the owners of whom something may be raised.
func OfProject(name string) string { return structs.ProjectOwner(name) }

// MayRaise reports whether an owner, a namespace or a project by OfProject, has anything free that its running instances might use in place.
func MayRaise(w *world.World, owner string) (may bool) {
	name, project := strings.CutPrefix(owner, structs.ProjectOwnerPrefix)
	if !project {
		return w.MayRaise(owner)
	}
	account := w.Slots().Account(name)
	if account == nil {
		return false
	}
	looks := 0
	w.Slots().Beside(name, func(u *slotbook.Use) bool {
		looks++
		may = account.Holds(u.Of)
		return !may && looks < mayRaiseLooks
	})
	return may
}

// dueOfProject returns what of a project may be raised now, the oldest first.
func dueOfProject(w *world.World, name string, allowed func(job structs.NamespacedID, allocID string) bool) []Allocs {
	edit, looks := w.Edit(), 0
	list := dueList{edit: edit, use: slotUse, allowed: allowed}
	w.Slots().Beside(name, func(beside *slotbook.Use) bool {
		looks++
		if u, found := world.Usages(w).Get(beside.ID); found {
			list.look(u)
		}
		return looks < maxRaiseLooks
	})
	return list.due
}

// slotUse returns a usage as it is raised to slots of its project; nil: there are none for it.
func slotUse(e *world.Edit, u *world.Usage) *world.Usage {
	if raised := WithSlots(e, u); raised != nil && world.ClaimLacks(e, raised) == "" {
		return raised
	}
	return nil
}

// WithSlots returns a usage as it would be if it used slots of its project, whether or not there are any free; nil: it uses none, or has other claims.
func WithSlots(e *world.Edit, u *world.Usage) *world.Usage {
	t, book := u.Owner.Terms.Slots, world.Base(e).Slots()
	n, known := world.StateOf(e, u.NodeID)
	if t == nil || book == nil || u.Guaranteed() || u.PerNode() || u.IsSuspended || !known || n.Node == nil || n.Node.NodeResources == nil || !besideReservations(e, n, u) {
		return nil
	}
	of := world.SlotInstance(u)
	if book.Spec(t.Project).Check(&of.Submission) != slots.Recognised {
		return nil
	}
	kind := world.Base(e).SlotSettings().TypeOf(t.Type)
	mhz, memory := kind.VolumeOn(n.Node.NodeResources)
	volume := slots.Volume{MemoryMB: u.Amount.MemoryMB, GPUs: int64(len(u.Devices))}
	each := slots.Volume{MemoryMB: memory, GPUs: int64(kind.GPUs)}
	raised, owner, terms := *u, *u.Owner, *t
	terms.Guards = slots.Guards(volume, each, terms.Cost)
	volume.MilliCores, each.MilliCores = u.Amount.CPU, mhz // in the same unit
	terms.Light = slots.IsLight(volume, each, (&structs.SchedulerConfiguration{Slots: world.Base(e).SlotSettings()}).LightPart())
	owner.Terms.Claim, owner.Terms.Slots, owner.Terms.Workflow = structs.ClaimSlots, &terms, owner.Terms.Workflow.WithoutLoan()
	if len(u.Devices) > 0 && kind.GPUs > 0 && !slices.ContainsFunc(u.Devices, func(d world.DeviceUsage) bool { return d.Share < world.WholeDevice }) {
		owner.Terms.CellLevel = slot.Level(world.Base(e), n, kind.GPUs)
	}
	raised.Owner = &owner
	return &raised
}

// slots lets running allocations of the job use slots of its project.
func (r *raiser) slots(live []*structs.Allocation) {
	for _, a := range live {
		u, counts := world.Usages(world.Base(r.e)).Get(a.ID)
		if !counts || a.AllocatedResources == nil || a.DesiredStatus == structs.AllocDesiredSuspend {
			continue
		}
		if _, gang := u.Owner.Gang(); gang {
			continue
		}
		if resources := r.onSlots(a, u); resources != nil {
			r.update(a, resources)
		}
	}
	r.gangs(live, r.onSlots)
}

// onSlots takes slots of an allocation's project, and returns what it has then; nil: there are none.
func (r *raiser) onSlots(a *structs.Allocation, u *world.Usage) *structs.AllocatedResources {
	raised := slotUse(r.e, u)
	if raised == nil {
		return nil
	}
	world.Take(r.e, raised)
	resources, _ := withTerms(a, u, raised.Owner.Terms)
	return resources
}

// Lower has the members of a gang go on without their slots of which too few use any, as some that were suspended have lost theirs.
func Lower(e *world.Edit, g world.GangName, live []*structs.Allocation, plan *structs.Plan) {
	members := world.GangMembers(e, g)
	if world.GangClaim(members) != "" {
		return
	}
	r := &raiser{e: e, plan: plan}
	for _, u := range members {
		if u.Owner.Terms.Claim != structs.ClaimSlots {
			continue
		}
		for _, a := range live {
			if a.ID == u.ID && a.AllocatedResources != nil {
				resources, lowered := withTerms(a, u, u.Owner.Terms.Opportunistic())
				world.Take(e, lowered)
				r.update(a, resources)
			}
		}
	}
}
