package queue

import (
	"time"

	"github.com/nomadish/nomadish/structs"
)

// Verdict reports whether the placements of a plan may be judged now (semantics part 7).
type Verdict int

// The verdicts of a gate.
const (
	GateOpen    Verdict = iota // yes
	GateWait                   // not yet: a request that goes before is just being tried
	GateRefresh                // not on this state: what was tried since may count on a newer one
	GateBusy                   // not yet: a request that goes before has not been taken by a worker
	GateShut                   // no: it is to be decided again, after those that go before it
)

// Admission is what a gate decides about a plan.
type Admission struct {
	Verdict Verdict
	Rank    structs.Rank
}

// Lease is a blocked evaluation that the queue pass has taken, with its token.
type Lease struct {
	Eval  *structs.Evaluation
	Token string
	// EntitledOnly: it has been leased at its entitled position, and nothing but what a claim holds is to be placed.
	EntitledOnly bool
	// LendRound is the round of lending by shares in which it is to be tried, from 1 on.
	LendRound int
	// Alike is equal for requests that fail alike, whatever their namespaces; empty: it is like no other.
	Alike string
	// Explain: nothing of it is to be decided. Why it waits is to be counted anew, as what it states has grown old.
	Explain bool
	// ExplainAt is when that is to be done next; zero: what it states suffices. The pass sets it before it calls Tried or Planned.
	ExplainAt time.Time
}
