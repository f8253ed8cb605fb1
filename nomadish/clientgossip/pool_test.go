package clientgossip

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/clientpool"
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

// TestLostSessions: the leader is told which clients have lost their sessions with this server, but of those only that gossip: the heartbeats of the
// others show their loss.
func TestLostSessions(t *testing.T) {
	p, err := Open(Options{On: true, Addr: "127.0.0.1:0", ID: "server", Region: "global", RPCAddr: "127.0.0.1:4647", Logger: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Shutdown() })
	client, err := clientpool.New(clientpool.Config{ID: "node", Role: clientpool.RoleClient, Region: "global", BindAddr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Shutdown() })
	if err := client.Join(p.Addr()); err != nil {
		t.Fatal(err)
	}
	for {
		if _, ok := p.Member("node"); ok {
			break
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the client is no member")
		case <-time.After(time.Millisecond):
		}
	}
	suspects := make(chan []string, 1)
	p.Connect(members(nil), func(_ context.Context, ids []string) error {
		suspects <- ids
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.reportLosses(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	p.Lost([]string{"silent", "node"})
	select {
	case ids := <-suspects:
		if !slices.Equal(ids, []string{"node"}) {
			t.Errorf("suspects: %v", ids)
		}
	case <-time.After(10 * time.Second):
		t.Error("the leader is not told")
	}
}
