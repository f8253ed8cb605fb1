package reserve

import (
	"cmp"
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/reservable"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Start is what a stage starts with.
type Start struct {
	// Stops take back from borrowers, just enough.
	Stops []*structs.AllocStop
	// Jobs are those of which instances are stopped or suspended, each once.
	Jobs []structs.NamespacedID
	// Lacking reports that the stage does not fit into the reservation: the rest runs as what has no claim.
	Lacking bool
	// Nodes are those that the instances of the stage are assigned to, in the order of the jobs, their groups and their counts, without those of
	// sysbatch jobs; "": it does not fit. Those of a gang are under one cell of the level above nodes, or on the one node, that it requires.
	Nodes []string
}

// TakeBack returns who leaves a workflow's reservation for the jobs of a stage, as of a time in Unix nanoseconds (part 5, "When a stage starts").
func TakeBack(w *world.World, c *structs.WorkflowClaim, s Stage, now int64) (out Start) {
	t := &taking{chooser: chooser{w: w, e: w.Edit(), key: c.Key(), pool: c.NodePool}, claim: c}
	parts := t.parts()
	stage := t.instances(s, nil)
	shares := make([]int64, len(c.Lend))
	for i, l := range c.Lend {
		shares[i] = int64(l.Share)
	}
	reclaim, s := t.takeBack(parts, s, stage, shares)
	out.Lacking = !reclaim.Complete
	t.needs = make([]workflow.Amounts, len(parts))
	out.Nodes = make([]string, len(stage))
	for i, part := range reclaim.Assigned {
		if part >= 0 {
			out.Nodes[i] = t.nodes[part].ID
			t.needs[part] = t.needs[part].Plus(stage[i].Needs)
		}
	}
	t.cellsFor(s, parts, &reclaim)
	left := make([]workflow.Amounts, len(parts))
	for i := range parts {
		left[i] = parts[i].Idle.Minus(t.needs[i])
		for _, b := range parts[i].Borrowers {
			if slices.Contains(reclaim.Victims, b.ID) {
				left[i] = left[i].Plus(b.Uses)
			}
		}
	}
	var onNodes []*world.Usage
	for _, id := range reclaim.Victims {
		onNodes = append(onNodes, t.byID[id])
	}
	victims, licensed := t.withLicenses(s, onNodes, left)
	out.Lacking = out.Lacking || !licensed
	for _, u := range victims {
		out.Stops = append(out.Stops, t.stop(u, now))
		job := structs.NamespacedID{Namespace: u.Owner.Namespace, ID: u.Owner.Job}
		if !slices.Contains(out.Jobs, job) {
			out.Jobs = append(out.Jobs, job)
		}
	}
	return out
}

// taking is the work of taking back.
type taking struct {
	chooser
	claim *structs.WorkflowClaim
	byID  map[string]*world.Usage
	needs []workflow.Amounts // of each part, what the stage takes of it
}

// parts returns the parts of the reservation with their borrowers, in its order, and has the nodes in that order.
func (t *taking) parts() (out []workflow.PartState) {
	t.byID = map[string]*world.Usage{}
	for i := range t.claim.Parts {
		n, known := t.w.State(t.claim.Parts[i].NodeID)
		if !known || n.Node == nil || n.Capacity == nil || !n.Node.Ready() {
			continue // nothing may start there
		}
		t.nodes = append(t.nodes, n)
		p, _ := n.Part(t.key)
		bad := reservable.Bad(n, t.key)
		most := amounts(p.Total.Less(p.Used).Less(world.Resources{Devices: len(bad)}))
		state := workflow.PartState{Idle: amounts(p.Idle).Plus(besideParts(n, &p)), Most: &most}
		for _, u := range n.Usages {
			if u.Owner.Terms.BorrowsFrom() != t.key {
				continue
			}
			t.byID[u.ID] = u
			lend := slices.IndexFunc(t.claim.Lend, func(l *structs.WorkflowLend) bool { return l.To == u.Owner.Terms.LentTo() })
			state.Borrowers = append(state.Borrowers, workflow.Borrower{ID: u.ID, Lend: lend, Uses: amounts(returned(&p, u, bad)), Since: u.Created})
		}
		slices.SortFunc(state.Borrowers, func(a, b workflow.Borrower) int { return cmp.Compare(a.ID, b.ID) })
		out = append(out, state)
	}
	return out
}

// returned returns what of a part is to be had once a borrower has left: what it uses, without devices that are bad.
func returned(p *world.Part, u *world.Usage, bad []string) world.Resources {
	none := 0
	for _, id := range bad {
		if slices.ContainsFunc(u.Devices, func(d world.DeviceUsage) bool { return d.ID == id }) {
			none++
		}
	}
	return p.Taken(u).Less(world.Resources{Devices: none})
}

// besideParts returns what is free on a node beside all that is reserved of it: borrowers of a part use that first.
func besideParts(n *world.NodeState, of *world.Part) workflow.Amounts {
	free := amounts(world.Resources{Amount: n.Free(), Cores: n.FreeCores(), Devices: n.FreeDevices()})
	for _, p := range n.Parts() {
		if !p.Pending {
			free = free.Minus(amounts(p.Idle.Plus(p.Lent)))
		}
	}
	if of.Named() { // its devices are others
		free.Devices = 0
	}
	return free.Max(workflow.Amounts{})
}

// stop returns how a borrower leaves: it is suspended if it states so and its memory can stay beside what the stage needs, else requeued.
func (t *taking) stop(u *world.Usage, now int64) *structs.AllocStop {
	st := &structs.AllocStop{
		AllocID: u.ID, DesiredStatus: structs.AllocDesiredEvict, Reclaim: structs.ReclaimRequeue,
		RequeueReason: "reclaimed for workflow " + t.claim.ID, DesiredDescription: "taken back by workflow " + t.claim.ID,
	}
	at := slices.IndexFunc(t.nodes, func(n *world.NodeState) bool { return n.ID == u.NodeID })
	n, _ := t.w.State(u.NodeID)
	if at >= 0 {
		n = t.nodes[at]
	}
	if u.Owner.Terms.Reclaim != structs.ReclaimSuspend || u.IsSuspended || n == nil {
		return st
	}
	if why := feasible.NotSuspended(n.Node, &u.Owner.Terms, len(u.Devices) > 0); why != "" {
		st.DesiredDescription += "; not suspended, as " + why
		return st
	}
	if at >= 0 { // else nothing of the stage comes to its node
		beside := world.TrialOf(n)
		beside.Give(u)
		beside.Take(u.Suspended())
		part, _ := beside.Part(t.key)
		if left := amounts(part.Idle); t.needs[at].MemoryMB > left.MemoryMB || t.needs[at].DiskMB > left.DiskMB {
			st.DesiredDescription += "; not suspended, as its memory cannot stay beside the stage"
			return st
		}
		t.nodes[at] = beside
	}
	st.DesiredStatus, st.Reclaim, st.RequeueReason, st.SuspendedAt = structs.AllocDesiredSuspend, structs.ReclaimSuspend, "", now
	return st
}
