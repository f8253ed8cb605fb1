package nomadish

import (
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/internal/wire"
)

// saidID is how much of a stranger's ID and address is logged and remembered: it may be of any length.
const saidID = 64

// transport is what Raft's calls travel by, the same in all three: the network, or memory in tests of virtual time.
type transport struct {
	raft.Transport
	raft.WithPreVote
	raft.WithClose
}

// memberTransport is a Raft transport that admits the calls of this cluster's members only. Raft itself obeys whoever names a
// higher term: a server of another region or cluster, which has this one's address by mistake, would take it over.
type memberTransport struct {
	transport
	// member tells whether a server, by its ID, is of this cluster; set before anybody calls.
	member func(id string) bool
	calls  chan raft.RPC
	done   chan struct{}
	wg     sync.WaitGroup
	told   wire.Once
	logger hclog.Logger
}

func newMemberTransport(t transport, logger hclog.Logger) *memberTransport {
	d := &memberTransport{transport: t, calls: make(chan raft.RPC), done: make(chan struct{}), logger: logger}
	d.wg.Go(d.run)
	return d
}

// run passes calls on until close.
func (d *memberTransport) run() {
	for {
		select {
		case call := <-d.transport.Consumer():
			if !d.allows(call) {
				continue
			}
			select {
			case d.calls <- call:
			case <-d.done:
				return
			}
		case <-d.done:
			return
		}
	}
}

func (d *memberTransport) close() {
	close(d.done)
	d.wg.Wait()
}

// Consumer implements raft.Transport.
func (d *memberTransport) Consumer() <-chan raft.RPC { return d.calls }

// SetHeartbeatHandler implements raft.Transport: heartbeats come past Consumer.
func (d *memberTransport) SetHeartbeatHandler(fn func(raft.RPC)) {
	d.transport.SetHeartbeatHandler(func(call raft.RPC) {
		if d.allows(call) {
			fn(call)
		}
	})
}

// allows reports whether a call may pass; it answers one that may not.
func (d *memberTransport) allows(call raft.RPC) bool {
	from := raft.RPCHeader{}
	if c, ok := call.Command.(raft.WithRPCHeader); ok {
		from = c.GetRPCHeader()
	}
	if d.member(string(from.ID)) {
		return true
	}
	call.Respond(nil, fmt.Errorf("server %q is not of this cluster", from.ID))
	if d.told.First(string(from.ID[:min(len(from.ID), saidID)]), time.Now()) {
		d.logger.Warn("refused Raft of a server that is not of this cluster; more of it is not logged for an hour",
			"id", fmt.Sprintf("%.*q", saidID, from.ID), "address", fmt.Sprintf("%.*q", saidID, from.Addr), "call", fmt.Sprintf("%T", call.Command))
	}
	return false
}

// membership tells who is of the cluster: whom Raft's configuration names, or gossip knows in this region, as a
// configuration may be older than the servers that lead by now. Who belongs to no cluster yet is spoken to by those
// that it promised itself to: see raftGate.
func (s *Server) membership(id string) bool {
	f := s.raft.GetConfiguration()
	if f.Error() != nil {
		return false
	}
	servers := f.Configuration().Servers
	if len(servers) == 0 {
		return s.founder.Admits(id)
	}
	for _, one := range servers {
		if string(one.ID) == id {
			return true
		}
	}
	for _, one := range s.gossip.Servers() {
		if one.ID == id && one.Region == s.cfg.Region {
			return true
		}
	}
	return false
}
