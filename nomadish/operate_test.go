package nomadish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/raftnode"
	"github.com/nomadish/nomadish/structs"
)

// TestNotBootstrapped: who asks before there is a cluster is told how many servers are there, and what to do.
func TestNotBootstrapped(t *testing.T) {
	t.Parallel()
	f := prepare(t, 2, func(_ int, c *Config) { c.Membership.Expect, c.RPC.Hold = 3, 100*time.Millisecond })
	f.cfgs[1].Membership.Expect = 0 // it would join
	says := func(s *Server, what ...string) {
		t.Helper()
		_, wrote := register(t.Context(), s, batchJob("early", 1))
		read := s.Call(t.Context(), wire.MethodRaftConfig, &structs.EmptyRequest{}, &structs.RaftConfigurationReply{})
		leader := s.Call(t.Context(), wire.MethodLeader, &structs.EmptyRequest{}, &structs.StringReply{})
		for _, err := range []error{wrote, read, leader} {
			for _, w := range what {
				if structs.CodeOf(err) != structs.CodeNoLeader || !strings.Contains(fmt.Sprint(err), w) {
					t.Errorf("%q is missing in: %v", w, err)
				}
			}
		}
	}
	says(f.run(0), "No cluster leader: ", "not bootstrapped yet: 1 of 3 servers (bootstrap_expect) can be seen: s0", "server join", "retry_join")
	says(f.run(1), "No cluster leader: ", "belongs to no cluster yet", "server members")
}

// refusedWith fails the test unless err has the code and says all parts.
func refusedWith(t *testing.T, what string, err error, code structs.Code, parts ...string) {
	t.Helper()
	if structs.CodeOf(err) != code {
		t.Errorf("%s: %v: its code is %s, not %s", what, err, structs.CodeOf(err), code)
	}
	for _, p := range parts {
		if !strings.Contains(fmt.Sprint(err), p) {
			t.Errorf("%s: %q is missing in: %v", what, p, err)
		}
	}
}

// TestServersThatLive: what would be undone at once is refused, and who does not answer is named.
func TestServersThatLive(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, nil)
	leader := f.all[f.leader()]
	live := slices.DeleteFunc(f.up(), func(s *Server) bool { return s == leader })
	change := func(method, id string) error {
		return live[0].Call(t.Context(), method, &structs.RaftPeerRequest{ID: id}, &structs.WriteReply{})
	}
	leave := func(s *Server, name string) error {
		return s.Call(t.Context(), wire.MethodForceLeave, &structs.ForceLeaveRequest{Name: name}, &structs.WriteReply{})
	}
	refusedWith(t, "remove one that lives", change(wire.MethodRaftRemove, live[1].raft.ID()), structs.CodeConflict, live[1].cfg.Name, "is alive", "end its agent first")
	refusedWith(t, "force one that lives to leave", leave(live[0], live[1].cfg.Name), structs.CodeConflict, live[1].cfg.Name, "is alive", "end its agent first")
	refusedWith(t, "force the leader to leave", leave(live[0], leader.cfg.Name+".global"), structs.CodeConflict, "is alive")
	refusedWith(t, "force oneself to leave", leave(live[0], live[0].cfg.Name), structs.CodeBadRequest, "this server itself")
	for _, method := range []string{wire.MethodRaftRemove, wire.MethodRaftTransfer} {
		refusedWith(t, "nobody", change(method, "nobody"), structs.CodeNotFound, `"nobody"`, live[0].raft.ID(), live[1].cfg.Name+".global", leader.RPCAddr())
	}
	if voters, _ := peers(leader); len(voters) != 3 {
		t.Fatalf("the voters are %v", voters)
	}

	dead := slices.Index(f.all, live[1])
	id := live[1].raft.ID()
	f.crash(dead)
	refusedWith(t, "hand over to one that has just died", change(wire.MethodRaftTransfer, id), structs.CodeConflict, live[1].cfg.Name, "does not answer", "still leads")
	within(t, time.Minute, "the failure", func(context.Context) error {
		for _, m := range leader.gossip.Servers() {
			if m.ID == id && m.Status == structs.MemberFailed {
				return nil
			}
		}
		return errors.New("it passes for alive")
	})
	refusedWith(t, "hand over to one that has failed", change(wire.MethodRaftTransfer, id), structs.CodeConflict, live[1].cfg.Name, "does not answer", "still leads")
	within(t, time.Minute, "the time since it was heard", func(ctx context.Context) error {
		reply := &structs.AutopilotHealthReply{}
		if err := live[0].Call(ctx, wire.MethodAutopilotHealth, &structs.EmptyRequest{}, reply); err != nil {
			return err
		}
		for _, s := range reply.Health.Servers {
			// Below zero: a leader that was elected meanwhile has never heard it.
			if last := time.Duration(s.LastContact); s.ID == id && (s.Healthy || last >= 0 && last < 2*time.Second) {
				return fmt.Errorf("the dead one: healthy %v, last contact %s", s.Healthy, time.Duration(s.LastContact))
			}
			if s.ID != id && time.Duration(s.LastContact) >= 2*time.Second {
				return fmt.Errorf("%s: last contact %s", s.Name, time.Duration(s.LastContact))
			}
		}
		return nil
	})
	if err := change(wire.MethodRaftRemove, id); err != nil {
		t.Errorf("remove one that has failed: %v", err)
	}
	// On a busy machine gossip that is late may let it pass for alive once more.
	within(t, time.Minute, "forcing one that has failed to leave", func(context.Context) error { return leave(live[0], live[1].cfg.Name) })
}

func TestPeersFile(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, nil)
	if _, err := register(t.Context(), f.all[0], batchJob("kept", 1)); err != nil {
		t.Fatal(err)
	}
	left := f.leader()
	s, other := f.all[left], f.all[(left+1)%3].raft.ID()
	for i := range f.all {
		f.crash(i)
	}
	dir := filepath.Join(s.cfg.serverDir(), "raft")
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, raftnode.PeersFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for what, text := range map[string]string{
		"no JSON": "nobody", "no servers": "[]", "no id": `[{"address": "127.0.0.1:1"}]`, "no voters": `[{"id": "x", "address": "127.0.0.1:1", "non_voter": true}]`,
	} {
		write(text)
		if bad, err := NewServer(s.cfg); err == nil {
			_ = bad.Shutdown()
			t.Fatalf("%s: taken", what)
		} else if !strings.Contains(err.Error(), raftnode.PeersFile) {
			t.Errorf("%s: %v: it does not name the file", what, err)
		}
	}
	for what, text := range map[string]string{ // another's file, or a slip: this server would be of no cluster, and wait for ever
		"an ID that no server has": `[{"id": "00000000-0000-7000-8000-000000000000", "address": "` + s.cfg.Port.Addr + `"}]`,
		"only others":              `[{"id": "` + other + `", "address": "` + f.cfgs[(left+1)%3].Port.Addr + `"}]`,
	} {
		write(text)
		bad, err := NewServer(s.cfg)
		if err == nil {
			_ = bad.Shutdown()
			t.Fatalf("%s: taken", what)
		}
		if !strings.Contains(err.Error(), s.raft.ID()) || !strings.Contains(err.Error(), raftnode.PeersFile) {
			t.Errorf("%s: %v: it names not the file and this server's ID", what, err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, raftnode.PeersFile)); err != nil || string(got) != text { // a test's own
			t.Fatalf("%s: the file is gone: %v", what, err)
		}
	}
	good, err := json.Marshal([]map[string]any{{"id": s.raft.ID(), "address": s.cfg.Port.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	write(string(good))
	f.run(left)
	f.formed(1)
	if got := jobIDs(t, f.all[left], false); !slices.Equal(got, []string{"kept"}) {
		t.Fatalf("after recovery: %v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, raftnode.PeersFile)); !os.IsNotExist(err) {
		t.Fatalf("the file is still there: %v", err)
	}
	if _, err := register(t.Context(), f.all[left], batchJob("new", 1)); err != nil {
		t.Fatal(err)
	}
}
