package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// TestClaimsHold moves Worlds in which tenants own cells by random jobs, ends, losses of nodes and of GPUs and edits of what is
// owned. After each step whatever fits what is free of a tenant's own is requested of the real scheduler, on a copy of the World,
// and must be placed at once; less than nothing is left of no kind of cells; and nobody has taken what another is guaranteed.
func TestClaimsHold(t *testing.T) {
	counts := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		m := &tenantsMachine{t: rt, quotas: map[string][]world.Quota{}, nodes: map[string]*structs.Node{}, counts: counts}
		e := scheduler.NewWorld().Edit()
		for i := range 2 + rapid.IntRange(0, 3).Draw(rt, "nodes") {
			n := eightGPUs(fmt.Sprint("n", i), func(n *structs.Node) { n.Meta["rack"] = fmt.Sprint("r", i/2) })
			m.nodes[n.ID] = n
			e.UpsertNode(n)
		}
		m.w = e.World()
		for range rapid.IntRange(0, 12).Draw(rt, "given") { // often until nothing is left
			m.give()
		}
		for range 25 {
			m.step()
			m.check()
		}
	})
	counts["taken or lowered by own bands"] = counts["taken by own bands"] + counts["lowered"]
	tried := []string{"guaranteed", "opportunistic", "requested"}
	if !testing.Short() { // in few cases what is rarer may not come
		tried = append(tried, "reclaimed", "lost", "gangs guaranteed", "guaranteed by two tasks", "placed as system instances", "in a pinned cell", "taken or lowered by own bands")
	}
	for _, what := range tried {
		if counts[what] == 0 {
			t.Errorf("nothing was %s: the test tries nothing", what)
		}
	}
	t.Log(counts)
}

type tenantsMachine struct {
	t      *rapid.T
	w      *scheduler.World
	nodes  map[string]*structs.Node
	quotas map[string][]world.Quota
	order  uint64
	jobs   int
	ids    int
	bands  bool // may preempt
	pin    string
	apart  int // so many GPUs of each instance are requested by a task of their own
	counts map[string]int
}

func (m *tenantsMachine) draw(label string, n int) int {
	return rapid.IntRange(0, n-1).Draw(m.t, label)
}

func (m *tenantsMachine) tenant() string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(m.t, "tenant")
}

func (m *tenantsMachine) edit(change func(e *scheduler.Edit)) {
	e := m.w.Edit()
	change(e)
	m.w = e.World()
	m.counts["lost"] += len(e.LostClaims())
}

func (m *tenantsMachine) step() {
	switch m.draw("step", 10) {
	case 0, 1:
		m.give()
	case 2:
		var ids []string
		for id := range world.Usages(m.w).All {
			ids = append(ids, id)
		}
		if len(ids) > 0 {
			id := ids[m.draw("ends", len(ids))]
			m.edit(func(e *scheduler.Edit) { e.DeleteAlloc(id, "") })
		}
	case 3:
		n := m.nodes[fmt.Sprint("n", m.draw("node", len(m.nodes)))].Copy()
		if m.draw("change", 2) == 0 {
			n.Status = rapid.SampledFrom([]string{structs.NodeStatusReady, structs.NodeStatusDown}).Draw(m.t, "status")
		} else {
			one := n.NodeResources.Devices[0].Instances[m.draw("device", 8)]
			one.Healthy = !one.Healthy
		}
		n.ComputeClass()
		m.nodes[n.ID] = n
		m.edit(func(e *scheduler.Edit) { e.UpsertNode(n) })
	case 4:
		m.jobs++
		m.follow(m.decideJob(m.tenant(), fmt.Sprint("s", m.jobs), 1, 1<<m.draw("gpus", 3), -1, "auto", 1+m.draw("priority", 100), structs.JobTypeSystem))
	default:
		m.jobs++
		count, least := 1+m.draw("count", 5), -1
		if m.draw("gang", 3) == 0 {
			least = m.draw("min", count+1)
		}
		m.bands = m.draw("bands", 2) == 0
		tenant := m.tenant()
		m.pin = m.drawPin(tenant)
		gpus := 1 << m.draw("gpus", 4)
		m.drawApart(gpus)
		plan := m.decide(tenant, fmt.Sprint("j", m.jobs), count, gpus, least, "auto", 1+m.draw("priority", 100))
		m.wholeGang(plan, count, least)
		m.inPin(plan)
		m.follow(plan)
		g, o := classes(plan)
		if m.apart > 0 {
			m.counts["guaranteed by two tasks"] += g
		}
		m.bands, m.pin, m.apart = false, "", 0
		m.counts["reclaimed"] += len(plan.Stop)
		m.counts["guaranteed"], m.counts["opportunistic"] = m.counts["guaranteed"]+g, m.counts["opportunistic"]+o
	}
}

// follow moves the World on by a plan, of which everything must hold.
func (m *tenantsMachine) follow(plan *structs.Plan) {
	m.takesOwn(plan)
	if valid, refused, why := scheduler.Judge(m.w.Edit(), plan); len(refused) > 0 || len(valid.Place) != len(plan.Place) {
		m.t.Fatalf("refused on %v: %s", refused, why)
	}
	pass := scheduler.NewPass(m.w)
	if err := pass.Follow(plan); err != nil {
		m.t.Fatal(err)
	}
	m.w = pass.World()
	for _, b := range plan.Place {
		if b.Resources.Shared.Terms.PerNode {
			m.counts["placed as system instances"] += len(b.Instances)
		}
	}
}

// takesOwn checks that what uses bound cells loses its room or its class to a higher band of its own namespace alone, and only where
// bands may preempt.
func (m *tenantsMachine) takesOwn(plan *structs.Plan) {
	config := structs.DefaultSchedulerConfiguration()
	check := func(id string, taken bool) {
		u, _ := world.Usages(m.w).Get(id)
		if !world.Protected(m.w.Edit(), u) {
			return
		}
		if !m.bands || u.Owner.Namespace != plan.Namespace || config.Band(u.Owner.Terms.Priority) >= config.Band(plan.Priority) {
			m.t.Fatalf("%+v is guaranteed, and was taken by %s of priority %d", u, plan.Namespace, plan.Priority)
		}
		if taken {
			m.counts["taken by own bands"]++
		} else {
			m.counts["lowered"]++
		}
	}
	entitled := map[string]bool{}
	for _, b := range plan.Place {
		for _, in := range b.Instances {
			entitled[structs.DeriveID(b.Seed, uint64(in.Ordinal))] = b.Resources.Shared.Terms.Claim != ""
		}
	}
	for _, s := range plan.Stop {
		check(s.AllocID, true)
		if u, _ := world.Usages(m.w).Get(s.AllocID); u.PerNode() && entitled[s.PreemptedBy] {
			m.t.Fatalf("%+v is of a system job, and was taken for a claim", u)
		}
	}
	for _, id := range lowered(plan) {
		check(id, false)
	}
}

// drawApart has a task of its own request some of an instance's GPUs, or none.
func (m *tenantsMachine) drawApart(gpus int) {
	if m.apart = 0; gpus > 1 && m.draw("two tasks", 3) == 0 {
		m.apart = 1 + m.draw("apart", gpus-1)
	}
}

// devicesOf are how many GPUs the cells have that may be pinned.
var devicesOf = map[string]int{"pcie": 2, "socket": 4}

// drawPin names a cell that is pinned to a tenant, or none.
func (m *tenantsMachine) drawPin(owner string) string {
	for _, q := range m.quotas[owner] {
		for _, cell := range q.Pins {
			if m.draw("pinned", 2) == 0 {
				return fmt.Sprintf("%s/%s-%d", cell.Node, q.Level, cell.Index)
			}
		}
	}
	return ""
}

// inPin checks that what was placed by a claim lies in the pinned cell that its job names.
func (m *tenantsMachine) inPin(plan *structs.Plan) {
	if m.pin == "" {
		return
	}
	node, level, _ := strings.Cut(m.pin, "/")
	name, at, _ := strings.Cut(level, "-")
	index, _ := strconv.Atoi(at)
	for _, one := range placements(plan) {
		ids, guaranteed := strings.CutPrefix(one, "guaranteed ")
		if !guaranteed {
			continue
		}
		_, ids, _ = strings.Cut(ids, " ")
		for id := range strings.SplitSeq(ids, ",") {
			number, _ := strconv.Atoi(id[strings.LastIndexByte(id, '-')+1:])
			if !strings.HasPrefix(id, node+"-") || number/devicesOf[name] != index {
				m.t.Fatalf("%s is not in the pinned cell %s", one, m.pin)
			}
		}
		m.counts["in a pinned cell"]++
	}
}

// wholeGang checks that of a gang as many as must start together are guaranteed, or none is; least is below 0 for no gang.
func (m *tenantsMachine) wholeGang(plan *structs.Plan, count, least int) {
	if least == 0 {
		least = count
	}
	g, o := classes(plan)
	if least > 0 && g+o > 0 && (g+o < least || g > 0 && g < least) {
		m.t.Fatalf("of a gang of %d of which %d must start together, %d are guaranteed and %d are not", count, least, g, o)
	}
	if least > 0 && g > 0 {
		m.counts["gangs guaranteed"]++
	}
}

// give changes what a tenant owns: more if there is enough, or less.
func (m *tenantsMachine) give() {
	owner := m.tenant()
	list := slices.Clone(m.quotas[owner])
	if len(list) > 0 && m.draw("less", 3) == 0 {
		list = list[:len(list)-1]
	} else {
		m.order++
		q := world.Quota{Count: 1 + m.draw("cells", 2), Order: m.order, Level: rapid.SampledFrom([]string{"gpu", "pcie", "socket", "node", "rack"}).Draw(m.t, "level")}
		if q.Level == "rack" {
			q.Size = 1 + m.draw("size", 2)
		}
		for key, c := range m.chains() {
			q.Chain = key
			k, _ := c.KindOf(q.Level, q.Size)
			if _, short := c.Short(cells.Change{Kind: k, Count: q.Count}); short > 0 || c.Ownable(k) != nil {
				return
			}
		}
		if devices := devicesOf[q.Level]; devices > 0 && m.draw("pins", 2) == 0 {
			q.Pins = []cells.Cell{{Node: fmt.Sprint("n", m.draw("pinned node", len(m.nodes))), Index: m.draw("pinned cell", 8/devices)}}
		}
		list = append(list, q)
		if m.w.Edit().Shortage(owner, list) != nil { // the pin takes what others own
			return
		}
	}
	m.quotas[owner] = list
	m.edit(func(e *scheduler.Edit) { e.SetQuotas(owner, list) })
}

// chains are those of the World, and what they would be if somebody owned something.
func (m *tenantsMachine) chains() func(yield func(world.ChainKey, *cells.Chain) bool) {
	e := m.w.Edit()
	for key := range m.w.Chains {
		_ = key
		return m.w.Chains
	}
	e.SetQuotas("nobody", []world.Quota{{Level: "node", Count: 1}})
	return e.World().Chains
}

func (m *tenantsMachine) decide(namespace, id string, count, gpus, least int, class string, priority int) *structs.Plan {
	return m.decideJob(namespace, id, count, gpus, least, class, priority, structs.JobTypeBatch)
}

// decideJob decides a job; it is a gang of which least must start together (0: all) unless that is below 0.
func (m *tenantsMachine) decideJob(namespace, id string, count, gpus, least int, class string, priority int, kind string) *structs.Plan {
	job := gpuJobOf(namespace, id, count, gpus)
	job.Type = kind
	if least >= 0 {
		gang(least)(job)
	}
	job.Class, job.Priority = class, priority
	if m.pin != "" {
		pin(m.pin, false)(job)
		schedtest.Task(job).Resources.Devices[0].Topology.Level = structs.LevelGPU // of no weight
	}
	if m.apart > 0 {
		inTasks(m.apart, gpus-m.apart)(job)
	}
	in := inputOf(job, &m.ids)
	in.Config.PreemptionConfig.BatchSchedulerEnabled = m.bands
	plan, err := scheduler.Schedule(m.w, &structs.Evaluation{ID: "e-" + id, Namespace: namespace, JobID: id, Priority: job.Priority, Type: job.Type}, in)
	if err != nil {
		m.t.Fatal(err)
	}
	return plan
}

// check requests whatever fits what is free of each tenant's own.
func (m *tenantsMachine) check() {
	if err := m.w.CheckClaims(); err != nil {
		m.t.Fatal(err)
	}
	for key, c := range m.w.Chains {
		for _, b := range c.Balances() {
			if b.Left < 0 {
				m.t.Fatalf("%+v: less than nothing is left", b)
			}
		}
		for _, owner := range slices.Sorted(maps.Keys(m.quotas)) {
			m.requestOwn(key, c, owner)
		}
	}
}

// requestOwn requests the largest instance that fits what is free of a tenant's own, and the largest gang.
func (m *tenantsMachine) requestOwn(key world.ChainKey, c *cells.Chain, owner string) {
	var free []int // devices of the tenant's free cells
	for _, a := range c.Accounts(owner) {
		for range a.Unbound() {
			for left := c.Devices(a.Kind); left > 0; left -= 8 { // a rack is nodes
				free = append(free, min(8, left))
			}
		}
	}
	world.Rooms(m.w.Edit(), key, owner, 0, func(r world.Room) bool {
		free = append(free, c.Levels()[r.Level].Devices)
		return true
	})
	if len(free) == 0 {
		return
	}
	m.counts["requested"]++
	gpus := slices.Max(free)
	m.drawApart(gpus)
	if g, _ := classes(m.decide(owner, "promise", 1, gpus, -1, structs.ClassGuaranteed, 1)); g != 1 {
		m.t.Fatalf("%s: %d GPUs fit what is free of its own, and are not placed: accounts %+v, balances %+v, quotas %v, used %v", owner, gpus, c.Accounts(owner), c.Balances(), m.quotas, m.dump())
	}
	gpus = min(gpus, 1<<m.draw("gang of GPUs", 4))
	m.drawApart(gpus)
	defer func() { m.apart = 0 }()
	count := 0
	for _, devices := range free {
		count += devices / gpus
	}
	if g, _ := classes(m.decide(owner, "promise", count, gpus, 0, structs.ClassGuaranteed, 1)); g != count {
		m.t.Fatalf("%s: %d × %d GPUs fit what is free of its own, and the gang is not placed: accounts %+v, balances %+v, quotas %v, used %v", owner, count, gpus, c.Accounts(owner), c.Balances(), m.quotas, m.dump())
	}
}

// dump describes who uses what.
func (m *tenantsMachine) dump() (list []string) {
	for _, u := range world.Usages(m.w).All {
		list = append(list, fmt.Sprintf("%s of %s at %d (%s): %v", u.NodeID, u.Owner.Namespace, u.Owner.Terms.Priority, u.Owner.Terms.CellLevel, u.Devices))
	}
	return list
}
