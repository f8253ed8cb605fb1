package world

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// TestClaimsTogether is TestClaimsStepByStep with what depends on several at once: gangs, of which all members use a claim or none does, workflows' reservations
// in cells and beside them, pinned cells, and slots of a project with GPUs. Several edits come before what was lost is written back, as entries may change several nodes.
func TestClaimsTogether(t *testing.T) {
	tried := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		m := &togetherMachine{workflows: map[string]*structs.WorkflowClaim{}, tried: tried, claimsMachine: claimsMachine{
			t: rt, e: New().Edit(), nodes: map[string]*structs.Node{}, allocs: map[string]*structs.Allocation{}, quotas: map[string][]Quota{},
		}}
		m.e.Configure(&m.config)
		for range rapid.IntRange(1, 4).Draw(rt, "nodes") {
			m.putNode()
		}
		for range worldSteps / 2 {
			m.step()
		}
		m.compareAll()
	})
	want := []string{"gangs with a claim", "reserved beside cells", "pins"}
	if !testing.Short() { // in few cases what is rarer may not come
		want = append(want, "reserved in cells", "uses of reservations", "uses of slots in cells", "several claims lost at once", "gangs that lost their claims", "parts lost")
	}
	for _, what := range want {
		if tried[what] == 0 {
			t.Errorf("no %s: the test tries too little", what)
		}
	}
	t.Log(tried)
}

type togetherMachine struct {
	claimsMachine
	workflows map[string]*structs.WorkflowClaim
	project   *structs.ProjectNow // "p"; nil: there is none
	gangs     int
	tried     map[string]int
}

func (m *togetherMachine) step() {
	if m.draw("compares", 14) == 0 {
		m.compareAll()
		return
	}
	for range 1 + m.draw("at once", 3)/2 {
		switch m.draw("kind", 23) {
		case 0, 1, 2, 3:
			m.placeGang()
		case 4, 5, 6, 7:
			m.reserve()
		case 8, 9:
			m.useReservation()
		case 10, 11:
			m.pin()
		case 12, 13:
			m.end()
		case 15:
			m.setProject()
		case 16, 17:
			m.placeOnSlots()
		case 14: // one that owns nothing any more loses all of its claims at once
			owner := m.namespace()
			delete(m.quotas, owner)
			m.e.SetQuotas(owner, nil)
		default:
			m.edit()
		}
	}
	m.writeLost()
}

// writeLost writes back what was lost, as the state does at the end of an entry.
func (m *togetherMachine) writeLost() {
	m.e.RetryPins()
	lost := m.e.LostClaims()
	if len(lost) > 1 {
		m.tried["several claims lost at once"]++
	}
	for _, id := range lost {
		a := m.allocs[id]
		if a == nil {
			continue
		}
		terms := a.AllocatedResources.Shared.Terms.Opportunistic()
		if m.allocs[id] = a.Copy(); terms.Gang != "" {
			m.tried["gangs that lost their claims"]++
		}
		m.allocs[id].AllocatedResources.Shared.Terms = &terms
	}
	for _, key := range (WorkflowEdit{m.e}).Lost() {
		m.tried["parts lost"]++
		if now := (WorkflowEdit{m.e}).Claim(key); now != nil {
			m.workflows[key] = now
		}
	}
}

// free draws devices of a ready node that are side by side, and that nobody uses or has reserved; none: there are none.
func (m *togetherMachine) free(by *Taker) (node string, ids []string) {
	node = fmt.Sprint("n", m.draw("node", 4))
	s, known := StateOf(m.e, node)
	if !known || s.Node == nil || !s.Node.Ready() || len(s.Capacity.Trees) == 0 {
		return node, nil
	}
	all := s.Capacity.Trees[0].IDs
	first := m.draw("device", len(all))
	for _, id := range all[first : first+1+m.draw("devices", len(all)-first)] {
		if s.LacksDevice(id, WholeDevice) || s.Bars(id, by) {
			break
		}
		ids = append(ids, id)
	}
	return node, ids
}

// drawTerms draws a claim on cells of which a namespace owns some, if it owns any.
func (m *togetherMachine) drawTerms(namespace string) *structs.AllocTerms {
	terms := &structs.AllocTerms{Priority: m.draw("priority", 100), Claim: structs.ClaimCells, CellLevel: "gpu"}
	if quotas := m.quotas[namespace]; len(quotas) > 0 {
		q := rapid.SampledFrom(quotas).Draw(m.t, "quota")
		terms.CellLevel, terms.CellSize = q.Level, q.Size
	}
	return terms
}

func (m *togetherMachine) namespace() string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(m.t, "namespace")
}

// setProject draws the project, and which cells it owns for its slots.
func (m *togetherMachine) setProject() {
	if m.project = drawProject(m.t, "p"); m.project != nil {
		m.project.Rows = append(m.project.Rows, structs.CalendarRow{Type: structs.SlotBatch, User: "ada", Count: 1 + m.draw("rows", 3)})
	}
	delete(m.quotas, structs.ProjectOwner("p"))
	if s, known := StateOf(m.e, "n0"); known && m.project != nil {
		for _, key := range first(NodeChains(s.Node, s.Capacity)) {
			m.order++
			m.project.Cells = []structs.CellClaim{{
				NodePool: key.Pool, Vendor: key.Vendor, Type: key.Type, Model: key.Model, Chain: key.Tree,
				Level: rapid.SampledFrom([]string{"gpu", "pcie", "node"}).Draw(m.t, "level"), Count: 1 + m.draw("count", 3), Order: m.order,
			}}
			m.quotas[structs.ProjectOwner("p")] = QuotasOf(m.project.Cells)
		}
	}
	SlotEdit{m.e}.SetProject("p", m.project)
}

func first[A, B any](a A, _ B) A { return a }

// placeOnSlots places an instance of the project on its slots, in cells of it if it owns any, or without.
func (m *togetherMachine) placeOnSlots() {
	terms := m.drawTerms(structs.ProjectOwner("p"))
	terms.Claim, terms.Slots = structs.ClaimSlots, &structs.SlotTerms{Project: "p", User: "ada", Type: structs.SlotBatch, Cost: 1}
	node, ids := m.free(&Taker{})
	a := m.newAlloc(m.namespace(), "slots", node, ids, terms)
	if a == nil {
		return
	}
	if ClaimLacks(m.e, useOf(a)) != "" {
		plain := terms.Opportunistic()
		a.AllocatedResources.Shared.Terms = &plain
	} else {
		m.tried["uses of slots in cells"]++
	}
	m.allocs[a.ID] = a
	m.e.UpsertAlloc(a)
}

// newAlloc returns an allocation of one of a dozen names that is not there; nil: it is.
func (m *togetherMachine) newAlloc(namespace, job, node string, ids []string, terms *structs.AllocTerms) *structs.Allocation {
	id := fmt.Sprint("a", m.draw("alloc", 12))
	if _, is := m.allocs[id]; is || len(ids) == 0 {
		return nil
	}
	return &structs.Allocation{
		ID: id, Namespace: namespace, JobID: job, NodeID: node, DesiredStatus: structs.AllocDesiredRun, ClientStatus: structs.AllocClientRunning,
		AllocatedResources: &structs.AllocatedResources{
			Tasks:  map[string]*structs.AllocatedTaskResources{"t": {Devices: []*structs.AllocatedDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "H100", DeviceIDs: ids}}}},
			Shared: structs.AllocatedSharedResources{Terms: terms},
		},
	}
}

func useOf(a *structs.Allocation) *Usage {
	return NewUse(a.ID, a.NodeID, NewOwner(RequestName{a.Namespace, a.JobID, a.TaskGroup}, a.AllocatedResources), a.AllocatedResources, 0)
}

// placeGang places the members of a gang one by one, by their claims or all without.
func (m *togetherMachine) placeGang() {
	m.gangs++
	namespace, job := m.namespace(), fmt.Sprint("j", m.gangs)
	terms := m.drawTerms(namespace)
	terms.Gang, terms.GangMin = "g", 1+m.draw("min", 3)
	trial := m.e.World().Edit()
	var members []*structs.Allocation
	claimed := true
	for range 1 + m.draw("members", 3) {
		node, ids := m.free(&Taker{})
		a := m.newAlloc(namespace, job, node, ids, terms)
		if a == nil || slices.ContainsFunc(members, func(o *structs.Allocation) bool { return o.ID == a.ID }) {
			continue
		}
		claimed = claimed && ClaimLacks(trial, useOf(a)) == "" && m.all(trial, a)
		trial.UpsertAlloc(a)
		members = append(members, a)
	}
	if !claimed {
		plain := terms.Opportunistic()
		terms = &plain
	} else if len(members) > 0 {
		m.tried["gangs with a claim"]++
	}
	for _, a := range members {
		a.AllocatedResources.Shared.Terms = terms
		m.allocs[a.ID] = a
		m.e.UpsertAlloc(a)
	}
}

// all reports whether no member of a gang uses the devices of another.
func (m *togetherMachine) all(e *Edit, a *structs.Allocation) bool {
	s, _ := StateOf(e, a.NodeID)
	return !slices.ContainsFunc(a.AllocatedResources.Tasks["t"].Devices[0].DeviceIDs, func(id string) bool { return s.LacksDevice(id, WholeDevice) })
}

// reserve has a workflow reserve devices of one node more, in cells or beside them, or end its reservation, or a part of it.
func (m *togetherMachine) reserve() {
	namespace := m.namespace()
	key := structs.WorkflowKey(namespace, "wf")
	c := &structs.WorkflowClaim{Namespace: namespace, ID: "wf", Run: 1, NodePool: structs.NodePoolAll, Posted: true, Priority: 50}
	if was := m.workflows[key]; was != nil {
		own := *was
		c = &own
		c.Parts = slices.Clone(c.Parts)
	}
	x := WorkflowEdit{m.e}
	switch m.draw("less", 6) {
	case 0:
		x.Drop(key)
		delete(m.workflows, key)
		return
	case 1:
		if len(c.Parts) > 0 {
			at := m.draw("part", len(c.Parts))
			c.Parts = slices.Delete(c.Parts, at, at+1)
			break
		}
		return
	default:
		p, ok := m.drawPart(c)
		if !ok {
			return
		}
		c.Parts = append(c.Parts, p)
	}
	m.workflows[key] = c
	x.Set(c)
}

// drawPart draws a part of a node of which a workflow has none, as it may reserve it.
func (m *togetherMachine) drawPart(c *structs.WorkflowClaim) (p structs.WorkflowPart, ok bool) {
	node, ids := m.free(&Taker{})
	if len(ids) == 0 || slices.ContainsFunc(c.Parts, func(p structs.WorkflowPart) bool { return p.NodeID == node }) {
		return p, false
	}
	p = structs.WorkflowPart{NodeID: node, Devices: len(ids), DeviceIDs: ids, CPU: int64(m.draw("cpu", 1000)), Cores: m.draw("cores", 2)}
	if m.draw("in cells", 3) > 0 {
		terms := m.drawTerms(c.Namespace)
		p.CellLevel, p.CellSize = terms.CellLevel, terms.CellSize
		if ClaimLacks(m.e, ClaimsOf(c, &p)) != "" {
			return p, false
		}
		m.tried["reserved in cells"]++
		return p, true
	}
	s, _ := StateOf(m.e, node)
	keys, trees := NodeChains(s.Node, s.Capacity)
	for i, key := range keys {
		mask := DeviceMask(trees[i], &Usage{Devices: WholeDevices(ids)})
		if ed := ChainEdit(m.e, key); ed != nil && ed.View().Spare(node, mask) != nil {
			return p, false
		}
	}
	m.tried["reserved beside cells"]++
	return p, true
}

// useReservation places an instance of a workflow that uses what is reserved for it.
func (m *togetherMachine) useReservation() {
	namespace := m.namespace()
	key := structs.WorkflowKey(namespace, "wf")
	c := m.workflows[key]
	if c == nil || len(c.Parts) == 0 {
		return
	}
	p := c.Parts[m.draw("part", len(c.Parts))]
	s, known := StateOf(m.e, p.NodeID)
	if !known || s.Node == nil || !s.Node.Ready() || p.Lost {
		return
	}
	ids := slices.DeleteFunc(slices.Clone(p.DeviceIDs), func(id string) bool { return s.LacksDevice(id, WholeDevice) })
	ids = ids[:min(len(ids), 1+m.draw("devices", 4))]
	terms := &structs.AllocTerms{Priority: 50, Claim: structs.ClaimWorkflow, Workflow: &structs.WorkflowTerms{Key: key}}
	job := "wf/1/s"
	if m.draw("gang", 2) == 0 {
		terms.Gang, terms.GangMin = "g", 1
	}
	if a := m.newAlloc(namespace, job, p.NodeID, ids, terms); a != nil {
		m.tried["uses of reservations"]++
		m.allocs[a.ID] = a
		m.e.UpsertAlloc(a)
	}
}

// end ends allocations and has nodes be ready and well again, so that there is room.
func (m *togetherMachine) end() {
	for _, id := range slices.Sorted(maps.Keys(m.nodes)) {
		if m.draw("ready", 2) == 0 {
			n := m.nodes[id].Copy()
			n.Status = structs.NodeStatusReady
			n.NodeResources.Slots = map[string]int{structs.SlotBatch: m.draw("slots", 5)}
			for _, d := range n.NodeResources.Devices[0].Instances {
				d.Healthy = true
			}
			m.nodes[id] = n
			m.e.UpsertNode(n)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.allocs)) {
		if m.draw("ends", 2) == 0 {
			delete(m.allocs, id)
			m.e.DeleteAlloc(id, "")
		}
	}
}

// pin gives an owner a cell that is pinned, if it may have that.
func (m *togetherMachine) pin() {
	owner := m.namespace()
	s, known := StateOf(m.e, fmt.Sprint("n", m.draw("node", 4)))
	if !known || s.Node == nil {
		return
	}
	keys, _ := NodeChains(s.Node, s.Capacity)
	if len(keys) == 0 || ChainEdit(m.e, keys[0]) == nil {
		return
	}
	m.order++
	q := Quota{Chain: keys[0], Count: 1, Order: m.order, Level: rapid.SampledFrom([]string{"gpu", "pcie", "socket", "node", "rack", "pod"}).Draw(m.t, "level")}
	if q.Level == "rack" || q.Level == "pod" {
		q.Size = 1 + m.draw("size", 3)
	}
	chain := ChainEdit(m.e, q.Chain).View()
	k, ok := chain.KindOf(q.Level, q.Size)
	if !ok {
		return
	}
	all := chain.CellsOf(s.ID, k, chain.Mask(len(chain.Levels())-1, 0))
	if len(all) == 0 {
		return
	}
	q.Pins = []cells.Cell{rapid.SampledFrom(all).Draw(m.t, "cell")}
	list := append(slices.Clone(m.quotas[owner]), q)
	if m.e.World().Edit().Shortage(owner, list) != nil {
		return
	}
	m.tried["pins"]++
	m.quotas[owner] = list
	m.e.SetQuotas(owner, list)
}

// TestPinnedNodeBeforeItsRack: where a node comes back to a pinned rack, and a GPU of it is pinned meanwhile, the GPU is bound, as in a World made anew: whichever
// namespace comes first.
func TestPinnedNodeBeforeItsRack(t *testing.T) {
	for _, owners := range [][2]string{{"a", "b"}, {"b", "a"}} {
		m := &togetherMachine{claimsMachine: claimsMachine{e: New().Edit(), nodes: map[string]*structs.Node{}, quotas: map[string][]Quota{}}}
		var chain ChainKey
		put := func(id, rack string) {
			n := schedtest.Node(id, schedtest.EightGPUs)
			n.Meta = map[string]string{"rack": rack}
			n.ComputeClass()
			m.nodes[id] = n
			m.e.UpsertNode(n)
			s, _ := StateOf(m.e, id)
			keys, _ := NodeChains(s.Node, s.Capacity)
			chain = keys[0]
		}
		own := func(owner, level string, size int, cell cells.Cell) {
			t.Helper()
			m.order++
			m.quotas[owner] = []Quota{{Chain: chain, Level: level, Size: size, Count: 1, Order: m.order, Pins: []cells.Cell{cell}}}
			if short := m.e.Shortage(owner, m.quotas[owner]); short != nil {
				t.Fatalf("%s: %+v", owner, short)
			}
		}
		put("n1", "r1")
		put("n2", "r1")
		own(owners[0], "rack", 2, cells.Cell{Site: `/0:"r1"`})
		put("n1", "r2")
		own(owners[1], "gpu", 0, cells.Cell{Node: "n1", Index: 2})
		m.e.DeleteNode("n1")
		m.e.RetryPins()
		put("n1", "r1")
		m.e.RetryPins()
		if diff := m.e.World().Diff(m.anew().World()); diff != nil {
			t.Errorf("%v: %v", owners, diff)
		}
		if list := m.e.World().BindingsOn("n1"); len(list) != 1 || list[0].Level != "gpu" {
			t.Errorf("%v: bound are %+v", owners, list)
		}
	}
}

// anew returns an edit of a World that is made anew from the same rows.
func (m *togetherMachine) anew() *Edit {
	e := New().Edit()
	e.Configure(&m.config)
	for _, n := range m.nodes { // in any order
		e.UpsertNode(n)
	}
	e.RestoreQuotas(m.quotas)
	for _, a := range m.allocs { // in any order
		e.UpsertAlloc(a)
	}
	for _, key := range slices.Sorted(maps.Keys(m.workflows)) {
		WorkflowEdit{e}.Set(m.workflows[key])
	}
	if m.project != nil {
		SlotEdit{e}.Restore([]*structs.ProjectNow{m.project})
	}
	e.RetryPins()
	return e
}

// compareAll looks whether the World equals one made anew.
func (m *togetherMachine) compareAll() {
	w, e := m.e.World(), m.anew()
	if lost, parts := e.LostClaims(), (WorkflowEdit{e}).Lost(); len(lost)+len(parts) > 0 {
		m.t.Fatalf("made anew, the claims of %v and of parts of %v do not hold", lost, parts)
	}
	if diff := w.Diff(e.World()); diff != nil {
		m.t.Fatal(diff)
	}
	if err := w.CheckClaims(); err != nil {
		m.t.Fatal(err)
	}
}
