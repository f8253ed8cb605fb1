package simulation

import (
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/structs"
)

// seams are where a test breaks what is simulated, to see that it is found. All of them lie
// between the parts, in what this package does itself: there is no way to any of them from a
// server. nil: nothing is broken there.
type seams struct {
	// machine wraps the state machine of a replica.
	machine func(replica int, m raft.FSM) raft.FSM
	// commit changes what the plan applier proposes.
	commit func(payload any) any
	// advance proposes an entry that moves a workflow on.
	advance func(l *leader, e *structs.WorkflowAdvanceEntry) (uint64, error)
	// submit takes a plan instead of the applier; false: the applier is to have it.
	submit func(l *leader, p *structs.Plan, tell func(*structs.PlanResult, error)) bool
	// elected changes the log when a leader is elected.
	elected func(log *agreed)
	// checked changes by which ways a node has answered.
	checked func(session, gossip bool) (bool, bool)
	// index changes what the state must have reached that a worker decides on.
	index func(uint64) uint64
}
