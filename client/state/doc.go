// Package state keeps on disk what a client must know after a restart: who its
// node is, which allocations it runs and how far each of them is.
//
// Writes are queued and committed together, the latest of each record only, by
// one goroutine; whoever needs to know when a record is durable passes a function
// to be called then. The package must never interpret what it keeps beyond its
// records' boundaries, and never lose a record that was called durable.
package state
