package structs

// Operators' requests to an agent's own process. A request with a NodeID is answered by the agent of that node, one with a
// ServerID by that server's agent, and one with neither by the agent that was called. They exclude each other.
type (
	// AgentMonitorRequest requests the log lines of an agent from now on.
	AgentMonitorRequest struct {
		NodeID             string // the whole ID
		ServerID           string // the ID of a server, its name with or without the region, or ServerLeader
		LogLevel           string // lines of this level and above; empty: info
		LogJSON            bool   // each line is a JSON object
		LogIncludeLocation bool   // each line states where in the code it comes from
		QueryOptions
	}
	// AgentHostRequest requests a description of an agent's machine.
	AgentHostRequest struct {
		NodeID   string
		ServerID string
		QueryOptions
	}
	// AgentHostReply is the machine of an agent.
	AgentHostReply struct {
		AgentID  string // the ID of the agent's node, or the name of its server
		HostData *HostData
	}
	// AgentProfileRequest requests a runtime profile of an agent.
	AgentProfileRequest struct {
		NodeID   string
		ServerID string
		// Profile is cmdline, profile (of the CPU), trace, or one that package runtime/pprof names, such as heap.
		Profile string
		Seconds int64 // of profile and trace; 0: 1
		GC      bool  // before a heap profile
		Debug   int64 // 0: for `go tool pprof`; 1 or 2: text
		QueryOptions
	}
	// AgentProfileReply is a profile.
	AgentProfileReply struct {
		AgentID string
		Payload []byte
		Text    bool // Payload is for people
	}
)

// ServerLeader is the ServerID of whichever server leads.
const ServerLeader = "leader"

// HostData is what an agent reports of its machine. Its JSON is Nomad's.
type HostData struct {
	OS          string
	Network     []map[string]string // one an interface
	ResolvConf  string              // /etc/resolv.conf
	Hosts       string              // /etc/hosts
	Environment map[string]string   // of the agent's process; values that may be secret are replaced
	Disk        map[string]DiskUsage
}

// DiskUsage is the use of a mounted disk, in MiB.
type DiskUsage struct {
	DiskMB int64
	UsedMB int64
}

// Target returns whose agent answers.
func (r *AgentMonitorRequest) Target() (nodeID, serverID, region string) {
	return r.NodeID, r.ServerID, r.Region
}

// Target returns whose agent answers.
func (r *AgentHostRequest) Target() (nodeID, serverID, region string) {
	return r.NodeID, r.ServerID, r.Region
}

// Target returns whose agent answers.
func (r *AgentProfileRequest) Target() (nodeID, serverID, region string) {
	return r.NodeID, r.ServerID, r.Region
}
