// Package plan judges what schedulers decided against the latest state and commits
// what is accepted. Schedulers work on snapshots and may overtake each other; this is the
// one place where placements become real, so it is serial: one goroutine judges all
// plans, in the order of their priority, with the scheduler's own fit check.
//
// # The pipeline
//
// Plans are judged into a round as they come. A round is committed as one log entry
// (several, if it is large: see pack.go) while the next one is judged on the World as
// it will be when that entry has been applied. So a plan that comes alone is committed
// at once, and many are committed together only because a commit is in flight:
//
//	judge A | commit A .......... | commit B, C, D ....... |
//	        | judge B, C, D       | judge E, F ..          |
//
// Only plans add allocations, so what is judged on that World cannot be made too much
// by anything else; what else happens (allocations end, nodes come) is seen when the
// pipeline starts again from a snapshot, at the latest after ChainLimit rounds, and at
// once when a plan was refused. When a commit fails, what was judged on it is judged
// again. When it is not known whether it failed, an empty entry is committed first:
// once that is applied, so is everything before it.
//
// What a plan places is judged only when its gate lets it on (gate.go, semantics part 7):
// until then it is parked, for a short time, as workers decide neighbours in parallel;
// after that it is sent back and its evaluation given out again in its turn.
//
// What frees room without a decision, as nobody is left to decide (Withdraw), is committed beside the rounds: to a plan that is
// being judged the room is still taken.
//
// # Why a plan is refused
//
// docs/design/queue.md lists the reasons, where each is decided, and what an operator sees of it.
//
// It runs on the leader. It must never place anything that a plan did not request,
// and is the only package that proposes structs.LogPlanApply.
package plan
