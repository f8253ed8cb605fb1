package quorum

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/nomadish/gossip"
	"github.com/nomadish/nomadish/structs"
)

// configured is a Raft of one server.
type configured struct{ *raft.Raft }

func (configured) GetConfiguration() raft.ConfigurationFuture { return conf{} }

type conf struct{ raft.ConfigurationFuture }

func (conf) Error() error { return nil }
func (conf) Configuration() raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "10.0.0.1:4647"}}}
}

// unasked are servers that nobody can reach, for one reason after the other.
type unasked struct {
	Caller
	servers []gossip.Server
	why     string
}

func (u *unasked) Servers() []gossip.Server             { return u.servers }
func (u *unasked) Subscribe() (<-chan struct{}, func()) { return nil, func() {} }
func (u *unasked) RaftState(context.Context, string, *structs.RaftStateRequest) (*structs.RaftStateReply, error) {
	return nil, errors.New(u.why)
}

// A server that cannot be made a peer is tried again each second, and logged once for each reason.
func TestWhoCannotBeAPeerIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	u := &unasked{servers: []gossip.Server{{ID: "b", Name: "b.global", Status: structs.MemberAlive, RPCAddr: "10.0.0.2:4647"}}}
	k := NewPeerReconciler(PeerReconcilerOptions{ID: "a", Cluster: func() string { return "c" }, Logger: hclog.New(&hclog.LoggerOptions{Output: &log})}, configured{}, u, nil, u)
	for _, u.why = range []string{"not verified by tls.ca_file", "not verified by tls.ca_file", "connection refused", "not verified by tls.ca_file"} {
		if k.reconcile(t.Context()) {
			t.Fatal("it went well")
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != 2 || !strings.Contains(log.String(), "connection refused") {
		t.Errorf("%d lines:\n%s", lines, log.String())
	}
}
