// Package queue is the queue (semantics part 7): it hands evaluations to workers in the
// order of their jobs' ranks, one at a time for each job, each until a worker has answered
// it; it hands those that wait for room (blocked) to the queue pass when room that may
// help them came free; and it is the gate that keeps plans from overtaking.
//
// docs/design/queue.md follows an evaluation from its trigger to its acknowledgement. The
// [Broker], Nomad's word, is all of the queue.
//
// # What it keeps
//
// An evaluation in the broker is in one of these states. None of it is stored: all
// of it is a cache of the state, filled from a snapshot and kept by the state's feed,
// so that becoming leader, falling behind and running are one code path ([Broker.Run]).
//
//	delayed   its WaitUntil has not come
//	ready     in its type's and pool's queue: the next Dequeue may take it
//	leased    a worker has it, with a token, until Ack, Nack or the nack timeout; or it is
//	          blocked and the queue pass has it, until it reports what became of it
//	backing   it was returned and waits for its next delivery, longer each time
//	next      behind the ready, leased or backing evaluation of its job. There is room
//	          for one: the later of two sees all that the earlier would, so the
//	          earlier is cancelled
//	blocked   it waits for room; see below
//
// # What waits
//
// Blocked evaluations are kept in groups of those that fail alike (scheduler.RequestKey), by
// rank. A release opens the groups that it may help: by the class of the node and by what
// is free there, so that it costs little to keep thousands that cannot be helped. An open
// group is walked by the pass (worker.Pass) from its best rank on, until one of it finds no
// room: then none of it would, and it is closed until the next release that may help.
// Nothing of this is written. A new leader opens all.
//
// # The gate
//
// A pool's gate is the best rank of what must still be tried; gate.go defines what counts.
// A ready evaluation is not given out while an open blocked one goes before it (it is
// after Options.GateLimit, as it may have something to stop), and the plan applier calls
// [Broker.Admit] before it judges what a plan places. That is an answer in O(1), and as
// new as the state that the applier judges on ([Broker.CatchUp]).
//
// # Guarantees
//
//   - No request is placed while a higher-ranked one of its pool, that could use what it
//     takes, has not been tried since room came free there, with the exceptions that
//     gate.go names.
//   - Of one job there is never more than one evaluation leased. While a plan of a leased
//     evaluation is on its way through Raft (see [Broker.Retain]) it stays leased, whatever
//     its worker reports and however long it takes: nobody may decide on a state that
//     lacks that plan.
//   - Every pending evaluation is delivered until a worker has dealt with it, or has
//     failed after DeliveryLimit deliveries, with a delayed one that follows it.
//   - No release is missed: room that came free after the state that a blocked evaluation
//     was decided on opens its group at once.
//
// The broker keeps what is open in the state and nothing else, so its size is bounded by
// the state's.
//
// It runs on the leader. It must never decide a placement, and never change an
// evaluation but through the Applier.
package queue
