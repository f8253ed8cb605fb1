package nomadish

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// logged is a server's configuration that logs to l.
func logged(l *lines) func(*Config) {
	return func(c *Config) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: l, Level: hclog.Info}) }
}

// outside is where a stranger's Raft calls from; nobody calls it.
type outside struct {
	done chan struct{}
	once sync.Once
}

func (o *outside) Accept() (net.Conn, error) { <-o.done; return nil, net.ErrClosed }
func (o *outside) Close() error              { o.once.Do(func() { close(o.done) }); return nil }
func (o *outside) Addr() net.Addr            { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (o *outside) Dial(addr raft.ServerAddress, _ time.Duration) (net.Conn, error) {
	return (*wire.TLS)(nil).Dial(context.Background(), "", string(addr), wire.ProtoRaft)
}

// A server of another region or cluster that speaks Raft to this one's address is refused whatever it calls, and changes
// neither term nor log.
func TestForeignRaft(t *testing.T) {
	log := &lines{}
	s := startWith(t, "", logged(log))
	theirs := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: &outside{done: make(chan struct{})}, MaxPool: 1, Timeout: 30 * time.Second, Logger: hclog.NewNullLogger(),
	})
	t.Cleanup(func() {
		theirs.CloseStreams()
		if err := theirs.Close(); err != nil {
			t.Error(err)
		}
	})
	term, last := s.raft.Stats()["term"], s.raft.LastIndex()
	at := raft.ServerAddress(s.RPCAddr())
	from := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("stranger"), Addr: []byte("10.0.0.1:4647")}
	entry := &raft.Log{Index: 1, Term: 1000, Type: raft.LogCommand, Data: []byte("x")}
	for what, call := range map[string]func() error{
		"entries": func() error {
			args := &raft.AppendEntriesRequest{RPCHeader: from, Term: 1000, Entries: []*raft.Log{entry}, LeaderCommitIndex: 1}
			return theirs.AppendEntries("", at, args, &raft.AppendEntriesResponse{})
		},
		"a heartbeat": func() error {
			return theirs.AppendEntries("", at, &raft.AppendEntriesRequest{RPCHeader: from, Term: 1000}, &raft.AppendEntriesResponse{})
		},
		"a vote": func() error {
			args := &raft.RequestVoteRequest{RPCHeader: from, Term: 1000, LastLogIndex: 1000, LastLogTerm: 1000, LeadershipTransfer: true}
			return theirs.RequestVote("", at, args, &raft.RequestVoteResponse{})
		},
		"a vote before the vote": func() error {
			args := &raft.RequestPreVoteRequest{RPCHeader: from, Term: 1000, LastLogIndex: 1000, LastLogTerm: 1000}
			return theirs.RequestPreVote("", at, args, &raft.RequestPreVoteResponse{})
		},
		"a handover": func() error {
			return theirs.TimeoutNow("", at, &raft.TimeoutNowRequest{RPCHeader: from}, &raft.TimeoutNowResponse{})
		},
		"a snapshot": func() error {
			args := &raft.InstallSnapshotRequest{RPCHeader: from, SnapshotVersion: raft.SnapshotVersionMax, Term: 1000, LastLogIndex: 1000, LastLogTerm: 1000, Size: 4}
			return theirs.InstallSnapshot("", at, args, &raft.InstallSnapshotResponse{}, strings.NewReader("oops"))
		},
		"nobody's": func() error {
			return theirs.AppendEntries("", at, &raft.AppendEntriesRequest{Term: 1000}, &raft.AppendEntriesResponse{})
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "not of this cluster") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if now := s.raft.Stats()["term"]; now != term || !s.IsLeader() || s.raft.LastIndex() < last {
		t.Errorf("term %s, was %s; it leads: %t; last index %d, was %d", now, term, s.IsLeader(), s.raft.LastIndex(), last)
	}
	if n := log.count(`id="\"stranger\""`); n != 1 {
		t.Errorf("the stranger is logged %d times:\n%s", n, log.b.String())
	}
	if _, err := register(t.Context(), s, batchJob("after", 1)); err != nil {
		t.Error(err)
	}
}

// TestRaftBeforeBootstrap: who has promised itself to a founder, and belongs to no cluster yet, lets only that one's Raft in and
// that of those it bootstraps the cluster with; who is to be added to a cluster, that of servers which gossip knows.
func TestRaftBeforeBootstrap(t *testing.T) {
	s := prepare(t, 3, nil).run(0)
	lets := func(id string, want bool) {
		t.Helper()
		if s.isMember(id) != want {
			t.Errorf("lets Raft of %q in: %v", id, !want)
		}
	}
	for _, id := range []string{"", "founder", "voter", "stranger", s.raft.ID()} {
		lets(id, false)
	}
	r, err := s.bootstrapper.Consider(&structs.BootstrapVoteRequest{Region: "global", Candidate: "founder", Name: "f", Try: 1, Voters: []string{"founder", "voter", s.raft.ID()}})
	if err != nil || !r.Agreed || !s.takesRaft() {
		t.Fatalf("%+v, %v", r, err)
	}
	lets("founder", true)
	lets("voter", true)
	lets("stranger", false)
	lets("", false)
	if _, err := s.bootstrapper.Consider(&structs.BootstrapVoteRequest{Region: "global", Candidate: "founder", Name: "f", Try: 1, Release: true}); err != nil {
		t.Fatal(err)
	}
	lets("founder", false)
	lets("voter", false)
	if to, _, err := s.bootstrapper.Claim(&structs.RaftStateRequest{Claim: "cluster", Leader: "l"}); to != "cluster" || err != nil {
		t.Fatalf("promised to %q, %v", to, err)
	}
	lets("stranger", false)
	lets("founder", false)
	lets(s.raft.ID(), true) // as any that gossip knows
}

// Who has a node's ID and not its secret can do nothing in its name; the true one is unaffected.
func TestStolenNodeID(t *testing.T) {
	log := &lines{}
	s := startWith(t, "", logged(log))
	dial := func() *wire.Session {
		session, err := wire.Dial(t.Context(), "", s.RPCAddr(), wire.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = session.Close() })
		return session
	}
	honest, thief := dial(), dial()
	mine := wire.NewMux(hclog.NewNullLogger(), 0)
	mine.Handle(wire.MethodClientHostStats, wire.Unary(func(context.Context, *structs.ClientHostStatsRequest) (*structs.ClientHostStatsReply, error) {
		return &structs.ClientHostStatsReply{Stats: &structs.HostStats{Uptime: 42}}, nil
	}))
	var serving sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	serving.Go(func() { mine.Serve(ctx, honest) })
	t.Cleanup(func() { cancel(); serving.Wait() })
	n := node(1)
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	hello := &structs.NodeHeartbeatRequest{NodeID: n.ID, SecretID: n.SecretID}
	ok(honest.Call(t.Context(), wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: n}, &structs.NodeUpdateReply{}))
	ok(honest.Call(t.Context(), wire.MethodClientHello, hello, &structs.WriteReply{}))

	stolen := node(1)
	stolen.SecretID, stolen.Name = "another", "thief"
	beat := &structs.NodeHeartbeatRequest{NodeID: n.ID, SecretID: "another", Status: structs.NodeStatusDown}
	for range 3 {
		for method, args := range map[string]any{
			wire.MethodNodeRegister:     &structs.NodeRegisterRequest{Node: stolen},
			wire.MethodNodeHeartbeat:    beat,
			wire.MethodClientHello:      beat,
			wire.MethodNodeClientAllocs: &structs.ClientAllocsRequest{NodeID: n.ID, SecretID: "another"},
			wire.MethodNodeUpdateAllocs: &structs.ClientUpdateRequest{NodeID: n.ID, SecretID: "another", Updates: []*structs.AllocClientUpdate{{ID: n.ID}}},
			wire.MethodNodeEvents:       &structs.NodeEventsRequest{NodeID: n.ID, SecretID: "", Events: []*structs.NodeEvent{{Message: "false"}}},
		} {
			if err := thief.Call(t.Context(), method, args, &struct{}{}); structs.CodeOf(err) != structs.CodeForbidden {
				t.Errorf("%s: %v", method, err)
			}
		}
	}
	if now := s.store.Snapshot().Node(nil, n.ID); now.Name != n.Name || now.Status != structs.NodeStatusReady || len(now.Events) != 1 {
		t.Errorf("the node is now %+v", now)
	}
	ok(honest.Call(t.Context(), wire.MethodNodeHeartbeat, hello, &structs.NodeUpdateReply{}))
	stats := &structs.ClientHostStatsReply{}
	ok(s.Call(t.Context(), wire.MethodClientHostStats, &structs.ClientHostStatsRequest{NodeID: n.ID}, stats))
	if stats.Stats == nil || stats.Stats.Uptime != 42 {
		t.Errorf("a call to the node is answered by somebody else: %+v", stats.Stats)
	}
	if n := log.count("its secret does not match"); n != 1 {
		t.Errorf("said %d times that a secret does not match", n)
	}
}

// tape keeps what is written to a connection.
type tape struct {
	net.Conn
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *tape) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.b.Write(p)
	return r.Conn.Write(p)
}

// play opens a connection, writes and closes it. wait: only when the server has nothing more to say for a moment.
func play(t *testing.T, addr string, data []byte, wait bool) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // a test
	if _, err := conn.Write(data); err != nil {
		return // it was closed already
	}
	if wait {
		_ = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		_, _ = io.Copy(io.Discard, conn)
	}
}

// Frames that are cut off, too large, of nonsense or said twice: the server goes on, says next to nothing, and nothing comes
// of them that did not come of the true ones.
func TestBrokenFrames(t *testing.T) {
	log := &lines{}
	s := startWith(t, "", logged(log))
	addr := s.RPCAddr()
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	conn := &tape{Conn: raw}
	if _, err := conn.Write([]byte{wire.ProtoRPC}); err != nil {
		t.Fatal(err)
	}
	session, err := wire.Client(conn, wire.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Call(t.Context(), wire.MethodJobRegister, &structs.JobRegisterRequest{Job: batchJob("once", 1)}, &structs.JobRegisterReply{}); err != nil {
		t.Fatal(err)
	}
	conn.mu.Lock()
	reported := bytes.Clone(conn.b.Bytes())
	conn.mu.Unlock()
	_ = session.Close()

	quiet := log.count("[WARN]") + log.count("[ERROR]")
	for n := 1; n < len(reported); n += max(1, len(reported)/64) {
		play(t, addr, reported[:n], false)
	}
	play(t, addr, reported, true)      // said twice: the same is asked for once more
	rng := rand.New(rand.NewPCG(1, 2)) // a test
	for range 200 {
		nonsense := make([]byte, 1+rng.IntN(2000))
		for i := range nonsense {
			nonsense[i] = byte(rng.Uint32())
		}
		nonsense[0] = wire.ProtoRPC
		play(t, addr, nonsense, false)
	}
	for _, proto := range []byte{0, 'G', 0xff} {
		for range 20 {
			play(t, addr, []byte{proto, 'E', 'T', ' ', '/'}, false)
		}
	}
	for _, size := range []uint32{65 << 10, codec.MaxFrame + 1, 1<<31 - 1, 1<<32 - 1} {
		play(t, addr, append([]byte{wire.ProtoRPC}, stream(binary.BigEndian.AppendUint32(nil, size))...), true)
	}
	if _, err := register(t.Context(), s, batchJob("after", 1)); err != nil {
		t.Errorf("a true call afterwards: %v", err)
	}
	if got := fmt.Sprint(jobIDs(t, s, false)); got != "[after once]" {
		t.Errorf("the jobs are %s", got)
	}
	if job := s.store.Snapshot().Job(nil, structs.DefaultNamespace, "once"); job.Version != 0 {
		t.Errorf("the job that was said twice has version %d", job.Version)
	}
	// One for what does not speak RPC, of one kind from one address.
	if n := log.count("[WARN]") + log.count("[ERROR]") - quiet; n > 3 {
		t.Errorf("it says %d times that something is wrong:\n%s", n, log.b.String())
	}
}

// stream is data on a new stream of a session, as yamux frames it.
func stream(data []byte) []byte {
	head := []byte{0, 0, 0, 1, 0, 0, 0, 1}                                         // version, data, SYN, stream 1
	return append(binary.BigEndian.AppendUint32(head, uint32(len(data))), data...) // a few bytes
}

// halfOpen opens n connections that say no more than this, and tells of each that is closed.
func halfOpen(t *testing.T, addr string, n int, reported ...byte) (conns []net.Conn, closed <-chan error) {
	t.Helper()
	tell := make(chan error, n)
	for range n {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		conns = append(conns, conn)
		_, _ = conn.Write(reported)
		go func() {
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			_, err := conn.Read(make([]byte, 1))
			tell <- err
		}()
	}
	return conns, tell
}

// allClosed waits until n connections are closed.
func allClosed(t *testing.T, n int, closed <-chan error) {
	t.Helper()
	for i := range n {
		var late net.Error
		if err := <-closed; errors.As(err, &late) && late.Timeout() {
			t.Fatalf("of %d connections that say nothing only %d are closed", n, i)
		}
	}
}

// trueCall calls the server over a new connection.
func trueCall(t *testing.T, s *Server) {
	t.Helper()
	within(t, time.Minute, "a true call", func(ctx context.Context) error {
		session, err := wire.Dial(ctx, "", s.RPCAddr(), wire.Config{})
		if err != nil {
			return err
		}
		defer session.Close() //nolint:errcheck // a test
		return session.Call(ctx, wire.MethodJobList, &structs.ListRequest{}, &structs.JobListReply{})
	})
}

// Connections that do not say what they are have their time, and cost the others nothing.
func TestHalfOpenConnections(t *testing.T) {
	s := startWith(t, "", func(c *Config) { c.Port.HandshakeTimeout = 500 * time.Millisecond })
	_, silent := halfOpen(t, s.RPCAddr(), 20)
	_, others := halfOpen(t, s.RPCAddr(), 20, 0x16, 3, 1) // the beginning of TLS, which this server does not speak
	allClosed(t, 20, silent)
	allClosed(t, 20, others)
	trueCall(t, s)
}

// What an address opens beyond its number is closed at once, which is logged once; what it had before stays open, and when it
// closes one of these there is room for another.
func TestConnectionsOverTheirNumber(t *testing.T) {
	log := &lines{}
	s := startWith(t, "", func(c *Config) {
		logged(log)(c)
		c.Port.MaxConnsPerClient, c.Port.HandshakeTimeout = 20, 10*time.Minute // its end would close them too
	})
	reserved, open := halfOpen(t, s.RPCAddr(), 20)
	_, closed := halfOpen(t, s.RPCAddr(), 20)
	allClosed(t, 20, closed)
	if len(open) > 0 {
		t.Errorf("%d of those that were within the number are closed", len(open))
	}
	if n := log.count("rpc_max_conns_per_client is reached"); n != 1 {
		t.Errorf("the limit is logged %d times", n)
	}
	_ = reserved[0].Close()
	trueCall(t, s)
}
