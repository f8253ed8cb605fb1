package nomadish

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/structs"
	"github.com/nomadish/nomadish/structs/wire"
	"github.com/nomadish/nomadish/structs/wire/certs"
)

// identities makes certificates of one authority.
func identities(t *testing.T) func(role, region string, strict bool) *wire.TLS {
	t.Helper()
	pair, err := certs.NewCA(certs.CARequest{Days: 1, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	ca, err := certs.ParseCA(*pair)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	caFile := file("ca.pem", pair.Cert)
	return func(role, region string, strict bool) *wire.TLS {
		t.Helper()
		p, err := ca.Issue(certs.Request{Role: role, Region: region, Days: 1, Now: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		secure, err := wire.LoadTLS(wire.TLSOptions{
			CAFile: caFile, CertFile: file("cert.pem", p.Cert), KeyFile: file("key.pem", p.Key),
			Region: region, Role: role, VerifyRoles: strict,
		}, hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		return secure
	}
}

// What servers alone may do is refused to a client's certificate and to a server's of
// another region; all else is open to them.
func TestRolesOnRPC(t *testing.T) {
	issue := identities(t)
	s := startWith(t, "", func(c *Config) { c.TLS = issue("server", "global", true) })
	type try struct {
		method      string
		args, reply any
	}
	servers := []try{
		{wire.MethodEvalDequeue, &structs.EvalDequeueRequest{Timeout: time.Millisecond}, &structs.EvalDequeueReply{}},
		{wire.MethodEvalAck, &structs.EvalAckRequest{}, &structs.WriteReply{}},
		{wire.MethodEvalNack, &structs.EvalAckRequest{}, &structs.WriteReply{}},
		{wire.MethodEvalUpdate, &structs.EvalUpdateRequest{}, &structs.WriteReply{}},
		{wire.MethodPlanSubmit, &structs.PlanRequest{}, &structs.PlanReply{}},
	}
	f := func(secure *wire.TLS, mayServe bool) {
		t.Helper()
		session, err := wire.Dial(t.Context(), "global", s.RPCAddr(), wire.Config{TLS: secure})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close() //nolint:errcheck // a test
		if err := session.Call(t.Context(), wire.MethodJobList, &structs.ListRequest{}, &structs.JobListReply{}); err != nil {
			t.Errorf("list jobs: %v", err)
		}
		for _, c := range servers {
			err := session.Call(t.Context(), c.method, c.args, c.reply)
			refused := structs.CodeOf(err) == structs.CodeForbidden && strings.Contains(fmt.Sprint(err), "is for the servers of region")
			if refused == mayServe {
				t.Errorf("%s: %v", c.method, err)
			}
		}
	}
	f(issue("client", "global", true), false)
	f(issue("server", "eu", true), false)
	f(issue("server", "global", true), true)
	for name, secure := range map[string]*wire.TLS{
		"client": issue("client", "global", true), "server of eu": issue("server", "eu", true), "plain": nil,
	} {
		conn, err := raftConn(t, secure, s)
		if err == nil {
			t.Errorf("%s speaks Raft: %v", name, conn)
		}
	}
}

// raftConn opens a connection that carries Raft and waits for the other side's word.
func raftConn(t *testing.T, secure *wire.TLS, s *Server) (any, error) {
	t.Helper()
	conn, err := secure.Dial(t.Context(), "global", s.RPCAddr(), wire.ProtoRaft)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // a test
	if secure != nil {
		return conn, nil // the server said yes
	}
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	n, err := conn.Read(make([]byte, 1))
	return n, err
}

// A second server gets the log over TLS, and passes calls on to the leader.
func TestRaftOverTLS(t *testing.T) {
	issue := identities(t)
	first := startWith(t, "", func(c *Config) { c.TLS = issue("server", "global", true) })
	cfg := DefaultConfig()
	cfg.DevMode()
	cfg.Name, cfg.RPCAddr, cfg.BootstrapExpect, cfg.TLS = "s2", "127.0.0.1:0", 0, issue("server", "global", true)
	second, err := NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := second.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	if _, err := second.gossip.Join([]string{first.SerfAddr()}); err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, "the leader, known to the second server", func(context.Context) error {
		if _, id := second.raft.LeaderWithID(); string(id) != first.raft.id {
			return fmt.Errorf("it is %q", id)
		}
		return nil
	})
	if _, err := register(t.Context(), second, batchJob("through-the-second", 1)); err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, "the job at the second server", func(context.Context) error {
		if second.store.Snapshot().Job(nil, structs.DefaultNamespace, "through-the-second") == nil {
			return fmt.Errorf("it is not there")
		}
		return nil
	})
}
