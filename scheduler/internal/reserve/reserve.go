// Package reserve chooses the nodes of a workflow's reservation (docs/design/semantics.md, part 5), and how the jobs of a stage are placed in it. It changes
// nothing: what it returns is a part of a plan.
package reserve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/lend"
	"github.com/nomadish/nomadish/scheduler/internal/reservable"
	"github.com/nomadish/nomadish/scheduler/internal/slotroom"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Stage is the jobs of a stage of a workflow.
type Stage []*structs.Job

// Choice is what a workflow reserves.
type Choice struct {
	Parts []structs.WorkflowPart
	// Keeps is where what comes free is kept though the rest is posted, in place of what was lost; none if there is no hope.
	Keeps []structs.WorkflowPart
	// Licenses is what it reserves of licenses.
	Licenses []structs.RequestedLicense
	// Posted: all of it is free. Otherwise the parts are what is to be kept free as it comes, none if there is no hope.
	Posted bool
	// Enlarged is by how much the stages need more than was to be reserved, to be packed.
	Enlarged workflow.Amounts
	// OneByOne: no room was found for the gangs beside the rest of their stages: each has its required level of topology by itself, and one may wait in its
	// stage until others end.
	OneByOne bool
	// Missing says what is short; "": nothing is.
	Missing string
	// Never: what is short is not to come free: the ready nodes could not hold it if they were empty, there are too few licenses, or what is to be
	// reserved is too little.
	Never bool
	// Withheld: it waits for cells of its namespace, and keeps nothing meanwhile.
	Withheld bool
	// Slots: it is not to come free only beside the slots that projects are given this week: the next one may have others.
	Slots bool
	// Stops are of those who leave for it, without a claim in cells of the workflow's namespace, or if it Preempts of lower bands; Jobs are theirs, each
	// once.
	Stops    []*structs.AllocStop
	Jobs     []structs.NamespacedID
	Preempts bool
	// Claims are allocations of the workflow itself that run without a claim, and use the reservation from now on, where they are.
	Claims []string
	// CPU is how many MHz are to be reserved, with those of whole cores, which have PerCore each.
	CPU, PerCore int64
	// Needs is what the largest stage needs of each resource, without licenses: less cannot be reserved.
	Needs workflow.Amounts
}

// Choose returns what a workflow of a node pool reserves for its stages. kept reports that another workflow that waits keeps what comes free: this one takes nothing of
// that, but within cells of its namespace, and waits then if it cannot have all at once. Nor does it of what is kept in place of what others have lost. bands are from whom it takes what is not free.
func Choose(w *world.World, key, pool string, stages []Stage, rule workflow.Reserve, kept bool, bands Bands) Choice {
	if n := instancesOf(stages); n > structs.MaxWorkflowInstances { // of a workflow that was stored before it was bounded
		return Choice{Missing: fmt.Sprintf(tooManyText, n, structs.MaxWorkflowInstances), Never: true}
	}
	c := chooser{w: w, e: w.Edit(), key: key, pool: pool, bands: bands, kept: kept}
	c.list()
	r, err := c.request(stages, rule)
	if err != nil {
		return Choice{Missing: err.Error(), Never: true}
	}
	if r.licenses, err = licensesOf(w, key, stages, rule); err != nil || r.licenses.hopeless != "" {
		return Choice{Missing: cmp.Or(r.licenses.hopeless, fmt.Sprint(err)), Never: true}
	}
	r.kept = kept
	out := c.chooseApart(&r)
	out.CPU, out.PerCore = r.want.CPU, r.rule.PerCore
	if out.Never && c.besideNone != nil {
		c.empty = c.besideNone
		if at, of := strings.CutPrefix(out.Missing, neverText); of && !c.chooseApart(&r).Never {
			out.Missing, out.Slots = fmt.Sprintf(slotsText, slotroom.Unused(w), at), true
		}
	}
	for _, s := range r.stages {
		out.Needs = out.Needs.Max(workflow.Total(s))
	}
	return out
}

// tooManyText says that the stages are too much to be packed; how many, and how many may be.
const tooManyText = "its stages have %d instances together, and nothing is reserved for more than %d: cancel it, and run several workflows, one after the other"

// instancesOf returns how many instances stages have for which something is reserved.
func instancesOf(stages []Stage) (n int) {
	for _, s := range stages {
		for _, job := range s {
			if !job.PerNode() {
				n += job.Instances()
			}
		}
	}
	return n
}

// chooseApart returns what is reserved, for each gang by itself if there is no room for them together.
func (c *chooser) chooseApart(r *request) Choice {
	out, apart := c.choose(r)
	if !apart {
		return out
	}
	// That no room was found for the gangs together, or for instances on distinct hosts, is no proof that there is none. By nodes all that they need is reserved at
	// least, and in one cell, or on distinct hosts, what each needs by itself: one that has no room beside the others waits in its stage until they end.
	alone := *r
	alone.stages, alone.gangs = r.gangs.Alone(r.stages)
	alone.within = nil
	if by, _ := c.choose(&alone); !by.Never {
		by.OneByOne = true
		return by
	}
	if out.Enlarged.IsZero() { // else what is to be reserved is too little, as it states
		without := *r
		without.gangs, without.within = workflow.Gangs{}, nil
		out, _ = c.choose(&without)
	}
	return out
}

// neverText comes before what is not to come free.
const neverText = "the nodes that are ready could not hold it if they were empty: "

// slotsText says that what is missing is that of slots; of whose, and how much is missing.
const slotsText = "beside the slots that projects are given this week (%s) the nodes that are ready could not hold it if they were empty: %s"

// request is what a workflow is to reserve.
type request struct {
	stages   [][]workflow.Instance
	gangs    workflow.Gangs
	within   [][]within // of each stage
	want     workflow.Amounts
	licenses licenses
	rule     workflow.Reserve
	kept     bool
	left     left
	jobs     []Stage
}

// request returns what a workflow is to reserve for its stages, without licenses, and an error if what it states to reserve is too little.
func (c *chooser) request(stages []Stage, rule workflow.Reserve) (r request, err error) {
	r = request{stages: make([][]workflow.Instance, len(stages)), gangs: c.gangs(stages), rule: rule, within: make([][]within, len(stages)), jobs: stages}
	totals := make([]workflow.Amounts, len(stages))
	for i, s := range stages {
		r.within[i] = withinOf(c.w, s)
		r.stages[i] = c.instances(s, r.within[i])
		c.within = c.within || len(r.within[i]) > 0
		totals[i] = workflow.Total(r.stages[i])
	}
	r.rule.PerCore = c.mhzPerCore()
	r.want, err = r.rule.Amounts(totals)
	return r, err
}

// pack packs the stages into what may be reserved of each node, beside the parts that are left.
func (r *request) pack(nodes []workflow.Amounts) workflow.Packing {
	return workflow.PackBeside(r.left.room(nodes), r.left.parts, r.stages, r.gangs, r.want, r.rule.PerCore)
}

// choose returns what is reserved. apart reports that it is never to be had only because of the gangs, as far as packing finds. Where the nodes could not hold
// what is required within them if they were empty, it is reserved without that, and some wait in their stage for the cell.
func (c *chooser) choose(r *request) (out Choice, apart bool) {
	if c.within {
		c.strict = true
		out, _ = c.chooseBy(r)
		if c.strict = false; !out.Never {
			return out, false
		}
	}
	return c.chooseBy(r)
}

// chooseBy is choose with what is required within nodes, if that is heeded, or without.
func (c *chooser) chooseBy(r *request) (out Choice, apart bool) {
	out, inCells := c.packInCells(r)
	if inCells && r.rule.Check(out.Enlarged) == nil && (r.licenses.missing == "" || out.takeLicenses(c, r.licenses.of)) {
		out.Licenses = r.licenses.of
		return out, false
	}
	if limited(c, r) {
		return withheld(c, r, inCells, out.Enlarged), false
	}
	out = Choice{}
	now, named := c.packWithin(r, c.free, c.asIs())
	if now.Missing.IsZero() {
		if err := r.rule.Check(now.Enlarged); err != nil {
			return Choice{Missing: err.Error(), Never: true, Enlarged: now.Enlarged}, !r.gangs.None()
		}
		out := Choice{Parts: c.parts(now.Parts), Licenses: r.licenses.of, Posted: true, Enlarged: now.Enlarged}
		if r.licenses.missing == "" && c.nameParts(now.Parts, out.Parts, named) {
			return out, false
		}
	} else if why := noNode(c, r); why != "" {
		out.Never, out.Missing = true, why
		return out, false
	} else if gang := r.gangs.Impossible(c.empty, r.stages); gang != nil {
		out.Never, out.Missing = true, neverText+"there is not enough room for "+gang.Name
		return out, false
	} else if crowded := r.gangs.Crowded(c.empty, r.stages); crowded != nil {
		out.Never, out.Missing = true, neverText+crowdedText(crowded)
		return out, false
	}
	if out, ok := c.fromBands(r); ok && r.rule.Check(out.Enlarged) == nil {
		return out, false
	}
	out.Missing = c.missingText(now, r)
	later := now
	if !now.Missing.IsZero() {
		// What other workflows have reserved comes free only with the end of their runs: better wait for allocations beside it.
		if later, _ = c.packWithin(r, c.beside, c.withoutAll(false)); !later.Missing.IsZero() {
			later, _ = c.packWithin(r, c.empty, c.withoutAll(true))
		}
	}
	if !later.Missing.IsZero() {
		out.Never, out.Missing = true, neverText+isMissing(textOf(c, r, later.Missing), where(later, r))+r.largerText(c.empty, c.mhzPerCore())
		return out, later.Apart
	}
	if r.kept {
		return out, false
	}
	out.Parts, out.Licenses, out.Enlarged = c.parts(later.Parts), r.licenses.of, later.Enlarged
	return out, false
}

// chooser is the work of choosing.
type chooser struct {
	w         *world.World
	e         *world.Edit
	key, pool string
	bands     Bands
	nodes     []*world.NodeState
	// free is what may be reserved of each node now, beside what might be if no allocation of others were there, empty what might be if no other workflow
	// ran, either.
	free, beside, empty  []workflow.Amounts
	besideNone, freeNone []workflow.Amounts // empty and free, if projects were given no slots, either; nil: there are no projects
	// taken are the nodes that have a part already, by their places in the list.
	taken map[int]bool
	spare map[int]map[*world.DeviceTree]uint64 // see spareOf
	// within: some instances require a level within nodes. strict: that is heeded.
	within, strict bool
	mayHold        func(i int, list []within) bool // whether a node has a free cell for each of what is required; nil: each is taken to have
	holding        int                             // how often mayHold has changed
	jobs           []structs.WorkflowClaimJob      // of the running stage
	// kept: another workflow keeps what comes free, which is not to be had. renews: what was lost is reserved anew, and kept is of others that have lost something.
	kept, renews bool
	// inPlace: instances that run in the reservation are packed where they are, where nothing is reserved yet, too; placed: only in what is left of it. Neither:
	// only on nodes that take no work. staying: there are such nodes.
	inPlace, placed, staying bool
	bad                      badTexts
}

// list lists the ready nodes of the pool, and those on which a part of the reservation stays: nothing more is reserved of these.
func (c *chooser) list() {
	is := c.w.Workflow(c.key)
	if is != nil {
		c.jobs = is.Jobs
	}
	for _, n := range world.NodeStates(c.w).All {
		if n.Node == nil || n.Capacity == nil || !n.Node.Ready() && !lend.Stays(n, is) || !n.Node.InPool(c.pool) {
			continue
		}
		c.nodes = append(c.nodes, n)
	}
	slices.SortFunc(c.nodes, func(a, b *world.NodeState) int { return strings.Compare(a.ID, b.ID) })
	c.spare = c.spareOf()
	var free, beside, empty []world.Resources
	for i, n := range c.nodes {
		if !n.Node.Ready() {
			c.staying = true
			free, beside, empty = append(free, world.Resources{}), append(beside, world.Resources{}), append(empty, world.Resources{})
			continue
		}
		all, now := 0, 0
		if len(n.Capacity.Trees) > 0 {
			all, now = c.spareOn(i)
		}
		freed := c.freeOn(n)
		freed.Devices = min(freed.Devices, now+len(c.usedOn(i)))
		free = append(free, freed)
		most := world.Resources{Amount: n.Capacity.Amount, Cores: len(n.Capacity.Cores), Devices: int(n.Capacity.WellDevices())}
		for _, u := range n.Usages {
			if c.bands.perNode(u) || u.Guaranteed() && u.Owner.Terms.Claim != structs.ClaimWorkflow {
				most = most.Less(world.ResourcesOf(u))
			}
		}
		if c.spare != nil {
			most.Devices = min(most.Devices, all)
		}
		empty = append(empty, most)
		for _, p := range n.Parts() {
			if p.Workflow != c.key && (!p.Pending || p.Renews) {
				bad := n.BadOf(&p, func(*world.Usage) bool { return false }) // these are not in it
				most = most.Less(p.Total.Less(world.Resources{Devices: len(bad)}))
			}
		}
		beside = append(beside, most)
	}
	if c.w.Slots() != nil {
		for i := range empty {
			c.besideNone, c.freeNone = append(c.besideNone, amounts(empty[i])), append(c.freeNone, amounts(free[i]))
		}
	}
	c.free, c.beside, c.empty = c.besideSlots(free, false), c.besideSlots(beside, false), c.besideSlots(empty, true)
}

// freeOn returns what may be reserved of a node that is as n is.
func (c *chooser) freeOn(n *world.NodeState) world.Resources {
	free := reservable.Free(n, c.key)
	if c.inPlace {
		free = reservable.FreeWithUsed(n, c.key)
	}
	return free.Less(reservable.Kept(n, func(p *world.Part) bool {
		before := p.Renews && c.kept // what is lost is reserved anew before what waits for all
		if !c.renews {
			before = p.Renews || c.kept
		}
		return before && p.Workflow != c.key
	}))
}

// besideSlots returns what may be reserved of so much of each node without what is given to projects. The slots that are not given are taken where most is
// free: there the largest jobs have room. alone: what other workflows have reserved is in it.
func (c *chooser) besideSlots(of []world.Resources, alone bool) (out []workflow.Amounts) {
	room := slotroom.Of(c.w, c.key, alone)
	if room != nil {
		order := make([]int, len(of))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(of[b].Amount.CPU, of[a].Amount.CPU) })
		for _, i := range order {
			of[i] = room.Reservable(c.nodes[i], of[i])
		}
	}
	for _, h := range of {
		out = append(out, amounts(h))
	}
	return out
}

func amounts(h world.Resources) workflow.Amounts {
	return workflow.Amounts{CPU: h.Amount.CPU, MemoryMB: h.Amount.MemoryMB, DiskMB: h.Amount.DiskMB, Cores: int64(h.Cores), Devices: int64(h.Devices)}
}

// instances returns the instances of a stage's jobs, without those of sysbatch jobs, for which nothing is reserved (part 0, rule 7).
func (c *chooser) instances(s Stage, in []within) (out []workflow.Instance) {
	runs := c.runs()
	for _, job := range s {
		if job.PerNode() {
			continue
		}
		for _, g := range job.TaskGroups {
			need := feasible.NeedsOf(g)
			i := workflow.Instance{Needs: amounts(need), MayUse: startsWhere(c, job.ID, c.mayUse(job, g, withinFor(in, len(out))))}
			i.Needs.CPU += int64(need.Cores) * c.mhzPerCore()
			on := runs[group{job.ID, g.Name}]
			for k := range g.Count {
				is := i
				if k < len(on) {
					is.MayUse, is.Placed = func(node int) bool { return node == on[k] }, true
				}
				out = append(out, is)
			}
		}
	}
	return out
}

// startsWhere returns which of the nodes that instances of a job may use are those where they may start: where a part stays on a node that takes no work, those
// of the running stage that do not run yet may not. What is for later stages is reserved anew when such a part is lost.
func startsWhere(c *chooser, job string, may func(node int) bool) func(node int) bool {
	if !c.staying || !slices.ContainsFunc(c.jobs, func(j structs.WorkflowClaimJob) bool { return j.JobID == job }) {
		return may
	}
	return func(node int) bool { return c.nodes[node].Node.Ready() && may(node) }
}

// mhzPerCore is how many MHz a core of the pool has at most: whole cores are reserved with so many.
func (c *chooser) mhzPerCore() (most int64) {
	for _, n := range c.nodes {
		most = max(most, n.Capacity.MHzPerCore)
	}
	return most
}

// mayUse returns which nodes instances of a group may use that require something within them.
func (c *chooser) mayUse(job *structs.Job, g *structs.TaskGroup, in []within) func(int) bool {
	f := feasible.NewFeasibility(job, g, feasible.NewMatcher())
	known := make([]int8, len(c.nodes))
	return c.mayHoldOf(func(i int) bool {
		if known[i] == 0 {
			if known[i] = -1; f.Verdict(c.nodes[i].Node).OK() {
				known[i] = 1
			}
		}
		return known[i] > 0
	}, in)
}

// parts returns the parts of a packing as plans state them, in its order, by which every stage packs into them.
func (c *chooser) parts(list []workflow.Part) (out []structs.WorkflowPart) {
	for _, p := range list {
		a := p.Amounts
		out = append(out, structs.WorkflowPart{
			NodeID: c.nodes[p.Node].ID, CPU: a.CPU, MemoryMB: a.MemoryMB, DiskMB: a.DiskMB, Cores: int(a.Cores), Devices: int(a.Devices),
		})
	}
	return out
}
