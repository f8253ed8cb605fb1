package raftnode

import (
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/internal/wire"
)

// maxLoggedID is how much of an unknown peer's ID and address is logged and remembered: it may be of any length.
const maxLoggedID = 64

// Transport is what Raft's calls travel by, the same in all three: the network, or memory in tests of virtual time.
type Transport struct {
	raft.Transport
	raft.WithPreVote
	raft.WithClose
}

// memberTransport is a Raft transport that admits the calls of this cluster's members only. Raft itself obeys whoever names a
// higher term: a server of another region or cluster, which has this one's address by mistake, would take it over.
type memberTransport struct {
	Transport
	// member reports whether a server, by its ID, is of this cluster.
	member func(id string) bool
	calls  chan raft.RPC
	done   chan struct{}
	wg     sync.WaitGroup
	logged wire.LogLimiter
	logger hclog.Logger
}

func newMemberTransport(t Transport, member func(id string) bool, logger hclog.Logger) *memberTransport {
	d := &memberTransport{Transport: t, member: member, calls: make(chan raft.RPC), done: make(chan struct{}), logger: logger}
	d.wg.Go(d.run)
	return d
}

// run passes calls on until close.
func (d *memberTransport) run() {
	for {
		select {
		case call := <-d.Transport.Consumer():
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
	d.Transport.SetHeartbeatHandler(func(call raft.RPC) {
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
	if d.logged.Allow(string(from.ID[:min(len(from.ID), maxLoggedID)]), time.Now()) {
		d.logger.Warn("refused Raft of a server that is not of this cluster; more of it is not logged for an hour",
			"id", fmt.Sprintf("%.*q", maxLoggedID, from.ID), "address", fmt.Sprintf("%.*q", maxLoggedID, from.Addr), "call", fmt.Sprintf("%T", call.Command))
	}
	return false
}
