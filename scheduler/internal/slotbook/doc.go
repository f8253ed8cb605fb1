// Package slotbook is what a World keeps of projects and their slots (docs/design/semantics.md, part 4): the account of each project, which slots of a
// node are left, and who may be taken from for a project that is under its slots, in the order of victims as far as that does not change
// with time. Books share what they have in common, as Worlds do.
//
// It follows from the projects, the nodes and the allocations that count: there is no second table of it. It knows amounts of slots only, and
// neither what else nodes have nor who may run where.
package slotbook
