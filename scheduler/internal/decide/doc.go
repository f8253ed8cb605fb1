// Package decide decides one evaluation: [Schedule], whose steps are numbered in its body.
//
// It takes the comparison that package reconcile makes, places group by group with package search, and handles what concerns more than one
// instance: gangs (gang_*.go: the cells that have room for one, its placement, its ranks, and why there was no room), preemption of lower bands
// (reclaim*.go, on package preempt), reservations (reserve.go) and suspended allocations (suspend.go). metric.go counts why nothing fitted.
// [Pass] decides many evaluations on one World.
//
// The package must never change its input World: it works on an edit of its own and discards it. It depends on nothing but its arguments.
package decide
