package simulation

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/calendar"
	"github.com/nomadish/nomadish/nomadish/drain"
	"github.com/nomadish/nomadish/nomadish/endpoint/alloc"
	"github.com/nomadish/nomadish/nomadish/endpoint/eval"
	jobendpoint "github.com/nomadish/nomadish/nomadish/endpoint/job"
	"github.com/nomadish/nomadish/nomadish/endpoint/namespace"
	"github.com/nomadish/nomadish/nomadish/endpoint/node"
	"github.com/nomadish/nomadish/nomadish/endpoint/operator"
	"github.com/nomadish/nomadish/nomadish/endpoint/virtualcluster"
	workflowendpoint "github.com/nomadish/nomadish/nomadish/endpoint/workflow"
	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/gc"
	"github.com/nomadish/nomadish/nomadish/heartbeat"
	"github.com/nomadish/nomadish/nomadish/plan"
	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/nomadish/workflow"
	"github.com/nomadish/nomadish/structs"
)

// nackAfter is how long a worker may have an evaluation without a word: as in earnest.
const nackAfter = time.Minute

// leader is what only a leader runs: the real parts, moved on one step after the other, in an
// order that is drawn.
type leader struct {
	*sim
	r    *replica
	over bool // it leads no more, and the parts are to be stopped
	// calmSince is since when it has led without a mass failure.
	calmSince time.Duration

	// skew is that of the machine's clock when it came to lead. Parts that measure how long
	// something takes go by it: a clock that is set does not change that.
	skew   time.Duration
	broker *queue.Broker
	evals  *queue.Steps
	plans  *plan.Steps
	pass   *worker.Pass
	timers *heartbeat.Timers
	beats  *heartbeat.Steps
	drains *drain.Steps
	flows  *workflow.Steps // nil: there are no workflows
	gc     *gc.Collector
	edges  *calendar.Calendar
	mux    *wire.Mux
	logged strings.Builder // errors that the mux has logged: calls that panicked

	stirred  bool     // a round is to come
	passing  int      // decisions of the pass, whose plans are on their way
	again    bool     // another pass is needed
	inFlight []func() // commits that are to be made
	offers   []*offer // plans whose answers are to come
}

// offer is a plan that was submitted, and who wants to know what became of it.
type offer struct {
	*plan.Offer
	tell func(result *structs.PlanResult, err error)
}

// gate is the broker as the applier's gate. The applier must not wait for the broker to have
// followed the state: here nobody else would have it follow.
type gate struct {
	*queue.Broker
	l *leader
}

// CatchUp implements queue.Gate.
func (g gate) CatchUp(context.Context) error {
	for g.l.evals.Follow() {
	}
	return nil
}

// lead has a replica lead.
func lead(r *replica) *leader {
	l := &leader{sim: r.sim, r: r, skew: r.skew, calmSince: r.now}
	steady := &wall{time: &r.timeline, skew: &l.skew, done: l.stir}
	now := &wall{time: &r.timeline, skew: &r.skew}
	silent := hclog.NewNullLogger()
	l.broker = queue.New(queue.Options{NackTimeout: nackAfter, NewID: r.newID, Clock: steady, Logger: silent}, l, r.store.LatestIndex)
	applier := plan.New(plan.Options{
		Gate: gate{l.broker, l}, BatchLimit: 1 + r.IntN(20), ChainLimit: 1 + r.IntN(8), EntryBytes: one(r.sim, 3<<10, 16<<10, 512<<10), Clock: steady,
	}, r.store, proposals{l}, l.broker)
	l.pass = worker.NewPass(worker.PassOptions{NewID: r.newID, Typicals: r.typicals, Clock: now}, l.broker, l.broker, nil, r.store)
	l.timers = l.heartbeats(steady)
	l.gc = gc.New(gc.Options{
		Eval: 30 * time.Second, BatchEval: time.Minute, Job: time.Minute, Node: 5 * time.Minute, History: 10 * time.Minute, Clock: now,
	}, r.store, l)
	l.edges = calendar.New(calendar.Options{NewID: r.newID, Clock: now}, r.store, l)
	l.mux = wire.NewMux(hclog.New(&hclog.LoggerOptions{Level: hclog.Error, Output: &l.logged, DisableTime: true}), 0)
	l.listen(now, silent)
	if r.store.Snapshot().SchedulerConfig(nil).ModifyIndex == 0 {
		_, _ = l.Apply(forever, structs.LogSchedulerConfig, &structs.SchedulerConfigEntry{ // else the next leader does it
			Config: r.users.config(), CAS: true, Time: now.Now().UnixNano(),
		})
	}
	makeLicense(now, l, l.workflows)
	l.evals = l.broker.Start(r.store)
	l.plans = applier.Start(l.queueCommit)
	l.beats = l.timers.Start(r.store)
	l.drains = drain.New(l, r.newID, silent).Start(r.store, now)
	l.flows = l.workflows.driver(l, steady)
	l.every(time.Second, 0, "pulse", func() {
		l.beats.Pulse()
		l.checks.overdue(l)
	})
	l.every(200*time.Millisecond, 100*time.Millisecond, "chores", l.stir)
	l.every(10*time.Second, 10*time.Second, "collect", func() { _ = l.gc.Collect(forever) }) // else it does so the next time
	l.again = true
	l.stir()
	return l
}

// listen registers the methods with the leader's mux that nodes, workers and people call here.
func (l *leader) listen(now *wall, silent hclog.Logger) {
	r := l.r
	router := rpc.New(rpc.Config{Region: structs.DefaultRegion, Hold: 1}, rpc.Deps{
		Store: r.store, Cluster: members{l}, Gossip: members{l}, Leadership: members{l}, Logger: silent,
	})
	parts := rpc.Parts{Router: router, Applier: l, NewID: r.newID, Now: now.Now}
	rpc.Register(l.mux,
		jobendpoint.New(jobendpoint.Config{}, jobendpoint.Deps{Parts: parts}),
		alloc.New(parts),
		eval.New(eval.Deps{Router: router, Applier: l, Broker: l.broker, Now: now.Now, Logger: silent}),
		node.New(node.Config{Datacenter: "dc1"}, node.Deps{Parts: parts, Heartbeats: l.timers, Logger: silent}),
		operator.New(operator.Deps{Router: router, Applier: l, Collector: l.gc, Raft: members{l}, Now: now.Now}),
		namespace.New(parts),
		virtualcluster.New(parts),
		workflowendpoint.New(workflowendpoint.Deps{Parts: parts, Self: l.mux.Local}),
	)
}

// heartbeats makes the timers of the nodes, with the probers that there are.
func (l *leader) heartbeats(steady *wall) *heartbeat.Timers {
	opts := heartbeat.Options{MinTTL: beatEvery, Grace: beatEvery, Failover: 3 * beatEvery, NewID: l.newID, Clock: steady, Jitter: l.Int64N}
	if l.prober != nil {
		opts.Probers, opts.Liveness = l.prober, l.prober.liveness
	}
	return heartbeat.New(opts, l)
}

// every has something done again and again while it leads.
func (l *leader) every(d, jitter time.Duration, what string, do func()) {
	wait := d
	if jitter > 0 {
		wait = l.between(d, d+jitter)
	}
	l.after(wait, what, l.r.id, func() {
		if l.leads() {
			do()
			l.every(d, jitter, what, do)
		}
	})
}

func (l *leader) leads() bool { return !l.over && l.leader == l }

// lose takes the leadership away. The parts are stopped a moment later: until then they find
// that nothing can be committed.
func (l *leader) lose() {
	if l.over {
		return
	}
	l.over = true
	l.after(l.between(0, 50*time.Millisecond), "stop leading", l.r.id, l.stop)
	l.after(l.between(100*time.Millisecond, 1500*time.Millisecond), "elect", -1, l.elect)
}

// stop stops the parts.
func (l *leader) stop() {
	if l.leader != l {
		return
	}
	l.over = true
	for len(l.inFlight) > 0 {
		commit := l.inFlight[0]
		l.inFlight = l.inFlight[1:]
		commit()
	}
	l.plans.Stop()
	l.answer()
	l.beats.Stop()
	l.evals.Stop()
	l.leader = nil
}

// noLeader is the answer of who does not lead.
func noLeader() error { return structs.Errorf(structs.CodeNoLeader, "not the leader") }

// Apply implements the Applier of every part: it is Raft as they see it.
func (l *leader) Apply(_ context.Context, t structs.LogType, payload any) (uint64, error) {
	if l.over || l.failed != nil {
		return 0, noLeader()
	}
	l.checks.verdict(payload)
	data, err := fsm.Encode(t, payload)
	if err != nil {
		return 0, err
	}
	e := entry{data: data, kind: t, payload: payload}
	switch {
	case l.chance(300):
		l.fault("an entry is refused: too much at once", l.r.id)
		return 0, structs.Errorf(structs.CodeLimited, "too much at once")
	case l.chance(700) && !l.spared():
		l.fault("an entry is lost with its leader", l.r.id)
		l.log.tail, l.log.owner = append(l.log.tail, e), l.r
		l.lose()
		return 0, noLeader()
	case l.chance(700) && !l.spared():
		l.fault("an entry is agreed on, and nobody is told", l.r.id)
		l.log.entries = append(l.log.entries, e)
		l.lose()
		return 0, noLeader()
	}
	l.log.entries = append(l.log.entries, e)
	index := l.log.last()
	err = l.r.apply(index)
	l.spread()
	l.stir()
	return index, err
}

// proposals is Raft as the plan applier sees it.
type proposals struct{ *leader }

// Apply implements plan.Committer.
func (p proposals) Apply(ctx context.Context, t structs.LogType, payload any) (uint64, error) {
	if p.commit != nil {
		payload = p.commit(payload)
	}
	return p.leader.Apply(ctx, t, payload)
}

// queueCommit has a commit of plans made later.
func (l *leader) queueCommit(commit func()) {
	l.inFlight = append(l.inFlight, commit)
	l.after(l.between(0, 20*time.Millisecond), "commit", l.r.id, func() {
		if l.leads() && len(l.inFlight) > 0 { // else it has been made
			commit := l.inFlight[0]
			l.inFlight = l.inFlight[1:]
			commit()
			l.stir()
		}
	})
}

// stir has the parts look at what is new.
func (l *leader) stir() {
	if l.stirred || l.over {
		return
	}
	l.stirred = true
	l.after(l.between(0, 10*time.Millisecond), "stir", l.r.id, func() {
		l.stirred = false
		if l.leads() {
			l.round()
		}
	})
}

// round moves the parts on, in some order, and now and then leaves some of them out.
func (l *leader) round() {
	steps := []func(){
		func() {
			for l.evals.Follow() && !l.chance(50) {
			}
		},
		func() {
			for l.beats.Follow() {
			}
			l.beats.Mark(forever)
		},
		l.watch,
		func() { l.drains.Step(forever) },
		func() { _, _ = l.evals.Chores(forever) }, // else they are tried again
		func() {
			l.plans.Step(forever)
			l.answer()
			if wait, some := l.plans.Again(); some {
				l.after(wait+time.Millisecond, "gate", l.r.id, l.stir)
			}
		},
		l.walk,
		l.wakeOne,
	}
	if l.tenants != nil {
		steps = append(steps, func() { l.edges.Step(forever, nil) })
	}
	if l.flows != nil {
		steps = append(steps, func() { l.flows.Step(forever) })
	}
	l.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	for _, step := range steps {
		if !l.leads() || l.failed != nil {
			return
		}
		if l.chance(8) {
			l.stir()
			continue
		}
		step()
	}
}

// answer sends those who wait what became of their plans.
func (l *leader) answer() {
	var wait []*offer
	for _, o := range l.offers {
		result, done, err := o.Answer()
		if !done {
			wait = append(wait, o)
			continue
		}
		l.after(l.between(0, 5*time.Millisecond), "answer", -1, func() { o.tell(result, err) })
	}
	l.offers = wait
}

// submit passes a plan to the applier.
func (l *leader) submit(p *structs.Plan, tell func(*structs.PlanResult, error)) {
	if l.seams.submit != nil && l.seams.submit(l, p, tell) {
		return
	}
	o, err := l.plans.Submit(forever, p)
	if err != nil {
		l.after(0, "answer", -1, func() { tell(nil, err) })
		return
	}
	l.offers = append(l.offers, &offer{o, tell})
	l.stir()
}

// walk makes a pass over what waits for room, once that before it is through.
func (l *leader) walk() {
	if l.passing > 0 || !l.evals.Untried() && !l.again {
		return
	}
	decided, again := l.pass.Walk(forever)
	l.again = again || len(decided) > 0
	for _, t := range decided {
		l.passing++
		l.result.Plans++
		l.submit(t.Plan(), func(result *structs.PlanResult, err error) {
			l.pass.Learn(forever, t, result, err)
			l.passing--
			l.stir()
		})
	}
	if again && l.passing == 0 {
		l.stir()
	}
}

// wakeOne has somebody's worker request work; who gets some wakes the next.
func (l *leader) wakeOne() { one(l.sim, l.replicas...).wake() }

// call calls an RPC method of the leader.
func (s *sim) call(method string, args, reply any) error {
	if s.leader == nil || s.leader.over {
		return noLeader()
	}
	l := s.leader
	err := l.mux.Local(forever, method, args, reply)
	if err != nil && structs.CodeOf(err) == structs.CodeInternal { // callers take it for a server that is not well, and call again
		s.fail("%s: %v\n%s", method, err, l.logged.String())
	}
	return err
}

// members is the cluster as the endpoints see it.
type members struct{ l *leader }

// Leader implements rpc.Leadership.
func (m members) Leader() rpc.LeaderInfo {
	return rpc.LeaderInfo{Addr: "leader", ID: "leader", Over: forever}
}

// IsLeader implements rpc.Leadership.
func (m members) IsLeader() bool { return m.l.leads() }

// Verify implements rpc.Leadership.
func (m members) Verify(context.Context) error { return nil }

// Changed implements rpc.Leadership: nobody waits for a leader here.
func (m members) Changed() <-chan struct{} { return nil }

// LastContact implements rpc.Leadership.
func (m members) LastContact() time.Duration { return 0 }

// Readable implements rpc.Cluster: all run the same build.
func (m members) Readable(structs.LogType) error { return nil }

// Configuration implements rpc.Cluster.
func (m members) Configuration() (*structs.RaftConfigurationReply, error) {
	return &structs.RaftConfigurationReply{}, nil
}

// Members implements rpc.Gossip: servers do not gossip here.
func (m members) Members() []structs.ServerMember { return nil }

// Change implements operator.Raft.
func (m members) Change(context.Context, bool, string, string) error { return noLeader() }
