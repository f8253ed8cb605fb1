package slotbook

import (
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/slots"
	"github.com/nomadish/nomadish/scheduler/internal/tree"
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
	// Takeable: it is opportunistic, and runs. The other fields are what the order of victims looks at.
	Takeable   bool
	Immune     bool // requeued too often to be taken from, unless its job failed the submission check
	Band       int
	Cycle      int64 // in which it started
	MilliCores int64
	Start      int64 // Unix nanoseconds
	Ends       int64 // by its time limit; 0: it has none
}

// project is one of the known projects, or one that running instances name and that is not known.
type project struct {
	owner   *tree.Token
	spec    *slots.Project // nil: there is no such project
	account *slots.Account
	// running is the cost of all its running instances, on slots or not, by type; of the unknown too.
	running map[string]int
}

// node is what is stated and used of a node's slots, by type.
type node struct {
	owner  *tree.Token
	stated map[string]int // shared and never changed; nil: the node is not known
	used   map[string]slots.NodeUse
	list   []*Use // on slots, in order of their start
}

// Book is what is known of projects and slots. A Book that a World has is never changed: see Own.
type Book struct {
	owner    *tree.Token
	projects tree.Tree[string, *project]
	nodes    tree.Tree[string, *node]
	victims  tree.Tree[victimKey, *Use]
	members  tree.Tree[member, *Use] // those victims that are of a project
}

// New returns a book without projects.
func New(tok *tree.Token) *Book {
	return &Book{
		owner: tok, projects: tree.New[string, *project](strings.Compare), nodes: tree.New[string, *node](strings.Compare),
		victims: tree.New[victimKey, *Use](compareVictims), members: tree.New[member, *Use](compareMembers),
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
		p = &project{owner: b.owner, spec: p.spec, account: p.account.Copy(), running: maps.Clone(p.running)}
	}
	b.projects.Put(b.owner, name, p)
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
		n = &node{owner: b.owner, stated: n.stated, used: maps.Clone(n.used), list: slices.Clone(n.list)}
	}
	b.nodes.Put(b.owner, id, n)
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
	var rows []slots.Row
	if to != nil {
		rows = to.Rows
	}
	lost = ids(p.account.SetRows(rows))
	b.recheck(name, was, to)
	b.forget(name, p)
	return lost
}

// forget drops a project of which nothing is left.
func (b *Book) forget(name string, p *project) {
	if p.spec == nil && p.account.Len() == 0 && len(p.running) == 0 {
		b.projects.Delete(b.owner, name)
	}
}

// SetNode states the slots of a node, nil: it is not known any more. It returns the IDs of those for which there are not enough any more, the
// latest started first.
func (b *Book) SetNode(id string, stated map[string]int) (lost []string) {
	if was, found := b.nodes.Get(id); !found && len(stated) == 0 || found && stated != nil && was.stated != nil && maps.Equal(was.stated, stated) {
		return nil
	}
	n := b.nodeOf(id)
	n.stated = stated
	for i := len(n.list) - 1; i >= 0 && stated != nil; i-- {
		if u := n.list[i]; n.used[u.Of.Type].Taken() > stated[u.Of.Type] {
			lost = append(lost, u.ID)
			n.used[u.Of.Type] = n.used[u.Of.Type].Remove(u.Of.Cost, u.Guards, u.Light)
		}
	}
	for _, u := range n.list { // whoever lost them is removed, and added anew, by the caller: until then they count
		if slices.Contains(lost, u.ID) {
			n.used[u.Of.Type] = n.used[u.Of.Type].Add(u.Of.Cost, u.Guards, u.Light)
		}
	}
	b.forgetNode(id, n)
	return lost
}

func (b *Book) forgetNode(id string, n *node) {
	if len(n.stated) == 0 && len(n.list) == 0 {
		b.nodes.Delete(b.owner, id)
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
	if u.Of != nil {
		b.projectOf(u.Of.Project).running[u.Of.Type] += u.Of.Cost
	}
	if u.OnSlot {
		n := b.nodeOf(u.NodeID)
		n.used[u.Of.Type] = n.used[u.Of.Type].Add(u.Of.Cost, u.Guards, u.Light)
		at, _ := slices.BinarySearchFunc(n.list, u, compareStarts)
		n.list = slices.Insert(n.list, at, u)
	}
	if u.Takeable {
		b.victims.Put(b.owner, b.keyOf(u), u)
		if u.Of != nil {
			b.members.Put(b.owner, member{u.Of.Project, u.ID}, u)
		}
	}
}

// Remove forgets an allocation that was added. It returns the IDs of those that no row holds then, as Add does.
func (b *Book) Remove(u *Use) (lost []string) {
	if u.Takeable {
		b.victims.Delete(b.owner, b.keyOf(u))
		if u.Of != nil {
			b.members.Delete(b.owner, member{u.Of.Project, u.ID})
		}
	}
	if u.OnSlot {
		n := b.nodeOf(u.NodeID)
		if n.used[u.Of.Type] = n.used[u.Of.Type].Remove(u.Of.Cost, u.Guards, u.Light); n.used[u.Of.Type] == (slots.NodeUse{}) {
			delete(n.used, u.Of.Type)
		}
		if at, there := slices.BinarySearchFunc(n.list, u, compareStarts); there {
			n.list = slices.Delete(n.list, at, at+1)
		}
		b.forgetNode(u.NodeID, n)
	}
	if u.Of != nil {
		p := b.projectOf(u.Of.Project)
		if u.OnSlot {
			lost = ids(p.account.Remove(u.Of))
		}
		if p.running[u.Of.Type] -= u.Of.Cost; p.running[u.Of.Type] == 0 {
			delete(p.running, u.Of.Type)
		}
		b.forget(u.Of.Project, p)
	}
	return lost
}
