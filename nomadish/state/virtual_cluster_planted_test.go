package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/structs"
)

// machineFault is a fault that is planted in what a machine sees; zero: none.
type machineFault struct {
	plan  func(m *tenantMachine, p *structs.JudgedPlan) // changes a plan between its judgement and its commit
	world func(snap *Snapshot) *scheduler.World         // what is checked in place of the snapshot's World
	found string                                        // must be said of it
}

// unsafeSplit has an instance that was placed by a claim bind another cell, free and of the same level, without the check that others keep
// theirs: it splits what somebody needs whole.
func unsafeSplit(m *tenantMachine, p *structs.JudgedPlan) {
	snap := m.store.Snapshot()
	for at, b := range p.Place {
		if len(b.Instances) != 1 || b.Resources.Shared.Terms.Claim == "" || len(p.Stop) > 0 {
			continue
		}
		group := b.Instances[0].Devices["t"][0]
		for _, n := range m.nodes {
			if n.NodeResources.Devices[0].Name != group.Name || snap.Node(nil, n.ID) == nil {
				continue
			}
			all, k := n.NodeResources.Devices[0].Instances, len(group.DeviceIDs)
			for i := 0; i+k <= len(all); i += k {
				var ids []string
				for _, d := range all[i : i+k] {
					ids = append(ids, d.ID)
				}
				moved := movedTo(b, n.ID, ids)
				if strings.HasSuffix(snap.World().Edit().AllocLacksClaim(moved.Allocation(0)), cells.ErrUnsafe.Error()) && !anyUsed(snap, n.ID, ids) {
					p.Place[at] = moved
					return
				}
			}
		}
	}
}

// movedTo returns a batch of one instance on another node, with other devices.
func movedTo(b *structs.PlacementBatch, node string, ids []string) *structs.PlacementBatch {
	own := *b
	own.Nodes = []structs.PlacedNode{{ID: node, Name: node}}
	in := b.Instances[0]
	group := *in.Devices["t"][0]
	group.DeviceIDs = ids
	in.Node, in.Devices = 0, map[string][]*structs.AllocatedDeviceResource{"t": {&group}}
	own.Instances = []structs.Instance{in}
	return &own
}

// anyUsed reports whether an allocation that runs has any of a node's devices.
func anyUsed(snap *Snapshot, node string, ids []string) bool {
	return slices.ContainsFunc(snap.AllocsByNode(nil, node), func(a *structs.Allocation) bool {
		return !a.Terminal() && a.AllocatedResources != nil && slices.ContainsFunc(a.AllocatedResources.Tasks["t"].Devices, func(d *structs.AllocatedDeviceResource) bool {
			return slices.ContainsFunc(d.DeviceIDs, func(id string) bool { return slices.Contains(ids, id) })
		})
	})
}

// uncounted is a World that does not count the first allocation that uses cells: its binding is outside the counts.
func uncounted(snap *Snapshot) *scheduler.World {
	for a := range snap.Allocs(nil, "*", "", false) {
		if !a.Terminal() && claimsCells(a) {
			e := snap.World().Edit()
			e.DeleteAlloc(a.ID, "")
			return e.World()
		}
	}
	return snap.World()
}

// stillBound is a World in which the first allocation that used cells and has ended has not left them.
func stillBound(snap *Snapshot) *scheduler.World {
	for a := range snap.Allocs(nil, "*", "", false) {
		if !a.Terminal() || !claimsCells(a) {
			continue
		}
		e := snap.World().Edit()
		runs := *a
		runs.DesiredStatus, runs.ClientStatus = structs.AllocDesiredRun, structs.AllocClientRunning
		if e.AllocLacksClaim(&runs) == "" {
			e.UpsertAlloc(&runs)
			return e.World()
		}
	}
	return snap.World()
}

func claimsCells(a *structs.Allocation) bool {
	return a.AllocatedResources != nil && a.AllocatedResources.Shared.Terms != nil && a.AllocatedResources.Shared.Terms.Claim == structs.ClaimCells
}

// TestPlantedFaultsOfClaims plants three faults. Each is found within a few worlds, and by a check that is there for it.
func TestPlantedFaultsOfClaims(t *testing.T) {
	for name, fault := range map[string]machineFault{
		"an unsafe split":              {plan: unsafeSplit, found: "are doomed"},
		"a binding outside the counts": {world: uncounted, found: "Bound:"},
		"a forgotten unbind":           {world: stillBound, found: "Bound:"},
	} {
		t.Run(name, func(t *testing.T) {
			const worlds = 100
			for seed := range uint64(worlds) {
				step, what := runWithFault(seed, fault)
				if what == nil {
					continue
				}
				if !strings.Contains(what.Error(), fault.found) {
					t.Fatalf("found otherwise than it should be: %v", what)
				}
				t.Logf("found in world %d by step %d: %.200s", seed, step, what)
				return
			}
			t.Fatalf("not found in %d worlds", worlds)
		})
	}
}

// runWithFault runs one world. It returns the step and the words of the check that has failed; nil if none has.
func runWithFault(seed uint64, fault machineFault) (step int, what error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error:
			what = r
		default:
			panic(r)
		}
	}()
	failed := func(format string, args ...any) { panic(fmt.Errorf(format, args...)) }
	m := newTenantMachine(rand.New(rand.NewPCG(seed, 1)).IntN, failed, func(string, ...any) {}, map[string]int{})
	m.fault = fault
	for step = range machineSteps {
		m.run()
	}
	return step, nil
}
