package httpapi

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/structs"
	"github.com/nomadish/nomadish/structs/wire"
)

// member is a server as Nomad shows the members of its gossip.
type member struct {
	Name        string
	Addr        string
	Port        uint16
	Tags        map[string]string
	Status      string
	ProtocolMin uint8
	ProtocolMax uint8
	ProtocolCur uint8
	DelegateMin uint8
	DelegateMax uint8
	DelegateCur uint8
}

func newMember(name, id, address string, self Self, leader, voter bool) *member {
	host, port, _ := net.SplitHostPort(address)
	number, _ := strconv.ParseUint(port, 10, 16) // 0: not known
	m := &member{
		Name: name, Addr: host, Port: uint16(number), Status: "alive",
		ProtocolMin: 1, ProtocolMax: 5, ProtocolCur: 2, DelegateMin: 2, DelegateMax: 5, DelegateCur: 4,
		Tags: map[string]string{
			"role": "nomad", "region": self.Region, "dc": self.Datacenter, "id": id, "build": self.Version,
			"rpc_addr": host, "port": port, "vsn": "1", "raft_vsn": "3",
		},
	}
	if leader {
		m.Tags["leader"] = "true"
	}
	if !voter {
		m.Tags["nonvoter"] = "1"
	}
	return m
}

// members lists the servers that Raft knows.
func (r *request) members() ([]*member, error) {
	var raft structs.RaftConfigurationReply
	if err := r.s.cfg.Backend.Call(r.Context(), wire.MethodRaftConfig, &structs.EmptyRequest{QueryOptions: r.opts}, &raft); err != nil {
		return nil, err
	}
	self := r.s.cfg.Agent.Self()
	out := make([]*member, 0, len(raft.Servers))
	for _, s := range raft.Servers {
		name := first(s.Node, s.ID)
		if !strings.HasSuffix(name, "."+self.Region) {
			name += "." + self.Region
		}
		out = append(out, newMember(name, s.ID, s.Address, self, s.Leader, s.Voter))
	}
	return out, nil
}

func agentMembers(r *request) (any, error) {
	members, err := r.members()
	if err != nil {
		return nil, err
	}
	self := r.s.cfg.Agent.Self()
	return struct {
		ServerName, ServerRegion, ServerDC string
		Members                            []*member
	}{self.Name, self.Region, self.Datacenter, members}, nil
}

func agentSelf(r *request) (any, error) {
	self := r.s.cfg.Agent.Self()
	me := member{Name: "none"}
	if self.Server {
		me = *newMember(self.Name+"."+self.Region, self.Name, first(r.s.cfg.Agent.Servers()...), self, false, true)
		// Raft knows more of us, if it can be asked: a cluster without a leader must
		// not keep the agent from telling about itself.
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		ask := *r
		ask.Request = r.WithContext(ctx)
		if members, err := ask.members(); err == nil {
			for _, m := range members {
				if m.Name == me.Name {
					me = *m
				}
			}
		}
	}
	return struct {
		Config map[string]any               `json:"config"`
		Member member                       `json:"member"`
		Stats  map[string]map[string]string `json:"stats"`
	}{self.Config, me, r.s.cfg.Agent.Stats()}, nil
}

type health struct {
	Ok      bool   `json:"ok"`
	Message string `json:"message"`
}

// agentHealth is 200 when all that was asked for is well, else 500; the body
// says what is not.
func agentHealth(r *request) (any, error) {
	kind := r.query.Get("type")
	if kind != "" && kind != "server" && kind != "client" {
		return nil, badRequest("type %q: must be server or client", kind)
	}
	self := r.s.cfg.Agent.Self()
	var out struct {
		Client *health `json:"client,omitempty"`
		Server *health `json:"server,omitempty"`
	}
	status := http.StatusOK
	set := func(ok bool, msg string) *health {
		if ok {
			return &health{true, "ok"}
		}
		status = http.StatusInternalServerError
		return &health{false, msg}
	}
	if kind != "client" && self.Server {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		var leader structs.StringReply
		opts := r.opts
		opts.AllowStale = true
		err := r.s.cfg.Backend.Call(ctx, wire.MethodLeader, &structs.EmptyRequest{QueryOptions: opts}, &leader)
		switch {
		case err != nil:
			out.Server = set(false, err.Error())
		default:
			out.Server = set(leader.Value != "", "no cluster leader")
		}
	}
	if kind != "server" && self.Client {
		out.Client = set(len(r.s.cfg.Agent.Servers()) > 0, "no known servers")
	}
	if kind == "server" && out.Server == nil {
		out.Server = set(false, "server not enabled")
	}
	if kind == "client" && out.Client == nil {
		out.Client = set(false, "client not enabled")
	}
	r.w.Header().Set("Content-Type", "application/json")
	if status != http.StatusOK {
		r.w.WriteHeader(status)
	}
	return out, nil
}

func agentServers(r *request) (any, error) {
	if !r.s.cfg.Agent.Self().Client {
		return nil, structs.Errorf(structs.CodeUnsupported, "this agent runs no client; its servers are at /v1/status/peers")
	}
	return list(r.s.cfg.Agent.Servers()), nil
}

func agentSetServers(r *request) (any, error) {
	addrs := r.query["address"]
	if len(addrs) == 0 {
		return nil, badRequest("address: missing; name at least one server")
	}
	for _, a := range addrs {
		if host, _, err := net.SplitHostPort(a); err != nil || host == "" {
			return nil, badRequest("address %q: must be host:port", a)
		}
	}
	return nil, r.s.cfg.Agent.SetServers(addrs)
}

func agentReload(r *request) (any, error) { return nil, r.s.cfg.Agent.Reload() }

func metricsGet(r *request) (any, error) {
	switch format := r.query.Get("format"); format {
	case "", "json":
		if r.s.cfg.Metrics == nil {
			return nil, unsupported("metrics in JSON")
		}
		return r.s.cfg.Metrics()
	case "prometheus":
		if r.s.cfg.Prometheus == nil {
			return nil, &statusError{http.StatusUnsupportedMediaType, "Prometheus is not enabled"}
		}
		r.s.cfg.Prometheus.ServeHTTP(r.w, r.Request)
		return answered, nil
	default:
		return nil, badRequest("format %q: must be json or prometheus", format)
	}
}
