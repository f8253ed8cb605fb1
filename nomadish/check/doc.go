// Package check reports whether a state is in order: whether what must be true of a
// cluster, whatever has failed in it, is true of one snapshot.
//
// [Run] goes once through the rows of a snapshot and counts by hand what the World,
// the summaries and the queue keep moving on entry by entry; what it finds is in the
// words of structs.CheckReport. It is a second, plain opinion: it shares no sums with
// the scheduler that it judges. Only what has no second form (whether the World equals
// one made anew, the tallies) it leaves to package state.
//
// A snapshot may be taken at any moment, so a rule must be true between any two log
// entries. What is wrong for a while by design, until an open evaluation has been
// decided, is not reported as long as there is that evaluation. What needs a time (how
// long a stopped allocation may still run) is looked at only if the caller passes one.
//
// The package never changes anything, and has no clock and no randomness: the same
// snapshot and options yield the same report.
package check
