package clientgossip

import (
	"testing"

	"github.com/nomadish/nomadish/nomadish/gossip"
	"github.com/nomadish/nomadish/structs"
)

// members are those of the servers' gossip, which do not change.
type members []gossip.Server

func (m members) Servers() []gossip.Server { return m }

func (m members) Subscribe() (changed <-chan struct{}, cancel func()) { return nil, func() {} }

// TestWorkKeptByAgreement: work is kept of clients that gossip alone hears if all servers know how, whether or not each of
// them gossips with clients.
func TestWorkKeptByAgreement(t *testing.T) {
	f := func(want bool, servers ...gossip.Server) {
		t.Helper()
		w := &Probers{Pool: &Pool{servers: members(servers)}}
		if w.Agreed() != want {
			t.Errorf("agreed: %v, of %+v", !want, servers)
		}
	}
	gossips := gossip.Server{Clients: "127.0.0.1:4650", Entries: structs.LogTypeLast, Status: structs.MemberAlive}
	silent := gossip.Server{Entries: structs.LogTypeLast, Status: structs.MemberAlive}
	old := gossip.Server{Entries: structs.LogClusterMeta, Status: structs.MemberAlive}
	left := old
	left.Status = structs.MemberLeft
	f(true, gossips)
	f(true, gossips, silent)
	f(true, gossips, left)
	f(false, gossips, old)
}
