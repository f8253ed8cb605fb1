package queue

import "github.com/nomadish/nomadish/structs"

// Gate verdicts: whether the placements of a plan may be judged now (semantics part 7).
const (
	GateOpen    = iota // yes
	GateWait           // not yet: an ask that goes before is just being tried
	GateRefresh        // not on this state: what was tried since may count on a newer one
	GateBusy           // not yet: an ask that goes before has not been taken by a worker
	GateShut           // no: it is to be decided again, after those that go before it
)

// Admission is what a gate says of a plan.
type Admission struct {
	Verdict int
	Pool    string
	Rank    structs.Rank
}

// AskTurn is a waiting ask whose turn it is in a queue pass, held like an evaluation
// that a worker has.
type AskTurn struct {
	Eval  *structs.Evaluation
	Token string
}
