// Package state is the cluster's memory: the tables and the World, moved on
// together, one log entry at a time. What Raft has committed together is shown together
// ([Writer.Together]); how it was cut makes no difference to the state.
//
// [New] returns a reader and a writer. A [Store] hands out [Snapshot] values: the
// tables and the World at one index, immutable, taken in O(1). The [Writer] applies
// log entries and belongs to the FSM alone: nobody else may
// change state. What a snapshot returns is shared and must never be changed by its
// reader: copy it first.
//
// There are three ways to learn that something has changed. A [WatchSet] wakes a reader when one
// of the things that it read was replaced. [Store.WaitIndex] waits for an index.
// A [Feed] delivers every change of every commit in order, for consumers that keep a
// cache of the state.
//
// The package has no clock, no randomness and no dependence on map order: two
// replicas fed the same entries have the same [Snapshot.Hash]. Times are minted by
// the server that made an entry; identifiers made here derive from the entry's
// seed. How rows are kept is nobody's business outside: allocations come as whole
// values, with their job's version attached on read.
package state
