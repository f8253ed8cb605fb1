package client

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/certs"
	"github.com/nomadish/nomadish/internal/clientpool"
	"github.com/nomadish/nomadish/internal/wire"
)

// authority returns identities by one certificate authority, which check what they are shown but no roles, unless strict.
func authority(t *testing.T) func(role, region string, strict bool) *wire.TLS {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	pair, err := certs.NewCA(certs.CARequest{Days: 2, Now: time.Now()})
	must(err)
	ca, err := certs.ParseCA(*pair)
	must(err)
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		must(os.WriteFile(path, text, 0o600))
		return path
	}
	return func(role, region string, strict bool) *wire.TLS {
		t.Helper()
		own, err := ca.Issue(certs.Request{Role: role, Region: region, Days: 1, Now: time.Now()})
		must(err)
		secure, err := wire.LoadTLS(wire.TLSOptions{
			CAFile: file("ca.pem", pair.Cert), CertFile: file("cert.pem", own.Cert), KeyFile: file("key.pem", own.Key),
			Region: region, Role: role, VerifyRoles: strict,
		}, hclog.NewNullLogger())
		must(err)
		return secure
	}
}

// announce has a server take part in the clients' gossip, beside the members at addr (empty: it is the first).
func announce(t *testing.T, s *fakeServer, id, at string) *clientpool.Pool {
	t.Helper()
	p, err := clientpool.New(clientpool.Config{
		ID: id, Role: clientpool.RoleServer, Region: "global", RPCAddr: s.addr, BindAddr: "127.0.0.1:0", Key: gossipKey, ProbeInterval: 200 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Shutdown() })
	if at == "" {
		return p
	}
	if err := p.Join(at); err != nil {
		t.Fatal(err)
	}
	return p
}

var gossipKey = bytes.Repeat([]byte{7}, 16)

// A member of the clients' gossip that calls itself a server, and has not a server's certificate of this region, is tried and not
// used: nothing is said to it. The true one is found by the same gossip.
func TestFalseServersByGossip(t *testing.T) {
	ours, theirs := authority(t), authority(t)
	liars := map[string]*fakeServer{
		"a client":                      newFakeServerAs(t, ours("client", "global", false)),
		"a server of another region":    newFakeServerAs(t, ours("server", "eu", false)),
		"a server of another authority": newFakeServerAs(t, theirs("server", "global", false)),
		"one without a certificate":     newFakeServer(t),
	}
	r := newRig(t)
	r.s = newFakeServerAs(t, ours("server", "global", true))
	r.config.Servers, r.config.Region = nil, "global"
	r.config.RPC = wire.Config{TLS: ours("client", "global", true)}
	first := ""
	for _, s := range liars {
		p := announce(t, s, "liar@"+s.addr, first)
		if first == "" {
			first = p.Addr()
		}
	}
	r.config.Gossip = GossipConfig{On: true, BindAddr: "127.0.0.1:0", Key: gossipKey, Join: []string{first}, ProbeInterval: 200 * time.Millisecond, Retry: time.Second}
	c, err := New(r.config)
	if err != nil {
		t.Fatal(err)
	}
	r.c = c
	t.Cleanup(r.stop)
	for what, s := range liars {
		s.until(what+" being tried", func() bool { return s.turned > 0 })
	}
	if known := c.servers.all(); len(known) > 0 {
		t.Errorf("it takes %v for servers", known)
	}
	announce(t, r.s, "true-one", first)
	r.s.until("the node registers", func() bool { return r.s.sessions[c.NodeID()] != nil })
	if known := c.servers.all(); !slices.Equal(known, []string{r.s.addr}) {
		t.Errorf("it takes %v for servers, not %s alone", known, r.s.addr)
	}
	for what, s := range liars {
		s.mu.Lock()
		if len(s.nodes)+len(s.sessions)+len(s.beats) > 0 {
			t.Errorf("%s was told of the node", what)
		}
		s.mu.Unlock()
	}
}
