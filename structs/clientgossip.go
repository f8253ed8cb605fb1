package structs

import "time"

type (
	// ClientGossip tells a client how to join the gossip of its region's clients.
	ClientGossip struct {
		Addrs []string // host:port of members
		// Spread is the time over which clients that start together join, each at a moment of its own.
		Spread time.Duration
	}

	// NodeProbeRequest asks whether a node can be reached; a client is asked to probe its neighbour by gossip.
	NodeProbeRequest struct {
		NodeID string
		QueryOptions
	}
	// NodeProbeReply says by which ways it was.
	NodeProbeReply struct {
		Session bool // it answered over its RPC session
		Gossip  bool // it answered a probe of the gossip
	}

	// NodeSuspectRequest tells the leader of nodes whose sessions a server has lost.
	NodeSuspectRequest struct {
		NodeIDs []string
		WriteRequest
	}
)
