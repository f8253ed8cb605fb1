// Package reconcile compares what a job wants with what there is of it: [Run] says what to place, what to
// stop, what to update in place, and what to look at again later. A counted group stands in count.go, one
// with an instance on each node in pernode.go, a gang, which is dealt with as a whole, in gang.go.
//
// The package must never choose a node, nor look at what is free: whether there is room for what is to be
// placed is not known here. It changes neither World nor allocations.
package reconcile
