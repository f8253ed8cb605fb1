package state

import (
	"maps"
	"slices"
	"time"

	"github.com/nomadish/nomadish/nomadish/state/internal/alloctable"
	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/nomadish/state/internal/rowcheck"
	"github.com/nomadish/nomadish/structs"
)

func (x *txn) node(id string) *structs.Node { return named[structs.Node](x.rows, TableNodes, id) }

// putNode stores a node that is this transaction's own copy.
func (x *txn) putNode(was, now *structs.Node) {
	now.ModifyIndex = x.index
	x.put(TableNodes, now)
	x.edit.UpsertNode(now)
	note(x, KindNode, now.ID, was, now)
}

func (x *txn) addEvent(n *structs.Node, events ...*structs.NodeEvent) {
	for _, e := range events {
		if e == nil {
			continue
		}
		dated := *e
		dated.CreateIndex = x.index
		if dated.Timestamp.IsZero() && x.now != 0 {
			dated.Timestamp = x.time()
		}
		n.Events = append(n.Events, &dated)
	}
	if over := len(n.Events) - structs.MaxNodeEvents; over > 0 {
		n.Events = slices.Delete(n.Events, 0, over)
	}
}

// NodeRegister registers a node or replaces what it reports about itself. A known node
// keeps its eligibility, drain and events; its secret must be the one it had.
func (w *Writer) NodeRegister(index uint64, e *structs.NodeRegisterEntry) error {
	return w.commit(index, e.Time, structs.EventNodeRegistration, e.EvalSeed, func(x *txn) error {
		if e.Node == nil {
			return structs.Errorf(structs.CodeBadRequest, "node registration: no node")
		}
		if err := checkID("node ID", e.Node.ID); err != nil {
			return err
		}
		if err := rowcheck.NodeParts(e.Node); err != nil {
			return err
		}
		now, was := e.Node.Copy(), x.node(e.Node.ID)
		now.KeptUntil = 0
		if now.Status == "" {
			now.Status = structs.NodeStatusInit
		}
		if err := checkNodeStatus(now.Status); err != nil {
			return err
		}
		if now.ComputedClass == "" {
			now.ComputeClass()
		}
		if was == nil {
			now.CreateIndex, now.Events, now.LastDrain = x.index, nil, nil
			if now.SchedulingEligibility == "" {
				now.SchedulingEligibility = structs.NodeEligible
			}
		} else {
			if was.SecretID != "" && was.SecretID != now.SecretID {
				return structs.Errorf(structs.CodeForbidden, "node %s: its secret is another", now.ID).
					WithHint("another machine has this ID; give this one an empty data directory")
			}
			now.CreateIndex, now.Events = was.CreateIndex, slices.Clone(was.Events)
			now.SchedulingEligibility = was.SchedulingEligibility
			now.DrainStrategy, now.LastDrain = was.DrainStrategy, was.LastDrain
			now.StatusUpdatedAt = was.StatusUpdatedAt
		}
		moved := was == nil || was.Status != now.Status
		if moved {
			now.StatusUpdatedAt = x.now / int64(time.Second)
		}
		x.addEvent(now, e.Event)
		x.putNode(was, now)
		x.heardAgain(was, now)
		if moved || was.ComputedClass != now.ComputedClass || now.Ready() && !was.Ready() {
			x.mintForNode(now, now.Ready(), map[structs.NamespacedID]bool{})
		}
		return nil
	})
}

// heardAgain updates the allocations of a node that was disconnected: what it last reported about
// them. It reports next what has changed since.
func (x *txn) heardAgain(was, now *structs.Node) {
	if was == nil || was.Status != structs.NodeStatusDisconnected || now.Status == structs.NodeStatusDisconnected || now.Terminal() {
		return
	}
	for _, a := range x.allocs.Allocs(alloctable.ByNode, indexkey.Hash(now.ID)) {
		if a.ClientStatus != structs.AllocClientUnknown {
			continue
		}
		heard := *a
		heard.ClientStatus, heard.ClientDescription, heard.FollowupEvalID = structs.AllocClientPending, "", ""
		for _, s := range a.TaskStates { // order does not matter: any will do
			if s.State != structs.TaskStatePending {
				heard.ClientStatus = structs.AllocClientRunning
			}
		}
		if a.Suspended() && heard.ClientStatus == structs.AllocClientRunning {
			heard.ClientStatus = structs.AllocClientSuspended
		}
		heard.ModifyTime = x.now
		x.putAlloc(a, &heard, true)
	}
}

func checkNodeStatus(s string) error {
	switch s {
	case structs.NodeStatusInit, structs.NodeStatusReady, structs.NodeStatusDown, structs.NodeStatusDisconnected:
		return nil
	}
	return structs.Errorf(structs.CodeBadRequest, "node status %q: not known", s)
}

// NodeDeregister forgets nodes. What their clients had not ended is lost.
func (w *Writer) NodeDeregister(index uint64, e *structs.NodeDeregisterEntry) error {
	return w.commit(index, e.Time, structs.EventNodeDeregistration, e.EvalSeed, func(x *txn) error {
		found := false
		done := map[structs.NamespacedID]bool{}
		for _, id := range e.NodeIDs {
			node := x.node(id)
			if node == nil {
				continue
			}
			found = true
			x.mintForNode(node, false, done)
			x.dropNode(node)
			for _, was := range x.allocs.Allocs(alloctable.ByNode, indexkey.Hash(id)) {
				if was.ClientTerminal() {
					continue
				}
				now := *was
				now.ClientStatus, now.ClientDescription = structs.AllocClientLost, "its node was deregistered"
				now.ModifyTime = x.now
				x.putAlloc(was, &now, true)
			}
		}
		if !found && len(e.NodeIDs) > 0 {
			return memtable.Missing("node", e.NodeIDs[0])
		}
		return nil
	})
}

func (x *txn) dropNode(was *structs.Node) {
	x.drop(TableNodes, was)
	x.edit.DeleteNode(was.ID)
	x.unreserve(was.ID)
	note(x, KindNode, was.ID, was, nil)
}

// NodeStatus moves nodes to a status. Unknown ones are passed over, unless none is known.
func (w *Writer) NodeStatus(index uint64, e *structs.NodeStatusEntry) error {
	return w.commit(index, e.Time, structs.EventNodeStreamEvent, e.EvalSeed, func(x *txn) error {
		if err := checkNodeStatus(e.Status); err != nil {
			return err
		}
		found := false
		done := map[structs.NamespacedID]bool{}
		for _, id := range e.NodeIDs {
			was := x.node(id)
			if was == nil {
				continue
			}
			found = true
			kept := int64(0)
			if e.Status == structs.NodeStatusDisconnected {
				kept = e.KeptUntil
			}
			moved := was.Status != e.Status
			if !moved && was.KeptUntil == kept && e.Event == nil {
				continue
			}
			now := was.Copy()
			x.addEvent(now, e.Event)
			now.KeptUntil = kept
			if moved {
				now.Status, now.StatusUpdatedAt = e.Status, x.now/int64(time.Second)
			}
			x.putNode(was, now)
			if moved {
				x.heardAgain(was, now)
			}
			if moved || was.KeptUntil != kept {
				x.mintForNode(now, now.Ready(), done)
			}
		}
		if !found && len(e.NodeIDs) > 0 {
			return memtable.Missing("node", e.NodeIDs[0])
		}
		return nil
	})
}

// NodeEligibility makes a node eligible or not. One that is being drained cannot
// become eligible.
func (w *Writer) NodeEligibility(index uint64, e *structs.NodeEligibilityEntry) error {
	return w.commit(index, e.Time, structs.EventNodeEligibility, e.EvalSeed, func(x *txn) error {
		was := x.node(e.NodeID)
		if was == nil {
			return memtable.Missing("node", e.NodeID)
		}
		switch e.Eligibility {
		case structs.NodeIneligible:
		case structs.NodeEligible:
			if was.DrainStrategy != nil {
				return structs.Errorf(structs.CodeConflict, "node %s: it is being drained", was.ID).WithHint("end the drain first")
			}
		default:
			return structs.Errorf(structs.CodeBadRequest, "node eligibility %q: allowed are %q and %q",
				e.Eligibility, structs.NodeEligible, structs.NodeIneligible)
		}
		now := was.Copy()
		now.SchedulingEligibility = e.Eligibility
		x.addEvent(now, e.Event)
		x.putNode(was, now)
		if now.Ready() && !was.Ready() {
			x.mintForNode(now, true, map[structs.NamespacedID]bool{})
		}
		return nil
	})
}

// NodeDrain starts, changes or ends a drain.
func (w *Writer) NodeDrain(index uint64, e *structs.NodeDrainEntry) error {
	return w.commit(index, e.Time, structs.EventNodeDrain, e.EvalSeed, func(x *txn) error {
		was := x.node(e.NodeID)
		if was == nil {
			return memtable.Missing("node", e.NodeID)
		}
		now := was.Copy()
		now.DrainStrategy = nil
		last := structs.DrainMetadata{StartedAt: x.time()}
		if was.LastDrain != nil && was.DrainStrategy != nil {
			last = *was.LastDrain // the same drain goes on, or ends
		}
		last.UpdatedAt = x.time()
		if e.Meta != nil {
			last.Meta = e.Meta
		}
		if e.Strategy != nil {
			strategy := *e.Strategy
			now.DrainStrategy = &strategy
			now.SchedulingEligibility = structs.NodeIneligible
			last.Status = drainStatus(e.Status, "draining")
			now.LastDrain = &last
		} else {
			if e.MarkEligible {
				now.SchedulingEligibility = structs.NodeEligible
			}
			if was.DrainStrategy != nil {
				last.Status = drainStatus(e.Status, "canceled")
				now.LastDrain = &last
			}
		}
		x.addEvent(now, e.Event)
		x.putNode(was, now)
		if now.Ready() && !was.Ready() {
			x.mintForNode(now, true, map[structs.NamespacedID]bool{})
		}
		return nil
	})
}

func drainStatus(given, usual string) string {
	if given != "" {
		return given
	}
	return usual
}

// NodeEvents appends to nodes' events; unknown nodes are passed over. World keeps the node as it
// was: events are nothing to the scheduler.
func (w *Writer) NodeEvents(index uint64, e *structs.NodeEventsEntry) error {
	return w.commit(index, 0, structs.EventNodeStreamEvent, "", func(x *txn) error {
		for _, id := range slices.Sorted(maps.Keys(e.Events)) {
			if was := x.node(id); was != nil {
				now := was.Copy()
				x.addEvent(now, e.Events[id]...)
				now.ModifyIndex = x.index
				x.put(TableNodes, now)
				note(x, KindNode, now.ID, was, now)
			}
		}
		return nil
	})
}
