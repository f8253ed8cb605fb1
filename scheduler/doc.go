// Package scheduler decides where work runs.
//
// [Schedule] is a function: from a [World] (all nodes with what they have and
// what is used of it), one evaluation and its [Input] (the job, its allocations,
// the configuration, the time and a seed) it makes a plan. The same input gives
// the same plan, byte for byte. [Judge] checks such a plan against a later
// World, with the same fit check, and tells what of it still holds.
//
// # Words
//
// A node is ready when new work may go there. A class is a set of nodes that
// constraints cannot tell apart, but by unique.* attributes; a family is one that
// constraints which look at no meta cannot tell apart. A request is what one
// instance of a task group takes; a usage is what one allocation took. A holder is
// an allocation that has an instance's place in its group, whether it runs, has
// ended well (batch) or waits to be rescheduled.
//
// # Rooms
//
// This package is a face: it names what others may use and holds no code of its own. The
// work is done below it, each part knowing only those before it:
//
//   - internal/world: the World and its private, mutable form, what is indexed of nodes,
//     reservations, and the one fit check.
//   - internal/feasible: what nodes a group may use at all, what a gang is, when what failed
//     may run again.
//   - internal/reconcile: wanted and running compared: what to place, stop and keep.
//   - internal/search: the nodes that fit, in a policy's order, and what an instance gets there.
//   - internal/judge: what of a plan holds on a World. It knows internal/world alone.
//   - internal/decide: the story of one evaluation, in numbered steps; gangs as a whole, who
//     gives back what others need, reservations, and many evaluations on one World.
//   - internal/explain: all that holds a job, and the smallest change that would place it.
//
// The algorithms that they stand on, bucket, cell, preempt and frag, know nothing of ours;
// trace replays a workload on Schedule.
//
// # Never
//
// Neither this package nor those below it ask the clock or chance, log, do I/O, start a
// goroutine or take a lock. Nothing that shows depends on a map's order. A
// World is never changed: whoever holds one may keep it.
package scheduler
