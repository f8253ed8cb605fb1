package structs

import "time"

// Nodes' requests, and requests about them. wire.Method* states which method takes and returns which.
type (
	// NodeRegisterRequest registers a node.
	NodeRegisterRequest struct {
		Node       *Node
		GossipKeys *GossipKeys `json:",omitempty"` // nil: it does not gossip, or in the clear
		WriteRequest
	}
	// NodeHeartbeatRequest reports that a node lives. Status: what it takes itself to be in.
	NodeHeartbeatRequest struct {
		NodeID     string
		SecretID   string
		Status     string
		GossipKeys *GossipKeys `json:",omitempty"` // as of NodeRegisterRequest
		WriteRequest
	}
	// NodeUpdateReply answers registration, heartbeat and status changes.
	NodeUpdateReply struct {
		HeartbeatTTL    time.Duration // the next heartbeat is due within
		EvalIDs         []string
		EvalCreateIndex uint64
		NodeModifyIndex uint64
		Servers         []string // RPC addresses to know
		LeaderRPCAddr   string
		Registered      bool // false: the server does not know the node; register again
		// Gossip is where the gossip of the clients is; nil: there is none.
		Gossip *ClientGossip `json:",omitempty"`
		WriteMeta
	}
	// NodeDrainRequest starts (DrainSpec set) or ends a drain.
	NodeDrainRequest struct {
		NodeID       string
		DrainSpec    *DrainSpec
		MarkEligible bool
		Meta         map[string]string
		WriteRequest
	}
	// NodeEligibilityRequest makes a node (in)eligible.
	NodeEligibilityRequest struct {
		NodeID      string
		Eligibility string
		WriteRequest
	}
	// NodeRequest names a node for a write (purge, evaluate).
	NodeRequest struct {
		NodeID string
		WriteRequest
	}
	// NodeListReply lists nodes.
	NodeListReply struct {
		Nodes []*NodeListStub
		QueryMeta
	}
	// NodeReply is one node, sanitized; nil when there is none.
	NodeReply struct {
		Node *Node
		QueryMeta
	}
	// AllocsReply is whole allocations with their jobs.
	AllocsReply struct {
		Allocs []*Allocation
		QueryMeta
	}
	// ClientAllocsRequest is a node's blocking query for its allocations.
	ClientAllocsRequest struct {
		NodeID   string
		SecretID string
		QueryOptions
	}
	// ClientAllocsReply is a node's allocations by their AllocModifyIndex, and
	// whole those whose AllocModifyIndex is above the requested MinQueryIndex. Jobs
	// holds each job version once; Alloc.Job is nil, and so is Metrics.
	ClientAllocsReply struct {
		Allocs  map[string]uint64
		Changed []*Allocation
		Jobs    []*Job
		QueryMeta
	}
	// ClientUpdateRequest reports allocations' states.
	ClientUpdateRequest struct {
		NodeID   string
		SecretID string
		Updates  []*AllocClientUpdate
		// KnownIndex is that of the newest answer about its allocations that the node has had, from whichever server: who
		// takes the report must have come as far. 0: an older build does not state it.
		KnownIndex uint64
		WriteRequest
	}
	// NodeEventsRequest appends to a node's history.
	NodeEventsRequest struct {
		NodeID   string
		SecretID string
		Events   []*NodeEvent
		WriteRequest
	}
	// WriteReply answers a write that returns nothing.
	WriteReply struct{ WriteMeta }
)
