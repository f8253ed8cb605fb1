package nomadish

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// federation is regions of one server each.
type federation struct {
	t       *testing.T
	regions map[string]*fleet
}

// federate starts regions of one server each. All are told of the first.
func federate(t *testing.T, change func(region string, c *Config), names ...string) *federation {
	t.Helper()
	f := &federation{t: t, regions: map[string]*fleet{}}
	first := port(t)
	for at, region := range names {
		f.regions[region] = newFleet(t, 1, func(_ int, c *Config) {
			c.Region, c.Membership.WAN.Addr, c.Membership.WAN.Retry, c.Membership.WAN.RetryInterval = region, "127.0.0.1:0", []string{first}, 200*time.Millisecond
			if at == 0 {
				c.Membership.WAN.Addr = first
			}
			if change != nil {
				change(region, c)
			}
		})
	}
	f.known(names...)
	return f
}

// known waits until all servers that run can reach these regions.
func (f *federation) known(names ...string) {
	f.t.Helper()
	for _, fleet := range f.regions { // order does not matter: all must
		for _, s := range fleet.up() {
			within(f.t, time.Minute, fmt.Sprintf("%s of %s reaching %v", s.cfg.Name, s.cfg.Region, names), func(ctx context.Context) error {
				for _, name := range names {
					if err := ping(ctx, s, name); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
}

func ping(ctx context.Context, s *Server, region string) error {
	return s.Call(ctx, wire.MethodPing, &structs.EmptyRequest{QueryOptions: in(region)}, &structs.WriteReply{})
}

func in(region string) structs.QueryOptions { return structs.QueryOptions{Region: region} }

// registerIn registers a job of a region through a server.
func registerIn(ctx context.Context, s *Server, region, id string) error {
	job := batchJob(id, 1)
	job.Region = region
	args := &structs.JobRegisterRequest{Job: job, WriteRequest: structs.WriteRequest{Region: region}}
	return s.Call(ctx, wire.MethodJobRegister, args, &structs.JobRegisterReply{})
}

func jobsIn(ctx context.Context, s *Server, region string) (ids []string, err error) {
	reply := &structs.JobListReply{}
	err = s.Call(ctx, wire.MethodJobList, &structs.ListRequest{QueryOptions: in(region)}, reply)
	for _, j := range reply.Jobs {
		ids = append(ids, j.ID)
	}
	return ids, err
}

// TestTwoRegions: what is asked of a server for the other region is answered by that one, and one
// region's state is not the other's.
func TestTwoRegions(t *testing.T) {
	t.Parallel()
	f := federate(t, nil, "earth", "mars")
	earth, mars := f.regions["earth"].all[0], f.regions["mars"].all[0]
	for _, s := range []*Server{earth, mars} {
		reply := &structs.StringsReply{}
		if err := s.Call(t.Context(), wire.MethodRegions, &structs.EmptyRequest{}, reply); err != nil || !slices.Equal(reply.Values, []string{"earth", "mars"}) {
			t.Fatalf("regions: %v, %v", reply.Values, err)
		}
		members := &structs.MembersReply{}
		if err := s.Call(t.Context(), wire.MethodMembers, &structs.EmptyRequest{}, members); err != nil || len(members.Members) != 2 {
			t.Fatalf("members: %+v, %v", members, err)
		}
	}
	if err := registerIn(t.Context(), earth, "mars", "rover"); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Server{earth, mars} {
		if ids, err := jobsIn(t.Context(), s, "mars"); err != nil || !slices.Equal(ids, []string{"rover"}) {
			t.Fatalf("jobs of mars: %v, %v", ids, err)
		}
		if ids, err := jobsIn(t.Context(), s, "earth"); err != nil || len(ids) > 0 {
			t.Fatalf("jobs of earth: %v, %v", ids, err)
		}
		leader := &structs.StringReply{}
		if err := s.Call(t.Context(), wire.MethodLeader, &structs.EmptyRequest{QueryOptions: in("mars")}, leader); err != nil || leader.Value != mars.RPCAddr() {
			t.Fatalf("leader of mars: %+v, %v", leader, err)
		}
	}
	f.streams(earth, mars)
	f.blocks(earth, mars)

	for what, wrong := range map[string]struct {
		err  error
		code structs.Code
		says string
	}{
		"an unknown region": {ping(t.Context(), earth, "venus"), structs.CodeNoRegion, `No path to region "venus": it is not known; known are earth, mars`},
		"a job of another":  {registerWrong(t.Context(), earth), structs.CodeBadRequest, `region "earth": it was sent to region "mars"`},
		"a node of another": {earth.Call(t.Context(), wire.MethodNodeRegister, &structs.NodeRegisterRequest{WriteRequest: structs.WriteRequest{Region: "mars"}}, &structs.NodeUpdateReply{}),
			structs.CodeBadRequest, `this server is of region "earth"`},
	} {
		if structs.CodeOf(wrong.err) != wrong.code || !strings.Contains(fmt.Sprint(wrong.err), wrong.says) {
			t.Errorf("%s: %v (code %s), want code %s, %q", what, wrong.err, structs.CodeOf(wrong.err), wrong.code, wrong.says)
		}
	}
}

func registerWrong(ctx context.Context, s *Server) error {
	job := batchJob("astray", 1)
	job.Region = "earth"
	args := &structs.JobRegisterRequest{Job: job, WriteRequest: structs.WriteRequest{Region: "mars"}}
	return s.Call(ctx, wire.MethodJobRegister, args, &structs.JobRegisterReply{})
}

// streams: events of the other region come through.
func (f *federation) streams(from, of *Server) {
	f.t.Helper()
	args := &structs.EventStreamRequest{Topics: map[string][]string{structs.TopicJob: {"*"}}, Namespace: "*", Region: of.cfg.Region, Index: 1}
	stream, err := from.Stream(f.t.Context(), wire.MethodEventStream, args)
	if err != nil {
		f.t.Fatal(err)
	}
	defer stream.Close()
	var opened, events structs.Events
	if err := stream.Recv(&opened); err != nil || len(opened.Events) > 0 {
		f.t.Fatalf("the stream of %s begins with %+v, %v", of.cfg.Region, opened, err)
	}
	if err := stream.Recv(&events); err != nil || len(events.Events) == 0 || events.Events[0].Key != "rover" {
		f.t.Fatalf("events of %s: %+v, %v", of.cfg.Region, events, err)
	}
}

// blocks: a blocking query of the other region wakes when something changes there.
func (f *federation) blocks(from, of *Server) {
	f.t.Helper()
	list := &structs.JobListReply{}
	if err := from.Call(f.t.Context(), wire.MethodJobList, &structs.ListRequest{QueryOptions: in(of.cfg.Region)}, list); err != nil {
		f.t.Fatal(err)
	}
	opts := in(of.cfg.Region)
	opts.MinQueryIndex, opts.MaxQueryTime = list.Index, time.Minute
	done := make(chan error, 1)
	go func() {
		for {
			woken := &structs.JobListReply{}
			err := from.Call(f.t.Context(), wire.MethodJobList, &structs.ListRequest{QueryOptions: opts}, woken)
			if err == nil && (woken.Index <= opts.MinQueryIndex || len(woken.Jobs) < len(list.Jobs)) {
				err = fmt.Errorf("woken with %d jobs at index %d", len(woken.Jobs), woken.Index)
			}
			if err != nil || len(woken.Jobs) > len(list.Jobs) {
				done <- err
				return
			}
			opts.MinQueryIndex = woken.Index // the first job's own state has changed
		}
	}()
	if err := registerIn(f.t.Context(), of, of.cfg.Region, "second"); err != nil {
		f.t.Fatal(err)
	}
	if err := <-done; err != nil {
		f.t.Fatal(err)
	}
}

// TestRegionLost: a region is lost, which the other is not hurt by, and comes back.
func TestRegionLost(t *testing.T) {
	t.Parallel()
	at := ""
	f := federate(t, func(region string, c *Config) {
		if c.Membership.WAN.Probe = time.Second; region == "far" {
			at = port(t)
			c.Membership.WAN.Addr = at
		}
	}, "near", "far")
	near, far := f.regions["near"].all[0], f.regions["far"]
	far.crash(0)
	within(t, 2*time.Minute, "the loss being known", func(ctx context.Context) error {
		err := ping(ctx, near, "far")
		if structs.CodeOf(err) != structs.CodeNoRegion || !strings.Contains(fmt.Sprint(err), `No path to region "far": it is known`) {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
	if err := registerIn(t.Context(), near, "near", "still-here"); err != nil {
		t.Fatal(err)
	}
	far.run(0)
	far.formed(1)
	f.known("near", "far")
	within(t, time.Minute, "a write there", func(ctx context.Context) error { return registerIn(ctx, near, "far", "again") })
}

// TestRegionWithoutLeader: a region whose servers answer but have no leader says so, in bounded time.
func TestRegionWithoutLeader(t *testing.T) {
	t.Parallel()
	f := federate(t, nil, "near")
	near := f.regions["near"].all[0]
	for range 2 {
		prepare(t, 1, func(i int, c *Config) {
			c.Region, c.Membership.WAN.Addr, c.Membership.Expect, c.RPC.Hold = "far", "127.0.0.1:0", 3, 100*time.Millisecond
			c.Name = port(t)[len("127.0.0.1:"):]
			c.Membership.WAN.Retry, c.Membership.WAN.RetryInterval = []string{near.WANAddr()}, 200*time.Millisecond
		}).run(0)
	}
	within(t, time.Minute, "both being known", func(context.Context) error {
		if n := len(near.regions.Servers("far")); n != 2 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	err := registerIn(t.Context(), near, "far", "nobody")
	if text := fmt.Sprint(err); structs.CodeOf(err) != structs.CodeNoLeader || !strings.Contains(text, `region "far"`) || strings.Count(text, "No cluster leader") != 2 {
		t.Fatalf("both were to be tried: %v", err)
	}
}

// TestNoRoundTrip: a call that was passed on to a server of the wrong region ends there.
func TestNoRoundTrip(t *testing.T) {
	t.Parallel()
	f := federate(t, nil, "earth", "mars")
	earth, mars := f.regions["earth"].all[0], f.regions["mars"].all[0]
	pool := wire.NewPool(wire.Config{}, nil)
	defer pool.Close()
	session, err := pool.Session(t.Context(), mars.RPCAddr())
	if err != nil {
		t.Fatal(err)
	}
	mux := wire.NewMux(mars.logger, 0)
	mux.Handle(wire.MethodPing, func(ctx context.Context, call *wire.Call) error {
		return call.Relay(ctx, session, wire.ViaRegion, nil)
	})
	args := &structs.EmptyRequest{QueryOptions: in("earth")}
	err = mux.Local(t.Context(), wire.MethodPing, args, &structs.WriteReply{})
	if structs.CodeOf(err) != structs.CodeNoRegion || !strings.Contains(fmt.Sprint(err), `is of region "mars"`) {
		t.Fatalf("passed on wrongly: %v", err)
	}
	if err := ping(t.Context(), earth, "mars"); err != nil {
		t.Fatal(err)
	}
}

// TestWrongRegionJoins: a server of another region that is told to join this one's servers is
// refused and changes nothing.
func TestWrongRegionJoins(t *testing.T) {
	t.Parallel()
	home := newFleet(t, 1, func(_ int, c *Config) { c.Region = "home" })
	unknown := prepare(t, 1, func(_ int, c *Config) {
		c.Region, c.Membership.Expect, c.Membership.LAN.Retry = "away", 0, []string{home.cfgs[0].Membership.LAN.Addr}
	})
	s := unknown.run(0)
	n, err := s.gossip.Join(unknown.cfgs[0].Membership.LAN.Retry)
	if n > 0 || err == nil || !strings.Contains(err.Error(), "is of region") {
		t.Fatalf("joined %d: %v", n, err)
	}
	home.formed(1)
	if members := home.all[0].gossip.Members(); len(members) != 1 {
		t.Fatalf("members %+v", members)
	}
	if voters, others := peers(s); len(voters)+len(others) > 0 {
		t.Fatalf("the stranger has a configuration: %v %v", voters, others)
	}
	if err := registerIn(t.Context(), home.all[0], "home", "all-is-well"); err != nil {
		t.Fatal(err)
	}
}

// TestRegionsOverTLS: servers prove their own region to each other. What only servers may ask for they pass on
// for each other, for their agents and not for their clients; who only says that it is a region's server is
// not believed.
func TestRegionsOverTLS(t *testing.T) {
	t.Parallel()
	issue := identities(t)
	f := federate(t, func(region string, c *Config) { c.Port.TLS = issue("server", region, true) }, "earth", "mars")
	earth, mars := f.regions["earth"].all[0], f.regions["mars"].all[0]
	if err := registerIn(t.Context(), earth, "mars", "rover"); err != nil {
		t.Fatal(err)
	}
	save := &structs.SnapshotSaveRequest{QueryOptions: in("mars")}
	stream, err := earth.Stream(t.Context(), wire.MethodSnapshotSave, save)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	head := &structs.SnapshotChunk{}
	if err := stream.Recv(head); err != nil || head.Bytes == 0 {
		t.Fatalf("the state of mars through earth: %+v, %v", head, err)
	}
	upload := &structs.SnapshotUploadRequest{Data: []byte("x"), WriteRequest: structs.WriteRequest{Region: "mars"}}
	if err := earth.Call(t.Context(), wire.MethodSnapshotUpload, upload, &structs.SnapshotUploadReply{}); err != nil {
		t.Errorf("an archive for mars through earth: %v", err)
	}
	for what, c := range map[string]struct {
		as *wire.TLS
		of string
	}{"a client of earth": {issue("client", "earth", true), "earth"}, "a client of mars": {issue("client", "mars", true), "mars"}} {
		at := f.regions[c.of].all[0]
		session, err := wire.Dial(t.Context(), c.of, at.RPCAddr(), wire.Config{TLS: c.as})
		if err != nil {
			t.Fatal(err)
		}
		if err := session.Call(t.Context(), wire.MethodSnapshotSave, save, &structs.SnapshotChunk{}); structs.CodeOf(err) != structs.CodeForbidden {
			t.Errorf("%s has the state of mars: %v", what, err)
		}
		if err := session.Call(t.Context(), wire.MethodPing, &structs.EmptyRequest{QueryOptions: in("mars")}, &structs.WriteReply{}); err != nil {
			t.Errorf("%s does not reach mars: %v", what, err)
		}
		_ = session.Close()
	}
	// Who has the certificate of earth and says in gossip that it is of mars gets no calls for mars.
	liar := prepare(t, 1, func(_ int, c *Config) {
		c.Name, c.Region, c.Port.TLS = "liar", "mars", issue("server", "earth", true)
		c.Membership.WAN.Addr, c.Membership.WAN.Retry = "127.0.0.1:0", []string{earth.WANAddr()}
	})
	liar.run(0)
	within(t, time.Minute, "the liar being known", func(context.Context) error {
		if n := len(earth.regions.Servers("mars")); n != 2 {
			return fmt.Errorf("%d servers of mars are known", n)
		}
		return nil
	})
	for range 4 {
		if ids, err := jobsIn(t.Context(), earth, "mars"); err != nil || !slices.Equal(ids, []string{"rover"}) {
			t.Fatalf("jobs of mars: %v, %v", ids, err)
		}
	}
	if leader, err := jobsIn(t.Context(), mars, "earth"); err != nil || len(leader) > 0 {
		t.Fatalf("jobs of earth: %v, %v", leader, err)
	}
}
