// Package plan judges what schedulers decided against the latest state and commits
// what holds. Schedulers work on snapshots and may overtake each other; this is the
// one place where placements become real, so it is serial: one goroutine takes all
// plans that wait, judges them in the order of their priority on one transient of
// the World, with the scheduler's own fit check, and commits them as one log entry.
// While that is on its way to disk, the next plans gather.
//
// It runs on the leader. It must never place anything that a plan did not ask for,
// and is the only package that proposes structs.LogPlanApply.
package plan
