package state

import (
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/structs"
)

// tenantMachine moves a small cluster on by random entries, as the leader would make them, and checks it after each.
type tenantMachine struct {
	below   func(n int) int                  // a number from 0 to n-1
	failed  func(format string, args ...any) // does not return
	log     func(format string, args ...any) // what was done
	counts  map[string]int                   // how often what was tried
	layouts []*gpuLayout
	nodes   []*structs.Node // as they are registered, or were
	store   *Store
	writer  *Writer

	index  uint64
	hour   int // up to which what is owned has been moved on
	ids    int
	jobs   int
	steps  int
	points int64 // of all virtual clusters, by what was granted
	harmed bool  // by the present step: what is owned may be doomed
	fault  machineFault
}

var machineOwners = []string{"a", "b", "c"}

// machineLayouts are layouts of which a world has two. They differ in how many devices a node has.
func machineLayouts() [][]*gpuLayout {
	four := func(model string) *gpuLayout {
		return &gpuLayout{model, "2x2", []gpuLevel{{structs.LevelGPU, 1}, {structs.LevelSocket, 2}, {structs.LevelNode, 4}}}
	}
	deep := &gpuLayout{"H100", "2x1x2", []gpuLevel{{structs.LevelGPU, 1}, {structs.LevelPCIe, 2}, {structs.LevelSocket, 2}, {structs.LevelNode, 4}}}
	flat := func(model string) *gpuLayout {
		return &gpuLayout{model, "2", []gpuLevel{{structs.LevelGPU, 1}, {structs.LevelNode, 2}}}
	}
	return [][]*gpuLayout{{four("H100"), flat("B200")}, {four("H100"), flat("H100")}, {deep, flat("B200")}}
}

func newTenantMachine(below func(n int) int, failed, log func(format string, args ...any), counts map[string]int) *tenantMachine {
	m := &tenantMachine{below: below, failed: failed, log: log, counts: counts}
	m.store, m.writer = New(Options{})
	m.layouts = machineLayouts()[below(3)]
	for i := range 2 + below(4) {
		layout := m.layouts[0]
		if i == 1 || i > 1 && below(3) == 0 {
			layout = m.layouts[1]
		}
		n := layout.node(fmt.Sprint("n", i))
		m.inRack(n)
		m.nodes = append(m.nodes, n)
		m.must(&structs.NodeRegisterEntry{Node: n, Time: m.now()})
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		m.must(&structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: name}})
	}
	return m
}

// node returns a node of a layout. Its devices' IDs end in their numbers.
func (s *gpuLayout) node(id string) *structs.Node {
	n := node(id)
	n.SchedulingEligibility = structs.NodeEligible
	n.Drivers = map[string]*structs.DriverInfo{"mock_driver": {Detected: true, Healthy: true}}
	n.Meta = map[string]string{}
	group := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: s.model}
	of := &structs.NodeTopology{}
	parents := make([]string, s.devices())
	for _, l := range slices.Backward(s.levels[1 : len(s.levels)-1]) {
		for i := range s.devices() / l.devices {
			cell := &structs.TopologyCell{ID: fmt.Sprintf("%s-%d", l.name, i), Level: l.name, Parent: parents[i*l.devices]}
			for d := range l.devices {
				parents[i*l.devices+d] = cell.ID
			}
			of.Cells = append(of.Cells, cell)
		}
	}
	for i := range s.devices() {
		d := fmt.Sprintf("%s-gpu-%d", id, i)
		group.Instances = append(group.Instances, &structs.NodeDevice{ID: d, Healthy: true})
		if at := slices.IndexFunc(of.Cells, func(c *structs.TopologyCell) bool { return c.ID == parents[i] }); at >= 0 {
			of.Cells[at].Devices = append(of.Cells[at].Devices, d)
		}
	}
	n.NodeResources.Devices = []*structs.NodeDeviceResource{group}
	if len(of.Cells) > 0 {
		n.NodeResources.Topology = of
	}
	n.ComputeClass()
	return n
}

// isOf reports whether a node is of a layout.
func (s *gpuLayout) isOf(n *structs.Node) bool {
	return n.NodeResources.Devices[0].Name == s.model && len(n.NodeResources.Devices[0].Instances) == s.devices()
}

func (m *tenantMachine) inRack(n *structs.Node) {
	n.Meta = map[string]string{}
	if rack := m.below(5); rack > 0 {
		n.Meta["rack"] = fmt.Sprint("r", 1+rack%2)
	}
	n.ComputeClass()
}

func (m *tenantMachine) now() int64 { return int64(m.index+1) * 1e9 } // small

func (m *tenantMachine) apply(entry any) error {
	m.index++
	err := m.writer.Apply(m.index, 0, entry)
	if m.steps++; m.steps%32 == 0 {
		if d := Differences(m.store.Snapshot()); len(d) > 0 {
			m.failed("after entry %d (%T): %v", m.index, entry, d)
		}
	}
	return err
}

func (m *tenantMachine) must(entry any) {
	if err := m.apply(entry); err != nil {
		m.failed("entry %d (%T): %v", m.index, entry, err)
	}
}

func (m *tenantMachine) count(what string, n int) { m.counts[what] += n }

func (m *tenantMachine) owner() string { return machineOwners[m.below(len(machineOwners))] }

func (m *tenantMachine) row(name string) *structs.VirtualCluster {
	return m.store.Snapshot().VirtualClusters(nil).Get(name)
}

// step makes one random change.
func (m *tenantMachine) step() (did string) {
	switch n := m.below(30); {
	case n < 5:
		return m.edit()
	case n < 6:
		if m.below(2) == 0 {
			return m.remove()
		}
		return m.shift()
	case n < 7:
		return m.shift()
	case n < 11:
		return m.exchange()
	case n < 13:
		return m.advance()
	case n < 16:
		return m.changeNode()
	case n < 21:
		return m.submit()
	case n < 24:
		return m.end()
	case n < 26:
		return m.raise()
	case n < 27:
		return m.stopJob()
	case n < 29:
		return m.again()
	default:
		return m.commitLate()
	}
}

// quota draws cells of one kind.
func (m *tenantMachine) quota(most int) *structs.CellQuota {
	layout := m.layouts[m.below(len(m.layouts))]
	q := &structs.CellQuota{Kind: layout.kind(), Count: m.below(most + 1)}
	if at := m.below(len(layout.levels) + 2); at < len(layout.levels) {
		q.Level = layout.levels[at].name
	} else {
		q.Level, q.Size = "rack", m.size(layout)
	}
	if n := m.nodes[m.below(len(m.nodes))]; m.below(4) == 0 && q.Count > 0 && q.Size == 0 && layout.isOf(n) {
		q.Pin = []string{n.ID}
		if q.Level != structs.LevelNode {
			devices := layout.levels[layout.level(q.Level)].devices
			q.Pin = []string{fmt.Sprintf("%s/%s-%d", n.ID, q.Level, m.below(layout.devices()/devices))}
		}
	}
	return q
}

// size draws how many nodes a rack has, mostly one that there is.
func (m *tenantMachine) size(layout *gpuLayout) int {
	n, size := m.nodes[m.below(len(m.nodes))], 0
	for _, o := range m.nodes {
		if layout.isOf(o) && o.Meta["rack"] == n.Meta["rack"] && m.store.Snapshot().Node(nil, o.ID) != nil {
			size++
		}
	}
	if n.Meta["rack"] == "" || size == 0 || m.below(8) == 0 {
		return 1 + m.below(3)
	}
	return size
}

// quotas draws what is owned: a few kinds of cells.
func (m *tenantMachine) quotas(most int, pins bool) (list []*structs.CellQuota) {
	for range m.below(most + 1) {
		q := m.quota(2)
		if !pins {
			q.Pin = nil
		}
		if !slices.ContainsFunc(list, func(o *structs.CellQuota) bool { return o.Kind == q.Kind && o.Level == q.Level && o.Size == q.Size }) {
			list = append(list, q)
		}
	}
	return list
}

// times draws a time to come.
func (m *tenantMachine) times() (from, until int) {
	from = m.hour + 1 + m.below(3)
	return from, from + 1 + m.below(3)
}

// edit assigns other cells to a tenant.
func (m *tenantMachine) edit() string {
	name := m.owner()
	v := &structs.VirtualCluster{Name: name, OverLimit: []string{"", structs.OverLimitWait, structs.OverLimitOpportunistic}[m.below(3)], Cells: m.quotas(3, true)}
	was := m.row(name)
	if was != nil && m.below(3) > 0 { // most edits change a part
		old := was.Copy()
		v.Cells, v.Windows = old.Cells, old.Windows
		q := m.quota(3)
		v.Cells = slices.DeleteFunc(v.Cells, func(o *structs.CellQuota) bool { return o.Kind == q.Kind && o.Level == q.Level && o.Size == q.Size })
		v.Cells = append(v.Cells, q)
	} else if m.below(3) == 0 {
		from, to := m.times()
		if list := m.quotas(2, false); len(list) > 0 {
			v.Windows = append(v.Windows, &structs.CellWindow{From: later(from), To: later(to), Cells: list})
		}
	}
	if was == nil {
		v.Points = int64(m.below(30))
	}
	e := &structs.VirtualClusterUpsertEntry{VirtualCluster: v, WhenFree: m.below(3) == 0, Time: m.now(), EvalSeed: m.id()}
	before := m.admission()
	err := m.apply(e)
	if now := m.row(name); was == nil && now != nil {
		m.points += now.Points
	}
	m.judgeEdit(before, e, err)
	return fmt.Sprintf("edit %s of %s, windows %s, when free %v: %v", name, cellsText(v.Cells), windowsText(v.Windows), e.WhenFree, err)
}

func cellsText(list []*structs.CellQuota) (text string) {
	for _, q := range list {
		text += fmt.Sprintf("[%s %s %d x%d %v]", q.Kind, q.Level, q.Size, q.Count, q.Pin)
	}
	return text
}

func windowsText(list []*structs.CellWindow) (text string) {
	for _, w := range list {
		text += fmt.Sprintf("%s to %s: %s", w.From.Format("15"), w.To.Format("15"), cellsText(w.Cells))
	}
	return text
}

func (m *tenantMachine) remove() string {
	name := m.owner()
	was := m.row(name)
	err := m.apply(&structs.VirtualClusterDeleteEntry{Name: name, Time: m.now(), EvalSeed: m.id()})
	if err == nil {
		m.points -= was.Points
		m.count("deleted", 1)
	}
	return fmt.Sprintf("delete %s: %v", name, err)
}

// some draws cells that a virtual cluster has any of, or any others.
func (m *tenantMachine) some(v *structs.VirtualCluster) structs.CellQuota {
	if v != nil && len(v.Cells) > 0 && m.below(4) > 0 {
		q := v.Cells[m.below(len(v.Cells))]
		return structs.CellQuota{Kind: q.Kind, Level: q.Level, Size: q.Size, Count: 1}
	}
	q := m.quota(1)
	q.Pin, q.Count = nil, 1
	return *q
}

func (m *tenantMachine) shift() string {
	name := m.owner()
	from, until := m.times()
	to := m.hour + 1 + m.below(4)
	s := structs.CellShift{Cells: m.some(m.row(name)), From: later(from), Until: later(until), To: later(to), UntilTo: later(to + until - from)}
	before := m.admission()
	err := m.apply(&structs.VirtualClusterShiftEntry{Name: name, Shift: s, Time: m.now(), EvalSeed: m.id()})
	m.judgeShift(before, name, &s, err)
	return fmt.Sprintf("shift of %s, %s, %d-%d to %d: %v", name, cellsText([]*structs.CellQuota{&s.Cells}), from, until, to, err)
}

// exchange offers, bids, withdraws or grants points.
func (m *tenantMachine) exchange() string {
	var open []*structs.Exchange
	for x := range m.store.Snapshot().VirtualClusters(nil).Exchanges() {
		open = append(open, x)
	}
	name := m.owner()
	switch n := m.below(8); {
	case n == 0:
		by := int64(m.below(20) - 8)
		err := m.apply(&structs.VirtualClusterPointsEntry{Name: name, Points: by, Time: m.now()})
		if err == nil {
			m.points += by
			m.count("points granted or taken", 1)
		}
		return fmt.Sprintf("points of %s by %d: %v", name, by, err)
	case n == 1 && len(open) > 0:
		id := open[m.below(len(open))].ID
		err := m.apply(&structs.ExchangeWithdrawEntry{ID: id, Time: m.now()})
		if err == nil {
			m.count("withdrawn", 1)
		}
		return fmt.Sprintf("withdraw %s: %v", id, err)
	}
	from, until := m.times()
	x := structs.Exchange{ID: m.id(), Owner: name, Cells: m.some(m.row(name)), From: later(from), Until: later(until)}
	if len(open) > 0 && m.below(3) > 0 {
		of := open[m.below(len(open))]
		x.Cells = structs.CellQuota{Kind: of.Cells.Kind, Level: of.Cells.Level, Size: of.Cells.Size, Count: 1 + m.below(2)}
		x.From, x.Until, x.Bid, x.Points = of.From, of.Until, true, int64(1+m.below(5))
	}
	err := m.apply(&structs.ExchangePutEntry{Exchange: x, Time: m.now()})
	if err == nil {
		m.count(map[bool]string{true: "bid", false: "offered"}[x.Bid], 1)
	}
	return fmt.Sprintf("exchange %s of %s: bid %v, %s %d to %d: %v", x.ID, name, x.Bid, cellsText([]*structs.CellQuota{&x.Cells}), from, until, err)
}

// advance moves the time of what is owned on: to the next edge, or beyond.
func (m *tenantMachine) advance() string {
	next := m.hour + 1
	if edge := m.store.Snapshot().VirtualClusters(nil).ClaimsEdge(); edge > 0 && m.below(3) > 0 {
		for later(next).UnixNano() < edge {
			next++
		}
	} else {
		next += m.below(3)
	}
	before := m.changesNow()
	m.hour, m.harmed = next, true // what grows may find its room bound
	m.must(&structs.ClaimsTimeEntry{Now: later(next).UnixNano(), EvalSeed: m.id()})
	m.count("windows begun", m.windowsNow())
	for why, n := range m.changesNow() { // order does not matter: each by itself
		m.count("in effect: "+why, max(0, n-before[why]))
	}
	return fmt.Sprint("time is ", next)
}

// windowsNow returns how many windows begin at the present hour.
func (m *tenantMachine) windowsNow() (n int) {
	for v := range m.store.Snapshot().VirtualClusters(nil).List("", false) {
		for _, w := range v.Windows {
			if w.From.Equal(later(m.hour)) {
				n++
			}
		}
	}
	return n
}

// changesNow returns how many shifts and exchanges are in effect, by their reason.
func (m *tenantMachine) changesNow() map[string]int {
	n, at := map[string]int{}, later(m.hour).UnixNano()
	for v := range m.store.Snapshot().VirtualClusters(nil).List("", false) {
		for i := range v.Changes {
			if c := &v.Changes[i]; c.From <= at && at < c.Until {
				n[c.Why]++
			}
		}
	}
	return n
}

// changeNode has a node go, come, or be another.
func (m *tenantMachine) changeNode() string {
	m.harmed = true
	at := m.below(len(m.nodes))
	n := m.nodes[at].Copy()
	did := ""
	there := m.store.Snapshot().Node(nil, n.ID) != nil
	switch k := m.below(8); {
	case there && k == 0:
		status := []string{structs.NodeStatusDown, structs.NodeStatusDisconnected}[m.below(2)]
		m.must(&structs.NodeStatusEntry{NodeIDs: []string{n.ID}, Status: status, Time: m.now(), EvalSeed: m.id()})
		m.count("nodes left", 1)
		return n.ID + " is " + status
	case there && k < 4:
		m.must(&structs.NodeStatusEntry{NodeIDs: []string{n.ID}, Status: structs.NodeStatusReady, Time: m.now(), EvalSeed: m.id()})
		return n.ID + " is ready"
	case there && k == 4 && m.below(2) == 0:
		m.must(&structs.NodeDeregisterEntry{NodeIDs: []string{n.ID}, Time: m.now(), EvalSeed: m.id()})
		m.count("nodes deregistered", 1)
		return n.ID + " is gone"
	case k < 7:
		one := n.NodeResources.Devices[0].Instances[m.below(len(n.NodeResources.Devices[0].Instances))]
		one.Healthy = !one.Healthy
		did = fmt.Sprintf("%s has %s healthy %v", n.ID, one.ID, one.Healthy)
		m.count("devices changed", 1)
	default:
		m.inRack(n)
		did = fmt.Sprintf("%s is in rack %q", n.ID, n.Meta["rack"])
	}
	n.Status = structs.NodeStatusReady
	n.ComputeClass()
	m.nodes[at] = n
	m.must(&structs.NodeRegisterEntry{Node: n, Time: m.now(), EvalSeed: m.id()})
	return did
}

func (m *tenantMachine) id() string {
	m.ids++
	return fmt.Sprintf("%08d-0000-4000-8000-000000000000", m.ids)
}
