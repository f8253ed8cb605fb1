package slotbook

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/slots"
	"github.com/nomadish/nomadish/scheduler/internal/tree"
	"github.com/nomadish/nomadish/structs"
)

// Spec returns what a project is now; nil: there is none of the name. b may be nil.
func (b *Book) Spec(name string) *slots.Project {
	if b == nil || name == "" {
		return nil
	}
	if p, found := b.projects.Get(name); found {
		return p.spec
	}
	return nil
}

// Account returns what a project has and uses; nil: there is none of the name. It must not be changed.
func (b *Book) Account(name string) *slots.Account {
	if b == nil {
		return nil
	}
	if p, found := b.projects.Get(name); found && p.spec != nil {
		return p.account
	}
	return nil
}

// InstanceOf returns an allocation of a project's job, with its terms, as an instance of the project.
func InstanceOf(t *structs.SlotTerms, job, id string, created int64) *slots.Instance {
	return &slots.Instance{ID: id, Submission: slots.Submission{
		Project: t.Project, Step: t.Step, Type: t.Type, User: t.User, Job: job,
		Groups: strings.FieldsFunc(t.Groups, func(r rune) bool { return r == ',' }),
	}, Cost: max(1, t.Cost), Start: created}
}

// Lack returns what keeps an instance from using slots by its terms on a node: its project's rows, or the node's slots; "" if nothing does. b may be
// nil.
func (b *Book) Lack(of *slots.Instance, nodeID string, t *structs.SlotTerms) string {
	switch account := b.Account(of.Project); {
	case account == nil || !account.Holds(of):
		return "slots of project " + strconv.Quote(of.Project)
	case !b.Holds(nodeID, of.Type, of.Cost, t.Guards, t.Light):
		return "slots of type " + strconv.Quote(of.Type)
	}
	return ""
}

// Running returns what all running instances of a project cost of a type of slots, on slots or not.
func (b *Book) Running(project, kind string) int {
	if p, found := b.projects.Get(project); found {
		return p.running[kind]
	}
	return 0
}

// Instances returns how many instances of a project run, on slots or not.
func (b *Book) Instances(project string) int {
	if p, found := b.projects.Get(project); found {
		return p.instances
	}
	return 0
}

// Left returns how many slots of a type a node has left.
func (b *Book) Left(nodeID, kind string) int {
	if n, found := b.nodes.Get(nodeID); found {
		return n.offer.stated(kind) - n.used[kind].Taken()
	}
	return 0
}

// Holds reports whether a node has slots left for an instance.
func (b *Book) Holds(nodeID, kind string, cost, guards int, light bool) bool {
	n, found := b.nodes.Get(nodeID)
	return found && n.used[kind].Add(cost, guards, light).Taken() <= n.offer.stated(kind)
}

// NodesLeft returns the nodes that have at least so many slots of a type left, those with the fewest first. It returns nil if they are more
// than most.
func (b *Book) NodesLeft(kind string, least, most int) []string {
	list := []string{}
	b.left.Ascend(leftKey{kind: kind, left: least}, func(k leftKey, _ struct{}) bool {
		if k.kind == kind {
			list = append(list, k.node)
		}
		return k.kind == kind && len(list) <= most
	})
	if len(list) > most {
		return nil
	}
	return list
}

// FirstLeft returns up to so many of the nodes that have at least so many slots of a type left, those with the fewest first.
func (b *Book) FirstLeft(kind string, least, most int) (list []string) {
	b.left.Ascend(leftKey{kind: kind, left: least}, func(k leftKey, _ struct{}) bool {
		if k.kind == kind && len(list) < most {
			list = append(list, k.node)
		}
		return k.kind == kind && len(list) < most
	})
	return list
}

// Stated returns how many slots of a type a node states. b may be nil.
func (b *Book) Stated(nodeID, kind string) int {
	if b == nil {
		return 0
	}
	if n, found := b.nodes.Get(nodeID); found {
		return n.offer.stated(kind)
	}
	return 0
}

// AnyLeft reports whether a node has at least so many slots of a type left.
func (b *Book) AnyLeft(kind string, least int) (any bool) {
	b.left.Ascend(leftKey{kind: kind, left: least}, func(k leftKey, _ struct{}) bool {
		any = k.kind == kind
		return false
	})
	return any
}

// Slowest returns how many MHz a core has at least on the nodes of a pool that have slots; "": of all pools. 0: there are none.
func (b *Book) Slowest(pool string) (mhz int64) {
	b.speeds.Ascend(speed{pool: pool}, func(k speed, _ int) bool {
		if pool != "" && k.pool != pool {
			return false
		}
		if k.mhz > 0 && (mhz == 0 || k.mhz < mhz) {
			mhz = k.mhz
		}
		return pool == ""
	})
	return mhz
}

// Over returns by how much the running instances of a project exceed its slots, all types together; below 0: it runs fewer. Those that are of no
// project are of one without slots, "".
func (b *Book) Over(project string) (n int) {
	if project == "" {
		return b.others
	}
	p, found := b.projects.Get(project)
	if !found {
		return 0
	}
	for _, cost := range p.running { // they are summed
		n += cost
	}
	if p.spec != nil {
		for _, kind := range p.account.Types() {
			n -= p.account.Given(kind)
		}
	}
	return n
}

// NodeUse returns what is used of a node's slots of a type.
func (b *Book) NodeUse(nodeID, kind string) slots.NodeUse {
	if n, found := b.nodes.Get(nodeID); found {
		return n.used[kind]
	}
	return slots.NodeUse{}
}

// Victims calls yield for those that may be taken from, in the static part of their order, until it returns false.
func (b *Book) Victims(yield func(failed bool, u *Use) bool) {
	for k, u := range b.victims.All {
		if !yield(!k.passed, u) {
			return
		}
	}
}

// Beside calls yield for those instances of a project that run and are on no slot, the oldest first, until it returns false. b may be nil.
func (b *Book) Beside(project string, yield func(*Use) bool) {
	if b == nil {
		return
	}
	b.members.Ascend(firstOf(project), func(m member, u *Use) bool {
		return m.project == project && (u.Suspended || yield(u))
	})
}

// Projects returns the names of the known projects, sorted.
func (b *Book) Projects() (names []string) {
	if b == nil {
		return nil
	}
	for name, p := range b.projects.All {
		if p.spec != nil {
			names = append(names, name)
		}
	}
	return names
}

// Diff names what differs between two books; either may be nil.
func (b *Book) Diff(o *Book) (out []string) {
	if b == nil || o == nil {
		if b != o {
			out = append(out, "projects are in one only")
		}
		return out
	}
	differ(&out, "project", &b.projects, &o.projects, func(x, y *project) bool {
		return (x.spec == nil) == (y.spec == nil) && x.account.Equal(y.account) && maps.Equal(x.running, y.running)
	})
	differ(&out, "slots of node", &b.nodes, &o.nodes, func(x, y *node) bool {
		return x.offer.Equal(y.offer) && maps.Equal(x.used, y.used) && len(x.list) == len(y.list)
	})
	differ(&out, "victim", &b.victims, &o.victims, func(x, y *Use) bool { return x.ID == y.ID && x.Ends == y.Ends && x.NodeID == y.NodeID })
	differ(&out, "suspended victim", &b.suspended, &o.suspended, func(x, y *Use) bool { return x.ID == y.ID && x.NodeID == y.NodeID })
	differ(&out, "slots left", &b.left, &o.left, func(struct{}, struct{}) bool { return true })
	differ(&out, "speed", &b.speeds, &o.speeds, func(x, y int) bool { return x == y })
	if b.others != o.others {
		out = append(out, "victims of no project: differ")
	}
	return out
}

func differ[K, V any](out *[]string, noun string, a, b *tree.Tree[K, V], same func(x, y V) bool) {
	tree.Changes(a, b, same, func(c tree.Change[K, V]) {
		*out = append(*out, fmt.Sprintf("%s %v: differs", noun, c.Key))
	})
}

// leftKey is a node that has slots of a type left.
type leftKey struct {
	kind string
	left int
	node string
}

func compareLeft(a, b leftKey) int {
	return cmp.Or(strings.Compare(a.kind, b.kind), cmp.Compare(a.left, b.left), strings.Compare(a.node, b.node))
}

// speed is that of a node's cores, in MHz.
type speed struct {
	pool string
	mhz  int64
}

func compareSpeeds(a, b speed) int {
	return cmp.Or(strings.Compare(a.pool, b.pool), cmp.Compare(a.mhz, b.mhz))
}
