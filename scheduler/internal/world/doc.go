// Package world is the scheduler's view of a cluster: the immutable [World], and [Edit], its private,
// mutable form.
//
// A World has the nodes with their resources and usage (nodestate.go, use.go), the ready nodes by class and
// by family in indexes of their free resources (index.go, on package bucket), the trees of their devices
// (devices.go, on package cell), how many devices there are of each family (supply.go), reservations
// (reservation.go), while preemption is on the usages by priority (usageset.go), and while anybody owns cells
// what is owned and bound (claims.go, on package entitle/cells). All of it is stored in one persistent map
// (tree.go; treediff.go: what differs between two). fits.go is the one fit check, which packages decide and
// judge share.
//
// The server sees World and Edit through package scheduler. Their methods are what the server may do; what
// only other parts of the scheduler may do are functions of this package, which the server cannot import.
// Their fields are for this package alone.
//
// The package decides nothing: it states what is, not what ought to be. A World must never change once
// another goroutine may have it; a NodeState, a set and a page of a tree may be changed only by the Edit
// whose token owns them.
package world
