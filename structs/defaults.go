package structs

// Defaults of settings of an agent's configuration that a part of a server or of a client uses as well where it is made without one,
// as in tests.
const (
	DefaultEventBufferSize    = 100_000 // changes that the event stream can still send
	DefaultHistoryMax         = 100_000 // records of the history
	DefaultJobTrackedVersions = 6       // as Nomad keeps of a job
	// DefaultMaxRegistering is how many nodes register at once: it keeps a group commit of Raft full, and is answered within a fraction
	// of a second.
	DefaultMaxRegistering = 256
	DefaultNodeMaxMessage = 1 << 20 // bytes that a node sends in one call
	DefaultGCMaxAllocs    = 50      // allocations kept on a node
)

// Default ports. Those of the HTTP API, of RPC and of the gossip of a region's servers are Nomad's.
const (
	DefaultPortHTTP         = 4646
	DefaultPortRPC          = 4647
	DefaultPortSerf         = 4648
	DefaultPortSerfWAN      = 4649 // gossip with servers of other regions
	DefaultPortClientGossip = 4650 // gossip in which clients are members too
)
