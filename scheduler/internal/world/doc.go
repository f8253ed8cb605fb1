// Package world is what the scheduler sees of a cluster: the immutable [World], and [Edit], its private,
// mutable form.
//
// A World keeps the nodes with what they have and what is used of them (nodestate.go, use.go), the ready
// ones by class and by family in indexes of their free room (index.go, on package bucket), the trees of
// their devices (devices.go, on package cell), reservations (reservation.go), and, while anybody may take from
// others, who holds what by priority (usageset.go). All of it stands on one persistent map (tree.go). fits.go
// is the one fit check, which deciding and judging share.
//
// The server sees World and Edit through package scheduler. What it may do with them are their methods;
// what only the other parts of the scheduler may do are functions of this package, so that nobody
// outside can. Their fields are for this package alone.
//
// The package decides nothing: it tells what is, not what ought to be. A World must never change once
// it was given to anybody; a NodeState, a set and a page of a tree may be changed only by the Edit whose
// token owns them.
package world
