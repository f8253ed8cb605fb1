package nomadish

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// namedAgent is an agent that answers with its name.
type namedAgent string

func (a namedAgent) Monitor(ctx context.Context, _ *structs.AgentMonitorRequest, send func(any) error) error {
	if err := send(&structs.StreamFrame{Data: []byte(a)}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func (a namedAgent) Host(context.Context, *structs.AgentHostRequest) (*structs.AgentHostReply, error) {
	return &structs.AgentHostReply{AgentID: string(a)}, nil
}

func (a namedAgent) Profile(context.Context, *structs.AgentProfileRequest) (*structs.AgentProfileReply, error) {
	return &structs.AgentProfileReply{AgentID: string(a), Payload: []byte{1}}, nil
}

// TestAgentsOfServers: what is asked about the agent of a server is answered by it, whichever server is asked.
func TestAgentsOfServers(t *testing.T) {
	f := newFleet(t, 3, func(_ int, c *Config) { c.Agent = namedAgent(c.Name) })
	leader := ""
	for _, s := range f.all {
		if s.IsLeader() {
			leader = s.cfg.Name
		}
	}
	for i, s := range f.all {
		other := f.all[(i+1)%3]
		for id, want := range map[string]string{
			"": s.cfg.Name, s.cfg.Name: s.cfg.Name, s.cfg.Name + ".global": s.cfg.Name, s.raft.ID(): s.cfg.Name, "leader": leader,
			other.cfg.Name: other.cfg.Name, other.cfg.Name + ".global": other.cfg.Name, other.raft.ID(): other.cfg.Name,
		} {
			var host structs.AgentHostReply
			if err := s.Call(t.Context(), wire.MethodAgentHost, &structs.AgentHostRequest{ServerID: id}, &host); err != nil || host.AgentID != want {
				t.Errorf("host of %q at %s: %q, %v", id, s.cfg.Name, host.AgentID, err)
			}
			var profile structs.AgentProfileReply
			if err := s.Call(t.Context(), wire.MethodAgentProfile, &structs.AgentProfileRequest{ServerID: id}, &profile); err != nil || profile.AgentID != want {
				t.Errorf("profile of %q at %s: %q, %v", id, s.cfg.Name, profile.AgentID, err)
			}
			from, err := s.Stream(t.Context(), wire.MethodAgentMonitor, &structs.AgentMonitorRequest{ServerID: id})
			if err != nil {
				t.Fatal(err)
			}
			var frame structs.StreamFrame
			if err := from.Recv(&frame); err != nil || string(frame.Data) != want {
				t.Errorf("monitor of %q at %s: %q, %v", id, s.cfg.Name, frame.Data, err)
			}
			from.Close()
		}
		query := func(nodeID, serverID string) error {
			return s.Call(t.Context(), wire.MethodAgentHost, &structs.AgentHostRequest{NodeID: nodeID, ServerID: serverID}, &structs.AgentHostReply{})
		}
		if err := query("", "unknown.global"); !errors.Is(err, structs.ErrNoServer) || err.Error() != "unknown Nomad server unknown.global" {
			t.Errorf("an unknown server: %v", err)
		}
		if err := query("n", "s1"); !errors.Is(err, structs.ErrBadRequest) {
			t.Errorf("a node and a server: %v", err)
		}
		if err := query("8e231cf4-ca48-43ff-b694-5801e69e22fa", ""); !errors.Is(err, structs.ErrNotFound) || !strings.Contains(err.Error(), "node") {
			t.Errorf("an unknown node: %v", err)
		}
		from, err := s.Stream(t.Context(), wire.MethodAgentMonitor, &structs.AgentMonitorRequest{ServerID: "unknown"})
		if err == nil {
			err = from.Recv(&structs.StreamFrame{})
			from.Close()
		}
		if errors.Is(err, io.EOF) || !errors.Is(err, structs.ErrNoServer) {
			t.Errorf("the monitor of an unknown server: %v", err)
		}
	}
}
