package slotbook

import (
	"github.com/nomadish/nomadish/scheduler/entitle/slots"
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

// Running returns what all running instances of a project cost of a type of slots, on slots or not.
func (b *Book) Running(project, kind string) int {
	if p, found := b.projects.Get(project); found {
		return p.running[kind]
	}
	return 0
}

// Left returns how many slots of a type a node has left.
func (b *Book) Left(nodeID, kind string) int {
	if n, found := b.nodes.Get(nodeID); found {
		return n.stated[kind] - n.used[kind].Taken()
	}
	return 0
}

// Holds reports whether a node has slots left for an instance.
func (b *Book) Holds(nodeID, kind string, cost, guards int, light bool) bool {
	n, found := b.nodes.Get(nodeID)
	return found && n.used[kind].Add(cost, guards, light).Taken() <= n.stated[kind]
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
