package slotbook

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/slots"
	"github.com/nomadish/nomadish/scheduler/internal/tree"
	"github.com/nomadish/nomadish/structs"
)

// Use is an allocation that counts, as far as slots go. It is never changed.
type Use struct {
	ID     string
	NodeID string
	// Of is it as an instance of a project, whose name is not empty; nil: it is of none, or uses another claim.
	Of *slots.Instance
	// OnSlot: it uses slots of its project; Guards and Light are what it does then on its node.
	OnSlot bool
	Guards int
	Light  bool
	// Takeable: it is opportunistic, and runs or was suspended for others. The other fields are what the order of victims looks at.
	Takeable bool
	// Suspended: it keeps its memory alone, and is no running instance of its project.
	Suspended bool
	Immune    bool // requeued too often to be taken from, unless its job failed the submission check
	Band      int
	Cycle     int64 // in which it started
	MHz       int64 // of processor
	Start     int64 // Unix nanoseconds
	Ends      int64 // by its time limit; 0: it has none
}

// project is one of the known projects, or one that running instances name and that is not known.
type project struct {
	owner   *tree.Token
	spec    *slots.Project // nil: there is no such project
	account *slots.Account
	// running is the cost of all its running instances, on slots or not, by type; of the unknown too.
	running   map[string]int
	instances int // how many they are
}

// Offer is what a node states about its slots. It is never changed.
type Offer struct {
	Slots map[string]int // by type
	Pool  string
	MHz   int64 // of one of its cores
}

// OfferOf returns what a node states about its slots.
func OfferOf(n *structs.Node) *Offer {
	o := &Offer{Slots: map[string]int{}, Pool: cmp.Or(n.NodePool, structs.DefaultNodePool)}
	if n.AddSlots(o.Slots); n.NodeResources != nil {
		o.MHz = n.NodeResources.Cpu.MHzPerCore()
	}
	return o
}

// Equal reports whether two offers are the same; nil is equal to nil alone.
func (o *Offer) Equal(p *Offer) bool {
	if o == nil || p == nil {
		return o == p
	}
	return o.Pool == p.Pool && o.MHz == p.MHz && maps.Equal(o.Slots, p.Slots)
}

// stated returns the slots of a type; an offer that is nil has none.
func (o *Offer) stated(kind string) int {
	if o == nil {
		return 0
	}
	return o.Slots[kind]
}

// node is what is offered and used of a node's slots.
type node struct {
	owner *tree.Token
	offer *Offer // nil: the node is not known, or has no slots
	used  map[string]slots.NodeUse
	list  []*Use // on slots, in order of their start
}

// Book is what is known of projects and slots. A Book that a World has is never changed: see Own.
type Book struct {
	owner     *tree.Token
	projects  tree.Tree[string, *project]
	nodes     tree.Tree[string, *node]
	left      tree.Tree[leftKey, struct{}] // the nodes with slots left
	speeds    tree.Tree[speed, int]        // how many nodes with slots have cores so fast
	victims   tree.Tree[victimKey, *Use]
	suspended tree.Tree[victimKey, *Use] // those victims that are suspended
	members   tree.Tree[member, *Use]    // those victims that are of a project
	others    int                        // victims of no project
}

// SpecOf returns what a project is now; nil of nil.
func SpecOf(p *structs.ProjectNow) *slots.Project {
	if p == nil {
		return nil
	}
	spec := &slots.Project{Name: p.Name, Users: p.Users, Groups: p.Groups, Steps: p.Steps}
	if p.Throughput != nil {
		spec.Jobs, spec.Per, spec.MeanRun = p.Throughput.Jobs, p.Throughput.Per, p.MeanRun
	}
	for _, r := range p.Rows {
		spec.Rows = append(spec.Rows, slots.Row(r))
	}
	return spec
}

// New returns a book without projects.
func New(tok *tree.Token) *Book {
	return &Book{
		owner: tok, projects: tree.New[string, *project](strings.Compare), nodes: tree.New[string, *node](strings.Compare),
		left: tree.New[leftKey, struct{}](compareLeft), speeds: tree.New[speed, int](compareSpeeds),
		victims: tree.New[victimKey, *Use](compareVictims), suspended: tree.New[victimKey, *Use](compareVictims), members: tree.New[member, *Use](compareMembers),
	}
}

// Own returns the book to be changed by an edit: b itself if it is that edit's already.
func (b *Book) Own(tok *tree.Token) *Book {
	if b.owner == tok {
		return b
	}
	c := *b
	c.owner = tok
	return &c
}

// projectOf returns a project to change, made if need be.
func (b *Book) projectOf(name string) *project {
	p, found := b.projects.Get(name)
	switch {
	case !found:
		p = &project{owner: b.owner, account: &slots.Account{}, running: map[string]int{}}
	case p.owner == b.owner:
		return p
	default:
		p = &project{owner: b.owner, spec: p.spec, account: p.account.Copy(), running: maps.Clone(p.running), instances: p.instances}
	}
	tree.Put(b.owner, &b.projects, name, p)
	return p
}

// nodeOf returns a node to change, made if need be.
func (b *Book) nodeOf(id string) *node {
	n, found := b.nodes.Get(id)
	switch {
	case !found:
		n = &node{owner: b.owner, used: map[string]slots.NodeUse{}}
	case n.owner == b.owner:
		return n
	default:
		n = &node{owner: b.owner, offer: n.offer, used: maps.Clone(n.used), list: slices.Clone(n.list)}
	}
	tree.Put(b.owner, &b.nodes, id, n)
	return n
}

// SetProject states what a project is now; nil: there is none of the name any more. It returns the IDs of those that no row holds any
// more, which have lost their slots, and must be added anew without.
func (b *Book) SetProject(name string, to *slots.Project) (lost []string) {
	if _, found := b.projects.Get(name); !found && to == nil {
		return nil
	}
	p := b.projectOf(name)
	was := p.spec
	p.spec = to
	lost = ids(p.account.SetProject(to))
	b.recheck(name, was, to)
	b.forget(name, p)
	return lost
}

// forget drops a project of which nothing is left.
func (b *Book) forget(name string, p *project) {
	if p.spec == nil && p.account.Len() == 0 && len(p.running) == 0 {
		tree.Delete(b.owner, &b.projects, name)
	}
}

// SetNode states what a node offers; nil, or without slots: nothing. It returns the IDs of those for which there are not enough slots any more,
// the latest started first. What runs on a node that is not known any more keeps its slots: it may come back.
func (b *Book) SetNode(id string, offer *Offer) (lost []string) {
	gone := offer == nil
	if offer != nil && len(offer.Slots) == 0 {
		offer = nil
	}
	was, found := b.nodes.Get(id)
	if !found && offer == nil || found && offer != nil && was.offer.Equal(offer) {
		return nil
	}
	n := b.nodeOf(id)
	b.unlist(id, n)
	b.count(n.offer, -1)
	n.offer = offer
	b.count(n.offer, 1)
	for i := len(n.list) - 1; i >= 0 && !gone; i-- {
		if u := n.list[i]; n.used[u.Of.Type].Taken() > offer.stated(u.Of.Type) {
			lost = append(lost, u.ID)
			n.used[u.Of.Type] = n.used[u.Of.Type].Remove(u.Of.Cost, u.Guards, u.Light)
		}
	}
	for _, u := range n.list { // whoever lost them is removed, and added anew, by the caller: until then they count
		if slices.Contains(lost, u.ID) {
			n.used[u.Of.Type] = n.used[u.Of.Type].Add(u.Of.Cost, u.Guards, u.Light)
		}
	}
	b.list(id, n)
	b.forgetNode(id, n)
	return lost
}

// count counts an offer among the speeds of cores, or no more.
func (b *Book) count(o *Offer, sign int) {
	if o == nil {
		return
	}
	k := speed{o.Pool, o.MHz}
	if n, _ := b.speeds.Get(k); n+sign > 0 {
		tree.Put(b.owner, &b.speeds, k, n+sign)
	} else {
		tree.Delete(b.owner, &b.speeds, k)
	}
}

// list has a node be found by the slots that it has left, and unlist no more.
func (b *Book) list(id string, n *node) {
	if n.offer == nil {
		return
	}
	for kind, stated := range n.offer.Slots { // each has its own place: the order cannot show
		if left := stated - n.used[kind].Taken(); left > 0 {
			tree.Put(b.owner, &b.left, leftKey{kind, left, id}, struct{}{})
		}
	}
}

func (b *Book) unlist(id string, n *node) {
	if n.offer == nil {
		return
	}
	for kind, stated := range n.offer.Slots { // as above
		if left := stated - n.used[kind].Taken(); left > 0 {
			tree.Delete(b.owner, &b.left, leftKey{kind, left, id})
		}
	}
}

func (b *Book) forgetNode(id string, n *node) {
	if n.offer == nil && len(n.list) == 0 {
		tree.Delete(b.owner, &b.nodes, id)
	}
}

// Add counts an allocation. It returns the IDs of those that no row of their project holds then, which have lost their slots: they must be
// added anew without. The allocation itself may be one of them.
func (b *Book) Add(u *Use) (lost []string) {
	b.add(u)
	if u.OnSlot {
		lost = ids(b.projectOf(u.Of.Project).account.Add(u.Of))
	}
	return lost
}

// Load counts an allocation as Add does, without looking for its row: see Loaded.
func (b *Book) Load(u *Use) {
	b.add(u)
	if u.OnSlot {
		b.projectOf(u.Of.Project).account.Load(u.Of)
	}
}

// Loaded finds the rows of all after the last call of Load, and returns the IDs of those that none holds, as Add does.
func (b *Book) Loaded() (lost []string) {
	for _, p := range b.projects.All {
		lost = append(lost, ids(p.account.Loaded())...)
	}
	return lost
}

func ids(list []*slots.Instance) (out []string) {
	for _, of := range list {
		out = append(out, of.ID)
	}
	return out
}

// add counts all of an allocation but that its project's rows hold it.
func (b *Book) add(u *Use) {
	if u.Of != nil && !u.Suspended {
		p := b.projectOf(u.Of.Project)
		p.running[u.Of.Type] += u.Of.Cost
		p.instances++
	}
	if u.OnSlot {
		n := b.nodeOf(u.NodeID)
		b.unlist(u.NodeID, n)
		n.used[u.Of.Type] = n.used[u.Of.Type].Add(u.Of.Cost, u.Guards, u.Light)
		b.list(u.NodeID, n)
		at, _ := slices.BinarySearchFunc(n.list, u, compareStarts)
		n.list = slices.Insert(n.list, at, u)
	}
	if u.Takeable {
		tree.Put(b.owner, b.among(u), b.keyOf(u), u)
		if u.Of != nil {
			tree.Put(b.owner, &b.members, memberOf(u), u)
		} else if !u.Suspended {
			b.others++
		}
	}
}

// Remove forgets an allocation that was added. It returns the IDs of those that no row holds then, as Add does.
func (b *Book) Remove(u *Use) (lost []string) {
	if u.Takeable {
		tree.Delete(b.owner, b.among(u), b.keyOf(u))
		if u.Of != nil {
			tree.Delete(b.owner, &b.members, memberOf(u))
		} else if !u.Suspended {
			b.others--
		}
	}
	if u.OnSlot {
		n := b.nodeOf(u.NodeID)
		b.unlist(u.NodeID, n)
		if n.used[u.Of.Type] = n.used[u.Of.Type].Remove(u.Of.Cost, u.Guards, u.Light); n.used[u.Of.Type] == (slots.NodeUse{}) {
			delete(n.used, u.Of.Type)
		}
		b.list(u.NodeID, n)
		if at, there := slices.BinarySearchFunc(n.list, u, compareStarts); there {
			n.list = slices.Delete(n.list, at, at+1)
		}
		b.forgetNode(u.NodeID, n)
	}
	if u.Of != nil && !u.Suspended {
		p := b.projectOf(u.Of.Project)
		if u.OnSlot {
			lost = ids(p.account.Remove(u.Of))
		}
		p.instances--
		if p.running[u.Of.Type] -= u.Of.Cost; p.running[u.Of.Type] == 0 {
			delete(p.running, u.Of.Type)
		}
		b.forget(u.Of.Project, p)
	}
	return lost
}
