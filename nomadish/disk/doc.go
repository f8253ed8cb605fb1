// Package disk keeps a server well when its disk is full: Watch sees it coming and reports it; Stores let Raft live on.
//
// A server steps down while there is still a little room, for then it can do so in good order, and because what Raft
// itself must note (terms, votes, what the others have committed) needs some. If the disk fills up all the same, writes
// fail one by one: an entry that cannot be stored is not acknowledged. One write may not fail, as Raft ends the
// process then: that of a new term. Stores hold it back in memory and put it on disk before anything else, so that
// no vote is ever cast or stored under a term that a restart would forget:
//
//	a vote in a term      is a write: it fails until the term is stored
//	an entry of a term    likewise
//	refusing older terms  casts no vote that outlives the process
//
// This package must never decide who leads: it reports what is so, the wiring acts.
package disk
