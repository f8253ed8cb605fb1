package nomadish

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/certs"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// authority makes certificates.
type authority struct {
	t   *testing.T
	dir string
	ca  *certs.CA
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	pair, err := certs.NewCA(certs.CARequest{Days: 10, Now: time.Now().Add(-5 * certs.Day)})
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, dir: t.TempDir()}
	if a.ca, err = certs.ParseCA(*pair); err != nil {
		t.Fatal(err)
	}
	a.file("ca.pem", pair.Cert)
	return a
}

func (a *authority) file(name string, text []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// pair makes a certificate for a day, of which age has gone.
func (a *authority) pair(role, region string, age time.Duration) *certs.Pair {
	a.t.Helper()
	p, err := a.ca.Issue(certs.Request{Role: role, Region: region, Days: 1, Now: time.Now().Add(-age)})
	if err != nil {
		a.t.Fatal(err)
	}
	return p
}

func (a *authority) secure(role, region string, strict bool) *wire.TLS {
	a.t.Helper()
	p := a.pair(role, region, 0)
	secure, err := wire.LoadTLS(wire.TLSOptions{
		CAFile: filepath.Join(a.dir, "ca.pem"), CertFile: a.file("cert.pem", p.Cert), KeyFile: a.file("key.pem", p.Key),
		Region: region, Role: role, VerifyRoles: strict,
	}, hclog.NewNullLogger())
	if err != nil {
		a.t.Fatal(err)
	}
	return secure
}

// identities makes certificates of one authority.
func identities(t *testing.T) func(role, region string, strict bool) *wire.TLS {
	t.Helper()
	return newAuthority(t).secure
}

// What servers alone may do is refused to a client's certificate and to a server's of
// another region, and what people ask too: servers of other regions pass it on, and say so.
func TestRolesOnRPC(t *testing.T) {
	issue := identities(t)
	s := startWith(t, "", func(c *Config) { c.Port.TLS = issue("server", "global", true) })
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
	// What only servers' agents pass on, here or in another region.
	agents := []try{
		{wire.MethodRaftRemove, &structs.RaftPeerRequest{ID: s.raft.ID()}, &structs.WriteReply{}},
		{wire.MethodRaftTransfer, &structs.RaftPeerRequest{ID: s.raft.ID()}, &structs.WriteReply{}},
		{wire.MethodAutopilotSet, &structs.AutopilotConfigRequest{}, &structs.AutopilotSetReply{}},
		{wire.MethodJoin, &structs.JoinRequest{}, &structs.CountReply{}},
		{wire.MethodForceLeave, &structs.ForceLeaveRequest{Name: "x"}, &structs.WriteReply{}},
		{wire.MethodSnapshotRestore, &structs.SnapshotRestoreRequest{}, &structs.WriteReply{}},
		{wire.MethodSystemGC, &structs.GCRequest{}, &structs.WriteReply{}},
		{wire.MethodSchedulerGet, &structs.EmptyRequest{}, &structs.SchedulerConfigReply{}},
	}
	people := []try{
		{wire.MethodJobList, &structs.ListRequest{}, &structs.JobListReply{}},
		{wire.MethodNodeAllocs, &structs.IDRequest{ID: structs.FormatUUID([16]byte{}, 4)}, &structs.AllocsReply{}},
		{wire.MethodForecast, &structs.ForecastRequest{}, &structs.ForecastReply{}},
		{wire.MethodWhatIf, &structs.WhatIfRequest{}, &structs.WhatIfReply{}}, // for who may, it is refused as empty
		{wire.MethodClientFSList, &structs.FSRequest{AllocID: structs.FormatUUID([16]byte{}, 4)}, &structs.FSListReply{}},
	}
	f := func(secure *wire.TLS, mayServe, far bool) {
		t.Helper()
		session, err := wire.Dial(t.Context(), "global", s.RPCAddr(), wire.Config{TLS: secure})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close() //nolint:errcheck // a test
		if err := session.Call(t.Context(), wire.MethodPing, &structs.EmptyRequest{}, &structs.WriteReply{}); (err != nil) != far {
			t.Errorf("ping: %v", err)
		}
		for _, c := range slices.Concat(servers, agents, people) {
			err := session.Call(t.Context(), c.method, c.args, c.reply)
			refused := structs.CodeOf(err) == structs.CodeForbidden && strings.Contains(fmt.Sprint(err), "may not call it")
			if refused == mayServe {
				t.Errorf("%s: %v", c.method, err)
			}
		}
	}
	f(issue("client", "global", true), false, false)
	f(issue("server", "eu", true), false, true)
	f(issue("server", "global", true), true, false)
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
	first := startWith(t, "", func(c *Config) { c.Port.TLS = issue("server", "global", true) })
	cfg := quickTestConfig()
	cfg.Name, cfg.Port.Addr, cfg.Membership.Expect, cfg.Port.TLS = "s2", "127.0.0.1:0", 0, issue("server", "global", true)
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
		if _, id := second.raft.LeaderWithID(); string(id) != first.raft.ID() {
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

// knock comes to a server with a certificate (nil: none) that checks nothing itself, says what it will carry, and reports whether
// it was let in.
func knock(t *testing.T, s *Server, pair *certs.Pair, proto byte) bool {
	t.Helper()
	c := &tls.Config{InsecureSkipVerify: true} // a stranger
	if pair != nil {
		own, err := tls.X509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil } // whether asked for it or not
	}
	raw, err := net.Dial("tcp", s.RPCAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close() //nolint:errcheck // a test
	_ = raw.SetDeadline(time.Now().Add(2 * time.Minute))
	conn := tls.Client(raw, c)
	if err := conn.Handshake(); err != nil {
		t.Errorf("a stranger's handshake, which the server refuses only when it is done: %v", err)
		return false
	}
	if _, err := conn.Write([]byte{proto}); err != nil {
		return false
	}
	answer := make([]byte, 1)
	n, err := io.ReadFull(conn, answer)
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		t.Error("a stranger is kept waiting")
	}
	return n == 1 && answer[0] == 0
}

// Whose certificate has expired, is of another authority, or of a role that is not for what it asks, is refused on RPC and on
// Raft; each fault is logged once, however often it comes, and nothing comes of it.
func TestUnknownPeersOverTLS(t *testing.T) {
	log := &lines{}
	ours, theirs := newAuthority(t), newAuthority(t)
	s := startWith(t, "", func(c *Config) { logged(log)(c); c.Port.TLS = ours.secure("server", "global", true) })
	const old = 3 * certs.Day
	both, rpc, raft := []byte{wire.ProtoRPC, wire.ProtoRaft}, []byte{wire.ProtoRPC}, []byte{wire.ProtoRaft}
	term, members := s.raft.Stats()["term"], len(s.gossip.Members())
	voters, others := peers(s)
	for what, c := range map[string]struct {
		pair    *certs.Pair
		refused []byte
		taken   []byte
	}{
		"a server":                            {ours.pair("server", "global", 0), nil, both},
		"a client":                            {ours.pair("client", "global", 0), raft, rpc},
		"a server of another region":          {ours.pair("server", "eu", 0), raft, rpc},
		"a client of another region":          {ours.pair("client", "eu", 0), both, nil},
		"a command line":                      {ours.pair("cli", "global", 0), both, nil},
		"a server whose time is over":         {ours.pair("server", "global", old), both, nil},
		"a client whose time is over":         {ours.pair("client", "global", old), both, nil},
		"a server of another authority":       {theirs.pair("server", "global", 0), both, nil},
		"a client of another authority":       {theirs.pair("client", "global", 0), both, nil},
		"somebody who has no certificate":     {nil, both, nil},
		"an old one of another authority too": {theirs.pair("server", "global", old), both, nil},
	} {
		for range 3 {
			for _, proto := range c.refused {
				if knock(t, s, c.pair, proto) {
					t.Errorf("%s was let in to %q", what, proto)
				}
			}
		}
		for _, proto := range c.taken {
			if !knock(t, s, c.pair, proto) {
				t.Errorf("%s was not let in to %q", what, proto)
			}
		}
	}
	for text, want := range map[string]int{
		"has expired":                  1,
		"unknown authority":            1,
		"didn't provide a certificate": 1,
		"[client.global.nomad localhost] may not take part in Raft": 1,
		"[server.eu.nomad localhost] may not take part in Raft":     1,
		"[client.eu.nomad localhost] may not take part in Raft":     1,
		"[client.eu.nomad localhost] may not use RPC":               1,
		"[cli.global.nomad localhost] may not take part in Raft":    1,
		"[cli.global.nomad localhost] may not use RPC":              1,
		"refused a connection":                                      9,
	} {
		within(t, time.Minute, text, func(context.Context) error { // the last may be being written
			if n := log.count(text); n < want {
				return fmt.Errorf("it is logged %d times", n)
			}
			return nil
		})
		if n := log.count(text); n != want {
			t.Errorf("%q is logged %d times, not %d", text, n, want)
		}
	}
	if v, o := peers(s); s.raft.Stats()["term"] != term || !s.IsLeader() || len(s.gossip.Members()) != members || !slices.Equal(v, voters) || !slices.Equal(o, others) {
		t.Errorf("the cluster is now %v, %v, its term %s", v, o, s.raft.Stats()["term"])
	}
	if _, err := register(t.Context(), s, batchJob("after", 1)); err != nil {
		t.Error(err)
	}
}

// relay stands between a client and a server, and keeps what the client says.
type relay struct {
	t    *testing.T
	addr string

	mu       sync.Mutex
	reported [][]byte
	to       net.Conn
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{t: t, addr: l.Addr().String()}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		from, err := l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", to)
		if err != nil {
			t.Error(err)
			_ = from.Close()
			return
		}
		r.mu.Lock()
		r.to = out
		r.mu.Unlock()
		wg.Go(func() { _, _ = io.Copy(from, out); _ = from.Close() })
		_, _ = io.Copy(r, from)
		_ = out.Close()
	})
	return r
}

// Write passes on what the client says.
func (r *relay) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reported = append(r.reported, bytes.Clone(p))
	return r.to.Write(p)
}

// What was said over TLS and is said again by somebody in between, in the same connection or in another, whole or cut off, has no
// effect, and is logged next to never.
func TestReplayedOverTLS(t *testing.T) {
	log := &lines{}
	issue := identities(t)
	s := startWith(t, "", func(c *Config) { logged(log)(c); c.Port.TLS = issue("server", "global", true) })
	r := newRelay(t, s.RPCAddr())
	session, err := wire.Dial(t.Context(), "global", r.addr, wire.Config{TLS: issue("server", "global", true)})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close() //nolint:errcheck // a test
	if err := session.Call(t.Context(), wire.MethodJobRegister, &structs.JobRegisterRequest{Job: batchJob("once", 1)}, &structs.JobRegisterReply{}); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	reported := bytes.Join(r.reported, nil)
	for _, record := range r.reported[len(r.reported)-min(len(r.reported), 3):] {
		if _, err := r.to.Write(record); err != nil {
			break // it was thrown out by the first
		}
	}
	r.mu.Unlock()
	within(t, time.Minute, "the end of the session in which something was said twice", func(ctx context.Context) error {
		if err := session.Call(ctx, wire.MethodPing, &structs.EmptyRequest{}, &structs.WriteReply{}); err == nil {
			return errors.New("it goes on")
		}
		return nil
	})
	for n := 1; n < len(reported); n += max(1, len(reported)/32) {
		play(t, s.RPCAddr(), reported[:n], false)
	}
	for range 3 {
		play(t, s.RPCAddr(), reported, true)
	}
	if _, err := register(t.Context(), s, batchJob("after", 1)); err != nil {
		t.Errorf("a true call afterwards: %v", err)
	}
	if got := fmt.Sprint(jobIDs(t, s, false)); got != "[after once]" {
		t.Errorf("the jobs are %s", got)
	}
	snap, queried := s.store.Snapshot(), 0
	for _, ev := range snap.EvalsByJob(nil, structs.DefaultNamespace, "once") {
		if ev.TriggeredBy == structs.EvalTriggerJobRegister && ev.PreviousEval == "" {
			queried++
		}
	}
	if job := snap.Job(nil, structs.DefaultNamespace, "once"); job.Version != 0 || queried != 1 {
		t.Errorf("the job has version %d and was registered %d times", job.Version, queried)
	}
	if n := log.count("[WARN]") + log.count("[ERROR]"); n > 3 {
		t.Errorf("it says %d times that something is wrong:\n%s", n, log.b.String())
	}
}

// Every method that a server answers is in the table of methods, which says who may call it, and it answers all of that table but
// what agents answer by themselves, and what servers ask of clients.
func TestMethodsInTable(t *testing.T) {
	s := startWith(t, "", func(*Config) {})
	for _, name := range s.mux.Methods() {
		if _, ok := wire.MethodNamed(name); !ok {
			t.Errorf("%s is not in the table", name)
		}
	}
	others := []string{wire.MethodClientPing, wire.MethodClientProbe}
	for _, m := range wire.Methods() {
		byAgent := strings.HasPrefix(m.Name, "agent/") || strings.HasPrefix(m.Name, "Agent.") // a server without an agent
		if _, ok := s.mux.Handler(m.Name); ok == (byAgent || slices.Contains(others, m.Name)) {
			t.Errorf("%s: answered is %v", m.Name, ok)
		}
	}
}
