// Package decide is the story of one evaluation: [Schedule], whose steps stand numbered in its body.
//
// It takes what package reconcile finds, places group by group with package search, and deals with what
// takes more than one instance: gangs (gang_*.go: the cells that may hold one, its placing, its ranks, and
// why it found none), taking from lower bands (reclaim*.go, on package preempt), reservations (reserve.go)
// and suspended allocations (suspend.go). metric.go counts why nothing fitted. requestkey.go says which pending
// groups fail alike and which nodes may help them; [Pass] decides many evaluations on one World.
//
// The package must never change the World that it was given: it works on an edit of its own and throws it
// away. It depends on nothing but its arguments.
package decide
