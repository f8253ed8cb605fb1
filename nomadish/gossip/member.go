package gossip

import (
	"cmp"
	"fmt"
	"net"
	"strconv"

	"github.com/hashicorp/serf/serf"

	"github.com/nomadish/nomadish/structs"
)

// The role of servers, in Nomad's word.
const role = "nomad"

// The names of the tags, as Nomad has them.
const (
	tagRole       = "role"
	tagRegion     = "region"
	tagDatacenter = "dc"
	tagID         = "id"
	tagRPCHost    = "rpc_addr"
	tagRPCPort    = "port"
	tagBuild      = "build"
	tagExpect     = "expect"
	tagBootstrap  = "bootstrap"
	tagVersion    = "vsn"
	tagRaft       = "raft_vsn"
	tagWAN        = "wan"     // ours
	tagPool       = "pool"    // ours: poolWAN in the pool of all regions, else none
	tagClients    = "clients" // where its part of the clients' gossip is
	tagEntries    = "log_vsn" // ours: the last type of log entries that it knows
)

const poolWAN = "wan"

// Server is a member as its tags describe it.
type Server struct {
	Member     string // the name in the pool: <name>.<region>
	Name       string
	ID         string // Raft's
	Region     string
	Datacenter string
	Version    string
	RPCAddr    string // host:port
	Expect     int    // servers that bootstrap the cluster; 0: it joins one that is there
	WANAddr    string // host:port of its place in the pool of all regions; empty: none
	Status     string // structs.MemberAlive and so on
	DiskFull   bool   // it reports that it must not lead
	// Clients is where its part of the clients' gossip is reached, host:port; empty: it has none.
	Clients string
	// Entries is the last type of log entries that it knows, as it states; of one that states nothing structs.LogTypeFirst.
	Entries structs.LogType
}

// Alive reports whether the server is there, as far as the pool knows.
func (s Server) Alive() bool { return s.Status == structs.MemberAlive }

func tagsOf(c *Config) (map[string]string, error) {
	host, port, err := net.SplitHostPort(c.RPCAddr)
	if err != nil {
		return nil, fmt.Errorf("gossip: RPC address %q: %w", c.RPCAddr, err)
	}
	tags := map[string]string{
		tagRole: role, tagRegion: c.Region, tagDatacenter: c.Datacenter, tagID: c.ID, tagRPCHost: host, tagRPCPort: port,
		tagBuild: c.Version, tagVersion: "1", tagRaft: "3", tagEntries: strconv.Itoa(int(cmp.Or(c.Entries, structs.LogTypeLast))),
	}
	if c.Kind == KindWAN {
		tags[tagPool] = poolWAN
	}
	if c.WANAddr != "" {
		tags[tagWAN] = c.WANAddr
	}
	if c.Clients != "" {
		tags[tagClients] = c.Clients
	}
	switch {
	case c.Expect == 1:
		tags[tagBootstrap] = "1"
	case c.Expect > 1:
		tags[tagExpect] = strconv.Itoa(c.Expect)
	}
	return tags, nil
}

// ServerOf reads a member's tags. An error states why it is no server that can be
// worked with.
func ServerOf(m *structs.ServerMember) (Server, error) {
	s := Server{
		Member: m.Name, ID: m.Tags[tagID], Region: m.Tags[tagRegion], Datacenter: m.Tags[tagDatacenter],
		Version: m.Tags[tagBuild], WANAddr: m.Tags[tagWAN], Status: m.Status,
		DiskFull: m.Tags[TagDisk] != "",
		Clients:  m.Tags[tagClients],
	}
	if got := m.Tags[tagRole]; got != role {
		return s, fmt.Errorf("member %s: its role is %q, not %q", m.Name, got, role)
	}
	if s.ID == "" || s.Region == "" {
		return s, fmt.Errorf("member %s: its tags name no ID or no region", m.Name)
	}
	s.Name = m.Name
	if suffix := "." + s.Region; len(s.Name) > len(suffix) && s.Name[len(s.Name)-len(suffix):] == suffix {
		s.Name = s.Name[:len(s.Name)-len(suffix)]
	}
	port, err := strconv.ParseUint(m.Tags[tagRPCPort], 10, 16)
	host := m.Tags[tagRPCHost]
	if err != nil || port == 0 || host == "" {
		return s, fmt.Errorf("member %s: its RPC address is %q, port %q", m.Name, host, m.Tags[tagRPCPort])
	}
	s.RPCAddr = net.JoinHostPort(host, m.Tags[tagRPCPort])
	s.Entries = structs.LogTypeFirst // of a version that states nothing
	if known, err := strconv.ParseUint(m.Tags[tagEntries], 10, 7); err == nil && known > 0 {
		s.Entries = structs.LogType(known)
	}
	switch expect := m.Tags[tagExpect]; {
	case m.Tags[tagBootstrap] == "1":
		s.Expect = 1
	case expect != "":
		n, err := strconv.ParseUint(expect, 10, 8)
		if err != nil {
			return s, fmt.Errorf("member %s: it expects %q servers", m.Name, expect)
		}
		s.Expect = int(n) // 8 bits
	}
	return s, nil
}

func memberOf(m *serf.Member) structs.ServerMember {
	return structs.ServerMember{
		Name: m.Name, Addr: m.Addr.String(), Port: m.Port, Tags: m.Tags, Status: m.Status.String(),
		ProtocolMin: m.ProtocolMin, ProtocolMax: m.ProtocolMax, ProtocolCur: m.ProtocolCur,
		DelegateMin: m.DelegateMin, DelegateMax: m.DelegateMax, DelegateCur: m.DelegateCur,
	}
}
