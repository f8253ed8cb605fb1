package scheduler

import (
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/structs"
)

// Judge finds what of a plan holds on this edit, and applies that to it. A node
// that is not ready, or lacks room, a port, a core or a device for what the plan
// places there, refuses all of it: those placements, and the stops that stand
// for them, are left out of holds, and the node is named. reason says why the
// first one refused. A plan that is AllAtOnce holds whole or not at all.
//
// The plan's evaluations hold only if everything does, except delayed follow-ups:
// stops that hold name them.
func (e *Edit) Judge(plan *structs.Plan) (holds *structs.JudgedPlan, refusedNodes []string, reason string) {
	j := judgement{e: e, plan: plan, refused: map[string]bool{}}
	j.stop()
	j.update()
	j.place()
	if len(j.refusedNodes) > 0 && plan.AllAtOnce {
		j.refuseAll()
	}
	return j.result(), j.refusedNodes, j.reason
}

// judgement is one plan on its way through Judge.
type judgement struct {
	e            *Edit
	plan         *structs.Plan
	freed        map[string]*use // what the plan's stops gave back, by allocation
	taken        []string        // allocations that were placed
	refused      map[string]bool // by node
	refusedNodes []string
	replaced     map[string]bool // allocations whose replacement was refused
	updated      []*use          // what in-place updates held before
	updates      []*structs.AllocInPlace
	reason       string
}

func (j *judgement) refuse(node, why string) {
	if j.refused[node] {
		return
	}
	j.refused[node] = true
	j.refusedNodes = append(j.refusedNodes, node)
	if j.reason == "" {
		j.reason = fmt.Sprintf("node %s: %s", structs.ShortID(node), why)
	}
}

// stop frees what the plan stops: a plan may count on its own stops.
func (j *judgement) stop() {
	j.freed = make(map[string]*use, len(j.plan.Stop))
	for _, s := range j.plan.Stop {
		if s.KeepRunning {
			continue
		}
		if u := j.e.release(s.AllocID); u != nil {
			j.freed[s.AllocID] = u
		}
	}
}

// update tries the in-place updates that change what an allocation holds.
func (j *judgement) update() {
	for _, up := range j.plan.Update {
		old, found := j.e.w.allocs.Get(up.AllocID)
		if !found {
			continue // it has ended meanwhile: there is nothing to update
		}
		if up.Resources != nil {
			u := newUse(up.AllocID, old.nodeID, up.Resources)
			j.e.release(up.AllocID)
			s := j.e.state(old.nodeID)
			if s.has == nil {
				j.e.take(old)
				j.refuse(old.nodeID, "it is not known any more")
				continue
			}
			if what := s.lacksUse(u); what != "" {
				j.e.take(old)
				j.refuse(old.nodeID, what)
				continue
			}
			j.e.take(u)
			j.updated = append(j.updated, old)
		}
		j.updates = append(j.updates, up)
	}
}

// spot is one instance of a plan.
type spot struct{ batch, instance int }

// place tries the placements node by node, in the order in which the plan names them.
func (j *judgement) place() {
	byNode := map[string][]spot{}
	var order []string
	common := make([]*use, len(j.plan.Place))
	for b, batch := range j.plan.Place {
		common[b] = newUse("", "", batch.Resources)
		for i := range batch.Instances {
			node := batch.Nodes[batch.Instances[i].Node].ID
			if _, seen := byNode[node]; !seen {
				order = append(order, node)
			}
			byNode[node] = append(byNode[node], spot{b, i})
		}
	}
	for _, node := range order {
		if !j.refused[node] {
			j.placeOn(node, byNode[node], common)
		}
		if j.refused[node] {
			j.noteReplaced(byNode[node])
		}
	}
}

func (j *judgement) placeOn(node string, spots []spot, common []*use) {
	s, found := j.e.w.nodes.Get(node)
	if !found || s.node == nil {
		j.refuse(node, "it is not known any more")
		return
	}
	if !s.node.Ready() {
		j.refuse(node, "it takes no new work (status "+s.node.Status+", "+s.node.SchedulingEligibility+")")
		return
	}
	var placed []string
	for _, at := range spots {
		batch := j.plan.Place[at.batch]
		id := structs.DeriveID(batch.Seed, uint64(batch.Instances[at.instance].Ordinal))
		u := instanceUse(batch, at.instance, id, common[at.batch])
		s, _ = j.e.w.nodes.Get(node)
		if what := s.lacksUse(u); what != "" {
			for _, id := range placed {
				j.e.release(id)
			}
			j.refuse(node, what)
			return
		}
		j.e.take(u)
		placed = append(placed, id)
	}
	j.taken = append(j.taken, placed...)
}

// noteReplaced keeps an allocation running whose replacement was refused.
func (j *judgement) noteReplaced(spots []spot) {
	for _, at := range spots {
		if prev := j.plan.Place[at.batch].Instances[at.instance].PreviousAllocation; prev != "" {
			if j.replaced == nil {
				j.replaced = map[string]bool{}
			}
			j.replaced[prev] = true
		}
	}
}

// refuseAll undoes everything.
func (j *judgement) refuseAll() {
	for _, id := range j.taken {
		j.e.release(id)
	}
	for _, u := range j.updated {
		j.e.take(u)
	}
	for _, s := range j.plan.Stop {
		if u := j.freed[s.AllocID]; u != nil {
			j.e.take(u)
		}
	}
}

// result is what holds. A stop is kept back when it was to make room on a node
// that refused, or its replacement was refused; not when its node is gone.
func (j *judgement) result() *structs.JudgedPlan {
	holds := &structs.JudgedPlan{EvalID: j.plan.EvalID}
	whole := len(j.refusedNodes) == 0
	if !whole && j.plan.AllAtOnce {
		return holds
	}
	holds.Update = j.updates
	for _, s := range j.plan.Stop {
		u := j.freed[s.AllocID]
		if u != nil && s.ClientStatus == "" && (j.refused[u.nodeID] || j.replaced[s.AllocID]) {
			j.e.take(u)
			continue
		}
		holds.Stop = append(holds.Stop, s)
	}
	for _, batch := range j.plan.Place {
		if kept := j.kept(batch); kept != nil {
			holds.Place = append(holds.Place, kept)
		}
	}
	for _, ev := range j.plan.Evals {
		if whole || !ev.WaitUntil.IsZero() {
			holds.Evals = append(holds.Evals, ev)
		}
	}
	return holds
}

// kept is the part of a batch that holds; nil if nothing does. Ordinals stay as
// they were decided, and with them the allocations' IDs.
func (j *judgement) kept(batch *structs.PlacementBatch) *structs.PlacementBatch {
	refused := func(in structs.Instance) bool { return j.refused[batch.Nodes[in.Node].ID] }
	if !slices.ContainsFunc(batch.Instances, refused) {
		return batch
	}
	c := *batch
	c.Instances = slices.DeleteFunc(slices.Clone(batch.Instances), refused)
	if len(c.Instances) == 0 {
		return nil
	}
	return &c
}
