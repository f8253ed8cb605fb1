package structs

// SchedulerConfigChanged states that the scheduler's configuration is not the one that a change was made for.
const SchedulerConfigChanged = "the configuration has changed since: look at it with `nomadish operator scheduler get-config` and try again"

// What is called about the cluster: its servers, their configuration, its events and history, and
// what a search finds.
type (
	// SchedulerConfigRequest sets the scheduler configuration.
	SchedulerConfigRequest struct {
		Config SchedulerConfiguration
		CAS    bool
		// Absent are fields of ours that the caller does not state: they stay as they are.
		Absent []string
		WriteRequest
	}
	// SchedulerConfigReply is the configuration.
	SchedulerConfigReply struct {
		SchedulerConfig *SchedulerConfiguration
		QueryMeta
	}
	// SchedulerSetReply reports whether the configuration was taken (CAS).
	SchedulerSetReply struct {
		Updated bool
		WriteMeta
	}
	// RaftConfigurationReply is the Raft cluster.
	RaftConfigurationReply struct {
		Servers []*RaftServer
		Index   uint64
		// Meta is how the server knew its leader; nil: it is of an earlier version, and does not state it. Its Index is not used.
		Meta *QueryMeta `codec:"Meta,omitempty" json:"-"`
	}
	// RaftServer is one server of it.
	RaftServer struct {
		ID           string
		Node         string
		Address      string
		Leader       bool
		Voter        bool
		RaftProtocol string
	}
	// ServerMember is a server as gossip knows it, in Nomad's words.
	ServerMember struct {
		Name        string // <server name>.<region>
		Addr        string // of gossip
		Port        uint16
		Tags        map[string]string
		Status      string // MemberAlive and so on
		ProtocolMin uint8
		ProtocolMax uint8
		ProtocolCur uint8
		DelegateMin uint8
		DelegateMax uint8
		DelegateCur uint8
	}
	// MembersReply lists the servers that a server knows by gossip, by name.
	MembersReply struct {
		ServerName   string // of the server that answers
		ServerRegion string
		ServerDC     string
		Members      []ServerMember
	}
	// KeyringRequest has the members of gossip pools do something with their keys.
	KeyringRequest struct {
		Op   string // KeyInstall and so on
		Key  string // in base64
		Pool string // PoolServers (empty), PoolClients
	}
	// KeyringReply is what came of it, as Nomad returns it.
	KeyringReply struct {
		Messages map[string]string // what is to be known, by member
		Keys     map[string]int    // of KeyList: how many members have a key, by the key in base64
		// PrimaryKeys is how many members encrypt with a key.
		PrimaryKeys map[string]int
		NumNodes    int // members that were queried
		// Clients is how many of them are clients, which have their keys from the answers to their heartbeats: ours, of PoolClients.
		Clients int `json:",omitempty"`
		// Behind is how many of those have not reported yet that they have the servers' keys.
		Behind int `json:",omitempty"`
	}
	// RaftPeerRequest names a server.
	RaftPeerRequest struct {
		ID      string
		Address string
		WriteRequest
	}
	// GCRequest forces a collection.
	GCRequest struct{ WriteRequest }
	// ReconcileReply lists the errors in derived state that were corrected.
	ReconcileReply struct {
		Differences []string
		WriteMeta
	}
	// EventStreamRequest opens the event stream. Topics: topic → keys ("*" all).
	EventStreamRequest struct {
		Topics    map[string][]string
		Index     uint64
		Namespace string
		Region    string
		AuthToken string
	}
	// SearchRequest finds IDs by prefix, or names by a fuzzy text.
	SearchRequest struct {
		Prefix  string // for Fuzzy: the text
		Context string // jobs, evals, allocs, nodes, … or all
		Fuzzy   bool
		QueryOptions
	}
	// SearchReply is what was found.
	SearchReply struct {
		Matches     map[string][]string     `json:",omitempty"`
		Fuzzy       map[string][]FuzzyMatch `json:",omitempty"`
		Truncations map[string]bool
		QueryMeta
	}
	// FuzzyMatch is a name that was found, and where.
	FuzzyMatch struct {
		ID    string
		Scope []string
	}
	// HistoryReply lists history records.
	HistoryReply struct {
		Records []*HistoryRecord
		QueryMeta
	}
)
