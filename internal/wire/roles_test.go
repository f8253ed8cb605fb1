package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/structs"
)

// Every method that has a name is in the table, once, and the table has no others.
func TestEveryMethodHasRoles(t *testing.T) {
	named := map[string]bool{}
	for file, prefix := range map[string]string{"methods.go": "Method", "roles.go": "Agent"} {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, prefix) {
				return true
			}
			name, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			named[name] = true
			return true
		})
	}
	seen := map[string]bool{}
	for _, m := range Methods() {
		if seen[m.Name] || !named[m.Name] || m.Callers == 0 {
			t.Errorf("%s: stated twice, not a method, or for nobody", m.Name)
		}
		seen[m.Name] = true
	}
	for name := range named {
		if !seen[name] {
			t.Errorf("%s: not in the table", name)
		}
	}
}

// certified returns the peer that has a certificate of these names, on RPC or HTTPS.
func certified(rules *TLS, https, verified bool, names ...string) Peer {
	return rules.peer(&x509.Certificate{DNSNames: names}, verified, https)
}

func rulesOf(region string, clientRequests bool) *TLS {
	rules := &TLS{}
	rules.now.Store(&tlsState{TLSOptions: TLSOptions{Region: region, ClientRequests: clientRequests}})
	return rules
}

// TestRoles is every method for every role, at both doors.
func TestRoles(t *testing.T) {
	anyone := []string{MethodPing, MethodLeader, MethodPeers, MethodRegions, MethodMembers, MethodSigningKeys, AgentHealth, AgentMetrics, AgentMissing}
	nodes := []string{MethodNodeRegister, MethodNodeHeartbeat, MethodNodeClientAllocs, MethodNodeUpdateAllocs, MethodNodeEvents, MethodClientHello}
	operators := []string{
		MethodSystemGC, MethodEvalDelete, MethodReconcile, MethodSchedulerGet, MethodSchedulerSet, MethodCheck, MethodSnapshotSave, MethodSnapshotUpload,
		MethodSnapshotRestore, MethodRaftConfig, MethodRaftRemove, MethodRaftTransfer, MethodAutopilotGet, MethodAutopilotSet,
		MethodAutopilotHealth, MethodAgentMonitor, MethodAgentHost, MethodAgentProfile, AgentSetServers, AgentReload, AgentDebug, AgentOperate,
	}
	region, own := []string{MethodJoin, MethodForceLeave}, []string{MethodKeyring}
	servers := []string{
		MethodEvalDequeue, MethodEvalAck, MethodEvalNack, MethodEvalUpdate, MethodPlanSubmit, MethodBootstrapVote, MethodRaftState, MethodHasNode,
		MethodNodeSuspect, MethodNodeProbe, MethodClientPing, MethodClientProbe,
	}
	var people []string // the others
	others := slices.Concat(anyone, nodes, operators, region, own, servers)
	for _, m := range Methods() {
		if !slices.Contains(others, m.Name) {
			people = append(people, m.Name)
		}
	}
	if !slices.Contains(people, MethodJobRegister) || !slices.Contains(people, MethodClientFSRead) || len(people) != 102 /* a new one: is it really for people? */ {
		t.Errorf("%d methods are for people: %v", len(people), people)
	}
	all := make([]string, 0, len(methods))
	for _, m := range Methods() {
		all = append(all, m.Name)
	}
	f := func(what string, p Peer, via Via, want ...[]string) {
		t.Helper()
		names := slices.Sorted(slices.Values(slices.Concat(want...)))
		for _, name := range all {
			if may, err := slices.Contains(names, name), p.May(name, via); may != (err == nil) || (err != nil && structs.CodeOf(err) != structs.CodeForbidden) {
				t.Errorf("%s: %s: %v", what, name, err)
			}
		}
	}
	strict, open := rulesOf("global", false), rulesOf("global", true)
	const https, verified = true, true
	f("a server", certified(strict, !https, verified, "server.global.nomad", "localhost"), "", anyone, nodes, people, operators, region, servers)
	f("a server in capitals", certified(strict, !https, verified, "Server.Global.Nomad"), "", anyone, nodes, people, operators, region, servers)
	f("a client", certified(strict, !https, verified, "client.global.nomad"), "", anyone, nodes)
	for _, via := range []Via{ViaLeader, ViaConnected, ViaRegion} {
		f("a client that says it passes a call on", certified(strict, !https, verified, "client.global.nomad"), via, anyone, nodes)
	}
	f("a client, believed", certified(open, !https, verified, "client.global.nomad"), "", anyone, nodes, people)
	f("a server of another region", certified(open, !https, verified, "server.eu.nomad"), "")
	f("a server of another region that passes a call on", certified(strict, !https, verified, "server.eu.nomad"), ViaRegion, anyone, people, operators)
	f("a client of another region", certified(open, !https, verified, "client.eu.nomad"), ViaRegion)
	f("an operator on RPC", certified(open, !https, verified, "cli.global.nomad"), "")
	f("roles are not verified", certified(strict, !https, !verified, "client.eu.nomad"), "", anyone, nodes, people, operators, region, servers)
	f("plain", Peer{}, "", anyone, nodes, people, operators, region, servers)

	f("an operator", certified(strict, https, verified, "cli.global.nomad"), "", anyone, people, operators, region, own)
	f("a server's certificate over HTTPS", certified(strict, https, verified, "server.global.nomad"), "", anyone, people, operators, region, own)
	f("a client's certificate over HTTPS", certified(strict, https, verified, "client.global.nomad", "10.0.0.1"), "", anyone, nodes)
	f("a client's certificate over HTTPS, believed", certified(open, https, verified, "client.global.nomad"), "", anyone, nodes, people)
	f("another region's client's over HTTPS", certified(strict, https, verified, "client.eu.nomad"), ViaRegion, anyone, nodes)
	f("another region's operator's over HTTPS", certified(open, https, verified, "cli.eu.nomad"), "", anyone, people)
	f("another region's server's over HTTPS", certified(open, https, verified, "server.eu.nomad"), ViaRegion, anyone, people)
	f("a person's", certified(open, https, verified, "ann.example.org"), "", anyone, people)
	f("nobody's in particular", certified(open, https, verified), "", anyone, people)
	f("an operator's that is a client's too", certified(strict, https, verified, "client.global.nomad", "cli.global.nomad"), "", anyone, people, operators, region, own)
	f("another operator's that is a client's too", certified(strict, https, verified, "client.global.nomad", "cli.eu.nomad"), "", anyone, nodes)

	for _, p := range []Peer{certified(open, https, verified, "server.global.nomad"), certified(open, !https, verified, "server.global.nomad")} {
		if err := p.May("Job.Unheard", ""); structs.CodeOf(err) != structs.CodeForbidden {
			t.Errorf("a method that is not in the table: %v", err)
		}
	}
}

// A refusal says whose certificate it was, which one it needs, and what to do.
func TestRefusalSaysWhy(t *testing.T) {
	f := func(p Peer, method, want string) {
		t.Helper()
		if err := p.May(method, ""); err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", method, err, want)
		}
	}
	rules := rulesOf("eu", false)
	client, onHTTPS := certified(rules, false, true, "client.eu.nomad", "localhost"), certified(rules, true, true, "client.eu.nomad")
	const issue = "`nomadish tls cert create -cli -region eu` makes one for operators"
	f(client, MethodJobList, "Job.List: a certificate of [client.eu.nomad localhost] may not call it "+
		"(it is the certificate of the client's agent that passed the request on; use a server's agent instead (-address or NOMADISH_ADDR), or set tls { client_requests = true } on the servers)")
	f(client, MethodSystemGC, "System.GC: a certificate of [client.eu.nomad localhost] may not call it "+
		"(it is the certificate of the client's agent that passed the request on; operators call a server's agent (-address or NOMADISH_ADDR))")
	f(client, MethodEvalAck, "Eval.Ack: a certificate of [client.eu.nomad localhost] may not call it; it needs one for server.eu.nomad "+
		"(only servers call it, among themselves)")
	f(certified(rules, false, true, "server.global.nomad"), MethodNodeRegister, "Node.Register: a certificate of [server.global.nomad] may not call it; "+
		"it needs one for server.eu.nomad or client.eu.nomad (a node registers with the servers of its own region)")
	f(client, MethodKeyring, "Status.Keyring is for the server's own agent (use the HTTP API of an agent that runs a server)")
	f(onHTTPS, MethodJobList, "Job.List: a certificate of [client.eu.nomad] may not call it; it needs one for cli.eu.nomad, server.eu.nomad or any name "+
		"that is not a client's ("+issue+"; or set tls { client_requests = true } on this agent)")
	f(onHTTPS, AgentReload, "agent/reload: a certificate of [client.eu.nomad] may not call it; it needs one for cli.eu.nomad or server.eu.nomad ("+issue+")")
	f(certified(rules, true, true), MethodKeyring, "Status.Keyring: a certificate without a name may not call it; it needs one for cli.eu.nomad or server.eu.nomad ("+issue+")")
}

// The wall stands before every handler of a mux; a reload of the rules moves it for sessions that are open.
func TestMuxRefuses(t *testing.T) {
	p := newPKI(t)
	p.issue("server", "server", "global", 0)
	p.issue("client", "client", "global", 0)
	rules := load(t, p.options("server", "server"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test
	var log bytes.Buffer
	mux := NewMux(hclog.New(&hclog.LoggerOptions{Output: &log}), 0)
	for _, name := range []string{MethodPing, MethodJobList, MethodSystemGC, "Job.Unheard"} {
		mux.Handle(name, Unary(func(context.Context, *structs.EmptyRequest) (*structs.WriteReply, error) {
			return &structs.WriteReply{}, nil
		}))
	}
	pool := NewPool(Config{TLS: load(t, p.options("client", "client"))}, nil)
	defer pool.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		raw, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		conn, err := rules.Accept(t.Context(), raw, time.Minute)
		if err != nil {
			t.Error(err)
			return
		}
		s, err := Server(conn, Config{})
		if err != nil {
			t.Error(err)
			return
		}
		mux.Serve(t.Context(), s)
	}()
	s, err := pool.Session(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	f := func(method string, may bool) {
		t.Helper()
		err := s.Call(t.Context(), method, &structs.EmptyRequest{}, &structs.WriteReply{})
		if may != (err == nil) || !may && structs.CodeOf(err) != structs.CodeForbidden {
			t.Errorf("%s: %v", method, err)
		}
	}
	f(MethodPing, true)
	f(MethodJobList, false)
	f(MethodJobList, false)
	f(MethodSystemGC, false)
	f("Job.Unheard", false)
	o := p.options("server", "server")
	o.ClientRequests = true
	if err := rules.Reload(o); err != nil {
		t.Fatal(err)
	}
	f(MethodJobList, true)
	f(MethodSystemGC, false)
	if err := mux.Local(t.Context(), MethodSystemGC, &structs.EmptyRequest{}, &structs.WriteReply{}); err != nil {
		t.Errorf("a call in the same process: %v", err)
	}
	_ = s.Close()
	<-done
	if n := strings.Count(log.String(), "refused a call"); n != 3 {
		t.Errorf("the log has %d refusals:\n%s", n, log.String())
	}
}

// Nobody has a role over HTTPS of whom no certificate was requested, or whose was not verified.
func TestNoRolesUnverified(t *testing.T) {
	rules := rulesOf("global", false)
	leaf := &x509.Certificate{DNSNames: []string{"client.global.nomad"}}
	for what, c := range map[string]struct {
		rules *TLS
		state *tls.ConnectionState
		known bool
	}{
		"plain HTTP":              {nil, nil, false},
		"nothing of TLS":          {rules, nil, false},
		"no certificate":          {rules, &tls.ConnectionState{}, false},
		"one that is unverified":  {rules, &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}, false},
		"one that is of our CA's": {rules, &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf}}}, true},
	} {
		p, ok := c.rules.OnHTTPS(c.state)
		if ok != c.known || ok && p.May(MethodSnapshotSave, "") == nil {
			t.Errorf("%s: %v %v", what, p, ok)
		}
	}
}

// TestIsServer: a client's certificate makes nobody a server, whatever it says of a call; without certificates anybody may be one.
func TestIsServer(t *testing.T) {
	rules := rulesOf("global", true)
	for _, c := range []struct {
		peer Peer
		want bool
	}{
		{certified(rules, false, true, "server.global.nomad"), true},
		{certified(rules, false, true, "client.global.nomad"), false},
		{certified(rules, false, true, "server.mars.nomad"), false},
		{certified(rules, false, true, "cli.global.nomad"), false},
		{certified(rules, true, true, "server.global.nomad"), false},
		{Peer{}, true},
	} {
		if got := c.peer.IsServer(); got != c.want {
			t.Errorf("%s: %v, want %v", c.peer, got, c.want)
		}
	}
}
