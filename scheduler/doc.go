// Package scheduler decides where work runs.
//
// [Schedule] is a function: from a [World] (all nodes with what they have and
// what is used of it), one evaluation and its [Input] (the job, its allocations,
// the configuration, the time and a seed) it makes a plan. The same input returns
// the same plan, byte for byte. [Judge] checks such a plan against a later
// World, with the same fit check, and returns the part of it that is still valid.
//
// # Words
//
// A node is ready when new work may be placed on it. A class is a set of nodes that
// constraints cannot distinguish except by unique.* attributes; a family is a set that
// constraints without meta attributes cannot distinguish. A request is what one
// instance of a task group needs; a usage is what one allocation uses. An instance is
// occupied by an allocation that runs, has completed (batch) or waits to be rescheduled.
//
// # Parts
//
// This package is a facade: it names what other packages may use and has no code of its own.
// The work is done below it, each part knowing only those before it:
//
//   - internal/world: the World and its private, mutable form, the indexes of nodes,
//     reservations, and the one fit check.
//   - internal/feasible: which nodes a group may use at all, what a gang is, and when a failed
//     instance may run again.
//   - internal/reconcile: compares wanted and running instances: what to place, stop and keep.
//   - internal/search: the nodes that fit, in a policy's order, and which resources an instance gets.
//   - internal/claim: the cells in which an instance may use what its namespace owns.
//   - internal/requestkey: which requests fail alike, and which nodes may help them.
//   - internal/judge: which part of a plan is valid on a World. It imports internal/world alone.
//   - internal/decide: one evaluation, in numbered steps; gangs as a whole, preemption,
//     reservations, and many evaluations on one World.
//   - internal/raise: running allocations that become guaranteed in place.
//   - internal/explain: why a job is not placed, and the smallest change that would place it.
//
// The algorithms that they stand on, bucket, cell, entitle/cells, entitle/workflow, preempt and frag, know nothing of ours, and persist is the trees
// and vectors that a World is made of;
// trace replays a workload on Schedule.
//
// # Never
//
// Neither this package nor those below it read the clock, use randomness other than the seed, log,
// do I/O, start a goroutine or take a lock. No output depends on the order of a map. A
// World is never changed, so that it may be kept for any time.
package scheduler
