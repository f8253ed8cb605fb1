// Package reconcile compares what a job wants with its allocations: [Run] returns what to place, what to
// stop, what to update in place, and what to evaluate again later. Groups with a count are in count.go, groups
// with an instance on each node in pernode.go, and gangs, which are handled as a whole, in gang.go.
//
// The package must never choose a node or read what is free: it does not know whether there is room for
// what it wants placed. It changes neither the World nor allocations.
package reconcile
