package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// drawGang draws a job of one gang of one to three groups.
func drawGang(t *rapid.T) *structs.Job {
	kind := rapid.SampledFrom([]string{structs.JobTypeService, structs.JobTypeBatch}).Draw(t, "type")
	j := gangJob(kind, 1, 0)
	if rapid.IntRange(0, 2).Draw(t, "on loss") == 0 {
		byMember(j)
	}
	drawGangSpec(t, j, rapid.IntRange(1, 3).Draw(t, "groups"))
	return j
}

func drawGangSpec(t *rapid.T, j *structs.Job, groups int) {
	first := schedtest.Group(j).Copy()
	j.TaskGroups = nil
	topology := rapid.SampledFrom([]*structs.TopologyConstraint{
		nil, {Level: "rack"}, {Level: "node"}, {Level: "rack", Required: true}, {Level: "rack", Required: true},
		{Level: "pod", Required: true}, {Level: "socket", Required: true},
	}).Draw(t, "topology")
	for i := range groups {
		g := first.Copy()
		g.Name, g.Topology = fmt.Sprint("g", i), topology
		g.Count = rapid.IntRange(0, 5).Draw(t, "count")
		g.Gang = &structs.Gang{Min: max(0, rapid.IntRange(-5, g.Count).Draw(t, "min")), OnLoss: first.Gang.OnLoss}
		if i > 0 {
			g.Gang.Groups = []string{"g0"}
		}
		drawMember(t, g)
		j.TaskGroups = append(j.TaskGroups, g)
	}
	j.Canonicalize()
}

func drawMember(t *rapid.T, g *structs.TaskGroup) {
	r := &structs.Resources{CPU: 100 * rapid.IntRange(1, 15).Draw(t, "cpu"), MemoryMB: 100}
	if n := rapid.IntRange(-2, 2).Draw(t, "GPUs"); n > 0 {
		r.Devices = []*structs.RequestedDevice{{Name: "gpu", Count: n}}
	}
	g.Tasks[0].Resources, g.Networks, g.Constraints = r, nil, nil
	if rapid.IntRange(0, 3).Draw(t, "port") == 0 {
		g.Networks = []*structs.NetworkResource{{DynamicPorts: []structs.Port{{Label: "p"}}}}
	}
	if rapid.IntRange(0, 7).Draw(t, "distinct") == 0 {
		g.Constraints = []*structs.Constraint{{Operand: structs.ConstraintDistinctHosts}}
	}
}

// drawRacked draws a node of one of four racks in two pods; where it is depends on
// its ID alone.
func drawRacked(t *rapid.T, i int) *structs.Node {
	return schedtest.Node(fmt.Sprintf("n%d", i), func(n *structs.Node) {
		n.Meta["rack"], n.Meta["pod"] = fmt.Sprint("r", i%4), fmt.Sprint("p", i%2)
		n.NodeResources.Cpu.CpuShares = 1000 * int64(rapid.IntRange(1, 5).Draw(t, "GHz"))
		d := &structs.NodeDeviceResource{Vendor: "v", Type: "gpu", Name: "m"}
		for g := range rapid.IntRange(0, 4).Draw(t, "GPUs") {
			d.Instances = append(d.Instances, &structs.NodeDevice{ID: fmt.Sprint(g), Healthy: rapid.IntRange(0, 5).Draw(t, "well") > 0})
		}
		if len(d.Instances) > 0 {
			n.NodeResources.Devices = []*structs.NodeDeviceResource{d}
		}
		if rapid.IntRange(0, 3).Draw(t, "places") > 0 {
			n.NodeResources.Topology = socketsOf(d)
		}
	})
}

// socketsOf puts up to three devices under one socket, and others under a second.
func socketsOf(d *structs.NodeDeviceResource) *structs.NodeTopology {
	t := &structs.NodeTopology{Cells: []*structs.TopologyCell{{ID: "socket-0", Level: structs.LevelSocket}, {ID: "socket-1", Level: structs.LevelSocket}}}
	for i, one := range d.Instances {
		cell := t.Cells[i/3]
		cell.Devices = append(cell.Devices, one.ID)
	}
	return t
}

// socketOf returns the socket of a device; "": it is under none.
func socketOf(n *structs.Node, device string) string {
	if n.NodeResources.Topology != nil {
		for _, cell := range n.NodeResources.Topology.Cells {
			if slices.Contains(cell.Devices, device) {
				return cell.ID
			}
		}
	}
	return ""
}

// TestAnyHistoryOfAGang drives a gang through losses, failures, drains, updates and
// other counts, and has some of its plans judged on a World that is not the one they
// were made on. Whatever happens, it is never half there.
func TestAnyHistoryOfAGang(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster(rt)
		c.config.Levels = []structs.TopologyLevel{{Name: "rack", Meta: "rack"}, {Name: "pod", Meta: "pod"}}
		for i := range rapid.IntRange(1, 8).Draw(rt, "nodes") {
			c.setNode(drawRacked(rt, i))
		}
		c.register(drawGang(rt))
		for range rapid.IntRange(1, 10).Draw(rt, "steps") {
			gangStep(rt, c)
			ev := c.newEval()
			if waits := c.waiting(); len(waits) > 0 && rapid.Bool().Draw(rt, "one that waits") {
				ev = rapid.SampledFrom(waits).Draw(rt, "evaluation").Copy()
				ev.Status = structs.EvalStatusPending
			}
			before := c.members()
			if rapid.IntRange(0, 3).Draw(rt, "contended") == 0 {
				contended(rt, c, ev)
				before = c.members()
				c.newEval()
			}
			c.evaluate(ev)
			checkGangPlan(rt, c, before)
			checkGang(rt, c)
		}
	})
}

// waiting are the delayed evaluations that are due.
func (c *cluster) waiting() (out []*structs.Evaluation) {
	if c.last == nil {
		return nil
	}
	for _, e := range c.last.Evals {
		if !e.WaitUntil.IsZero() && !e.WaitUntil.After(c.now) {
			out = append(out, e)
		}
	}
	return out
}

func gangStep(t *rapid.T, c *cluster) {
	pick := func(a *structs.Allocation) bool { return isLive(a) && rapid.IntRange(0, 3).Draw(t, "this") == 0 }
	i := rapid.IntRange(0, 9).Draw(t, "node")
	id := fmt.Sprintf("n%d", i)
	n := c.nodes[id]
	switch rapid.IntRange(0, 11).Draw(t, "step") {
	case 0, 1:
		if n == nil {
			c.setNode(drawRacked(t, i))
		} else {
			c.changeNode(id, up)
		}
	case 2:
		if n != nil {
			c.changeNode(id, down)
		}
	case 3:
		c.client(pick, c.ended(true))
	case 4:
		c.client(pick, c.ended(false))
	case 5:
		c.client(pick, migrate)
	case 6:
		if n != nil {
			c.changeNode(id, func(n *structs.Node) {
				n.DrainStrategy = &structs.DrainStrategy{ForceDeadline: c.now.Add(time.Minute)}
			})
			c.client(func(a *structs.Allocation) bool { return a.NodeID == id }, migrate)
		}
	case 7:
		c.update(func(j *structs.Job) { drawGangSpec(t, j, len(j.TaskGroups)) })
	case 8:
		c.update(func(j *structs.Job) {
			g := rapid.SampledFrom(j.TaskGroups).Draw(t, "group")
			g.Count = rapid.IntRange(g.Gang.Min, 6).Draw(t, "count")
		})
	case 9:
		c.update(func(j *structs.Job) { j.Priority = rapid.IntRange(1, 100).Draw(t, "priority") })
	case 10:
		c.client(pick, func(a *structs.Allocation) {
			a.DesiredTransition.Migrate, a.DesiredTransition.MigrateDisablePlacement = new(true), new(true)
		})
	case 11:
		c.client(func(a *structs.Allocation) bool { return a.ClientStatus == structs.AllocClientFailed }, func(a *structs.Allocation) {
			a.DesiredTransition.ForceReschedule = new(true)
		})
	}
	if rapid.Bool().Draw(t, "all run") {
		c.runAll()
	}
	c.now = c.now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
}

// contended has a plan judged after a node that it may count on was lost. All of a
// gang's first members come, or nothing of the plan happens.
func contended(t *rapid.T, c *cluster, ev *structs.Evaluation) {
	plan, err := scheduler.Schedule(c.w, ev, c.input())
	if err != nil {
		t.Fatal(err)
	}
	ids := slices.Sorted(maps.Keys(c.nodes))
	c.changeNode(rapid.SampledFrom(ids).Draw(t, "lost"), down)
	e := c.w.Edit()
	reservations, refused, _ := scheduler.Judge(e, plan)
	if plan.AllAtOnce && len(refused) > 0 && len(reservations.Place)+len(reservations.Stop)+len(reservations.Update)+len(reservations.Evals) > 0 {
		t.Fatalf("a part of a gang's plan holds: %+v", reservations)
	}
	judged := e.World()
	c.commit(reservations)
	if diff := judged.Diff(c.w); diff != nil {
		t.Fatalf("judging and committing differ: %v", diff)
	}
}

// checkGangPlan checks that a gang's first members come in one piece, with ranks in a row.
func checkGangPlan(t *rapid.T, c *cluster, before map[string]*structs.Allocation) {
	stopped := map[string]bool{}
	for _, s := range c.last.Stop {
		stopped[s.AllocID] = stopped[s.AllocID] || !s.KeepRunning
	}
	stay := slices.ContainsFunc(slices.Collect(maps.Values(before)), func(a *structs.Allocation) bool { return !stopped[a.ID] })
	if n := placed(c.last); n == 0 || stay {
		return
	} else if !c.last.AllAtOnce {
		t.Fatalf("%d are placed where nobody runs, but not all at once", n)
	}
	checkRanks(t, c)
	for _, g := range feasible.GangsOf(c.job)[c.job.TaskGroups[0].Name].Groups {
		if have := c.there(c.job, g.Group.Name); have < g.Min {
			t.Fatalf("group %s starts with %d, its min is %d", g.Group.Name, have, g.Min)
		}
	}
}

// checkRanks checks what a gang that was placed as a whole is told. Each rank is that of
// one member; there is none too many, but of members that have completed. A gang of all
// keeps its ranks.
func checkRanks(t *rapid.T, c *cluster) {
	owners, done := map[int]string{}, 0
	rigid, all := true, 0
	for _, g := range feasible.GangsOf(c.job)[c.job.TaskGroups[0].Name].Groups {
		rigid, all = rigid && g.Rigid, all+g.Group.Count
	}
	for _, a := range c.finished(c.job) {
		if done++; sameGang(a.Job, c.job) {
			owners[a.Gang.Rank] = a.Name
		}
	}
	for _, b := range c.last.Place {
		for i, in := range b.Instances {
			name := b.Allocation(i).Name
			if other := owners[in.Rank]; other != "" && other != name {
				t.Fatalf("%s gets rank %d, which %s has", name, in.Rank, other)
			}
			owners[in.Rank] = name
			if b.Gang.Size != len(b.Gang.Hosts) || in.Rank >= b.Gang.Size || b.Gang.Hosts[in.Rank] == "" {
				t.Fatalf("%s, rank %d, is told %+v", name, in.Rank, b.Gang)
			}
			if (rigid || done == 0) && (b.Gang.Size != placed(c.last)+done || slices.Contains(b.Gang.Hosts, "")) {
				t.Fatalf("a gang of %d and %d that completed is told %+v", placed(c.last), done, b.Gang)
			}
			if p := c.allocs[in.PreviousAllocation]; rigid && p != nil && sameGang(p.Job, c.job) && p.Gang.Size == all &&
				(p.Gang.Rank != in.Rank || p.Gang.Size != b.Gang.Size) {
				t.Fatalf("%s had rank %d of %d, gets %d of %d", name, p.Gang.Rank, p.Gang.Size, in.Rank, b.Gang.Size)
			}
		}
	}
}

func sameGang(a, b *structs.Job) bool {
	return slices.EqualFunc(a.TaskGroups, b.TaskGroups, func(x, y *structs.TaskGroup) bool { return x.Count == y.Count && statedMin(x) == statedMin(y) })
}

// statedMin is the min that a group states for its gang; 0: all of it.
func statedMin(g *structs.TaskGroup) int {
	if g.Gang == nil {
		return 0
	}
	return g.Gang.Min
}

// finished returns the members of a gang that have completed for good.
func (c *cluster) finished(j *structs.Job) (out []*structs.Allocation) {
	for _, a := range c.sorted() {
		if a.Terminal() && c.counts(j, a) {
			out = append(out, a)
		}
	}
	return out
}

// counts reports whether an allocation is a member that runs, or has completed for good.
func (c *cluster) counts(j *structs.Job, a *structs.Allocation) bool {
	if a.Index() >= j.LookupTaskGroup(a.TaskGroup).Count {
		return false
	}
	completed := j.Type == structs.JobTypeBatch && a.ClientStatus == structs.AllocClientComplete && !endedWithGang(a) &&
		a.NextAllocation == "" && (!a.ServerTerminal() || structs.EndedByThemselves(a.TaskStates)) &&
		(a.JobVersion == j.Version || structs.JobGroupChange(a.Job, j, a.TaskGroup) != structs.ChangeDestructive)
	return isLive(a) || completed
}

// endedWithGang reports whether a member was stopped because of its gang: it is run again.
func endedWithGang(a *structs.Allocation) bool {
	return slices.Contains([]string{feasible.StopGangRestart, feasible.StopGangFailed, feasible.StopGangWaits}, a.DesiredDescription) && a.ServerTerminal()
}

// there counts the members of a group that run, or have completed for good.
func (c *cluster) there(j *structs.Job, name string) (n int) {
	done := map[string]bool{}
	for _, a := range c.allocs {
		if a.TaskGroup == name && c.counts(j, a) {
			done[a.Name] = true
		}
	}
	return len(done)
}

// checkGang checks what must be true at any time.
func checkGang(t *rapid.T, c *cluster) {
	members := c.members()
	checkDone(t, c, members)
	ranks, domains, sockets := map[int]string{}, map[string]bool{}, map[string]bool{}
	for name, a := range members {
		j := a.Job
		spec := feasible.GangsOf(j)[a.TaskGroup]
		if other, twice := ranks[a.Gang.Rank]; twice {
			t.Fatalf("%s and %s have rank %d", name, other, a.Gang.Rank)
		}
		ranks[a.Gang.Rank] = name
		if len(a.Gang.Hosts) <= a.Gang.Rank || a.Gang.Hosts[a.Gang.Rank] == "" || a.Gang.Size != len(a.Gang.Hosts) {
			t.Fatalf("%s is told %+v", name, a.Gang)
		}
		if !spec.ByMember {
			for _, g := range spec.Groups {
				if have := c.there(j, g.Group.Name); have < g.Min {
					t.Fatalf("%s runs, but group %s has %d of at least %d", name, g.Group.Name, have, g.Min)
				}
			}
		}
		if w := spec.Topology; w != nil && w.Required {
			domain := a.NodeID
			if n := c.nodes[a.NodeID]; w.Level != "socket" {
				domain = n.Meta[w.Level]
			}
			if domains[domain] = true; len(domains) > 1 {
				t.Fatalf("%s %v hold a gang that must be under one", w.Level, domains)
			}
			for _, id := range devicesGiven(a) {
				if w.Level == "socket" {
					sockets[socketOf(c.nodes[a.NodeID], id)] = true
				}
			}
			if len(sockets) > 1 || sockets[""] {
				t.Fatalf("sockets %v hold the devices of a gang that must be under one", sockets)
			}
		}
	}
	checkWaits(t, c, len(members))
}

// checkDone checks that nobody has the rank of another member which has completed.
func checkDone(t *rapid.T, c *cluster, members map[string]*structs.Allocation) {
	for _, done := range c.finished(c.job) {
		for name, a := range members {
			if name != done.Name && a.Gang.Rank == done.Gang.Rank && sameGang(a.Job, done.Job) {
				t.Fatalf("%s has rank %d, the work of which %s has done", name, a.Gang.Rank, done.Name)
			}
		}
	}
}

// checkWaits checks that a gang which is not there waits, and only where it must.
func checkWaits(t *rapid.T, c *cluster, live int) {
	spec := feasible.GangsOf(c.job)[c.job.TaskGroups[0].Name]
	if live == 0 && slices.ContainsFunc(c.sorted(), func(a *structs.Allocation) bool {
		return a.ClientStatus == structs.AllocClientComplete && a.JobVersion != c.job.Version
	}) {
		return // whether that counts depends on more than can be seen here
	}
	reserved := slices.ContainsFunc(c.sorted(), func(a *structs.Allocation) bool {
		return feasible.Value(a.DesiredTransition.MigrateDisablePlacement) ||
			(a.ClientStatus == structs.AllocClientFailed && !a.ServerTerminal() && a.NextAllocation == "")
	})
	queued := 0
	for _, g := range spec.Groups {
		n := c.done.QueuedAllocations[g.Group.Name]
		queued += n
		if n > 0 && len(c.done.FailedTGAllocs[g.Group.Name].DimensionExhausted)+len(c.done.FailedTGAllocs[g.Group.Name].ConstraintFiltered) == 0 &&
			c.done.FailedTGAllocs[g.Group.Name].NodesEvaluated > 0 {
			t.Fatalf("%d of %s wait for nothing", n, g.Group.Name)
		}
		if have := c.there(c.job, g.Group.Name); have+n < g.Group.Count && !reserved {
			t.Fatalf("%d of %s are there and %d wait, of %d", have, g.Group.Name, n, g.Group.Count)
		}
	}
	if queued > 0 && live == 0 && len(spec.Groups) == 1 && roomFor(c, &spec.Groups[0], spec.Topology) {
		t.Fatalf("%d wait though there is room", queued)
	}
}

// freeSockets counts the free devices of a node on which nobody runs.
func freeSockets(c *cluster, n *structs.Node) map[string]int {
	free := map[string]int{}
	for _, d := range n.NodeResources.Devices {
		for _, one := range d.Instances {
			if one.Healthy {
				free[socketOf(n, one.ID)]++
			}
		}
	}
	for _, a := range c.members() {
		if a.NodeID == n.ID {
			return nil
		}
	}
	return free
}

// roomFor is a dumb second opinion: it adds up how often a plain member fits on the
// nodes of one domain.
func roomFor(c *cluster, g *feasible.GangGroup, want *structs.TopologyConstraint) bool {
	if len(g.Group.Constraints)+len(g.Group.Networks) > 0 {
		return false
	}
	request := g.Group.Tasks[0].Resources
	sums := map[string]int{}
	for id, n := range c.nodes {
		if !n.Ready() {
			continue
		}
		s, _ := world.NodeStates(c.w).Get(id)
		fit := int(s.Free().CPU) / request.CPU
		fit = min(fit, int(s.Free().MemoryMB)/request.MemoryMB, int(s.Free().DiskMB)/10)
		if len(request.Devices) > 0 && want != nil && want.Required && want.Level == "socket" {
			for socket, free := range freeSockets(c, n) { // the best of them counts
				if socket != "" {
					sums[id] = max(sums[id], min(fit, free/request.Devices[0].Count))
				}
			}
			continue
		}
		if len(request.Devices) > 0 {
			free := 0
			for _, d := range n.NodeResources.Devices {
				for _, one := range d.Instances {
					if one.Healthy {
						free++
					}
				}
			}
			for _, a := range c.members() {
				if a.NodeID == id {
					free = 0 // nobody runs: see the caller
				}
			}
			fit = min(fit, free/request.Devices[0].Count)
		}
		domain := "anywhere"
		switch {
		case want == nil || !want.Required:
		case want.Level == "socket":
			domain = id
		default:
			domain = n.Meta[want.Level]
		}
		sums[domain] += fit
	}
	need := g.Min - c.there(c.job, g.Group.Name)
	for _, n := range sums {
		if n >= max(1, need) {
			return true
		}
	}
	return false
}
