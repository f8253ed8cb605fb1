package quorum

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/nomadish/gossip"
	"github.com/nomadish/nomadish/structs"
)

// town is servers with their disks; each sees those that it is shown.
type town struct {
	homes        []*home
	bootstrapped []raft.Configuration // every founding there ever was
}

// home is one server: what is on its disk, and what it sees while it runs.
type home struct {
	town *town
	id   string
	vote MemoryVote
	conf bool // it belongs to a cluster
	up   bool
	sees map[string]bool // IDs of other servers
	deaf map[string]bool // IDs of those whose questions do not come through
	dies int             // it crashes when so many more votes were requested; below 0: never
}

var errDied = errors.New("it crashed")

func newTown(n int) *town {
	tn := &town{}
	for i := range n {
		tn.homes = append(tn.homes, &home{town: tn, id: fmt.Sprintf("id-%d", i), sees: map[string]bool{}, deaf: map[string]bool{}, dies: -1})
	}
	return tn
}

func (t *town) at(addr string) *home {
	for _, h := range t.homes {
		if h.id == addr {
			return h
		}
	}
	return nil
}

func (h *home) bootstrapper(expect int) *Bootstrapper {
	return NewBootstrapper(BootstrapOptions{ID: h.id, Name: "name-" + h.id, Region: "r", Expect: expect}, h, h, calling{h}, &h.vote)
}

// Bootstrapped implements Bootstrap.
func (h *home) Bootstrapped() (bool, error) { return h.conf, nil }

// Bootstrap implements the interface Bootstrap.
func (h *home) Bootstrap(voters raft.Configuration) error {
	h.conf = true
	h.town.bootstrapped = append(h.town.bootstrapped, voters)
	return nil
}

// Servers implements Gossip.
func (h *home) Servers() []gossip.Server {
	var out []gossip.Server
	for _, o := range h.town.homes {
		if o == h || h.sees[o.id] {
			status := structs.MemberAlive
			if !o.up {
				status = structs.MemberFailed
			}
			out = append(out, gossip.Server{Member: "name-" + o.id + ".r", Name: "name-" + o.id, ID: o.id, Region: "r", RPCAddr: o.id, Expect: 3, Status: status})
		}
	}
	return out
}

// Subscribe implements Gossip.
func (h *home) Subscribe() (<-chan struct{}, func()) { return nil, func() {} }

// calling is a home as Caller.
type calling struct{ *home }

// RaftState implements Caller.
func (calling) RaftState(context.Context, string, *structs.RaftStateRequest) (*structs.RaftStateReply, error) {
	return nil, errDied
}

// BootstrapVote implements Caller.
func (a calling) BootstrapVote(_ context.Context, addr string, args *structs.BootstrapVoteRequest) (*structs.BootstrapVoteReply, error) {
	h := a.home
	if h.dies == 0 || !h.up {
		h.up = false
		return nil, errDied
	}
	h.dies--
	to := h.town.at(addr)
	if to == nil || !to.up || to.deaf[h.id] {
		return nil, errors.New("no answer")
	}
	return to.caller().Consider(args)
}

func (h *home) caller() *Bootstrapper {
	return NewBootstrapper(BootstrapOptions{ID: h.id, Name: "name-" + h.id, Region: "r", Expect: 3}, h, h, calling{h}, &h.vote)
}

// crashing makes a bootstrap fail that comes after the crash.
type crashing struct{ *home }

func (c crashing) Bootstrap(voters raft.Configuration) error {
	if !c.up || c.dies == 0 {
		c.up = false
		return errDied
	}
	return c.home.Bootstrap(voters)
}

func (h *home) try() error {
	f := NewBootstrapper(BootstrapOptions{ID: h.id, Name: "name-" + h.id, Region: "r", Expect: 3}, crashing{h}, h, calling{h}, &h.vote)
	return f.try(context.Background())
}

// TestNobodyFounds: a server that is not configured to bootstrap says in its log that it waits, once, when that lasts.
func TestNobodyFounds(t *testing.T) {
	for long, lines := range map[time.Duration]int{9 * time.Second: 0, time.Minute: 1} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			f := newTown(3).homes[0].bootstrapper(0)
			f.opts.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
			ctx, cancel := context.WithTimeout(t.Context(), long)
			defer cancel()
			f.Run(ctx)
			if text := log.String(); strings.Count(text, "\n") != lines || strings.Count(text, "bootstrap_expect") != lines {
				t.Errorf("after %s it says %q", long, text)
			}
		})
	}
}

// TestBootstrappedOnce: whatever order servers start, see each other, crash and come back
// in, no server belongs to two clusters, so that two can only be bootstrapped apart.
func TestBootstrappedOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(3, 5).Draw(t, "servers")
		tn := newTown(n)
		pick := func(what string) *home { return tn.homes[rapid.IntRange(0, n-1).Draw(t, what)] }
		t.Repeat(map[string]func(*rapid.T){
			"start": func(*rapid.T) { h := pick("start"); h.up, h.dies = true, -1 },
			"crash": func(*rapid.T) { h := pick("crash"); h.up, h.sees = false, map[string]bool{} },
			"doom":  func(t *rapid.T) { pick("doom").dies = rapid.IntRange(0, 4).Draw(t, "questions") },
			"meet":  func(*rapid.T) { a, b := pick("a"), pick("b"); a.sees[b.id], b.sees[a.id] = true, true },
			"lose":  func(*rapid.T) { delete(pick("who").sees, pick("whom").id) },
			"deafen": func(*rapid.T) {
				a, b := pick("who"), pick("whom")
				if a.deaf[b.id] {
					delete(a.deaf, b.id)
				} else {
					a.deaf[b.id] = true
				}
			},
			"try": func(*rapid.T) {
				if h := pick("founder"); h.up && !h.conf {
					_ = h.try() // what keeps it from bootstrapping is not of interest here
				}
			},
			"replicate": func(*rapid.T) { // a founder that runs makes its voters belong
				for _, conf := range tn.bootstrapped {
					for _, s := range conf.Servers {
						if h := tn.at(string(s.ID)); h.up && tn.at(string(conf.Servers[0].ID)).up {
							h.conf = true
						}
					}
				}
			},
			"": func(t *rapid.T) {
				in := map[raft.ServerID]int{}
				for i, conf := range tn.bootstrapped {
					if len(conf.Servers) != 3 {
						t.Fatalf("founded with %d servers", len(conf.Servers))
					}
					for _, s := range conf.Servers {
						if other, ok := in[s.ID]; ok && other != i {
							t.Fatalf("server %s was founded with twice: %v", s.ID, tn.bootstrapped)
						}
						in[s.ID] = i
					}
				}
			},
		})
	})
}

func TestBootstrap(t *testing.T) {
	t.Parallel()
	tn := newTown(4)
	all := func(do func(h *home)) {
		for _, h := range tn.homes {
			do(h)
		}
	}
	all(func(h *home) { h.up = true })
	if err := tn.homes[0].try(); err != nil || len(tn.bootstrapped) != 0 {
		t.Fatalf("alone: %v, %v", err, tn.bootstrapped)
	}
	all(func(h *home) { all(func(o *home) { h.sees[o.id] = true }) })
	if err := tn.homes[1].try(); err != nil || len(tn.bootstrapped) != 0 {
		t.Fatalf("not the first: %v, %v", err, tn.bootstrapped)
	}
	// The first one has all votes and dies before it bootstraps: nobody else may then.
	tn.homes[0].dies = 2
	if err := tn.homes[0].try(); !errors.Is(err, errDied) && err == nil {
		t.Fatalf("the doomed one: %v", err)
	}
	all(func(h *home) { delete(h.sees, tn.homes[0].id) })
	tn.homes[0].up = false
	if err := tn.homes[1].try(); err == nil || len(tn.bootstrapped) != 0 {
		t.Fatalf("while another has the promises: %v, %v", err, tn.bootstrapped)
	}
	// It comes back and does it.
	tn.homes[0].up, tn.homes[0].dies = true, -1
	all(func(h *home) { h.sees[tn.homes[0].id] = true })
	if err := tn.homes[0].try(); err != nil || len(tn.bootstrapped) != 1 {
		t.Fatalf("when it is back: %v, %v", err, tn.bootstrapped)
	}
	reply, err := tn.homes[0].caller().Consider(&structs.BootstrapVoteRequest{Candidate: "id-3", Name: "x"})
	if err != nil || !reply.HasState || reply.Agreed {
		t.Fatalf("one that belongs to a cluster answers %+v, %v", reply, err)
	}
	if _, err := tn.homes[0].caller().Consider(&structs.BootstrapVoteRequest{}); structs.CodeOf(err) != structs.CodeBadRequest {
		t.Fatalf("no founder: %v", err)
	}
}

// TestLateQuestions: what a bootstrapper requested in an earlier try undoes nothing of a later one, and gets it no vote that it
// does not want any more.
func TestLateQuestions(t *testing.T) {
	t.Parallel()
	f := newTown(1).homes[0].bootstrapper(3)
	call := func(bootstrapper string, try uint64, release bool) *structs.BootstrapVoteReply {
		t.Helper()
		reply, err := f.Consider(&structs.BootstrapVoteRequest{Candidate: bootstrapper, Name: "name-" + bootstrapper, Release: release, Try: try})
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	vote := func(want string) {
		t.Helper()
		if to, err := f.vote.Load(); err != nil || to.ID != want {
			t.Fatalf("promised to %q (%v), not to %q", to.ID, err, want)
		}
	}
	if !call("a", 5, false).Agreed {
		t.Fatal("nobody has the promise, and it is not given")
	}
	if !call("a", 7, false).Agreed {
		t.Fatal("not given again to the same")
	}
	call("a", 5, true) // it was on its way for long
	vote("a")
	if call("b", 1, false).Agreed {
		t.Fatal("given to two")
	}
	call("a", 7, true)
	vote("")
	if call("a", 7, false).Agreed || call("a", 6, false).Agreed {
		t.Fatal("given after it was taken back")
	}
	vote("")
	if !call("b", 1, false).Agreed {
		t.Fatal("not given to another after that")
	}
	call("b", 0, true) // of a version that does not number its tries
	vote("")
	if !call("a", 8, false).Agreed {
		t.Fatal("not given in a later try")
	}
}

// TestBootstrapperChanges: one that had votes and is not the first any more releases them.
func TestBootstrapperChanges(t *testing.T) {
	t.Parallel()
	tn := newTown(4)
	for _, h := range tn.homes[1:] {
		h.up = true
		for _, o := range tn.homes[1:] {
			h.sees[o.id] = true
		}
	}
	tn.homes[1].dies = 2 // it has all votes and ends before it bootstraps
	if err := tn.homes[1].try(); err == nil {
		t.Fatal("it founded")
	}
	tn.homes[1].up, tn.homes[1].dies = true, -1
	tn.homes[0].up = true
	for _, h := range tn.homes {
		for _, o := range tn.homes {
			h.sees[o.id] = true
		}
	}
	if err := tn.homes[0].try(); err == nil {
		t.Fatal("founded in spite of another's promises")
	}
	if err := tn.homes[1].try(); err != nil || len(tn.bootstrapped) != 0 {
		t.Fatalf("the one that was first: %v, %v", err, tn.bootstrapped)
	}
	if err := tn.homes[0].try(); err != nil || len(tn.bootstrapped) != 1 {
		t.Fatalf("the one that is first now: %v, %v", err, tn.bootstrapped)
	}
}

// TestNoBootstrapBesideTheSilent: who is in sight and does not answer may belong to a cluster.
func TestNoBootstrapBesideTheSilent(t *testing.T) {
	t.Parallel()
	tn := newTown(4)
	for _, h := range tn.homes {
		h.up = true
		for _, o := range tn.homes {
			h.sees[o.id] = true
		}
	}
	tn.homes[3].conf, tn.homes[3].deaf["id-0"] = true, true
	if err := tn.homes[0].try(); err == nil || len(tn.bootstrapped) != 0 {
		t.Fatalf("%v, %v", err, tn.bootstrapped)
	}
	tn.homes[3].up = false // gossip knows that it is gone
	if err := tn.homes[0].try(); err != nil || len(tn.bootstrapped) != 1 {
		t.Fatalf("%v, %v", err, tn.bootstrapped)
	}
}

// TestClaimedOnce: a server that no cluster has yet goes to the first that claims it.
func TestClaimedOnce(t *testing.T) {
	t.Parallel()
	tn := newTown(1)
	f := tn.homes[0].bootstrapper(0)
	claim := func(by string) string {
		t.Helper()
		got, _, err := f.Claim(&structs.RaftStateRequest{Claim: by, Leader: "x"})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := claim(""); got != "" {
		t.Fatalf("asked only: %q", got)
	}
	if got := claim("a"); got != "a" {
		t.Fatalf("the first: %q", got)
	}
	if got := claim("b"); got != "" {
		t.Fatalf("the second: %q", got)
	}
	if reply, err := f.Consider(&structs.BootstrapVoteRequest{Candidate: "id-9"}); err != nil || reply.Agreed {
		t.Fatalf("a founder after that: %+v, %v", reply, err)
	}
	tn.homes[0].conf = true
	if got := claim("a"); got != "a" {
		t.Fatalf("once it belongs to it: %q", got)
	}
}

func TestFileVote(t *testing.T) {
	t.Parallel()
	p := FileVote(filepath.Join(t.TempDir(), "founder"))
	for _, to := range []Vote{{}, {ID: "id", Name: "name"}, {ID: "other", Name: "with a space"}, {}} {
		if to.ID != "" || fileThere(string(p)) {
			if err := p.Store(to); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := p.Load(); err != nil || got != to {
			t.Fatalf("%+v, %v; not %+v", got, err, to)
		}
	}
	if err := FileVote("/nowhere/founder").Store(Vote{ID: "x"}); err == nil {
		t.Fatal("stored nowhere")
	}
}

func fileThere(path string) bool { _, err := os.Stat(path); return err == nil }

// TestNamesakesAreNamed: who waits for servers of which two have one name says that, and not that others are to be started.
func TestNamesakesAreNamed(t *testing.T) {
	tn := newTown(2)
	for _, h := range tn.homes {
		h.up = true
	}
	f, name := tn.homes[0].bootstrapper(3), ""
	f.opts.Namesakes = func() string { return name }
	if why, todo := f.WhyNotBootstrapped(); strings.Contains(why, "called") || !strings.Contains(todo, "start the others") {
		t.Errorf("without namesakes: %s; %s", why, todo)
	}
	name = "same.r"
	if why, todo := f.WhyNotBootstrapped(); !strings.Contains(why, "two servers are called same.r") || strings.Contains(todo, "start the others") {
		t.Errorf("with namesakes: %s; %s", why, todo)
	}
}
