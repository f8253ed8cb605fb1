// Package worker runs the scheduler: it takes an evaluation, reads the state that it
// must have seen, calls scheduler.Schedule and submits the plan. Workers run on every
// server, several at once, and are optimistic: what another was quicker to take is
// refused by the plan applier, and the evaluation is decided once more on a fresh
// state.
//
// A worker decides one evaluation at a time and does not wait for its commit: while
// plans are on their way to disk it decides the next ones, on a World that already
// contains what those plans place ([Assumed], shared by the workers of a server), so
// that they do not all take the same room. What is assumed may not come to pass, so
// that there is no room is only ever decided on the state itself: a plan that leaves
// something unplaced is decided once more on the state alone.
//
// What waits for room is not decided by workers but by one [Pass] on the leader, in the
// order of the queue.
//
// A worker must never write anything itself, and never decide anything: the one is
// the leader's, the other the scheduler's.
package worker
