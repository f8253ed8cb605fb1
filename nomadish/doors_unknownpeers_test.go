package nomadish

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/certs"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// unknownSession opens an RPC session as somebody who verifies nothing, with a certificate, without one, or without TLS. It returns
// nil if the server does not let it in.
func unknownSession(t *testing.T, s *Server, pair *certs.Pair, plain bool) *wire.Session {
	t.Helper()
	raw, err := net.Dial("tcp", s.RPCAddr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	_ = raw.SetDeadline(time.Now().Add(2 * time.Minute))
	conn := raw
	if !plain {
		c := &tls.Config{InsecureSkipVerify: true} // a stranger
		if pair != nil {
			own, err := tls.X509KeyPair(pair.Cert, pair.Key)
			if err != nil {
				t.Fatal(err)
			}
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
		}
		conn = tls.Client(raw, c)
	}
	if _, err := conn.Write([]byte{wire.ProtoRPC}); err != nil {
		return nil
	}
	if answer := make([]byte, 1); !plain {
		if _, err := conn.Read(answer); err != nil || answer[0] != 0 {
			return nil
		}
	}
	session, err := wire.Client(conn, wire.Config{})
	if err != nil {
		return nil
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// TestDoorUnknownPeersCallNothing: with TLS and roles, what servers do among themselves is answered to a server of this region only,
// whoever else comes and however; and nobody else takes part in Raft.
func TestDoorUnknownPeersCallNothing(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	s := startWith(t, "", func(c *Config) { c.Port.TLS = ours.secure("server", "global", true) })
	const old = 3 * certs.Day
	calls := map[string]func(ctx context.Context, session *wire.Session) error{
		wire.MethodEvalDequeue: func(ctx context.Context, session *wire.Session) error {
			return session.Call(ctx, wire.MethodEvalDequeue, &structs.EvalDequeueRequest{Timeout: time.Millisecond}, &structs.EvalDequeueReply{})
		},
		wire.MethodRaftState: func(ctx context.Context, session *wire.Session) error {
			return session.Call(ctx, wire.MethodRaftState, &structs.RaftStateRequest{}, &structs.RaftStateReply{})
		},
		wire.MethodBootstrapVote: func(ctx context.Context, session *wire.Session) error {
			return session.Call(ctx, wire.MethodBootstrapVote, &structs.BootstrapVoteRequest{Region: "global", Candidate: "f", Name: "f"}, &structs.BootstrapVoteReply{})
		},
		wire.MethodSnapshotSave: func(ctx context.Context, session *wire.Session) error {
			stream, err := session.Stream(ctx, wire.MethodSnapshotSave, &structs.SnapshotSaveRequest{})
			if err != nil {
				return err
			}
			defer stream.Close()
			return stream.Recv(&structs.SnapshotChunk{})
		},
	}
	for who, c := range map[string]struct {
		pair    *certs.Pair
		plain   bool
		answers bool
	}{
		"a server":                         {pair: ours.pair("server", "global", 0), answers: true},
		"somebody without TLS":             {plain: true},
		"somebody without a certificate":   {},
		"a client":                         {pair: ours.pair("client", "global", 0)},
		"a command line":                   {pair: ours.pair("cli", "global", 0)},
		"a server of another region":       {pair: ours.pair("server", "eu", 0)},
		"a client of another region":       {pair: ours.pair("client", "eu", 0)},
		"a server whose time is over":      {pair: ours.pair("server", "global", old)},
		"a server of another authority":    {pair: theirs.pair("server", "global", 0)},
		"a client of another authority":    {pair: theirs.pair("client", "global", 0)},
		"an expired one of another at all": {pair: theirs.pair("server", "global", old)},
	} {
		for method, call := range calls {
			answered := false
			if session := unknownSession(t, s, c.pair, c.plain); session != nil {
				err := call(t.Context(), session)
				answered = err == nil || structs.CodeOf(err) != structs.CodeForbidden && !sessionEnded(err)
			}
			if answered != c.answers {
				t.Errorf("%s: %s is answered: %v", who, method, answered)
			}
		}
		if !c.plain && knock(t, s, c.pair, wire.ProtoRaft) != c.answers {
			t.Errorf("%s: takes part in Raft: %v", who, !c.answers)
		}
	}
	if _, err := raftConn(t, nil, s); err == nil {
		t.Error("somebody without TLS takes part in Raft")
	}
}

// sessionEnded reports whether a call failed as the other side closed the connection.
func sessionEnded(err error) bool {
	text := err.Error()
	return strings.Contains(text, "EOF") || strings.Contains(text, "session shutdown") || strings.Contains(text, "reset") || strings.Contains(text, "closed")
}

// TestDoorForeignServers: who gossips with a cluster but cannot prove to be a server of its region and authority, or is of another
// cluster, is never added to Raft, not even without a vote.
func TestDoorForeignServers(t *testing.T) {
	log := &lines{}
	ours, theirs := newAuthority(t), newAuthority(t)
	s := startWith(t, "", func(c *Config) { logged(log)(c); c.Port.TLS = ours.secure("server", "global", true) })
	voters, others := peers(s)
	for name, c := range map[string]struct {
		secure *wire.TLS
		expect int
		says   string
	}{
		"plain":            {nil, 0, ""},
		"other-authority":  {theirs.secure("server", "global", true), 0, ""},
		"clients":          {ours.secure("client", "global", false), 0, ""},
		"another-cluster":  {ours.secure("server", "global", true), 1, "belongs to another cluster"},
		"another-regions":  {ours.secure("server", "eu", false), 0, ""},
		"founder-of-other": {theirs.secure("server", "global", true), 1, ""},
	} {
		cfg := quickTestConfig()
		cfg.Name, cfg.Port.Addr, cfg.Membership.Expect, cfg.Port.TLS = name, "127.0.0.1:0", c.expect, c.secure
		foreign, err := NewServer(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := foreign.Shutdown(); err != nil {
				t.Error(err)
			}
		})
		if _, err := foreign.gossip.Join([]string{s.SerfAddr()}); err != nil {
			t.Fatal(err)
		}
		within(t, time.Minute, name+" refused", func(context.Context) error {
			if v, o := peers(s); len(v)+len(o) != len(voters)+len(others) {
				return nil // it was added, see below
			}
			if log.count(name) == 0 || c.says != "" && log.count(c.says) == 0 || c.says == "" && log.count("change Raft's configuration; trying again: name="+name) == 0 {
				return fmt.Errorf("nothing is said of it")
			}
			return nil
		})
		if v, o := peers(s); !slices.Equal(v, voters) || !slices.Equal(o, others) {
			t.Errorf("with %s the cluster is %v and %v", name, v, o)
		}
	}
	if !s.IsLeader() {
		t.Error("it does not lead any more")
	}
}
