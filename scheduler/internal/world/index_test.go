package world

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// TestSetsOfClassAndFamily: whatever becomes of nodes of few classes and families, the sets are those of a World that is made anew. What goes on from a World,
// and is thrown away or not, changes nothing of it.
func TestSetsOfClassAndFamily(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &worldMachine{
			t: rt, e: New().Edit(), config: structs.DefaultSchedulerConfiguration(), nodes: map[string]*structs.Node{}, allocs: map[string]*structs.Allocation{},
		}
		var earlier, anew []*World
		for range 40 {
			for range rapid.IntRange(0, 4).Draw(rt, "edits") {
				m.editSets(m.e, true)
			}
			if m.compare(); rapid.Bool().Draw(rt, "another edit") {
				m.throwAway()
			}
			earlier, anew = append(earlier, m.w), append(anew, m.rebuilt())
			if rapid.IntRange(0, 4).Draw(rt, "from here") == 0 {
				m.e = m.w.Edit()
			}
		}
		for i, w := range earlier {
			if diff := w.Diff(anew[i]); diff != nil {
				rt.Fatal("an earlier World has changed: ", diff)
			}
		}
	})
}

// throwAway edits the World beside the edit that goes on.
func (m *worldMachine) throwAway() {
	e := m.w.Edit()
	if rapid.Bool().Draw(m.t, "in place") {
		e = InPlace(m.w)
	}
	for range rapid.IntRange(1, 4).Draw(m.t, "thrown away") {
		if m.editSets(e, false); rapid.Bool().Draw(m.t, "read") {
			e.World()
		}
	}
	Flush(e)
}

// editSets changes a node, or what of it is used; goesOn: it is to be so from now on.
func (m *worldMachine) editSets(e *Edit, goesOn bool) {
	id := fmt.Sprintf("n%d", rapid.IntRange(0, 5).Draw(m.t, "node"))
	switch rapid.IntRange(0, 5).Draw(m.t, "edit") {
	case 0:
		if e.DeleteNode(id); goesOn {
			delete(m.nodes, id)
		}
	case 1:
		a := drawAlloc(m.t, id+"-a", id)
		terms := a.AllocatedResources.Shared.Terms
		terms.Slots, terms.Claim = nil, ""
		if e.UpsertAlloc(a); goesOn {
			m.allocs[a.ID] = a
		}
	default:
		n := schedtest.Node(id, func(n *structs.Node) {
			n.Meta["rack"] = rapid.SampledFrom([]string{"r1", "r2"}).Draw(m.t, "rack")
			n.NodeClass = rapid.SampledFrom([]string{"", "b"}).Draw(m.t, "class")
			n.Status = rapid.SampledFrom([]string{structs.NodeStatusReady, structs.NodeStatusReady, structs.NodeStatusDown}).Draw(m.t, "status")
		})
		if e.UpsertNode(n); goesOn {
			m.nodes[id] = n
		}
	}
}
