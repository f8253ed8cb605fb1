package membership

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/nomadish/gossip"
	"github.com/nomadish/nomadish/nomadish/raftnode"
	"github.com/nomadish/nomadish/structs"
)

// RaftServers shows the set of Raft servers to the endpoints.
type RaftServers struct {
	*raftnode.Node
	pool *gossip.Pool
}

// NewRaftServers returns the servers of a Raft, with what the gossip of their region knows of them.
func NewRaftServers(node *raftnode.Node, pool *gossip.Pool) *RaftServers {
	return &RaftServers{node, pool}
}

// Configuration lists the servers.
func (c *RaftServers) Configuration() (*structs.RaftConfigurationReply, error) {
	f := c.GetConfiguration()
	if err := f.Error(); err != nil {
		return nil, raftnode.WrapError(err)
	}
	_, leader := c.LeaderWithID()
	names := map[string]string{}
	for _, s := range c.pool.Servers() {
		names[s.ID] = s.Member
	}
	reply := &structs.RaftConfigurationReply{Index: f.Index()}
	for _, s := range f.Configuration().Servers {
		name := names[string(s.ID)]
		if name == "" {
			name = "(unknown)" // as Nomad shows it
		}
		reply.Servers = append(reply.Servers, &structs.RaftServer{
			ID: string(s.ID), Node: name, Address: string(s.Address), Leader: s.ID == leader,
			Voter: s.Suffrage == raft.Voter, RaftProtocol: "3",
		})
	}
	return reply, nil
}

// State is this server's own view.
func (c *RaftServers) State() (*structs.RaftStateReply, error) {
	conf, err := c.Configuration()
	if err != nil {
		return nil, err
	}
	contact := c.LeaderContact()
	term, err := strconv.ParseUint(c.Stats()["last_log_term"], 10, 64)
	return &structs.RaftStateReply{
		ID: c.ID(), Servers: conf.Servers, LastContact: contact, LastTerm: term, LastIndex: c.LastIndex(),
		DiskFull: c.Disk().Full(),
	}, err
}

// Change removes a server, or hands leadership to it.
func (c *RaftServers) Change(ctx context.Context, remove bool, id, address string) error {
	if !remove && id == "" && address == "" {
		return raftnode.WrapCallError(c.Transfer(ctx, "", ""))
	}
	conf, err := c.Configuration()
	if err != nil {
		return err
	}
	var known []string
	for _, s := range conf.Servers {
		switch {
		case (id == "" || s.ID != id) && (address == "" || s.Address != address):
			known = append(known, fmt.Sprintf("%s (%s at %s)", s.Node, s.ID, s.Address))
		case remove:
			return c.remove(ctx, s, len(conf.Servers) == 1)
		default:
			return c.transferTo(ctx, s)
		}
	}
	what := "id"
	if id == "" {
		what = "address"
	}
	return structs.Errorf(structs.CodeNotFound, "%s %q was not found in the Raft configuration; there are %s", what, cmp.Or(id, address), strings.Join(known, ", "))
}

// remove takes a server off the list. One that lives would be put on it again at once.
func (c *RaftServers) remove(ctx context.Context, s *structs.RaftServer, only bool) error {
	if only {
		return structs.Errorf(structs.CodeBadRequest, "server %s is the only one: removing it would end the cluster", s.ID)
	}
	if c.status(s.ID) == structs.MemberAlive {
		return structs.Errorf(structs.CodeConflict, "server %s (%s) is alive: the leader would add it again at once", s.Node, s.ID).
			WithHint("end its agent first; that it has ended is seen within seconds")
	}
	return raftnode.WrapCallError(c.Await(ctx, c.RemoveServer(raft.ServerID(s.ID), 0, 0)))
}

// transferTo transfers leadership to a server.
func (c *RaftServers) transferTo(ctx context.Context, s *structs.RaftServer) error {
	status := c.status(s.ID)
	switch {
	case s.Leader:
		return structs.Errorf(structs.CodeBadRequest, "server %s leads already", s.ID)
	case !s.Voter:
		return structs.Errorf(structs.CodeBadRequest, "server %s is no voter yet, and cannot lead", s.ID)
	case status == structs.MemberFailed || status == structs.MemberLeft:
		return structs.Errorf(structs.CodeConflict, "server %s (%s) does not answer (gossip: %s); this one, %s, still leads", s.Node, s.ID, status, c.ID())
	}
	why := c.Transfer(ctx, raft.ServerID(s.ID), raft.ServerAddress(s.Address))
	err := raftnode.WrapCallError(why)
	if err != nil && structs.CodeOf(err) == structs.CodeInternal && c.Raft.State() == raft.Leader { // Raft has no error of its own for that
		return structs.Errorf(structs.CodeConflict, "server %s (%s) does not answer, or does not take over in time: %w; this one, %s, still leads", s.Node, s.ID, why, c.ID())
	}
	return err
}

// status is a server's as gossip has it; empty: it does not know it. One may have been there under another name.
func (c *RaftServers) status(id string) string {
	status := ""
	for _, s := range c.pool.Servers() {
		if s.ID == id && status != structs.MemberAlive {
			status = s.Status
		}
	}
	return status
}
