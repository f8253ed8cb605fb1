package forecast

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/nomadish/calendar"
	"github.com/nomadish/nomadish/nomadish/drain"
	"github.com/nomadish/nomadish/nomadish/plan"
	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/nomadish/workflow"
	"github.com/nomadish/nomadish/structs"
)

// jobTypes are the types of jobs that the worker takes.
var jobTypes = []string{structs.JobTypeService, structs.JobTypeBatch, structs.JobTypeSystem, structs.JobTypeSysBatch}

const (
	// tick is how far the time moves when a part wants to be called again and nothing else is to be done now.
	tick = 10 * time.Millisecond
	// never is how long no explanation of why something waits is renewed: nobody reads it.
	never = 100 * structs.MaxForecastHorizon
	// rounds bounds the rounds at one time: parts that answer each other without end must not keep the time from moving on.
	rounds = 10_000
	// lookAnew is in how long workflows that wait are looked at anew though nothing has changed. A workflow that does not fit within the horizon would have a
	// week looked at minute by minute, while all else waits for its forecast; what changes with the time alone, as a week does, is stated this late at most.
	lookAnew = time.Hour
)

// leader is the parts of a leader on a fork of the state, moved on by one goroutine.
type leader struct {
	timeline
	store *state.Store
	apply func(t structs.LogType, payload any) (uint64, error)
	newID func() string
	// drop, not nil, is called with an index up to which all parts have read what has changed; pace, not nil, before each evaluation: it may wait.
	drop func(index uint64)
	pace func(ctx context.Context)

	broker *queue.Broker
	evals  *queue.Steps
	plans  *plan.Steps
	worker *worker.Worker
	pass   *worker.Pass
	drains *drain.Steps
	flows  *workflow.Steps
	edges  *calendar.Calendar

	again   bool // another pass is needed
	passing int  // decisions of the pass whose plans are on their way
	offers  []*offer

	gated, parked, drained, flowed, edged, soon alarm

	// edgeOf is the index of the state of which nextEdge is when the calendar is to move time on.
	edgeOf   uint64
	nextEdge time.Time
}

// offer is a plan that was submitted, with what to do with the answer.
type offer struct {
	*plan.Offer
	learn func(result *structs.PlanResult, err error)
}

// newLeader returns the parts of a leader. apply commits entries, which the store has when it returns. The passes and the queue are as their options
// state, of which those that all parts have in common are set here: the typicals are what the scheduler keeps room for.
func newLeader(store *state.Store, apply func(structs.LogType, any) (uint64, error), now time.Time, newID func() string, passes worker.PassOptions, like queue.Options) *leader {
	l := &leader{timeline: timeline{now: now}, store: store, apply: apply, newID: newID, pace: passes.Pace, again: true}
	silent := hclog.NewNullLogger()
	like.NewID, like.Clock, like.Logger, like.Unread = newID, l, silent, passes.Unread
	l.broker = queue.New(like, l, l.store.LatestIndex)
	applier := plan.New(plan.Options{Gate: gate{l.broker, l}, EntryBytes: 64 << 20, Clock: l, Logger: silent}, l.store, l, l.broker)
	l.worker = worker.New(worker.Options{Schedulers: jobTypes, NewID: newID, Typicals: passes.Typicals, Clock: l, Logger: silent}, calls{l}, l.store)
	passes.NewID, passes.Clock, passes.Logger = newID, l, silent
	l.pass = worker.NewPass(passes, l.broker, l.broker, nil, l.store)
	l.edges = calendar.New(calendar.Options{NewID: newID, Clock: l, Logger: silent, Longest: structs.MaxForecastHorizon}, l.store, l)
	l.evals = l.broker.Start(l.store)
	l.plans = applier.Start(func(commit func()) { commit() })
	l.drains = drain.New(l, newID, silent).Start(l.store, l)
	l.flows = workflow.New(workflow.Options{NewID: newID, Clock: l, Logger: silent, Anew: lookAnew}, l.store, l, planner{l}).Start()
	return l
}

// stop stops the parts.
func (l *leader) stop() {
	l.plans.Stop()
	l.evals.Stop()
}

// Apply implements the Applier of every part.
func (l *leader) Apply(_ context.Context, t structs.LogType, payload any) (uint64, error) {
	return l.apply(t, payload)
}

// settle moves the parts on until nothing is left to be done at this time. look is called in each round, after the broker has followed the state.
func (l *leader) settle(ctx context.Context, look func(ctx context.Context) error) error {
	for range rounds {
		before := l.store.LatestIndex()
		moved := l.follow()
		if err := look(ctx); err != nil {
			return err
		}
		l.drains.Step(ctx)
		l.flows.Step(ctx)
		edge := l.edge(ctx)
		if _, err := l.evals.Chores(ctx); err != nil {
			return err
		}
		moved = l.work(ctx) || moved
		moved = l.walk(ctx) || moved
		l.judge(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		if l.drop != nil {
			l.drop(before)
		}
		if !moved && l.store.LatestIndex() == before {
			l.setAlarms(edge)
			return nil
		}
	}
	l.soon.set(&l.timeline, l.now.Add(tick))
	return nil
}

// edge moves time on if an edge of the calendar has come, and returns in how long the next one is; 0: there is none. It is looked for when something has
// changed: it would be most of what is done while nothing happens.
func (l *leader) edge(ctx context.Context) time.Duration {
	if index := l.store.LatestIndex(); index != l.edgeOf || !l.now.Before(l.nextEdge) {
		l.edgeOf, l.nextEdge = index, l.now.Add(l.edges.Step(ctx, nil))
	}
	return l.nextEdge.Sub(l.now)
}

// setAlarms has the time stop where a part wants to be called though nothing has happened.
func (l *leader) setAlarms(edge time.Duration) {
	set := func(a *alarm, wait time.Duration, wanted bool) {
		if wanted {
			a.set(&l.timeline, l.now.Add(max(wait, tick)))
		}
	}
	later := l.evals.Later()
	set(&l.gated, later, later > 0)
	wait, wanted := l.plans.Again()
	set(&l.parked, wait+time.Millisecond, wanted)
	wait, wanted = l.drains.Again()
	set(&l.drained, wait, wanted)
	wait, wanted = l.flows.Again()
	set(&l.flowed, wait, wanted)
	set(&l.edged, edge, edge > 0)
	set(&l.soon, tick, l.again)
}

// follow has the broker take in all that was committed.
func (l *leader) follow() (moved bool) {
	for l.evals.Follow() {
		moved = true
	}
	return moved
}

// work has the worker decide all evaluations that may be taken.
func (l *leader) work(ctx context.Context) (moved bool) {
	for ctx.Err() == nil {
		got, err := l.evals.Take(jobTypes)
		if err != nil || got.Eval == nil {
			break
		}
		if l.pace != nil {
			l.pace(ctx)
		}
		moved = true
		l.decide(ctx, l.worker.Begin(got))
		l.judge(ctx)
		l.follow()
	}
	return moved
}

// decide makes the next plan of an evaluation and submits it.
func (l *leader) decide(ctx context.Context, w *worker.Work) {
	p, err := w.Decide(ctx)
	if err != nil || p == nil {
		w.End(ctx, err)
		return
	}
	l.submit(ctx, p, func(result *structs.PlanResult, err error) {
		again, err := w.Learn(ctx, result, err)
		if again {
			l.decide(ctx, w)
			return
		}
		w.End(ctx, err)
	})
}

// walk makes a pass over what waits for room, once the one before it is through.
func (l *leader) walk(ctx context.Context) (moved bool) {
	if untried := l.evals.Untried(); l.passing > 0 || !untried && !l.again {
		l.again = l.again || untried
		return false
	}
	decided, again := l.pass.Walk(ctx)
	l.again = again || len(decided) > 0
	for _, d := range decided {
		l.passing++
		l.submit(ctx, d.Plan(), func(result *structs.PlanResult, err error) {
			l.pass.Learn(ctx, d, result, err)
			l.passing--
		})
	}
	l.judge(ctx)
	return len(decided) > 0
}

// submit passes a plan to the applier.
func (l *leader) submit(ctx context.Context, p *structs.Plan, learn func(*structs.PlanResult, error)) {
	o, err := l.plans.Submit(ctx, p)
	if err != nil {
		learn(nil, err)
		return
	}
	l.offers = append(l.offers, &offer{o, learn})
}

// judge has the applier judge and commit what it can now, and passes the answers on.
func (l *leader) judge(ctx context.Context) {
	for again := true; again; {
		before := l.store.LatestIndex()
		l.plans.Step(ctx)
		again = l.answer() || l.store.LatestIndex() > before
	}
}

// answer passes on what became of plans.
func (l *leader) answer() (any bool) {
	was := l.offers
	l.offers = nil
	for _, o := range was {
		result, done, err := o.Answer()
		if !done {
			l.offers = append(l.offers, o)
			continue
		}
		any = true
		o.learn(result, err)
	}
	return any
}

// gate is the broker as the applier's gate, which need not wait for it: it follows here.
type gate struct {
	*queue.Broker
	l *leader
}

// CatchUp implements queue.Gate.
func (g gate) CatchUp(context.Context) error {
	g.l.follow()
	return nil
}

// planner is the applier as the driver of workflows sees it, which waits for its plans.
type planner struct{ *leader }

// Submit implements workflow.Planner.
func (p planner) Submit(ctx context.Context, pl *structs.Plan) (*structs.PlanResult, error) {
	o, err := p.plans.Submit(ctx, pl)
	if err != nil {
		return nil, err
	}
	for range rounds {
		p.plans.Step(ctx)
		if result, done, err := o.Answer(); done {
			return result, err
		}
	}
	return nil, structs.Errorf(structs.CodeInternal, "the plan of workflow %q was not answered", pl.JobID)
}

// calls is the leader as its worker calls it.
type calls struct{ *leader }

// Dequeue implements queue.Leader; the worker is given its evaluations.
func (c calls) Dequeue(context.Context, []string, time.Duration) (*structs.EvalDequeueReply, error) {
	return nil, structs.Errorf(structs.CodeUnsupported, "evaluations are given out one by one here")
}

// Submit implements queue.Leader, likewise.
func (c calls) Submit(context.Context, *structs.Plan) (*structs.PlanResult, error) {
	return nil, structs.Errorf(structs.CodeUnsupported, "plans are submitted one by one here")
}

// Ack implements queue.Leader.
func (c calls) Ack(_ context.Context, evalID, token string) error {
	return c.broker.Ack(evalID, token)
}

// Nack implements queue.Leader.
func (c calls) Nack(_ context.Context, evalID, token string) error {
	return c.broker.Nack(evalID, token)
}

// Update implements queue.Leader.
func (c calls) Update(ctx context.Context, _, _ string, evals []*structs.Evaluation) error {
	_, err := c.Apply(ctx, structs.LogEvalUpsert, &structs.EvalUpsertEntry{Evals: evals, Time: c.now.UnixNano()})
	return err
}
