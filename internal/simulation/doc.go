// Package simulation runs a whole cluster in virtual time from one seed, and breaks it: the
// first ring of what proves that it survives. The same seed yields the same run, bit for bit,
// so that what fails once can be looked at as often as is wanted.
//
// # What is real
//
// The state machine and the state of each server, with their encodings of entries and
// snapshots; the scheduler; judging and committing plans with their pipeline; the broker with
// its queues, gates, timers and chores; the pass over what waits; the workers' decisions,
// retries and answers; heartbeats, drains and garbage collection; and the endpoints at which
// users and clients do what they do. All of that is moved on by one loop, step by step, in an
// order that is drawn, by the parts' own Steps.
//
// # What is modelled
//
// Raft (the second ring has the real one: TestVirtual of package nomadish): there is one
// agreed log; an entry is agreed on at once, or lost with its leader, or agreed on without
// anybody being notified, or agreed on later by the next leader. Followers lag, are cut off,
// crash, and come back by a snapshot and the log. Clients: what they read, run and report, not
// how. Their sessions and their gossip, the two probers that notice their loss: each may be cut by itself,
// and is noticed late (prober.go). The network: what is late, lost or comes twice. The goroutines that wait on both ends
// of all this: whoever is to be woken gets a time to look.
//
// # What must hold
//
// See checks.go. Cheap things are looked at after every entry, dear ones now and then; at the
// end faults stop, and everything that can be placed must be, in bounded time.
//
// The package must never read the real time, start a goroutine, or let the order of a map
// show: everything that is arbitrary is drawn from the seed.
package simulation
