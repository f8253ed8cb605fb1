package world

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/internal/family"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// TestWorldStepByStep moves Worlds by random edits of all kinds, with allocations that
// no scheduler would place: it tells what is, not what ought to be. Each must equal
// one that is made anew, and its indexes must be sound.
func TestWorldStepByStep(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &worldMachine{
			t: rt, e: New().Edit(), config: structs.DefaultSchedulerConfiguration(), nodes: map[string]*structs.Node{},
			allocs: map[string]*structs.Allocation{}, reservations: map[string]*structs.Reservation{}, projects: map[string]*structs.ProjectNow{},
		}
		for range worldSteps {
			m.step()
		}
		m.compare()
	})
}

// worldMachine is a World, and what it is to be made of.
type worldMachine struct {
	t            *rapid.T
	w            *World // as it was taken last
	e            *Edit
	config       structs.SchedulerConfiguration
	nodes        map[string]*structs.Node
	allocs       map[string]*structs.Allocation
	reservations map[string]*structs.Reservation
	projects     map[string]*structs.ProjectNow
}

func (m *worldMachine) step() {
	t, e := m.t, m.e
	node := fmt.Sprintf("n%d", rapid.IntRange(0, 4).Draw(t, "node"))
	id := fmt.Sprintf("%s-%d", node, rapid.IntRange(0, 4).Draw(t, "alloc"))
	defer m.lose()
	switch rapid.IntRange(0, 16).Draw(t, "step") {
	case 15:
		name := rapid.SampledFrom([]string{"p", "q"}).Draw(t, "project")
		m.projects[name] = drawProject(t, name)
		SlotEdit{e}.SetProject(name, m.projects[name])
	case 0:
		n := schedtest.DrawNode(t, node)
		m.nodes[node] = n
		e.UpsertNode(n)
	case 1:
		delete(m.nodes, node)
		e.DeleteNode(node)
	case 2:
		delete(m.allocs, id)
		e.DeleteAlloc(id, node)
	case 3:
		m.config.Granularity = map[string]int64{"cpu": int64(rapid.IntRange(1, 2000).Draw(t, "granularity"))}
		m.config.Dimensions = rapid.SampledFrom([][]string{nil, {"memory", "cpu"}, {"cpu"}}).Draw(t, "dimensions")
		m.config.PreemptionConfig.BatchSchedulerEnabled = rapid.Bool().Draw(t, "preempts")
		m.config.Slots = rapid.SampledFrom([]*structs.SlotSettings{nil, {Types: []structs.SlotType{{Name: structs.SlotBatch, Cores: 2}}}}).Draw(t, "slots")
		e.Configure(&m.config)
	case 4:
		r := &structs.Reservation{
			NodeID: node, JobID: id, CPU: int64(rapid.IntRange(0, 3000).Draw(t, "reserved cpu")),
			Devices: rapid.IntRange(0, 4).Draw(t, "reserved GPUs"), Cores: rapid.IntRange(0, 4).Draw(t, "reserved cores"),
		}
		m.reservations[node] = r
		e.Reserve(r)
	case 5:
		delete(m.reservations, node)
		e.Unreserve(node)
	case 6, 7, 8:
		m.changeNode(node)
	case 9:
		m.compare()
	default:
		a := drawAlloc(t, id, node)
		m.allocs[id] = a
		e.UpsertAlloc(a)
		e.UpsertAlloc(a)
	}
}

// lose lets the rows of those go on without a claim that have lost it.
func (m *worldMachine) lose() {
	for _, id := range m.e.LostClaims() {
		now := m.allocs[id].Copy()
		terms := now.AllocatedResources.Shared.Terms.Opportunistic()
		now.AllocatedResources.Shared.Terms = &terms
		m.allocs[id] = now
	}
}

// drawProject draws a project, or none.
func drawProject(t *rapid.T, name string) *structs.ProjectNow {
	if rapid.IntRange(0, 3).Draw(t, "deleted") == 0 {
		return nil
	}
	p := &structs.ProjectNow{Name: name, Users: []string{"ada"}, Steps: []string{"s"}}
	for _, step := range []string{"", "s"}[:rapid.IntRange(0, 2).Draw(t, "rows")] {
		p.Rows = append(p.Rows, structs.CalendarRow{Type: structs.SlotBatch, Step: step, Count: rapid.IntRange(0, 4).Draw(t, "slots")})
	}
	return p
}

// changeNode changes a node in one thing.
func (m *worldMachine) changeNode(id string) {
	was := m.nodes[id]
	if was == nil {
		return
	}
	n := was.Copy()
	switch rapid.IntRange(0, 6).Draw(m.t, "change") {
	case 6:
		n.NodeResources.Slots = map[string]int{structs.SlotBatch: rapid.IntRange(0, 3).Draw(m.t, "slots of the node")}
	case 4:
		n.NodePool = rapid.SampledFrom([]string{"", "other"}).Draw(m.t, "pool")
	case 0:
		n.Status = rapid.SampledFrom([]string{structs.NodeStatusReady, structs.NodeStatusDown}).Draw(m.t, "status")
	case 1:
		n.SchedulingEligibility = rapid.SampledFrom([]string{structs.NodeEligible, structs.NodeIneligible}).Draw(m.t, "eligibility")
	case 2:
		n.Meta["rack"] = rapid.SampledFrom([]string{"r1", "r2"}).Draw(m.t, "rack")
	case 3: // another machine of the same name: other devices, or the same in other places
		n.NodeResources.Devices, n.NodeResources.Topology = nil, nil
		schedtest.DrawDevices(m.t, n.NodeResources)
	default:
		for _, d := range n.NodeResources.Devices {
			one := rapid.SampledFrom(d.Instances).Draw(m.t, "device")
			one.Healthy = !one.Healthy
		}
	}
	n.ComputeClass()
	m.nodes[id] = n
	m.e.UpsertNode(n)
}

// compare takes the World and looks whether it equals one made anew.
func (m *worldMachine) compare() {
	m.w = m.e.World()
	if diff := m.w.Diff(m.rebuilt()); diff != nil {
		m.t.Fatal(diff)
	}
	for _, sets := range []*Tree[string, *NodeSet]{&m.w.classes, &m.w.families} {
		for name, set := range sets.All {
			if err := bucket.Check(&set.Nodes); err != nil {
				m.t.Fatalf("index of %s: %v", name, err)
			}
		}
	}
	m.checkUsage()
	m.checkSupply()
	m.checkShares()
}

// checkShares counts what the namespaces and the users use of each pool, and what its nodes have, one by one.
func (m *worldMachine) checkShares() {
	for _, pool := range []string{structs.NodePoolDefault, "other", structs.NodePoolAll} {
		var has [3]int64
		used := map[string][3]int64{}
		for id, n := range m.nodes {
			if of := cmp.Or(n.NodePool, structs.NodePoolDefault); pool != of && pool != structs.NodePoolAll {
				continue
			}
			has[0] += n.NodeResources.Cpu.CpuShares
			has[1] += n.NodeResources.Memory.MemoryMB
			for _, d := range n.NodeResources.Devices {
				has[2] += 1000 * int64(len(d.Instances))
			}
			for _, a := range m.allocs {
				if a.NodeID != id || a.Terminal() || a.AllocatedResources.Shared.Terms.Claim != "" {
					continue
				}
				var sum [3]int64
				task := a.AllocatedResources.Tasks["t"]
				if a.DesiredStatus != structs.AllocDesiredSuspend {
					sum[0] += task.Cpu.CpuShares
				}
				sum[1] += task.Memory.MemoryMB
				for _, d := range task.Devices {
					sum[2] += int64(cmp.Or(d.Share, 1000) * len(d.DeviceIDs))
				}
				for _, by := range []string{"namespace " + a.Namespace, "user " + a.AllocatedResources.Shared.Terms.User} {
					of := used[by]
					for d := range of {
						of[d] += sum[d]
					}
					used[by] = of
				}
			}
		}
		check := func(who string, got int) {
			want := int64(0)
			for d, of := range has {
				if of > 0 {
					want = max(want, 100*used[who][d]/of)
				}
			}
			if got != int(want) {
				m.t.Fatalf("%s has a share of %d %% of pool %s, want %d %%", who, got, pool, want)
			}
		}
		for _, namespace := range []string{"a", "b"} {
			check("namespace "+namespace, m.w.Share(pool, namespace))
		}
		for _, user := range []string{"", "ada", "bob"} {
			check("user "+user, m.w.UserShare(pool, user))
		}
	}
}

// checkSupply counts the devices that are well, node by node: those of ready nodes make up the supply of
// their family.
func (m *worldMachine) checkSupply() {
	has := map[string][]int64{}
	for _, n := range m.w.nodes.All {
		if n.Node == nil || !n.Node.Ready() || n.Node.NodeResources == nil || len(n.Node.NodeResources.Devices) == 0 {
			continue
		}
		of := family.Of(n.Node)
		if has[of] == nil {
			has[of] = make([]int64, len(n.Node.NodeResources.Devices))
		}
		for i, d := range n.Node.NodeResources.Devices {
			for _, one := range d.Instances {
				if one.Healthy {
					has[of][i]++
				}
			}
		}
	}
	for of, c := range m.w.supply.All {
		if !slices.Equal(c.Devices, has[of]) || family.Of(c.Node) != of {
			m.t.Fatalf("family %s supplies %v, want %v", of, c.Devices, has[of])
		}
		delete(has, of)
	}
	if len(has) > 0 {
		m.t.Fatalf("the supply of families %v is missing", has)
	}
}

// rebuilt makes the World anew of what it is to have.
func (m *worldMachine) rebuilt() *World {
	e := New().Edit()
	e.Configure(&m.config)
	for _, a := range m.allocs { // in any order: it must not show
		e.UpsertAlloc(a)
	}
	for _, n := range m.nodes {
		e.UpsertNode(n)
	}
	for _, r := range m.reservations { // one a node: the order cannot show
		e.Reserve(r)
	}
	var projects []*structs.ProjectNow
	for _, name := range []string{"p", "q"} {
		if p := m.projects[name]; p != nil {
			projects = append(projects, p)
		}
	}
	SlotEdit{e}.Restore(projects)
	return e.World()
}

// checkUsage proves that the sets by priority are sound, and there only while wanted: a
// node is in one for each priority that something of it is held by.
func (m *worldMachine) checkUsage() {
	w := m.w
	if !reclaims(&m.config) && w.usages.Len() > 0 {
		m.t.Fatalf("%d sets are kept for nobody", w.usages.Len())
	}
	has := map[UsageKey]int{}
	for _, n := range w.nodes.All {
		seen := map[int]bool{}
		for _, u := range n.Usages {
			if p := u.ReclaimPriority(); reclaims(&m.config) && n.Node != nil && n.Node.Ready() && !seen[p] {
				seen[p] = true
				has[UsageKey{p, n.Capacity.Family}]++
			}
		}
	}
	for key, set := range w.usages.All {
		if err := bucket.Check(&set.Nodes); err != nil || set.Nodes.Len() != has[key] {
			m.t.Fatalf("%d nodes are in set %+v, want %d (%v)", set.Nodes.Len(), key, has[key], err)
		}
		delete(has, key)
	}
	if len(has) > 0 {
		m.t.Fatalf("sets %v are missing", has)
	}
}

func drawAlloc(t *rapid.T, id, node string) *structs.Allocation {
	a := &structs.Allocation{
		ID: id, NodeID: node, Namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), DesiredStatus: structs.AllocDesiredRun,
		ClientStatus: rapid.SampledFrom([]string{structs.AllocClientRunning, structs.AllocClientRunning, structs.AllocClientFailed}).Draw(t, "status"),
		AllocatedResources: &structs.AllocatedResources{
			Tasks: map[string]*structs.AllocatedTaskResources{"t": {
				Cpu:    structs.AllocatedCpuResources{CpuShares: int64(rapid.IntRange(0, 3000).Draw(t, "cpu"))},
				Memory: structs.AllocatedMemoryResources{MemoryMB: int64(rapid.IntRange(0, 3000).Draw(t, "memory"))},
			}},
		},
	}
	terms := structs.AllocTerms{Priority: rapid.IntRange(0, 4).Draw(t, "priority"), Gang: rapid.SampledFrom([]string{"", "g"}).Draw(t, "gang")}
	terms.User = rapid.SampledFrom([]string{"", "ada", "bob"}).Draw(t, "submitted by")
	a.AllocatedResources.Shared.Terms, a.CreateTime = &terms, int64(rapid.IntRange(0, 3).Draw(t, "created"))
	if project := rapid.SampledFrom([]string{"", "p", "q"}).Draw(t, "of project"); project != "" {
		terms.Slots = &structs.SlotTerms{
			Project: project, Step: rapid.SampledFrom([]string{"", "s"}).Draw(t, "of step"), User: rapid.SampledFrom([]string{"ada", "eve"}).Draw(t, "of user"),
			Type: structs.SlotBatch, Cost: rapid.IntRange(1, 2).Draw(t, "cost"),
		}
		if rapid.Bool().Draw(t, "on slots") {
			terms.Claim, terms.Slots.Guards, terms.Slots.Light = structs.ClaimSlots, rapid.IntRange(0, 1).Draw(t, "guards"), rapid.Bool().Draw(t, "light")
		}
	}
	if rapid.IntRange(0, 4).Draw(t, "suspended") == 0 {
		a.DesiredStatus, a.SuspendedAt = structs.AllocDesiredSuspend, int64(rapid.IntRange(0, 1).Draw(t, "for others"))
	}
	for _, p := range rapid.SliceOfN(rapid.IntRange(1, 5), 0, 3).Draw(t, "ports") {
		a.AllocatedResources.Shared.Ports = append(a.AllocatedResources.Shared.Ports, structs.PortMapping{Value: p})
	}
	for range rapid.IntRange(0, 3).Draw(t, "devices") {
		a.AllocatedResources.Tasks["t"].Devices = append(a.AllocatedResources.Tasks["t"].Devices, &structs.AllocatedDeviceResource{
			Vendor: "v", Type: "gpu", Name: "m", DeviceIDs: []string{fmt.Sprint("gpu-", rapid.IntRange(0, 8).Draw(t, "device"))},
			Share: rapid.SampledFrom([]int{0, 300, 1000}).Draw(t, "share"),
		})
	}
	a.AllocatedResources.Tasks["t"].Cpu.ReservedCores = rapid.SliceOfN(rapid.Uint16Range(0, 5), 0, 3).Draw(t, "cores")
	return a
}
