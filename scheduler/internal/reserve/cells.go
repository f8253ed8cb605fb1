package reserve

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/reservable"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Inside the cells of its namespace a workflow reserves as an entitled request takes (part 5): it binds them, and what runs there without a claim leaves.
// The devices come from cells alone, or, if the cells do not hold all stages, from what nobody owns.

// ownCells is what a namespace may bind, or has bound and free, of a node: cells of one kind.
type ownCells struct {
	tree    *world.DeviceTree
	devices uint64 // of the tree, as bits
	level   string
	size    int
}

// has reports whether a device of a tree is one of the cells'.
func (o *ownCells) has(t *world.DeviceTree, device int) bool {
	return o.tree == t && device < 64 && o.devices&(1<<device) != 0
}

// owned returns what the workflow's namespace may use of its cells on each node, by the node's place in the list.
func (c *chooser) owned() map[int]*ownCells {
	owner := c.namespace()
	if !c.w.Owns(owner) {
		return nil
	}
	at := map[string]int{}
	for i, n := range c.nodes {
		at[n.ID] = i
	}
	out := map[int]*ownCells{}
	world.FlushClaims(c.e)
	for key := range c.w.Chains {
		if key.Pool != c.pool {
			continue
		}
		trial := world.ChainEdit(c.e, key).View().Edit()
		add := func(node string, k cells.Kind, devices uint64) {
			i, ready := at[node]
			if !ready {
				return
			}
			chain := trial.View()
			is := out[i]
			if is == nil {
				is = &ownCells{tree: c.treeOf(i, key), level: chain.LevelName(k), size: k.Size}
				out[i] = is
			}
			if is.level == chain.LevelName(k) && is.size == k.Size && is.tree == c.treeOf(i, key) {
				is.devices |= devices & chain.Healthy(node)
			}
		}
		world.Rooms(c.e, key, owner, 0, func(r world.Room) bool {
			add(r.NodeID, r.Bound, trial.View().Mask(r.Level, r.Index))
			return true
		})
		for _, a := range trial.View().Accounts(owner) {
			for range a.Unbound() {
				cell, found := firstOf(trial, a.Kind)
				if !found || trial.Bind(cell, a.Kind, owner, false) != nil {
					break
				}
				chain := trial.View()
				chain.NodesOf(cell, func(id string) bool {
					within, index := a.Kind.Level, cell.Index
					if cell.Site != "" {
						within, index = len(chain.Levels())-1, 0
					}
					add(id, a.Kind, chain.Mask(within, index))
					return true
				})
			}
		}
	}
	return out
}

// firstOf returns the cell of a kind that is to be bound first.
func firstOf(e *cells.Edit, k cells.Kind) (cell cells.Cell, found bool) {
	for cand := range e.Candidates(k) {
		return cand.Cell, true
	}
	return cell, false
}

// treeOf returns the tree of a node that a chain is of.
func (c *chooser) treeOf(i int, key world.ChainKey) *world.DeviceTree {
	keys, trees := world.NodeChains(c.nodes[i].Node, c.nodes[i].Capacity)
	if at := slices.Index(keys, key); at >= 0 {
		return trees[at]
	}
	return nil
}

// packInCells packs stages of which the devices are in cells of the workflow's namespace, and returns who leaves for them; false: the cells do not hold
// them.
func (c *chooser) packInCells(r *request) (out Choice, ok bool) {
	var total workflow.Amounts
	for _, s := range r.stages {
		total = total.Max(workflow.Total(s))
	}
	if total.Max(r.want).Devices == 0 {
		return out, false
	}
	if r.licenses.missing != "" && !limited(c, r) {
		return out, false // nothing is reserved for now, and whether the cells hold it is of no importance
	}
	own := c.owned()
	if len(own) == 0 {
		return out, false
	}
	p, packed, named := packLeast(c, r, own)
	if !packed.Missing.IsZero() {
		return out, false
	}
	kept, more := r.left.split(packed.Parts)
	parts := c.parts(more)
	out = Choice{Posted: true, Enlarged: packed.Enlarged, Parts: slices.Concat(kept, parts)}
	for k, of := range more {
		part := &out.Parts[len(kept)+k]
		if part.Devices > 0 {
			is := own[of.Node]
			part.CellLevel, part.CellSize = is.level, is.size
			if part.DeviceIDs = named[of.Node]; part.DeviceIDs == nil {
				part.DeviceIDs = nameLeast(p, of.Node, part.Devices, is.has)
			}
		}
		if len(part.DeviceIDs) != part.Devices {
			return Choice{}, false
		}
		leave, fits := c.leaving(c.nodes[of.Node], part)
		if !fits {
			return Choice{}, false
		}
		out.leave(c.w, leave, workflowID(c.key))
	}
	return out, true
}

// packLeast packs stages into cells of the workflow's namespace so that as little as can be leaves them: nobody if they pack into what is free, else only those
// of the lowest priorities, on the nodes where the fewest do, as for bands. Who leaves is in upToOn of what it returns.
func packLeast(c *chooser, r *request, own map[int]*ownCells) (p *preemption, packed workflow.Packing, named map[int][]string) {
	p = &preemption{chooser: c, entitled: true}
	allowed := func(i int) func(*world.DeviceTree, int) bool {
		if is := own[i]; is != nil {
			return is.has
		}
		return func(*world.DeviceTree, int) bool { return false }
	}
	most := map[int]int{} // how many devices of a node are taken at most, where that is bounded; looked up only
	pack := func(upTo []int) bool {
		room := make([]world.Resources, len(c.nodes))
		for i, n := range c.nodes {
			switch is := own[i]; {
			case c.taken[i]:
			case is != nil:
				room[i] = entitledTo(p, i, upTo[i], is)
				if bound, some := most[i]; some && room[i].Devices > bound {
					room[i].Devices = bound
				}
			default:
				room[i] = reservable.Free(n, c.key)
				room[i].Devices = 0
			}
		}
		as := p.as(upTo)
		as.allowed = allowed
		packed, named = c.packWithin(r, c.besideSlots(room, false), as)
		return packed.Missing.IsZero()
	}
	all := func(most int) bool {
		p.upTo(most)
		p.upToOn = slices.Repeat([]int{most}, len(c.nodes))
		return pack(p.upToOn)
	}
	levels := p.levels()
	if all(nobody) || len(levels) == 0 || !all(levels[len(levels)-1]) {
		return p, packed, named
	}
	at := first(len(levels)-1, func(at int) bool { return all(levels[at]) })
	p.upTo(levels[at])
	often := triesFor(len(c.nodes), r.stages)
	p.upToOn = fewest(p, levels[:at+1], often, pack)
	tries := 0
	for i, upTo := range p.upToOn { // of each node that loses somebody as few as will do
		if upTo == nobody || own[i] == nil {
			continue
		}
		few, all := entitledTo(p, i, nobody, own[i]).Devices, entitledTo(p, i, upTo, own[i]).Devices
		most[i] = few + first(all-few, func(n int) bool {
			tries++
			most[i] = few + n
			return tries <= often && pack(p.upToOn)
		})
	}
	pack(p.upToOn)
	return p, packed, named
}

// maxTried bounds how many pairs of a node and an instance are looked at, over all tries, to find who can stay: the leader does it, for one workflow after the
// other.
const maxTried = 1 << 22

// triesFor returns how often stages are packed to find who can stay beside them, once it is known up to which priority others have to leave. For the largest
// nothing is tried: on each node that is taken those leave who are in the way, up to that priority.
func triesFor(nodes int, stages [][]workflow.Instance) int {
	pairs := 0
	for _, s := range stages {
		pairs += nodes * len(s)
	}
	return min(maxFewest, maxTried/max(1, pairs))
}

// workflowID is the ID of a workflow, of its key.
func workflowID(key string) string {
	_, id, _ := strings.Cut(key, "/")
	return id
}

// namespace is that of the workflow that reserves.
func (c *chooser) namespace() string {
	namespace, _, _ := strings.Cut(c.key, "/")
	return namespace
}

// entitledTo returns what the workflow may reserve of a node with cells of its namespace: those of their devices that are free with these devices' share of the
// node, if those without a claim leave up to a priority, or what is free if that is more.
func entitledTo(p *preemption, i, most int, is *ownCells) world.Resources {
	n, left := p.nodes[i], p.without(i, most)
	free, all := reservable.Free(n, p.key), reservable.Free(left, p.key)
	count := 0
	for at, t := range n.Capacity.Trees {
		for d := range t.IDs {
			if is.has(t, d) && left.Cells[at].FreeShare(d) == world.WholeDevice && !left.Bars(t.IDs[d], &world.Taker{Borrows: p.key}) {
				count++
			}
		}
	}
	out := shareOf(p, i, count).Within(all)
	out.Amount.CPU, out.Amount.MemoryMB = max(out.Amount.CPU, free.Amount.CPU), max(out.Amount.MemoryMB, free.Amount.MemoryMB)
	return out
}

// shareOf returns so many devices of a node with their share of what it has, and all of its cores and its disk.
func shareOf(p *preemption, i, devices int) world.Resources {
	n := p.nodes[i]
	has, of := p.w.Claimable(n)
	return world.Resources{Devices: devices, Cores: len(n.Capacity.Cores), Amount: world.Vector{
		CPU: has.CPU * int64(devices) / int64(max(1, of)), MemoryMB: has.MemoryMB * int64(devices) / int64(max(1, of)), DiskMB: n.Capacity.Amount.DiskMB,
	}}
}

// mayLeave reports whether a usage has no claim, so that it leaves for one. What the workflow runs itself, without one for now, does not leave for it.
func (c *chooser) mayLeave(u *world.Usage) bool {
	return !u.Guaranteed() && !c.bands.perNode(u) && !slices.ContainsFunc(c.jobs, func(j structs.WorkflowClaimJob) bool {
		return j.JobID == u.Owner.Job && u.Owner.Namespace == c.namespace()
	})
}

// nameLeast chooses so many devices of a node among those allowed: free ones if there are as many, in as few cells as can be; else with those of whom the lowest
// priority leaves, the latest first, and who could stay beside the rest stays.
func nameLeast(p *preemption, i, count int, allowed func(*world.DeviceTree, int) bool) (ids []string) {
	trial := world.TrialOf(p.nodes[i])
	var can, gone []*world.Usage
	for _, u := range trial.Usages {
		if rank, _ := p.rank(u); len(u.Devices) > 0 && p.leaves(u) && rank <= p.upToOn[i] {
			can = append(can, u)
		}
	}
	slices.SortStableFunc(can, lowestLatest)
	for _, u := range can {
		if ids = nameOf(trial, p.key, count, allowed); ids != nil {
			break
		}
		trial.Give(u)
		gone = append(gone, u)
	}
	for _, u := range slices.Backward(gone) {
		if trial.Take(u); nameOf(trial, p.key, count, allowed) == nil {
			trial.Give(u)
		}
	}
	return nameOf(trial, p.key, count, allowed)
}

// lowestLatest orders those who leave: of the lowest priority first, then the latest.
func lowestLatest(a, b *world.Usage) int {
	return cmp.Or(cmp.Compare(a.Owner.Terms.Priority, b.Owner.Terms.Priority), cmp.Compare(b.Created, a.Created))
}

// nameOf chooses devices that are free of a node, those of one tree before others; nil: there are too few.
func nameOf(n *world.NodeState, key string, count int, allowed func(*world.DeviceTree, int) bool) (ids []string) {
	by := &world.Taker{Borrows: key} // its own devices, too
	free := func(at int) func(int) bool {
		t := n.Capacity.Trees[at]
		return func(device int) bool {
			return (allowed == nil || allowed(t, device)) && !n.Bars(t.IDs[device], by)
		}
	}
	order := make([]int, len(n.Capacity.Trees))
	sizes := make([]int, len(order))
	for at := range order {
		order[at] = at
		for d, is := 0, free(at); d < len(n.Capacity.Trees[at].IDs); d++ {
			if is(d) && n.Cells[at].FreeShare(d) == world.WholeDevice {
				sizes[at]++
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	for _, at := range order {
		want := min(count-len(ids), sizes[at])
		if want == 0 {
			continue
		}
		found, ok := n.Cells[at].Find(cellRequest(want, free(at)))
		if !ok {
			continue
		}
		for _, d := range found.Devices {
			ids = append(ids, n.Capacity.Trees[at].IDs[d])
		}
	}
	if len(ids) < count {
		return nil
	}
	slices.Sort(ids)
	return ids
}

// leaving returns who leaves a node for a part of a reservation: those without a claim on its devices, then of the others those of the lowest priority,
// the latest first, until it fits; who could stay beside the rest stays. false: it does not fit.
func (c *chooser) leaving(n *world.NodeState, p *structs.WorkflowPart) (list []*world.Usage, fits bool) {
	trial := world.TrialOf(n)
	must, others := []*world.Usage{}, []*world.Usage{}
	for _, u := range n.Usages {
		switch {
		case !c.mayLeave(u):
		case slices.ContainsFunc(u.Devices, func(d world.DeviceUsage) bool { return slices.Contains(p.DeviceIDs, d.ID) }):
			must = append(must, u)
		default:
			others = append(others, u)
		}
	}
	for _, u := range must {
		trial.Give(u)
	}
	amount := world.Resources{Amount: world.Vector{CPU: p.CPU, MemoryMB: p.MemoryMB, DiskMB: p.DiskMB}, Cores: p.Cores, Devices: p.Devices}
	lacks := func() bool { return reservable.Free(trial, c.key).Lacks(amount) != "" }
	slices.SortStableFunc(others, lowestLatest)
	var gone []*world.Usage
	for _, u := range others {
		if !lacks() {
			break
		}
		trial.Give(u)
		gone = append(gone, u)
	}
	if lacks() {
		return nil, false
	}
	for _, u := range gone {
		if trial.Take(u); lacks() {
			trial.Give(u)
			must = append(must, u)
		}
	}
	return must, true
}

// leave adds who leaves for the reservation; of a gang all leave.
func (o *Choice) leave(w *world.World, list []*world.Usage, id string) {
	for _, u := range list {
		all := []*world.Usage{u}
		if g, some := u.Owner.Gang(); some {
			all = world.GangMembers(w.Edit(), g)
		}
		for _, u := range all {
			if slices.ContainsFunc(o.Stops, func(s *structs.AllocStop) bool { return s.AllocID == u.ID }) {
				continue
			}
			o.stop(u, &structs.AllocStop{
				AllocID: u.ID, DesiredStatus: structs.AllocDesiredEvict, Reclaim: structs.ReclaimRequeue,
				RequeueReason: "reclaimed for the reservation of workflow " + id, DesiredDescription: "reclaimed for the reservation of workflow " + id,
			})
		}
	}
}

// stop adds one that leaves for the reservation.
func (o *Choice) stop(u *world.Usage, st *structs.AllocStop) {
	o.Stops = append(o.Stops, st)
	job := structs.NamespacedID{Namespace: u.Owner.Namespace, ID: u.Owner.Job}
	if !slices.Contains(o.Jobs, job) {
		o.Jobs = append(o.Jobs, job)
	}
}
