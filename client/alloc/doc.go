// Package alloc runs one allocation on its node: its directories, the order of
// its tasks (prestart, main, poststart, poststop; sidecars; the leader), its time
// limit, its health, and what is reported to the servers.
//
// A Runner makes all that happens to an allocation one thing after another, under
// one lock; after each it settles: order.go decides which tasks to start and to end
// now, as a function of where they stand. It has no goroutine while nothing
// happens. See package task for what becomes of one task.
//
// The package must never start a task whose allocation the servers want stopped,
// call an allocation ended while a task of it lives, or open a file outside the
// allocation's directory for anybody.
package alloc
