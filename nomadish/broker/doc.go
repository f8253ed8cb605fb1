// Package broker hands evaluations to workers: by priority, then first come; one at
// a time for each job; each until a worker has answered it. Those that wait for room
// (blocked) it wakes when room of a kind that can help them comes free.
//
// # What it keeps
//
// An evaluation in the broker is in one of these states. None of it is stored: all
// of it is a cache of the state, filled from a snapshot and kept by the state's feed,
// so that becoming leader, falling behind and running are one code path ([Broker.Run]).
//
//	delayed   its WaitUntil has not come
//	ready     in its type's queue: the next Dequeue may take it
//	held      a worker has it, with a token, until Ack, Nack or the nack timeout
//	resting   it was given back and waits for its next delivery, longer each time
//	next      behind the ready, held or resting evaluation of its job. There is room
//	          for one: the later of two sees all that the earlier would, so the
//	          earlier is cancelled
//	blocked   it waits for room; see blocked.go
//
// # Promises
//
//   - Of one job there is never more than one evaluation held. While a plan of a held
//     evaluation is on its way through Raft (see [Broker.Pin]) it stays held, whatever
//     its worker says and however long it takes: nobody may decide on a state that
//     lacks that plan.
//   - Every pending evaluation is delivered until a worker has dealt with it, or has
//     failed after DeliveryLimit deliveries, with a delayed one that follows it.
//   - No wake is missed: room that came free after the state that a blocked evaluation
//     was decided on wakes it at once; and a new leader, which cannot know what came
//     free before, wakes all.
//
// The broker holds what is pending in the state and nothing else, so its size is
// bounded by the state's.
//
// It runs on the leader. It must never decide a placement, and never change an
// evaluation but through the Applier.
package broker
