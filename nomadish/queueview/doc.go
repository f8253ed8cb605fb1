// Package queueview reads the queue out of a snapshot: who waits, at which position and why
// (semantics part 7), for those who look at it.
//
// [Order] puts all that waits into its order; a [Reader] keeps the last order, so that
// many who watch the same queue cost one sorting, and makes the entries that are shown of
// a few of its lines. [Report] keeps the metrics.
//
// It must never decide anything: who is let through is the broker's and the scheduler's
// affair, and both work on the same ranks. It keeps no state of its own that a look at
// the tables would not return again.
package queueview
