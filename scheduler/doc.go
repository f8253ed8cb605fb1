// Package scheduler decides where work runs.
//
// [Schedule] is a function: from a [World] (all nodes with what they have and
// what is used of it), one evaluation and its [Input] (the job, its allocations,
// the configuration, the time and a seed) it makes a plan. The same input gives
// the same plan, byte for byte. [Edit.Judge] checks such a plan against a later
// World, with the same fit check, and tells what of it still holds.
//
// # Words
//
// A node is ready when new work may go there. A class is a set of nodes that
// constraints cannot tell apart, but by unique.* attributes; a family is one that
// constraints which look at no meta cannot tell apart. An ask is what one
// instance of a task group takes; a use is what one allocation took. A holder is
// an allocation that has an instance's place in its group, whether it runs, has
// ended well (batch) or waits to be rescheduled.
//
// # Rooms
//
// world.go and edit.go are the World and its private, mutable form; tree.go is
// the persistent map that both stand on, index.go what the bucket index (package
// bucket) sees of nodes, devices.go how a node's devices become cells (package
// cell), hold.go room that is reserved. fits.go is the one fit check. schedule.go
// is the story of one evaluation; reconcile.go finds what to place, stop and
// keep; feasible.go and target.go decide constraints, once per class where they
// can; search.go goes through the nodes that fit in a policy's order, search_set.go
// through those of one set, phases.go from the smallest free cell upwards; rank.go
// chooses by affinities and spreads; ports.go and grant.go name the ports, cores and
// devices; explain.go says why nothing fitted, explain_*.go
// all that holds a job, and smallest*.go what would place it. gang.go is what a
// gang is, reconcile_gang.go what becomes of one that is there, gang_domain.go which
// racks and nodes may hold it, gang_place.go its placing as a whole. reclaim.go is the
// taking from lower bands: reclaim_index.go knows who holds what, reclaim_find.go finds the
// node that loses least, reclaim_room.go is a node as the planner (package preempt) sees it,
// reclaim_plan.go writes what it decides, reclaim_gang.go does it for gangs as a whole, and
// reclaim_judge.go keeps placements and what they take together.
//
// # Never
//
// This package never asks the clock or chance, never logs, does no I/O, starts no
// goroutine and takes no lock. Nothing that shows depends on a map's order. A
// World is never changed: whoever holds one may keep it.
package scheduler
