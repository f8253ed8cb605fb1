package quorum

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/nomadish/gossip"
	"github.com/nomadish/nomadish/structs"
)

// Gossip is who is there.
type Gossip interface {
	Servers() []gossip.Server
	Subscribe() (changed <-chan struct{}, cancel func())
}

// Bootstrap is Raft before it has a configuration.
type Bootstrap interface {
	// Bootstrapped reports whether this server belongs to a cluster.
	Bootstrapped() (bool, error)
	// Bootstrap bootstraps the cluster of these voters.
	Bootstrap(voters raft.Configuration) error
}

// Caller calls other servers.
type Caller interface {
	BootstrapVote(ctx context.Context, addr string, args *structs.BootstrapVoteRequest) (*structs.BootstrapVoteReply, error)
	RaftState(ctx context.Context, addr string, args *structs.RaftStateRequest) (*structs.RaftStateReply, error)
}

// Vote is the bootstrapper that a server has voted for. The zero value: for none.
type Vote struct{ ID, Name string }

// VoteStore keeps the bootstrapper that a server has voted for, across restarts.
type VoteStore interface {
	Load() (Vote, error)
	Store(to Vote) error
}

// BootstrapOptions define who a server is and what it waits for.
type BootstrapOptions struct {
	ID     string
	Name   string
	Region string
	Expect int // servers; below 2: it never bootstraps, but votes for others
	// Cluster is the cluster that the server's state belongs to; empty: none yet.
	Cluster func() string
	// Namesakes is a name that two servers have, one of which gossip does not show therefore; empty: there are none. Nil: as well.
	Namesakes func() string
	Tick      time.Duration // between tries; 0: 1 s
	Call      time.Duration // limit of one question; 0: 5 s
	Logger    hclog.Logger
}

// Bootstrapper bootstraps the cluster, or lets another server do it.
type Bootstrapper struct {
	opts   BootstrapOptions
	raft   Bootstrap
	gossip Gossip
	call   Caller
	vote   VoteStore
	mu     sync.Mutex             // locked while a vote is read and changed
	logged string                 // what was logged last, by Run
	hurdle atomic.Pointer[string] // what prevented the bootstrap at Run's last try
	number uint64                 // of this server's last try to bootstrap
	// called and released are the numbers of other bootstrappers' last tries in which this server has voted, and
	// that were released, by the bootstrapper's ID. No call outlives this process, so that they need not either.
	called, released map[string]uint64
	// with are the voters that the bootstrapper which has this server's vote named. Not kept: after a restart only the bootstrapper's
	// own Raft is admitted, as one that named none has it.
	with cluster
}

// cluster is the set of servers that a bootstrapper bootstraps the cluster with.
type cluster struct {
	bootstrapper string
	voters       []string
}

// patience is how long a server that does not bootstrap waits to be taken in before it logs that it still waits.
const patience = 10 * time.Second

// NewBootstrapper returns a new Bootstrapper; Run runs it.
func NewBootstrapper(o BootstrapOptions, r Bootstrap, g Gossip, a Caller, p VoteStore) *Bootstrapper {
	if o.Tick <= 0 {
		o.Tick = time.Second
	}
	if o.Call <= 0 {
		o.Call = 5 * time.Second
	}
	if o.Cluster == nil {
		o.Cluster = func() string { return "" }
	}
	if o.Namesakes == nil {
		o.Namesakes = func() string { return "" }
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	return &Bootstrapper{opts: o, raft: r, gossip: g, call: a, vote: p, called: map[string]uint64{}, released: map[string]uint64{}}
}

// Run tries to bootstrap the cluster until this server belongs to one, and remembers which
// that is, or until ctx ends.
func (f *Bootstrapper) Run(ctx context.Context) {
	changed, cancel := f.gossip.Subscribe()
	defer cancel()
	tick := time.NewTicker(f.opts.Tick)
	defer tick.Stop()
	begun := time.Now()
	for {
		bootstrapped, err := f.raft.Bootstrapped()
		switch {
		case err != nil:
		case bootstrapped:
			if id := f.opts.Cluster(); id != "" {
				f.remember(id)
				return
			}
		case f.opts.Expect > 1:
			err = f.try(ctx)
		case time.Since(begun) >= patience:
			if why, todo := f.WhyNotBootstrapped(); why != "" {
				f.logChange(hclog.Warn, "this server has not joined a cluster yet", why+"; "+todo)
			}
		}
		if err != nil && ctx.Err() == nil {
			f.logChange(hclog.Warn, "the cluster cannot be bootstrapped yet", err.Error())
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// remember keeps the cluster that this server belongs to: its log shows that only when
// there is a leader again.
func (f *Bootstrapper) remember(cluster string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	to, err := f.vote.Load()
	if belongs := (Vote{ID: clusterPrefix + cluster, Name: "its cluster"}); err == nil && to.ID != belongs.ID {
		err = f.vote.Store(belongs)
	}
	if err != nil {
		f.opts.Logger.Warn("remember the cluster that this server belongs to", "error", err)
	}
}

// logChange logs what is new.
func (f *Bootstrapper) logChange(level hclog.Level, text, why string) {
	hurdle := text + ": " + why
	f.hurdle.Store(&hurdle)
	if f.logged != text+why {
		f.logged = text + why
		f.opts.Logger.Log(level, text, "reason", why)
	}
}

// try bootstraps the cluster if this server is the one to do it now.
func (f *Bootstrapper) try(ctx context.Context) error {
	voters, err := f.candidates()
	if err != nil || voters == nil {
		return err
	}
	f.number = max(f.number+1, uint64(time.Now().UnixNano())) // after 1970
	if voters[0].ID != f.opts.ID {
		f.giveUp(ctx)
		f.logChange(hclog.Info, "waiting for another server to bootstrap the cluster", voters[0].Name)
		return nil
	}
	if other, err := f.voteFor(f.self()); err != nil || other != "" {
		return firstError(err, votedFor("this server", other))
	}
	if why := f.gather(ctx, voters); why != "" {
		f.release(ctx, voters)
		return structs.Errorf(structs.CodeConflict, "%s", why)
	}
	conf := raft.Configuration{}
	for _, v := range voters {
		conf.Servers = append(conf.Servers, raft.Server{
			Suffrage: raft.Voter, ID: raft.ServerID(v.ID), Address: raft.ServerAddress(v.RPCAddr),
		})
	}
	if err := f.raft.Bootstrap(conf); err != nil {
		return err
	}
	f.opts.Logger.Info("bootstrapped the cluster", "servers", names(voters))
	return nil
}

func (f *Bootstrapper) self() Vote { return Vote{ID: f.opts.ID, Name: f.opts.Name} }

// votedFor returns a message that states what keeps a vote and what ends it.
func votedFor(who, bootstrapper string) string {
	return who + " has voted for " + bootstrapper + ", which may have bootstrapped the cluster; start that server again, or if it is lost for good, " +
		"`server force-leave` it (or remove the file server/founder in the data_dir of the server that voted)"
}

func firstError(err error, otherwise string) error {
	if err != nil {
		return err
	}
	return structs.Errorf(structs.CodeConflict, "%s", otherwise)
}

// WhyNotBootstrapped returns why this server belongs to no cluster yet, and what to do; empty: it belongs to one.
func (f *Bootstrapper) WhyNotBootstrapped() (why, todo string) {
	if bootstrapped, err := f.raft.Bootstrapped(); err != nil || bootstrapped {
		return "", ""
	}
	if f.opts.Expect < 2 {
		return "this server belongs to no cluster yet: no leader has added it",
			"`server members` shows the servers that it sees: one of them must lead; servers that are to bootstrap a cluster need bootstrap_expect"
	}
	seen, err := f.seen()
	switch hurdle := f.hurdle.Load(); {
	case err != nil:
		return "not bootstrapped yet: " + err.Error(), "correct it and start that server again"
	case len(seen) < f.opts.Expect && f.opts.Namesakes() != "":
		return "not bootstrapped yet: " + f.few(seen), "give each server a name of its own (name = \"…\" in its configuration) and start it again"
	case len(seen) < f.opts.Expect:
		return "not bootstrapped yet: " + f.few(seen), "start the others, each with the address of one that runs in server_join { retry_join = [...] }, or `server join` them; `server members` shows which are known"
	case hurdle != nil:
		return "not bootstrapped yet: " + *hurdle, "try again"
	}
	return "not bootstrapped yet", "try again"
}

// few returns how many of those that are to form the cluster are there.
func (f *Bootstrapper) few(seen []gossip.Server) string {
	text := fmt.Sprintf("%d of %d servers (bootstrap_expect) can be seen: %s", len(seen), f.opts.Expect, names(seen))
	if name := f.opts.Namesakes(); name != "" {
		text += "; two servers are called " + name + ", and only one of these is seen"
	}
	return text
}

// candidates returns the servers to bootstrap the cluster with, by ID; nil: there are too few
// yet.
func (f *Bootstrapper) candidates() ([]gossip.Server, error) {
	found, err := f.seen()
	if err != nil {
		return nil, err
	}
	if len(found) < f.opts.Expect {
		f.logChange(hclog.Info, "waiting for more servers before the cluster is bootstrapped", f.few(found))
		return nil, nil
	}
	slices.SortFunc(found, func(a, b gossip.Server) int { return cmp.Compare(a.ID, b.ID) })
	return found[:f.opts.Expect], nil
}

// seen returns the servers of this region that would form a cluster together, as gossip sees them.
func (f *Bootstrapper) seen() ([]gossip.Server, error) {
	var found []gossip.Server
	for _, s := range f.gossip.Servers() {
		if !s.Alive() || s.Region != f.opts.Region || s.Expect == 0 {
			continue
		}
		if s.Expect != f.opts.Expect {
			return nil, structs.Errorf(structs.CodeConflict, "server %s has bootstrap_expect = %d, this one %d: they must be the same",
				s.Name, s.Expect, f.opts.Expect)
		}
		found = append(found, s)
	}
	return found, nil
}

func names(servers []gossip.Server) string {
	out := ""
	for i, s := range servers {
		if i > 0 {
			out += ", "
		}
		out += s.Name
	}
	return out
}

func ids(servers []gossip.Server) (out []string) {
	for _, s := range servers {
		out = append(out, s.ID)
	}
	return out
}

// gather requests the votes of all voters, and checks with every other server in sight whether
// there is a cluster already. It returns what prevents the bootstrap.
func (f *Bootstrapper) gather(ctx context.Context, voters []gossip.Server) string {
	for _, s := range f.gossip.Servers() {
		if !s.Alive() || s.Region != f.opts.Region || s.ID == f.opts.ID {
			continue
		}
		voter := slices.ContainsFunc(voters, func(v gossip.Server) bool { return v.ID == s.ID })
		args := &structs.BootstrapVoteRequest{Region: f.opts.Region, Candidate: f.opts.ID, Name: f.opts.Name, Release: !voter, Try: f.number, Voters: ids(voters)}
		reply, err := f.question(ctx, s.RPCAddr, args)
		switch {
		case err != nil && voter:
			return "server " + s.Name + " does not answer: " + err.Error()
		case err != nil:
			return "server " + s.Name + ", which may belong to a cluster, does not answer: " + err.Error()
		case reply.HasState:
			return "server " + s.Name + " belongs to a cluster already, whose leader will add this one"
		case voter && !reply.Agreed:
			return votedFor("server "+s.Name, reply.VotedFor)
		}
	}
	return ""
}

func (f *Bootstrapper) question(ctx context.Context, addr string, args *structs.BootstrapVoteRequest) (*structs.BootstrapVoteReply, error) {
	ctx, cancel := context.WithTimeout(ctx, f.opts.Call)
	defer cancel()
	return f.call.BootstrapVote(ctx, addr, args)
}

// release gives up the votes that were requested. A server that cannot be reached keeps its vote, and
// is called again at the next try, which is this bootstrapper's too.
func (f *Bootstrapper) release(ctx context.Context, voters []gossip.Server) {
	for _, v := range voters {
		if v.ID != f.opts.ID {
			_, _ = f.question(ctx, v.RPCAddr, &structs.BootstrapVoteRequest{Region: f.opts.Region, Candidate: f.opts.ID, Release: true, Try: f.number})
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if to, err := f.vote.Load(); err == nil && to.ID == f.opts.ID {
		_ = f.vote.Store(Vote{}) // it is this server's own: a later try may use it
	}
}

// giveUp releases the votes that this server got when it was the one to bootstrap the cluster. Another is now, and would
// wait for ever.
func (f *Bootstrapper) giveUp(ctx context.Context) {
	f.mu.Lock()
	to, err := f.vote.Load()
	f.mu.Unlock()
	if err != nil || to.ID != f.opts.ID {
		return
	}
	var others []gossip.Server
	for _, s := range f.gossip.Servers() {
		if s.Alive() && s.Region == f.opts.Region {
			others = append(others, s)
		}
	}
	f.release(ctx, others)
}

// Consider answers another server that would bootstrap the cluster.
func (f *Bootstrapper) Consider(args *structs.BootstrapVoteRequest) (*structs.BootstrapVoteReply, error) {
	if args.Candidate == "" {
		return nil, structs.Errorf(structs.CodeBadRequest, "no bootstrapper is named")
	}
	bootstrapped, err := f.raft.Bootstrapped()
	if err != nil {
		return nil, err
	}
	if bootstrapped {
		return &structs.BootstrapVoteReply{HasState: true}, nil
	}
	if args.Release {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.released[args.Candidate] = max(f.released[args.Candidate], args.Try)
		if to, err := f.vote.Load(); err != nil || to.ID != args.Candidate {
			return &structs.BootstrapVoteReply{VotedFor: to.Name}, err
		}
		if args.Try > 0 && args.Try < f.called[args.Candidate] {
			return &structs.BootstrapVoteReply{}, nil // it came late: a later try has the vote
		}
		return &structs.BootstrapVoteReply{}, f.vote.Store(Vote{})
	}
	if f.late(args) {
		return &structs.BootstrapVoteReply{VotedFor: args.Name}, nil
	}
	other, err := f.voteFor(Vote{ID: args.Candidate, Name: args.Name})
	agreed := err == nil && other == ""
	if agreed {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.with = cluster{args.Candidate, args.Voters}
	}
	return &structs.BootstrapVoteReply{Agreed: agreed, VotedFor: other}, err
}

// Admits reports whether this server, which belongs to no cluster yet, admits the Raft of another: of the bootstrapper that it has
// voted for, and of those that this one bootstraps the cluster with, one of which may lead by then; or, if it is to be
// added to a cluster, of the region's servers.
func (f *Bootstrapper) Admits(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	to, err := f.vote.Load()
	switch {
	case err != nil || to.ID == "" || id == "":
		return false
	case strings.HasPrefix(to.ID, clusterPrefix):
		return slices.ContainsFunc(f.gossip.Servers(), func(s gossip.Server) bool { return s.ID == id && s.Region == f.opts.Region })
	}
	return to.ID == id || f.with.bootstrapper == to.ID && slices.Contains(f.with.voters, id)
}

// late records a call of a bootstrapper, and reports whether that has already released the vote that it requests.
func (f *Bootstrapper) late(args *structs.BootstrapVoteRequest) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if args.Try > 0 && args.Try <= f.released[args.Candidate] {
		return true
	}
	f.called[args.Candidate] = max(f.called[args.Candidate], args.Try)
	return false
}

// Claim answers the leader of a cluster that would add this server: the cluster that it
// belongs to, which is that one if it is free, or the name of the server that has its vote.
func (f *Bootstrapper) Claim(args *structs.RaftStateRequest) (cluster, vote string, err error) {
	if id := f.opts.Cluster(); id != "" {
		return id, "", nil
	}
	bootstrapped, err := f.raft.Bootstrapped()
	if err != nil || args.Claim == "" {
		return "", "", err
	}
	if bootstrapped {
		f.mu.Lock()
		defer f.mu.Unlock()
		to, err := f.vote.Load()
		id, _ := strings.CutPrefix(to.ID, clusterPrefix)
		return id, "", err
	}
	other, err := f.voteFor(Vote{ID: clusterPrefix + args.Claim, Name: "the cluster that " + args.Leader + " leads"})
	if err != nil || other != "" {
		return "", other, err
	}
	return args.Claim, "", nil
}

// clusterPrefix distinguishes a vote for a cluster from one for a bootstrapper.
const clusterPrefix = "cluster/"

// voteFor votes for a bootstrapper, unless the vote is another's, whose name it
// then returns.
func (f *Bootstrapper) voteFor(bootstrapper Vote) (other string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	to, err := f.vote.Load()
	if err != nil {
		return "", err
	}
	if to.ID == bootstrapper.ID {
		return "", nil
	}
	if to.ID != "" && f.mayReturn(to) {
		return to.Name, nil
	}
	return "", f.vote.Store(bootstrapper)
}

// mayReturn reports whether a bootstrapper that has our vote may still bootstrap, or have
// bootstrapped, the cluster: all but those that are known to have left for good, or to have
// come back anew, with another ID.
func (f *Bootstrapper) mayReturn(to Vote) bool {
	if strings.HasPrefix(to.ID, clusterPrefix) {
		return true
	}
	for _, s := range f.gossip.Servers() {
		switch {
		case s.ID == to.ID:
			return s.Status != structs.MemberLeft
		case s.Name == to.Name && s.Alive():
			return false
		}
	}
	return true
}
