package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// members requests the servers that gossip knows: this agent's own server, or the one
// that its client speaks with.
func (r *request) members() (*structs.MembersReply, error) {
	var reply structs.MembersReply
	if err := r.s.cfg.Backend.Call(r.Context(), wire.MethodMembers, &structs.EmptyRequest{QueryOptions: r.opts}, &reply); err != nil {
		return nil, err
	}
	reply.Members = list(reply.Members)
	return &reply, nil
}

func agentMembers(r *request) (any, error) { return r.members() }

// self is this agent's own server as the others see it; one without a name: it runs
// none.
func (r *request) self() structs.ServerMember {
	none := structs.ServerMember{Name: "none", Status: "none"}
	self := r.s.cfg.Agent.Self()
	if !self.Server {
		return none
	}
	members, err := r.members()
	if err != nil {
		return none
	}
	for _, m := range members.Members {
		if m.Name == self.Name+"."+self.Region {
			return m
		}
	}
	return none
}

// onServer refuses what only an agent that runs a server can do.
func (r *request) onServer() error {
	if r.s.cfg.Agent.Self().Server {
		return nil
	}
	return structs.Errorf(structs.CodeUnsupported, "this agent runs no server; use the address of a server's agent (-address)")
}

// joined answers a join as Nomad does: what went wrong is within an answer that is well.
type joined struct {
	NumJoined int    `json:"num_joined"`
	Error     string `json:"error"`
	Warning   string `json:"warning,omitempty"`
}

func agentJoin(r *request) (any, error) {
	if err := r.onServer(); err != nil {
		return nil, err
	}
	addrs := r.query["address"]
	if len(addrs) == 0 {
		return nil, badRequest("address: missing; name at least one server")
	}
	for _, a := range addrs {
		if strings.TrimSpace(a) == "" || strings.ContainsAny(a, " /") {
			return nil, badRequest("address %q: must be host or host:port", a)
		}
	}
	wan, err := r.bool("wan", false)
	if err != nil {
		return nil, err
	}
	var reply structs.CountReply
	if err := r.s.cfg.Backend.Call(r.Context(), wire.MethodJoin, &structs.JoinRequest{Addresses: addrs, WAN: wan}, &reply); err != nil {
		return &joined{Error: err.Error()}, nil //nolint:nilerr // the answer states it
	}
	return &joined{NumJoined: reply.Count}, nil
}

func agentForceLeave(r *request) (any, error) {
	if err := r.onServer(); err != nil {
		return nil, err
	}
	node := r.query.Get("node")
	if node == "" {
		return nil, badRequest("node: missing; name the server to leave")
	}
	prune, err := r.bool("prune", false)
	if err != nil {
		return nil, err
	}
	args := &structs.ForceLeaveRequest{Name: node, Prune: prune}
	err = r.s.cfg.Backend.Call(r.Context(), wire.MethodForceLeave, args, &structs.WriteReply{})
	if structs.CodeOf(err) == structs.CodeNotFound { // it is gone, as requested; Nomad answers so
		err = nil
	}
	return nil, err
}

func autopilotConfigGet(r *request) (any, error) {
	var reply structs.AutopilotConfigReply
	if err := r.read(wire.MethodAutopilotGet, &structs.EmptyRequest{QueryOptions: r.opts}, &reply); err != nil {
		return nil, err
	}
	return &reply.Config, nil
}

// autopilotConfigSet answers true, or false when cas did not match.
func autopilotConfigSet(r *request) (any, error) {
	args := structs.AutopilotConfigRequest{WriteRequest: r.write(), Config: structs.DefaultAutopilotConfiguration()}
	var stated json.RawMessage
	if err := r.decode(&stated); err != nil {
		return nil, err
	}
	r.s.takes(r, &args.Config)
	if err := decodeJSON(stated, &args.Config); err != nil {
		return nil, err
	}
	if err := args.Config.Validate(); err != nil {
		return nil, err
	}
	cas, index, err := r.check()
	if err != nil {
		return nil, err
	}
	if cas {
		args.CAS, args.Config.ModifyIndex = true, index
	}
	var reply structs.AutopilotSetReply
	if err := r.change(wire.MethodAutopilotSet, &args, &reply, &reply.Index); err != nil {
		return nil, err
	}
	return reply.Updated, nil
}

// autopilotHealth is 200 when all servers are healthy, else 429, as with Nomad; the body is
// the same.
func autopilotHealth(r *request) (any, error) {
	var reply structs.AutopilotHealthReply
	if err := r.read(wire.MethodAutopilotHealth, &structs.EmptyRequest{QueryOptions: r.opts}, &reply); err != nil {
		return nil, err
	}
	reply.Health.Servers, reply.Health.Voters = list(reply.Health.Servers), list(reply.Health.Voters)
	if !reply.Health.Healthy {
		r.w.Header().Set("Content-Type", "application/json")
		r.w.WriteHeader(http.StatusTooManyRequests)
	}
	return &reply.Health, nil
}
