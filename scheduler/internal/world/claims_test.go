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

// TestClaimsStepByStep moves Worlds in which tenants own cells by random edits: nodes that come, go and change, quotas that are
// edited while they are used, guaranteed and opportunistic allocations. After each step what was lost is written back,
// as the state does; the World must equal one made anew, and every chain a sweep over its nodes.
func TestClaimsStepByStep(t *testing.T) {
	claimed, lost := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		m := &claimsMachine{
			t: rt, e: New().Edit(), nodes: map[string]*structs.Node{}, allocs: map[string]*structs.Allocation{}, quotas: map[string][]Quota{},
		}
		m.e.Configure(&m.config)
		for range rapid.IntRange(1, 4).Draw(rt, "nodes") {
			m.putNode()
		}
		for range worldSteps {
			m.step()
		}
		m.compare()
		claimed, lost = claimed+m.claimed, lost+m.lost
	})
	if claimed == 0 || lost == 0 {
		t.Fatalf("%d allocations used claims and %d lost theirs: the test tries nothing", claimed, lost)
	}
	t.Logf("%d allocations used claims, %d lost theirs", claimed, lost)
}

type claimsMachine struct {
	t             *rapid.T
	e             *Edit
	config        structs.SchedulerConfiguration
	nodes         map[string]*structs.Node
	allocs        map[string]*structs.Allocation
	quotas        map[string][]Quota
	order         uint64
	claimed, lost int
}

func (m *claimsMachine) draw(label string, n int) int { return rapid.IntRange(0, n-1).Draw(m.t, label) }

func (m *claimsMachine) step() {
	if m.draw("compares", 14) == 0 {
		m.compare()
		return
	}
	m.edit()
	m.writeLost()
}

func (m *claimsMachine) edit() {
	switch m.draw("step", 13) {
	case 0:
		m.putNode()
	case 1:
		id := fmt.Sprint("n", m.draw("node", 4))
		delete(m.nodes, id)
		m.e.DeleteNode(id)
	case 2, 3:
		m.changeNode()
	case 4, 5:
		m.setQuotas()
	case 6:
		if ids := slices.Sorted(maps.Keys(m.allocs)); len(ids) > 0 {
			id := ids[m.draw("alloc", len(ids))]
			delete(m.allocs, id)
			m.e.DeleteAlloc(id, "")
		}
	case 7:
		m.config.Levels = rapid.SampledFrom([][]structs.TopologyLevel{nil, {}, {{Name: "rack", Meta: "rack"}, {Name: "pod", Meta: "pod"}}}).Draw(m.t, "levels")
		m.e.Configure(&m.config)
	default:
		m.place()
	}
}

func (m *claimsMachine) writeLost() {
	for _, id := range m.e.LostClaims() {
		m.lost++
		if a := m.allocs[id]; a != nil {
			was := *a.AllocatedResources.Shared.Terms
			*a = *a.Copy()
			terms := was.Opportunistic()
			a.AllocatedResources.Shared.Terms = &terms
		}
	}
}

func (m *claimsMachine) putNode() {
	id := fmt.Sprint("n", m.draw("node", 4))
	n := schedtest.Node(id, schedtest.EightGPUs)
	n.Meta = map[string]string{"rack": fmt.Sprint("r", m.draw("rack", 2)), "pod": "p"}
	if m.draw("small", 4) == 0 { // of another chain
		n.NodeResources.Devices[0].Instances = n.NodeResources.Devices[0].Instances[:2]
	}
	n.ComputeClass()
	m.nodes[id] = n
	m.e.UpsertNode(n)
}

func (m *claimsMachine) changeNode() {
	was := m.nodes[fmt.Sprint("n", m.draw("node", 4))]
	if was == nil {
		return
	}
	n := was.Copy()
	switch m.draw("change", 3) {
	case 0:
		n.Status = rapid.SampledFrom([]string{structs.NodeStatusReady, structs.NodeStatusDown}).Draw(m.t, "status")
	case 1:
		n.Meta["rack"] = fmt.Sprint("r", m.draw("rack", 2))
	default:
		one := n.NodeResources.Devices[0].Instances[m.draw("device", len(n.NodeResources.Devices[0].Instances))]
		one.Healthy = !one.Healthy
	}
	n.ComputeClass()
	m.nodes[n.ID] = n
	m.e.UpsertNode(n)
}

// setQuotas gives an owner other cells, sometimes more than there are: those are doomed.
func (m *claimsMachine) setQuotas() {
	owner := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(m.t, "owner")
	list := slices.Clone(m.quotas[owner])
	chains := []ChainKey{{Pool: "no", Vendor: "such", Type: "chain"}}
	for key := range m.e.World().Chains {
		chains = append(chains, key)
	}
	if s, ok := StateOf(m.e, "n0"); ok {
		keys, _ := NodeChains(s.Node, s.Capacity)
		chains = append(chains, keys...)
	}
	if len(list) > 0 && m.draw("less", 2) == 0 { // what was admitted last goes first
		last := &list[len(list)-1]
		if last.Count--; last.Count == 0 || m.draw("all", 2) == 0 {
			list = list[:len(list)-1]
		}
	} else {
		m.order++
		q := Quota{Chain: rapid.SampledFrom(chains).Draw(m.t, "chain"), Count: 1 + m.draw("count", 3), Order: m.order}
		q.Level = rapid.SampledFrom([]string{"gpu", "pcie", "socket", "node", "rack"}).Draw(m.t, "level")
		if q.Level == "rack" {
			q.Size = 1 + m.draw("size", 2)
		}
		list = append(list, q)
	}
	if m.quotas[owner] = list; len(list) == 0 {
		delete(m.quotas, owner)
	}
	m.e.SetQuotas(owner, list)
}

// place places an allocation that uses a claim, if one holds, or does without.
func (m *claimsMachine) place() {
	node := fmt.Sprint("n", m.draw("node", 4))
	s, known := StateOf(m.e, node)
	if !known || s.Node == nil || len(s.Capacity.Trees) == 0 {
		return
	}
	t := s.Capacity.Trees[0]
	first := m.draw("device", len(t.IDs))
	ids := t.IDs[first : first+1+m.draw("devices", len(t.IDs)-first)]
	if slices.ContainsFunc(ids, func(id string) bool { return s.Bars(id, &Taker{}) }) {
		return
	}
	a := &structs.Allocation{
		ID: fmt.Sprint("a", m.draw("alloc", 12)), Namespace: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(m.t, "namespace"), NodeID: node,
		DesiredStatus: structs.AllocDesiredRun, ClientStatus: structs.AllocClientRunning,
		AllocatedResources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{"t": {
			Devices: []*structs.AllocatedDeviceResource{{Vendor: t.Vendor, Type: t.Kind, Name: t.Groups[0].Name, DeviceIDs: ids}},
		}}},
	}
	terms := &structs.AllocTerms{Priority: m.draw("priority", 100), Claim: structs.ClaimCells}
	terms.CellLevel = rapid.SampledFrom([]string{"gpu", "pcie", "socket", "node", "rack"}).Draw(m.t, "level")
	if terms.CellLevel == "rack" {
		terms.CellSize = 1 + m.draw("size", 2)
	}
	a.AllocatedResources.Shared.Terms = terms
	if _, is := m.allocs[a.ID]; is {
		return
	}
	u := NewUse(a.ID, node, NewOwner(RequestName{Namespace: a.Namespace}, a.AllocatedResources), a.AllocatedResources, 0)
	switch {
	case m.draw("per node", 5) == 0: // at times where somebody owns it: the World states what is
		a.AllocatedResources.Shared.Terms = &structs.AllocTerms{Priority: terms.Priority, PerNode: true}
	case ClaimLacks(m.e, u) != "":
		plain := terms.Opportunistic()
		a.AllocatedResources.Shared.Terms = &plain
	default:
		m.claimed++
	}
	m.allocs[a.ID] = a
	m.e.UpsertAlloc(a)
	if m.draw("suspend", 6) == 0 {
		a.DesiredStatus = structs.AllocDesiredSuspend
		m.e.UpsertAlloc(a)
	}
}

func (m *claimsMachine) compare() {
	w := m.e.World()
	e := New().Edit()
	e.Configure(&m.config)
	e.RestoreQuotas(m.quotas)
	for _, n := range m.nodes {
		e.UpsertNode(n)
	}
	for _, a := range m.allocs { // in any order: it must not show
		e.UpsertAlloc(a)
	}
	if lost := e.LostClaims(); len(lost) > 0 {
		m.t.Fatalf("made anew, the claims of %v do not hold", lost)
	}
	if diff := w.Diff(e.World()); diff != nil {
		m.t.Fatal(diff)
	}
	if err := w.CheckClaims(); err != nil {
		m.t.Fatal(err)
	}
	for key, c := range w.Chains {
		for _, b := range c.Balances() {
			if b.Left < 0 {
				m.t.Fatalf("chain %v: %+v: less than nothing is left", key, b)
			}
		}
		c.Bindings(func(b cells.Binding, _ bool) bool {
			if b.Uses < 1 {
				m.t.Fatalf("%+v is bound and not used", b)
			}
			return true
		})
	}
}
