package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/family"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// More room: allocations that end, and nodes that come.

// Bounds: the nodes on which allocations are let end, the shapes of nodes that are
// tried, and how many of one.
const (
	endNodes        = 64
	requestKeysMost = 8
	newNodes        = 64
	// newParts bounds the cores and the devices of a node that is made up: a job may request
	// for any number, and nobody sells one with more.
	newParts = 1024
)

// victims are the allocations of a node that would have to end for one instance.
type victims struct {
	n          *world.NodeState
	list       []*world.Usage
	high       int // their highest priority
	guaranteed int // how many of them are
	entitled   int // of these: to others than the namespace and the project of the job
}

// compare orders victims of two nodes, those where less is lost first: fewest guaranteed ones, lowest highest priority, then fewest.
func (v victims) compare(o victims) int {
	return cmp.Or(cmp.Compare(v.guaranteed, o.guaranteed), cmp.Compare(v.high, o.high), cmp.Compare(len(v.list), len(o.list)), strings.Compare(v.n.ID, o.n.ID))
}

// sum sets what is compared.
func (p *remedySearch) sum(v victims) victims {
	for _, u := range v.list {
		v.high = max(v.high, u.Owner.Terms.Priority)
		if u.Guaranteed() {
			v.guaranteed++
		}
		if p.entitled(u) {
			v.entitled++
		}
	}
	return v
}

// entitled reports whether a usage is guaranteed to others than the owners of the job that is explained.
func (p *remedySearch) entitled(u *world.Usage) bool {
	job := p.x.in.Job
	switch {
	case !u.Guaranteed():
		return false
	case u.Owner.Terms.Claim == structs.ClaimSlots:
		return u.Owner.Terms.Slots == nil || u.Owner.Terms.Slots.Project != job.Project
	}
	return u.Owner.Namespace != job.Namespace
}

// endAllocations names the allocations that would have to end: on the node where least is lost, and,
// if one is not enough, on others.
func (p *remedySearch) endAllocations(sv *survey) {
	var list []victims
	for _, near := range sv.nearest(endNodes) {
		if v, ok := p.victims(sv, near.n); ok {
			list = append(list, v)
		}
	}
	p.endAll(list)
}

// endOwn names the allocations of the job's own namespace that would have to end so that what they use of its cells is enough: the rest of
// these cells is reclaimed.
func (p *remedySearch) endOwn(sv *survey) {
	job := p.x.in.Job
	if job.PerNode() || job.Class == structs.ClassOpportunistic || !p.x.after.Owns(job.Namespace) {
		return
	}
	var list []victims
	look := func(n *world.NodeState) {
		var own []*world.Usage
		for _, u := range n.Usages {
			if _, there := world.Usages(p.x.w).Get(u.ID); there && u.Claims() && u.Owner.Namespace == job.Namespace && !p.x.own(u) {
				own = append(own, u)
			}
		}
		slices.SortFunc(own, compareVictims)
		devices, some := 0, 0
		for some < len(own) && devices < p.devices() {
			devices += len(own[some].Devices)
			some++
		}
		if some > 0 {
			list = append(list, p.sum(victims{n: n, list: own[:some]}))
		}
	}
	for i := range sv.short {
		look(sv.short[i].n)
	}
	for _, n := range sv.fitting {
		look(n)
	}
	p.endAll(list)
}

// endAll tries to end the allocations of as few nodes as do, those first where least is lost: where nothing is guaranteed to others, and on all
// nodes if that places nothing.
func (p *remedySearch) endAll(list []victims) {
	slices.SortStableFunc(list, victims.compare)
	free := slices.DeleteFunc(slices.Clone(list), func(v victims) bool { return v.entitled > 0 })
	if queued := p.end(free); queued >= p.before && len(free) < len(list) {
		p.end(list)
	}
}

// end tries to end the allocations of as few of these nodes as do, the first ones. It returns how many instances would still wait.
func (p *remedySearch) end(list []victims) (queued int) {
	if len(list) == 0 {
		return p.before
	}
	ending := func(n int) alteration {
		return alteration{world: func(e *world.Edit) {
			for _, v := range list[:n] {
				for _, u := range v.list {
					world.Release(e, u.ID)
				}
			}
		}}
	}
	most := min(len(list), p.before)
	queued, ok := p.try(ending(most))
	if ok {
		p.note(queued, p.endRemedy(list[:p.fewest(most, queued, ending)]))
	}
	return queued
}

// nearNode is a node with how much of one instance it lacks: parts of what is requested, summed.
type nearNode struct {
	n          *world.NodeState
	lacks      float64
	guaranteed bool // something there is
}

func (n nearNode) compare(o nearNode) int {
	return cmp.Or(cmp.Compare(n.lacks, o.lacks), compareBool(n.guaranteed, o.guaranteed))
}

// nearest returns the nodes that lack least, of those that lack alike the ones where nothing is guaranteed, then the first ones.
func (x *survey) nearest(most int) []nearNode {
	list := make([]nearNode, 0, most+1)
	for i := range x.short {
		near := nearNode{n: x.short[i].n}
		for k := range x.short[i].lacks {
			near.lacks += x.short[i].lacks[k].share()
		}
		near.guaranteed = slices.ContainsFunc(near.n.Usages, (*world.Usage).Guaranteed)
		if len(list) == most && near.compare(list[most-1]) >= 0 {
			continue
		}
		at := len(list)
		for at > 0 && list[at-1].compare(near) > 0 {
			at--
		}
		list = slices.Insert(list, at, near)
		list = list[:min(len(list), most)]
	}
	return list
}

// victims finds which allocations of a node would have to end, the fewest of the lowest
// priorities: none of them could stay. Those of the job itself stay.
func (p *remedySearch) victims(sv *survey, n *world.NodeState) (victims, bool) {
	var uses []*world.Usage
	for _, u := range n.Usages {
		if _, there := world.Usages(p.x.w).Get(u.ID); there && !p.x.own(u) {
			uses = append(uses, u)
		}
	}
	slices.SortFunc(uses, compareVictims)
	later := n.Own(&world.Token{})
	v := victims{n: n}
	fits := func() bool { return len(sv.about.lacks(later)) == 0 }
	for _, u := range uses {
		if fits() {
			break
		}
		later.Give(u)
		v.list = append(v.list, u)
	}
	if !fits() {
		return v, false
	}
	for i := len(v.list) - 1; i >= 0; i-- { // the highest priority first
		later.Take(v.list[i])
		if fits() {
			v.list = slices.Delete(v.list, i, i+1)
			continue
		}
		later.Give(v.list[i])
	}
	return p.sum(v), len(v.list) > 0
}

func (p *remedySearch) endRemedy(list []victims) structs.Remedy {
	r := structs.Remedy{Kind: structs.RemedyEnd, Size: 0.5}
	var of victimsText
	total, comesBack := 0, false
	for _, v := range list {
		r.Size += 0.1 * float64(v.guaranteed)
		r.Entitled += v.entitled
		for _, u := range v.list {
			total++
			op := structs.EditStop
			if p.goesBefore(u) {
				op, comesBack = structs.EditEnd, true
			}
			r.Edits = append(r.Edits, structs.Edit{On: structs.EditAlloc, ID: u.ID, Op: op})
			of.add(v.n, u)
		}
	}
	r.Size += 0.1 * float64(total)
	what := "that is"
	if r.Entitled > 1 {
		what = "that are"
	}
	switch {
	case r.Entitled > 0 && r.Entitled == total:
		r.Text = fmt.Sprintf("let %s end %s guaranteed to others: %s", allocations(total), what, of.text(p.x.in.Job.Namespace))
	case r.Entitled > 0:
		r.Text = fmt.Sprintf("let %s end, %d of them %s guaranteed to others: %s", allocations(total), r.Entitled, what, of.text(p.x.in.Job.Namespace))
	default:
		r.Text = fmt.Sprintf("let %s end: %s", allocations(total), of.text(p.x.in.Job.Namespace))
	}
	if comesBack {
		r.Text += "; for good: their jobs go before this one, and take the room again unless they are stopped or scaled down"
	}
	return r
}

// goesBefore reports whether the job of an allocation would be tried before the one that is
// explained, if it requested its room again. What is guaranteed is entitled to it.
func (p *remedySearch) goesBefore(u *world.Usage) bool {
	terms, job := &u.Owner.Terms, p.x.in.Job
	if mine, theirs := p.standing(), standingOf(p.x.w, u); mine != theirs && !u.Guaranteed() {
		return theirs < mine
	}
	return u.Guaranteed() || terms.Priority > job.Priority || terms.Priority == job.Priority && terms.Submitted < job.CreateIndex
}

// standing returns that of the job that is explained.
func (p *remedySearch) standing() int {
	if q := p.x.in.Queue; q != nil {
		return q.Priority.Standing
	}
	return standing.Of(p.x.w, p.x.in.Job)
}

// standingOf returns the standing that requests of what runs would have, as far as no claim holds them.
func standingOf(w *world.World, u *world.Usage) int {
	switch {
	case u.Owner.Terms.Slots == nil || w.Slots() == nil:
		return structs.StandingNormal
	case standing.HasFailed(w, u):
		return structs.StandingFailed
	}
	return structs.StandingRecognised
}

// addNodes tries nodes like those that there are, the smallest first, and else one just
// large enough.
func (p *remedySearch) addNodes(sv *survey) {
	requestKeys := sv.requestKeys()
	for _, like := range requestKeys[:min(len(requestKeys), requestKeysMost)] {
		if p.nodesLike(like) {
			return
		}
	}
	p.newRequestKey(sv)
}

// requestKeys returns one node of each kind and size that would take an instance when empty, the
// smallest first.
func (x *survey) requestKeys() (out []*world.NodeState) {
	type requestKey struct {
		family string
		amount world.Vector
		well   int64
	}
	seen, last := map[requestKey]bool{}, requestKey{}
	look := func(n *world.NodeState) {
		key := requestKey{n.Capacity.Family, n.Capacity.Amount, n.Capacity.WellDevices()}
		if key == last || seen[key] {
			return
		}
		seen[key], last = true, key
		if len(x.about.lacks(emptied(n))) == 0 {
			out = append(out, n)
		}
	}
	for i := range x.short {
		look(x.short[i].n)
	}
	for _, n := range x.fitting {
		look(n)
	}
	for _, s := range x.sets {
		ofState := !slices.ContainsFunc(s.reasons, func(r reason) bool { return !statesOnly[r.kind] })
		if s.pool == "" && ofState && len(s.fit) > 0 {
			look(s.fit[0])
		}
	}
	slices.SortStableFunc(out, func(a, b *world.NodeState) int {
		return cmp.Or(cmp.Compare(a.Capacity.WellDevices(), b.Capacity.WellDevices()), cmp.Compare(a.Capacity.Amount.CPU, b.Capacity.Amount.CPU),
			cmp.Compare(a.Capacity.Amount.MemoryMB, b.Capacity.Amount.MemoryMB), strings.Compare(a.ID, b.ID))
	})
	return out
}

// statesOnly are the reasons that a new node would not have.
var statesOnly = map[string]bool{
	structs.ReasonDown: true, structs.ReasonDisconnected: true, structs.ReasonNotReady: true, structs.ReasonDraining: true,
	structs.ReasonIneligible: true, structs.ReasonDiskFull: true, structs.ReasonDistinctHosts: true,
}

// newLike makes a node like another, without what is of that one alone.
func newLike(n *structs.Node, i int) *structs.Node {
	c := n.Copy()
	c.ID, c.Name = structs.DeriveID("new node like "+n.ID, uint64(i)), fmt.Sprintf("new-%d", i) // not negative
	c.Status, c.SchedulingEligibility, c.DrainStrategy, c.DiskFull = structs.NodeStatusReady, structs.NodeEligible, nil, ""
	for key := range c.Attributes { // each has its own place: the order cannot show
		if strings.HasPrefix(key, "unique.") {
			c.Attributes[key] = c.Name
		}
	}
	c.ComputedClass = ""
	c.ComputeClass()
	return c
}

// nodesOf adds so many nodes like one, which all have the same.
func nodesOf(like *structs.Node, has *world.Capacity) func(n int) alteration {
	var made []*structs.Node
	return func(n int) alteration {
		return alteration{world: func(e *world.Edit) {
			for i := range n {
				if i == len(made) {
					made = append(made, newLike(like, i))
				}
				world.PutNode(e, made[i], has)
			}
		}}
	}
}

// nodesLike tries so many nodes like one; as few as will do are reported.
func (p *remedySearch) nodesLike(like *world.NodeState) bool {
	alt := nodesOf(like.Node, like.Capacity)
	name := cmp.Or(like.Node.Name, structs.ShortID(like.ID))
	return p.nodes(alt, func(n int) structs.Remedy {
		return structs.Remedy{
			Text:  fmt.Sprintf("%s more like %s (%s)", nodesText(n), name, requestKeyText(like)),
			Edits: []structs.Edit{{On: structs.EditNode, ID: like.ID, Op: structs.EditNew, Value: raw(n)}},
		}
	})
}

func nodesText(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

func requestKeyText(n *world.NodeState) string {
	text := fmt.Sprintf("%d MHz, %d MiB", n.Capacity.Amount.CPU, n.Capacity.Amount.MemoryMB)
	if d := n.Capacity.WellDevices(); d > 0 {
		text += fmt.Sprintf(", %d devices", d)
	}
	return text
}

// nodes finds how many new nodes will do.
func (p *remedySearch) nodes(alt func(n int) alteration, remedy func(n int) structs.Remedy) bool {
	most := min(newNodes, p.before)
	queued, ok := p.try(alt(most))
	if !ok || queued >= p.before {
		return false
	}
	n := p.fewest(most, queued, alt)
	r := remedy(n)
	r.Kind, r.Size = structs.RemedyNode, 1+0.1*float64(n)
	p.note(queued, r)
	return true
}

// newRequestKey tries a node that is made of what the job requests, if there may be one.
func (p *remedySearch) newRequestKey(sv *survey) {
	if a := sv.find.Request; int64(a.Reserved) > newParts || a.Need[world.DimCores] > newParts {
		return
	}
	if sv.counts.Known > 0 && slices.ContainsFunc(sv.find.Fit.Drivers, func(driver string) bool { return !sv.knows(driver) }) {
		return // new nodes would not know it either
	}
	n := requestKeyFor(p.x.in.Job, p.g, sv.find.Request)
	like := newLike(n, 0) // with the attributes that new ones have
	p.nodes(nodesOf(n, world.NewCapacity(like, family.Of(like), nil)), func(count int) structs.Remedy {
		a := sv.find.Request
		var edits []structs.Edit
		for i := range count {
			edits = append(edits, structs.Edit{On: structs.EditNode, Op: structs.EditNew, Value: raw(newLike(n, i))})
		}
		return structs.Remedy{
			Text: fmt.Sprintf("%s more in datacenter %q and node pool %q, each with at least %s, %d MiB of memory, %d MiB of disk%s, and driver %s",
				nodesText(count), n.Datacenter, n.NodePool, processorText(a.Need[world.DimCores], a.Amount.CPU), a.Amount.MemoryMB, a.Amount.DiskMB, devicesText(n),
				strings.Join(slices.Sorted(maps.Keys(n.Drivers)), ", ")),
			Edits: edits,
		}
	})
}

// processorText states what is requested of the processors: whole cores, whatever their MHz are, and MHz beside them.
func processorText(cores, mhz int64) string {
	var parts []string
	switch {
	case cores == 1:
		parts = append(parts, "1 core")
	case cores > 1:
		parts = append(parts, fmt.Sprintf("%d cores", cores))
	}
	if mhz > 0 || cores == 0 {
		parts = append(parts, fmt.Sprintf("%d MHz", mhz))
	}
	return strings.Join(parts, " and ")
}

// devicesText names the devices of a node that is made up.
func devicesText(n *structs.Node) (text string) {
	for _, d := range n.NodeResources.Devices {
		names := slices.DeleteFunc([]string{d.Vendor, d.Type, d.Name}, func(part string) bool { return part == "any" })
		text += fmt.Sprintf(", %d × %s", len(d.Instances), strings.Join(names, "/"))
	}
	return text
}

// requestKeyFor is a node just large enough for one instance, with what can be known of it.
func requestKeyFor(job *structs.Job, g *structs.TaskGroup, a *search.Request) *structs.Node {
	cores := make([]uint16, a.Need[world.DimCores])
	for i := range cores {
		cores[i] = uint16(i) // as many as one task requests
	}
	n := &structs.Node{
		ID: structs.DeriveID("new node", 0), Datacenter: "dc1", NodePool: cmp.Or(job.NodePool, structs.DefaultNodePool),
		Status: structs.NodeStatusReady, SchedulingEligibility: structs.NodeEligible,
		Attributes: map[string]string{"kernel.name": "linux"}, Meta: map[string]string{}, Drivers: map[string]*structs.DriverInfo{},
		HostVolumes: map[string]*structs.HostVolumeInfo{},
		NodeResources: &structs.NodeResources{
			Cpu: structs.NodeCpuResources{
				CpuShares:     a.Amount.CPU + 1000*int64(len(cores)),
				TotalCpuCores: uint16(max(1, len(cores))), ReservableCpuCores: cores, // as above
			},
			Memory: structs.NodeMemoryResources{MemoryMB: a.Amount.MemoryMB}, Disk: structs.NodeDiskResources{DiskMB: a.Amount.DiskMB},
		},
	}
	for _, dc := range slices.Backward(job.Datacenters) {
		if !strings.ContainsAny(dc, "*?[") {
			n.Datacenter = dc
		}
	}
	for _, t := range g.Tasks {
		n.Drivers[t.Driver] = &structs.DriverInfo{Detected: true, Healthy: true}
	}
	for _, v := range g.Volumes { // each has its own place: the order cannot show
		n.HostVolumes[v.Source] = &structs.HostVolumeInfo{Name: v.Source}
	}
	for i := range a.Devices {
		n.NodeResources.Devices = append(n.NodeResources.Devices, devicesFor(&a.Devices[i], i))
	}
	return n
}

func devicesFor(want *feasible.DeviceRequest, number int) *structs.NodeDeviceResource {
	d := &structs.NodeDeviceResource{Vendor: cmp.Or(want.Vendor, "any"), Type: want.Kind, Name: cmp.Or(want.Name, "any")}
	for i := range want.Count {
		d.Instances = append(d.Instances, &structs.NodeDevice{ID: fmt.Sprintf("new-%d-%d", number, i), Healthy: true})
	}
	return d
}
