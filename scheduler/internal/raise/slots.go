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

// dueOfProject returns what of a project may be raised now.
func dueOfProject(w *world.World, name string, allowed func(job structs.NamespacedID, allocID string) bool) (list []Allocs) {
	edit, at, looks := w.Edit(), map[structs.NamespacedID]int{}, 0
	w.Slots().Beside(name, func(beside *slotbook.Use) bool {
		looks++
		u, found := world.Usages(w).Get(beside.ID)
		if !found {
			return true
		}
		job := structs.NamespacedID{Namespace: u.Owner.Namespace, ID: u.Owner.Job}
		raised := slotUse(edit, u)
		if raised == nil || !allowed(job, u.ID) {
			return looks < maxRaiseLooks
		}
		world.Take(edit, raised)
		i, known := at[job]
		if !known {
			i = len(list)
			at[job], list = i, append(list, Allocs{Job: job})
		}
		list[i].IDs = append(list[i].IDs, u.ID)
		return looks < maxRaiseLooks
	})
	return list
}

// slotUse returns a usage as it is raised to slots of its project; nil: there are none for it.
func slotUse(e *world.Edit, u *world.Usage) *world.Usage {
	t, book := u.Owner.Terms.Slots, world.Base(e).Slots()
	n, known := world.StateOf(e, u.NodeID)
	if _, gang := u.Owner.Gang(); gang || t == nil || book == nil || u.Guaranteed() || u.PerNode() || u.IsSuspended || !known || n.Node == nil || n.Node.NodeResources == nil {
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
	owner.Terms.Claim, owner.Terms.Slots = structs.ClaimSlots, &terms
	if len(u.Devices) > 0 && kind.GPUs > 0 && !slices.ContainsFunc(u.Devices, func(d world.DeviceUsage) bool { return d.Share < world.WholeDevice }) {
		owner.Terms.CellLevel = slot.Level(world.Base(e), n, kind.GPUs)
	}
	raised.Owner = &owner
	if world.ClaimLacks(e, &raised) != "" {
		return nil
	}
	return &raised
}

// slots lets running allocations of the job use slots of its project.
func (r *raiser) slots(live []*structs.Allocation) {
	for _, a := range live {
		u, counts := world.Usages(world.Base(r.e)).Get(a.ID)
		if !counts || a.AllocatedResources == nil || a.DesiredStatus == structs.AllocDesiredSuspend {
			continue
		}
		if raised := slotUse(r.e, u); raised != nil {
			world.Take(r.e, raised)
			resources, _ := withTerms(a, u, raised.Owner.Terms)
			r.update(a, resources)
		}
	}
}
