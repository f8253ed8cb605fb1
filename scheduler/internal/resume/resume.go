// Package resume says what a suspended allocation uses when it goes on, and takes it if its node has room (semantics part 4). It must
// never move an allocation: a process that was given a device cannot be given another.
package resume

import (
	"cmp"
	"strings"
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Resources are what an allocation uses when it goes on. Its time limit does not count the time that it
// was suspended, and how long it had run before only its node knows: at the latest it ends when it
// has run all of its limit again.
func Resources(job *structs.Job, group *structs.TaskGroup, a *structs.Allocation, now time.Time) *structs.AllocatedResources {
	reserved := a.AllocatedResources.Copy()
	if reserved == nil {
		reserved = &structs.AllocatedResources{}
	}
	terms := feasible.Terms(job, group)
	if was := reserved.Shared.Terms; was != nil {
		terms.Claim, terms.CellLevel, terms.CellSize, terms.PerNode = was.Claim, was.CellLevel, was.CellSize, was.PerNode
		terms.Slots, terms.Workflow = was.Slots, was.Workflow
	}
	reserved.Shared.Terms, reserved.Shared.TimeLimit = terms, 0
	if limit := group.MaxRunDuration; limit > 0 {
		reserved.Shared.TimeLimit = max(0, now.Sub(time.Unix(0, a.CreateTime))) + limit
	}
	return reserved
}

// What keeps a suspended allocation from going on beside a lack of room.
const (
	lacksNode  = "its node takes no work"
	LacksGang  = "others of its gang have no room"
	LacksJob   = "not all of its job has room"
	lacksAlloc = "it is not known on its node"
)

// Take takes the resources of an allocation that is to go on, if they fit beside the others of its
// node; else it returns what is lacking.
func Take(e *world.Edit, a *structs.Allocation, reserved *structs.AllocatedResources) string {
	n, known := world.StateOf(e, a.NodeID)
	if !known || n.Node == nil || n.Node.Status != structs.NodeStatusReady || n.Node.DrainStrategy != nil {
		return lacksNode
	}
	was := world.Release(e, a.ID)
	if was == nil {
		return lacksAlloc
	}
	now := world.NewUse(a.ID, a.NodeID, world.NewOwner(was.Owner.RequestName, reserved), reserved, a.CreateTime)
	if now.Owner.Terms.Claim == structs.ClaimSlots && world.ClaimLacks(e, now) != "" { // others of its project use its slots by now
		*reserved.Shared.Terms = reserved.Shared.Terms.Opportunistic()
		now = world.NewUse(a.ID, a.NodeID, world.NewOwner(was.Owner.RequestName, reserved), reserved, a.CreateTime)
	}
	n, _ = world.StateOf(e, a.NodeID)
	what := n.LacksUse(now, &world.Taker{RequestName: was.Owner.RequestName, Borrows: was.Owner.Terms.BorrowsFrom()})
	if what == "" && now.UsesCells() { // others of its namespace may use its cell by now
		what = world.ClaimLacks(e, now)
	}
	if what = cmp.Or(what, world.LicenseEdit{E: e}.Lacks(now, false)); what != "" {
		world.Take(e, was)
		return what
	}
	world.Take(e, now)
	return ""
}

// Text returns what keeps a suspended instance from going on.
func Text(what string) string {
	switch what {
	case world.LacksCPU, world.LacksMemory, world.LacksDisk, world.LacksCores, world.LacksDevices:
		return "suspended: it goes on when its node has enough " + what + " free for it"
	}
	return "suspended: it cannot go on, as " + strings.TrimPrefix(what, "network: ")
}
