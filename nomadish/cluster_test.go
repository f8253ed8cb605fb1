package nomadish

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// fleet is some servers of one process, on loopback ports that they keep.
type fleet struct {
	t    *testing.T
	cfgs []*Config
	all  []*Server // nil: it does not run
}

var portsTaken sync.Map

// port returns one that nobody listens on, not even in another test, and that the system does not give to who connects.
func port(t *testing.T) string {
	t.Helper()
	for range 1000 {
		addr := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000)) // a test
		if _, taken := portsTaken.LoadOrStore(addr, true); taken {
			continue
		}
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close() // it never carried anything
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}

// config prepares one server of a fleet; it is started by run.
func (f *fleet) config(expect int) *Config {
	f.t.Helper()
	i := len(f.cfgs)
	c := testConfig()
	c.Name, c.DataDir = fmt.Sprintf("s%d", i), filepath.Join(f.t.TempDir(), "data")
	c.Port.Addr, c.Membership.LAN.Addr, c.Membership.Expect, c.NumSchedulers = port(f.t), port(f.t), expect, 1
	c.Membership.LAN.Probe, c.Membership.LAN.RetryInterval = 200*time.Millisecond, 200*time.Millisecond
	c.Peers.Update, c.Peers.Reconcile = 100*time.Millisecond, 200*time.Millisecond
	c.Autopilot.ServerStabilizationTime, c.Autopilot.MinQuorum = 100*time.Millisecond, uint(expect) // small
	// Machines of tests may be busy.
	c.Autopilot.LastContactThreshold = 5 * time.Second
	c.Raft.Heartbeat, c.Raft.Election, c.Raft.Lease = time.Second, time.Second, time.Second
	c.RPC.Hold = time.Minute
	if os.Getenv("NOMADISH_TEST_LOG") != "" {
		c.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Name: c.Name})
	}
	f.cfgs, f.all = append(f.cfgs, c), append(f.all, nil)
	return c
}

// newFleet starts n servers that expect each other, each told of the next one only.
func newFleet(t *testing.T, n int, change func(i int, c *Config)) *fleet {
	t.Helper()
	f := prepare(t, n, change)
	for i := range f.all {
		f.run(i)
	}
	f.formed(n)
	return f
}

// prepare makes the configurations of a fleet.
func prepare(t *testing.T, n int, change func(i int, c *Config)) *fleet {
	t.Helper()
	f := &fleet{t: t}
	t.TempDir() // removed after what is registered below: a server that runs may write yet
	t.Cleanup(func() {
		for i := range f.all {
			if f.all[i] != nil {
				f.crash(i)
			}
		}
	})
	for i := range n {
		c := f.config(n)
		if change != nil {
			change(i, c)
		}
	}
	for i, c := range f.cfgs {
		if n > 1 {
			c.Membership.LAN.Retry = []string{f.cfgs[(i+1)%n].Membership.LAN.Addr}
		}
	}
	return f
}

func (f *fleet) run(i int) *Server {
	f.t.Helper()
	s, err := NewServer(f.cfgs[i])
	if err != nil {
		f.t.Fatal(err)
	}
	f.all[i] = s
	return s
}

// crash ends a server without a word to the others.
func (f *fleet) crash(i int) {
	f.t.Helper()
	s := f.all[i]
	f.all[i] = nil
	s.stopped.Do(func() {
		s.cancel()
		if err := s.close(); err != nil {
			f.t.Error(err)
		}
	})
}

// up are the servers that run.
func (f *fleet) up() []*Server {
	return slices.DeleteFunc(slices.Clone(f.all), func(s *Server) bool { return s == nil })
}

// peers are the voters and non-voters that a server knows.
func peers(s *Server) (voters, others []string) {
	conf := s.raft.GetConfiguration()
	if conf.Error() != nil {
		return nil, nil
	}
	for _, one := range conf.Configuration().Servers {
		if one.Suffrage == raft.Voter {
			voters = append(voters, string(one.ID))
		} else {
			others = append(others, string(one.ID))
		}
	}
	slices.Sort(voters)
	return voters, others
}

// formed waits until the servers that run agree on a leader and on n voters.
func (f *fleet) formed(n int) {
	f.t.Helper()
	within(f.t, time.Minute, fmt.Sprintf("a cluster of %d", n), func(context.Context) error {
		leads := 0
		for _, s := range f.up() {
			voters, others := peers(s)
			if len(voters) != n || len(others) > 0 {
				return fmt.Errorf("%s knows the voters %v and the others %v", s.cfg.Name, voters, others)
			}
			if s.IsLeader() {
				leads++
			}
			if addr, _ := s.raft.LeaderWithID(); addr == "" {
				return fmt.Errorf("%s knows no leader", s.cfg.Name)
			}
		}
		if leads != 1 {
			return fmt.Errorf("%d lead", leads)
		}
		return nil
	})
}

// leader is the index of the one that leads.
func (f *fleet) leader() int {
	f.t.Helper()
	at := -1
	within(f.t, time.Minute, "a leader", func(context.Context) error {
		at = slices.IndexFunc(f.all, func(s *Server) bool { return s != nil && s.IsLeader() })
		if at < 0 {
			return errors.New("nobody leads")
		}
		return nil
	})
	return at
}

// follower is the index of one that runs and does not lead.
func (f *fleet) follower() int {
	f.t.Helper()
	leader := f.leader()
	return slices.IndexFunc(f.all, func(s *Server) bool { return s != nil && s != f.all[leader] })
}

// jobIDs are the IDs of the jobs that a server answers with.
func jobIDs(t *testing.T, s *Server, stale bool) []string {
	t.Helper()
	list := &structs.JobListReply{}
	args := &structs.ListRequest{QueryOptions: structs.QueryOptions{AllowStale: stale}}
	if err := s.Call(t.Context(), wire.MethodJobList, args, list); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, j := range list.Jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

func TestClusters(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, n, nil)
			var want []string
			for i, s := range f.all {
				want = append(want, fmt.Sprintf("from-%d", i))
				if _, err := register(t.Context(), s, batchJob(want[i], 1)); err != nil {
					t.Fatalf("a write at server %d: %v", i, err)
				}
				// What was acknowledged is read at once, wherever it is asked for.
				for at, other := range f.all {
					if got := jobIDs(t, other, false); !slices.Equal(got, want) {
						t.Fatalf("server %d answers %v, not %v", at, got, want)
					}
				}
			}
			for _, s := range f.all {
				within(t, 20*time.Second, "members", func(ctx context.Context) error {
					members := &structs.MembersReply{}
					if err := s.Call(ctx, wire.MethodMembers, &structs.EmptyRequest{}, members); err != nil {
						return err
					}
					for _, m := range members.Members {
						if m.Status != structs.MemberAlive {
							return fmt.Errorf("%s is %s", m.Name, m.Status)
						}
					}
					if len(members.Members) != n {
						return fmt.Errorf("%d members", len(members.Members))
					}
					return nil
				})
				if first, err := firstEntry(s); err != nil || first != n {
					t.Fatalf("%s: the first entry of the log has %d servers, not %d: %v", s.cfg.Name, first, n, err)
				}
			}
			healthy(t, f.all[f.leader()], n)
		})
	}
}

// firstEntry is how many servers the cluster was founded with.
func firstEntry(s *Server) (int, error) {
	var log raft.Log
	if err := s.raft.Entry(1, &log); err != nil {
		return 0, err
	}
	return len(raft.DecodeConfiguration(log.Data).Servers), nil
}

// healthy waits until autopilot finds n voters well.
func healthy(t *testing.T, s *Server, n int) {
	t.Helper()
	within(t, time.Minute, "health", func(ctx context.Context) error {
		reply := &structs.AutopilotHealthReply{}
		if err := s.Call(ctx, wire.MethodAutopilotHealth, &structs.EmptyRequest{}, reply); err != nil {
			return err
		}
		if h := reply.Health; !h.Healthy || len(h.Servers) != n || len(h.Voters) != n || h.FailureTolerance != (n-1)/2 {
			return fmt.Errorf("%+v", h)
		}
		return nil
	})
}

func TestLeaderLost(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, nil)
	lost := f.leader()
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprintf("before-%d", i))
		if _, err := register(t.Context(), f.all[i%3], batchJob(want[i], 1)); err != nil {
			t.Fatal(err)
		}
	}
	f.crash(lost)
	// The next write waits for the election, unless it went to the lost one still.
	_, err := register(t.Context(), f.up()[0], batchJob("after", 1))
	if err != nil && strings.Contains(err.Error(), "was lost before it answered") {
		_, err = register(t.Context(), f.up()[0], batchJob("after", 1))
	}
	if err != nil {
		t.Fatalf("the first write after the leader was lost: %v", err)
	}
	want = append([]string{"after"}, want...)
	if got := jobIDs(t, f.up()[1], false); !slices.Equal(got, want) {
		t.Fatalf("the servers that are left know %v, not %v", got, want)
	}
	f.run(lost)
	f.formed(3)
	within(t, 20*time.Second, "what was written meanwhile", func(context.Context) error {
		if got := jobIDs(t, f.all[lost], true); !slices.Equal(got, want) {
			return fmt.Errorf("the one that came back knows %v, not %v", got, want)
		}
		return nil
	})
	f.sameWhatIf()
}

func TestWithoutMajority(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, func(_ int, c *Config) { c.RPC.Hold = 500 * time.Millisecond })
	if _, err := register(t.Context(), f.all[0], batchJob("job", 1)); err != nil {
		t.Fatal(err)
	}
	within(t, 20*time.Second, "the job everywhere", func(context.Context) error {
		for _, s := range f.all {
			if got := jobIDs(t, s, true); len(got) != 1 {
				return fmt.Errorf("%s: %v", s.cfg.Name, got)
			}
		}
		return nil
	})
	f.crash(f.leader())
	f.crash(f.leader())
	left := f.up()[0]
	if _, err := register(t.Context(), left, batchJob("lonely", 1)); structs.CodeOf(err) != structs.CodeNoLeader {
		t.Fatalf("a write without a majority: %v", err)
	}
	list := &structs.JobListReply{}
	if err := left.Call(t.Context(), wire.MethodJobList, &structs.ListRequest{}, list); structs.CodeOf(err) != structs.CodeNoLeader {
		t.Fatalf("a read without a majority: %v", err)
	}
	within(t, 20*time.Second, "an error that says what is missing", func(ctx context.Context) error { // gossip takes a while to find out
		err := left.Call(ctx, wire.MethodRaftConfig, &structs.EmptyRequest{}, &structs.RaftConfigurationReply{})
		for _, want := range []string{"No cluster leader: 1 of 3 servers can be seen", "at least 2 must be", "start", "peers.json", "docs/guides/disaster-recovery.md"} {
			if structs.CodeOf(err) != structs.CodeNoLeader || !strings.Contains(fmt.Sprint(err), want) {
				return fmt.Errorf("%q is missing in: %w", want, err)
			}
		}
		return nil
	})
	conf := &structs.RaftConfigurationReply{}
	query := &structs.EmptyRequest{QueryOptions: structs.QueryOptions{AllowStale: true}}
	if err := left.Call(t.Context(), wire.MethodRaftConfig, query, conf); err != nil || len(conf.Servers) != 3 {
		t.Fatalf("the servers as the one that is left knows them: %v, %d", err, len(conf.Servers))
	}
	args := &structs.ListRequest{QueryOptions: structs.QueryOptions{AllowStale: true}}
	within(t, 20*time.Second, "a stale read that tells that it is old", func(context.Context) error { // Raft takes a heartbeat's time to find out
		if err := left.Call(t.Context(), wire.MethodJobList, args, list); err != nil || len(list.Jobs) != 1 {
			t.Fatalf("a stale read: %v, %d jobs", err, len(list.Jobs))
		}
		if list.KnownLeader || list.LastContact <= 0 {
			return fmt.Errorf("leader known %v, last contact %s ago", list.KnownLeader, list.LastContact)
		}
		return nil
	})
}

// TestHandOver: a leader that ends in good order gives leadership away first.
func TestHandOver(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, nil)
	was := f.leader()
	f.all[was].transferAway()
	if f.all[was].raft.State() == raft.Leader {
		t.Fatal("it still leads")
	}
	if now := f.leader(); now == was {
		t.Fatal("nobody else leads")
	}
}

func TestLeave(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, nil)
	gone := f.leader()
	s := f.all[gone]
	if err := s.Leave(); err != nil {
		t.Fatal(err)
	}
	f.all[gone] = nil
	f.formed(2)
	if _, err := register(t.Context(), f.up()[0], batchJob("two", 1)); err != nil {
		t.Fatal(err)
	}
	// It comes back when it is told to.
	f.run(gone)
	f.formed(3)
	if got := jobIDs(t, f.all[gone], false); !slices.Equal(got, []string{"two"}) {
		t.Fatalf("after it came back: %v", got)
	}
}

// TestReplaced: a server that is dead for good is cleaned up when another has taken its
// place, and not before.
func TestReplaced(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, nil)
	dead := f.follower()
	id := f.all[dead].raft.ID()
	f.crash(dead)
	leader := f.all[f.leader()]
	within(t, time.Minute, "the failure", func(context.Context) error {
		for _, m := range leader.gossip.Servers() {
			if m.ID == id && m.Status == structs.MemberFailed {
				return nil
			}
		}
		return errors.New("it passes for alive")
	})
	if voters, _ := peers(leader); !slices.Contains(voters, id) {
		t.Fatal("it was removed with only two others there")
	}
	c := f.config(0)
	c.Membership.LAN.Retry = []string{leader.gossip.Addr()}
	f.run(len(f.cfgs) - 1)
	f.formed(3)
	voters, _ := peers(leader)
	if slices.Contains(voters, id) || !slices.Contains(voters, f.all[3].raft.ID()) {
		t.Fatalf("the voters are %v: without %s and with %s is right", voters, id, f.all[3].raft.ID())
	}
}

// TestNotMerged: the leaders of two clusters that meet leave each other's servers alone.
func TestNotMerged(t *testing.T) {
	t.Parallel()
	f := prepare(t, 1, nil)
	f.config(1)
	f.run(0)
	f.run(1)
	f.formed2(0, 1)
	if _, err := f.all[0].gossip.Join([]string{f.all[1].gossip.Addr()}); err != nil {
		t.Fatal(err)
	}
	within(t, 20*time.Second, "both to look at each other", func(context.Context) error {
		for _, s := range f.all {
			if len(s.gossip.Servers()) != 2 {
				return fmt.Errorf("%s sees %v", s.cfg.Name, s.gossip.Servers())
			}
		}
		return nil
	})
	late := f.config(0)
	late.Membership.LAN.Retry = []string{f.all[0].gossip.Addr()}
	f.run(2)
	within(t, time.Minute, "the late one to be added by one of them", func(context.Context) error {
		total := 0
		for _, s := range f.all[:2] {
			voters, _ := peers(s)
			if slices.Contains(voters, f.all[0].raft.ID()) && slices.Contains(voters, f.all[1].raft.ID()) {
				t.Fatalf("they have merged: %v", voters)
			}
			total += len(voters)
		}
		if total != 3 {
			return fmt.Errorf("%d voters in all", total)
		}
		return nil
	})
}

// formed2 waits until each of these leads.
func (f *fleet) formed2(each ...int) {
	f.t.Helper()
	within(f.t, time.Minute, "their own leaders", func(context.Context) error {
		for _, i := range each {
			if !f.all[i].IsLeader() {
				return fmt.Errorf("server %d does not lead", i)
			}
		}
		return nil
	})
}

// TestWorkersOnFollowers: the leader has no workers of its own, so the others decide.
func TestWorkersOnFollowers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, func(i int, c *Config) { c.NumSchedulers = min(i, 1) })
	f.lead(0)
	for i := range 3 {
		if err := f.all[1].Call(t.Context(), wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: node(i)}, &structs.NodeUpdateReply{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		reply, err := register(t.Context(), f.all[i%3], batchJob(fmt.Sprintf("j%d", i), 2))
		if err != nil {
			t.Fatal(err)
		}
		if ev := evalDone(t, f.all[2], reply.EvalID); ev.Status != structs.EvalStatusComplete || len(ev.FailedTGAllocs) > 0 {
			t.Fatalf("the evaluation: %+v", ev)
		}
	}
}

// TestNodeBehindAnother: a client speaks with one server, and is called through any.
func TestNodeBehindAnother(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, nil)
	at := f.all[f.follower()]
	mux := wire.NewMux(hclog.NewNullLogger(), 0)
	mux.Handle(wire.MethodClientHostStats, wire.Unary(func(context.Context, *structs.ClientHostStatsRequest) (*structs.ClientHostStatsReply, error) {
		return &structs.ClientHostStatsReply{Stats: &structs.HostStats{Uptime: 7}}, nil
	}))
	session, err := wire.Dial(t.Context(), "global", at.RPCAddr(), wire.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { mux.Serve(ctx, session) })
	defer wg.Wait()
	defer cancel()
	up := &structs.NodeUpdateReply{}
	if err := session.Call(ctx, wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: node(1)}, up); err != nil {
		t.Fatal(err)
	}
	if len(up.Servers) != 3 || up.LeaderRPCAddr != f.all[f.leader()].RPCAddr() {
		t.Fatalf("the node was told of the servers %v, leader %s", up.Servers, up.LeaderRPCAddr)
	}
	hello := &structs.NodeHeartbeatRequest{NodeID: node(1).ID, SecretID: "s"}
	if err := session.Call(ctx, wire.MethodClientHello, hello, &structs.WriteReply{}); err != nil {
		t.Fatal(err)
	}
	hello.SecretID = "wrong"
	if err := session.Call(ctx, wire.MethodClientHello, hello, &structs.WriteReply{}); structs.CodeOf(err) != structs.CodeForbidden {
		t.Fatalf("a hello with another secret: %v", err)
	}
	for i, s := range f.all {
		reply := &structs.ClientHostStatsReply{}
		if err := s.Call(ctx, wire.MethodClientHostStats, &structs.ClientHostStatsRequest{NodeID: node(1).ID}, reply); err != nil || reply.Stats.Uptime != 7 {
			t.Fatalf("through server %d: %v, %+v", i, err, reply.Stats)
		}
		err := s.Call(ctx, wire.MethodClientHostStats, &structs.ClientHostStatsRequest{NodeID: node(2).ID}, reply)
		if structs.CodeOf(err) != structs.CodeNotFound {
			t.Fatalf("a node that is not there, through server %d: %v", i, err)
		}
	}
}

// TestNoRaftBeforeBootstrap: a server that belongs to no cluster takes part in no Raft. One that
// lost its disk would vote for whoever asks, in place of the one that it was.
func TestNoRaftBeforeBootstrap(t *testing.T) {
	t.Parallel()
	closes := func(addr string, within time.Duration) bool {
		conn, err := (*wire.TLS)(nil).Dial(t.Context(), "", addr, wire.ProtoRaft)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // a test
		_ = conn.SetReadDeadline(time.Now().Add(within))
		_, err = conn.Read(make([]byte, 1))
		return !errors.Is(err, os.ErrDeadlineExceeded)
	}
	f := prepare(t, 2, func(_ int, c *Config) { c.Membership.Expect = 3 })
	alone := f.run(0)
	if !closes(alone.RPCAddr(), time.Minute) {
		t.Error("a server of no cluster speaks Raft")
	}
	bootstrapped := newFleet(t, 1, nil)
	if closes(bootstrapped.all[0].RPCAddr(), time.Second) { // Raft waits for a call
		t.Error("a server of a cluster does not speak Raft")
	}

	three := newFleet(t, 3, nil)
	lost := three.follower()
	three.crash(lost)
	if err := os.RemoveAll(three.cfgs[lost].DataDir); err != nil {
		t.Fatal(err)
	}
	three.run(lost)
	three.formed(3) // it is taken in again as the new server that it is
}
