package structs

import "time"

type (
	// ClientGossip describes to a client how to join the gossip of its region's clients.
	ClientGossip struct {
		Addrs []string // host:port of members
		// Spread is the time over which clients that start together join, each at a moment of its own.
		Spread time.Duration
		// Primary is the fingerprint of the key that servers encrypt it with; empty: it goes in the clear.
		Primary string `json:",omitempty"`
		// Keyring is the servers' ring of keys for one that has another, sealed with a key that both have; empty: it has the same, or
		// none of them.
		Keyring []byte `json:",omitempty"`
	}

	// GossipKeys are the keys of the clients' gossip that a client has, by their fingerprints, the one that it encrypts with first.
	GossipKeys struct {
		Version uint64
		Prints  []string
	}

	// NodeProbeRequest requests a probe of whether a node can be reached; a client probes its neighbour by gossip.
	NodeProbeRequest struct {
		NodeID string
		QueryOptions
	}
	// NodeProbeReply states by which ways the node was reached.
	NodeProbeReply struct {
		Session bool // it answered over its RPC session
		Gossip  bool // it answered a probe of the gossip
	}

	// NodeSuspectRequest reports to the leader the nodes whose sessions a server has lost.
	NodeSuspectRequest struct {
		NodeIDs []string
		WriteRequest
	}
)
