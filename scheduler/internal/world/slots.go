package world

import (
	"math"
	"slices"
	"strconv"

	"github.com/nomadish/nomadish/scheduler/entitle/slots"
	"github.com/nomadish/nomadish/scheduler/internal/slotbook"
	"github.com/nomadish/nomadish/structs"
)

// Projects and their slots (semantics part 4) stand in the World as soon as there is a project, in package slotbook.

// Slots returns what is known of projects and slots; nil: there are no projects.
func (w *World) Slots() *slotbook.Book { return w.slots }

// SlotSettings returns what slots of each type are, and which instances are light; nil: all is at its default.
func (w *World) SlotSettings() *structs.SlotSettings { return w.rules.slots }

// SlotEdit is an edit as what moves the book of slots on.
type SlotEdit struct{ E *Edit }

// book returns the book to change; nil while there are no projects.
func (s SlotEdit) book() *slotbook.Book {
	if s.E.w.slots != nil {
		s.E.w.slots = s.E.w.slots.Own(s.E.tok)
	}
	return s.E.w.slots
}

// SetProject states what a project is now; nil: there is none of the name. What it used beyond that runs on without its slots: see LostClaims. It reports
// whether that is anything new.
func (s SlotEdit) SetProject(name string, to *structs.ProjectNow) (changed bool) {
	spec := slotbook.SpecOf(to)
	switch {
	case spec.Equal(s.E.w.slots.Spec(name)):
		s.own(name, to)
		return false
	case s.E.w.slots != nil: // who loses a slot is decided by the rows, and its cell is the one that is free then
		s.lose(s.book().SetProject(name, spec))
		s.own(name, to)
		if len(s.E.w.slots.Projects()) == 0 {
			s.E.w.slots = nil
		}
	default:
		s.own(name, to)
		s.begin([]*slots.Project{spec})
	}
	s.E.from = nil
	return true
}

// own states which cells a project owns, as its slots of the week have GPUs; nil: there is no such project. What others get of them in the same
// moment may count as lacking until this is stated: that is counted anew then.
func (s SlotEdit) own(name string, to *structs.ProjectNow) {
	var cells []Quota
	if to != nil {
		cells = QuotasOf(to.Cells)
	}
	if owner := structs.ProjectOwner(name); !slices.EqualFunc(s.E.w.Quotas(owner), cells, Quota.equal) {
		s.E.SetQuotas(owner, cells)
	}
}

// Restore states all projects of an edit that knows none yet, and has all nodes, all allocations and what projects own (RestoreQuotas).
func (s SlotEdit) Restore(projects []*structs.ProjectNow) {
	specs := make([]*slots.Project, len(projects))
	for i, p := range projects {
		specs[i] = slotbook.SpecOf(p)
	}
	if len(specs) > 0 {
		s.E.from = nil
		s.begin(specs)
	}
}

// begin makes the book anew of projects and all nodes and allocations. All are counted before any is looked at: which row holds one depends
// on the others.
func (s SlotEdit) begin(projects []*slots.Project) {
	s.E.w.slots = slotbook.New(s.E.tok)
	for _, spec := range projects {
		s.book().SetProject(spec.Name, spec)
	}
	Flush(s.E)
	for _, n := range s.E.w.nodes.All {
		if n.Node != nil {
			s.node(n.Node)
		}
	}
	for _, u := range s.E.w.allocs.All {
		s.book().Load(s.useOf(u))
	}
	s.lose(s.book().Loaded())
}

// rebuild makes it anew of the same projects, as the order of victims has changed.
func (s SlotEdit) rebuild() {
	if was := s.E.w.slots; was != nil {
		var projects []*slots.Project
		for _, name := range was.Projects() {
			projects = append(projects, was.Spec(name))
		}
		s.begin(projects)
	}
}

// node takes in what a node states about its slots.
func (s SlotEdit) node(n *structs.Node) {
	if b := s.book(); b != nil {
		s.lose(b.SetNode(n.ID, slotbook.OfferOf(n)))
	}
}

// forget takes in that a node is not known any more.
func (s SlotEdit) forget(id string) {
	if b := s.book(); b != nil {
		s.lose(b.SetNode(id, nil))
	}
}

func (s SlotEdit) enlist(u *Usage) {
	if b := s.book(); b != nil {
		s.lose(b.Add(s.useOf(u)))
	}
}

func (s SlotEdit) dismiss(u *Usage) {
	if b := s.book(); b != nil {
		s.lose(b.Remove(s.useOf(u)))
	}
}

// Place counts an instance that an evaluation places on a node, after all that run.
func (s SlotEdit) Place(nodeID string, u *Usage) {
	b := s.book()
	if b == nil || u.Owner.Terms.Slots == nil {
		return
	}
	if use := s.useOf(u); use.Of != nil {
		use.ID, use.NodeID, use.Takeable = "new "+strconv.Itoa(s.E.placed), nodeID, false
		use.Of.ID, use.Of.Start, use.Start = use.ID, math.MaxInt64, math.MaxInt64
		s.E.placed++
		b.Add(use)
	}
}

// lose lets allocations go on without their slots.
func (s SlotEdit) lose(ids []string) {
	for _, id := range ids {
		if u, found := s.E.w.allocs.Get(id); found && u.Owner.Terms.Claim == structs.ClaimSlots {
			Unclaim(s.E, u)
			ledger{s.E}.loseClaim(u)
		}
	}
}

// useOf returns a usage as the book has it.
func (s SlotEdit) useOf(u *Usage) *slotbook.Use {
	t := &u.Owner.Terms
	use := &slotbook.Use{
		ID: u.ID, NodeID: u.NodeID, Takeable: t.Claim == "" && !t.PerNode && !u.ByHand, Suspended: u.IsSuspended,
		Immune: int(u.Requeues) >= *s.E.w.rules.requeues,
		Band:   (&structs.SchedulerConfiguration{Bands: s.E.w.rules.bands}).Band(t.Priority), Cycle: u.Created / s.E.w.rules.cycle, MHz: u.Amount.CPU, Start: u.Created, Ends: u.Ends,
	}
	if t.Slots != nil && t.Claim != structs.ClaimCells && (!u.IsSuspended || use.Takeable) {
		use.Of, use.OnSlot, use.Guards, use.Light = SlotInstance(u), t.Claim == structs.ClaimSlots, t.Slots.Guards, t.Slots.Light
	}
	return use
}

// SlotInstance returns a usage of a project as an instance of it.
func SlotInstance(u *Usage) *slots.Instance {
	return slotbook.InstanceOf(u.Owner.Terms.Slots, u.Owner.Job, u.ID, u.Created)
}

// Lack returns what keeps a usage that is to use slots from doing so: its project's rows, or the node's slots; "" if nothing does.
func (s SlotEdit) Lack(u *Usage) string {
	if u.Owner.Terms.Slots == nil {
		return "slots: it is of no project"
	}
	if lack := s.E.w.slots.Lack(SlotInstance(u), u.NodeID, u.Owner.Terms.Slots); lack != "" {
		return lack
	}
	if len(u.Devices) > 0 && !u.UsesCells() {
		return "slots of type " + strconv.Quote(u.Owner.Terms.Slots.Type) + " have no such devices"
	}
	return ""
}
