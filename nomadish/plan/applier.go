package plan

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

var (
	refusedCount      = telemetry.NewCount("nomad.plan.refused")
	nodeRejectedCount = telemetry.NewCount("nomad.plan.node_rejected")
	submitTime        = telemetry.NewTimer("nomad.plan.submit")
	evaluateTime      = telemetry.NewTimer("nomad.plan.evaluate")
)

// Committer commits a log entry through Raft. The index of what was committed is that
// of the entry, which is applied to the store when it returns.
type Committer interface {
	Apply(ctx context.Context, t structs.LogType, payload any) (index uint64, err error)
}

// Options tunes an applier. Zero values are replaced by the defaults named.
type Options struct {
	QueueLimit int // plans that may wait (8192)
	BatchLimit int // plans of one round (512)
	// EntryBytes bounds a log entry (512 KiB): larger ones delay heartbeats between
	// servers and risk the leadership. What must not be parted (a plan that is AllAtOnce, a
	// newcomer and those who make room for it: units.go) has one of its own, however large.
	EntryBytes int
	ChainLimit int // rounds judged one on the other (8)
	// Gate keeps plans from overtaking; nil: every plan is judged as it comes. ParkLimit
	// is how long a plan waits for its gate before it is sent back (500 ms).
	Gate      queue.Gate
	ParkLimit time.Duration
	Clock     clock.Clock // (the machine's)
	Logger    hclog.Logger
}

// Applier is the plan queue and what empties it.
type Applier struct {
	opts   Options
	store  *state.Store
	commit Committer
	leases queue.Leases
	queue  *planQueue
}

// New makes an applier; it refuses plans until it is run.
func New(opts Options, store *state.Store, commit Committer, leases queue.Leases) *Applier {
	set := func(n *int, to int) {
		if *n <= 0 {
			*n = to
		}
	}
	set(&opts.QueueLimit, 8192)
	set(&opts.BatchLimit, 512)
	set(&opts.EntryBytes, 512<<10)
	set(&opts.ChainLimit, 8)
	if opts.ParkLimit <= 0 {
		opts.ParkLimit = 500 * time.Millisecond
	}
	opts.Clock = clock.Or(opts.Clock)
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	return &Applier{opts: opts, store: store, commit: commit, leases: leases, queue: newPlanQueue(opts.QueueLimit)}
}

// Submit has a plan judged and, as far as it is accepted, committed, and waits for that. A
// result with a RefreshIndex means that a part was refused: decide again on a state
// at least that new. When ctx ends first, the plan may still be committed.
func (a *Applier) Submit(ctx context.Context, p *structs.Plan) (*structs.PlanResult, error) {
	defer submitTime.If(clock.IsMachine(a.opts.Clock)).Since(time.Now())
	if err := check(p); err != nil {
		return nil, err
	}
	ws, err := a.queue.put(ctx, p)
	if err != nil {
		return nil, err
	}
	return ws[0].wait(ctx)
}

// Waiting returns how many plans wait to be judged.
func (a *Applier) Waiting() int { return a.queue.depth() }

// SubmitAll submits plans together, so that one log entry can contain them all, and returns
// what became of each, or its error.
func (a *Applier) SubmitAll(ctx context.Context, plans []*structs.Plan) ([]*structs.PlanResult, []error) {
	results, errs := make([]*structs.PlanResult, len(plans)), make([]error, len(plans))
	var good []*structs.Plan
	var at []int
	for i, p := range plans {
		if errs[i] = check(p); errs[i] == nil {
			good, at = append(good, p), append(at, i)
		}
	}
	ws, err := a.queue.put(ctx, good...)
	for k, i := range at {
		if err != nil {
			errs[i] = err
			continue
		}
		results[i], errs[i] = ws[k].wait(ctx)
	}
	return results, errs
}

// wait returns a plan's answer.
func (w *waiting) wait(ctx context.Context) (*structs.PlanResult, error) {
	select {
	case r := <-w.done:
		return r.result, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// check refuses what cannot be judged.
func check(p *structs.Plan) error {
	bad := func(format string, args ...any) error {
		return structs.Errorf(structs.CodeBadRequest, "plan of evaluation %s: %w", p.EvalID, structs.Errorf(structs.CodeBadRequest, format, args...))
	}
	if p == nil {
		return structs.Errorf(structs.CodeBadRequest, "plan: missing")
	}
	for i, b := range p.Place {
		if b == nil {
			return bad("batch %d is missing", i)
		}
		for j, in := range b.Instances {
			if in.Node < 0 || in.Node >= len(b.Nodes) {
				return bad("batch %d: instance %d is on node %d of %d", i, j, in.Node, len(b.Nodes))
			}
		}
		if b.Resources != nil {
			for task, t := range b.Resources.Tasks { // order does not matter: any is refused
				if t == nil {
					return bad("batch %d: the resources of task %q are missing", i, task)
				}
			}
		}
	}
	if p.Advance != nil && (!p.AllAtOnce || p.EvalID != "" || p.Workflow == nil) {
		return bad("it moves a workflow on, and is not all at once, or of an evaluation, or states no reservation")
	}
	for i := range p.Stop {
		if p.Stop[i] == nil {
			return bad("stop %d is missing", i)
		}
	}
	for i := range p.Update {
		if p.Update[i] == nil {
			return bad("update %d is missing", i)
		}
	}
	for i := range p.Evals {
		if p.Evals[i] == nil {
			return bad("evaluation %d is missing", i)
		}
	}
	return nil
}

// Run judges and commits until ctx ends. It is called once at a time, when everything
// that earlier leaders committed has been applied.
func (a *Applier) Run(ctx context.Context) {
	a.queue.enable(true)
	p := a.pipeline(func(commit func()) { go commit() })
	defer func() {
		a.queue.enable(false)
		p.end()
	}()
	for {
		gates, soon := p.parkedUntil()
		select {
		case <-a.queue.more:
		case <-gates:
		case <-soon:
		case <-p.committing():
			p.endCommit()
		case <-ctx.Done():
			return
		}
		p.advance(ctx)
	}
}

func (a *Applier) pipeline(send func(commit func())) *pipeline {
	return &pipeline{Applier: a, send: send}
}

// pipeline is the rounds under way. It belongs to Run's goroutine.
type pipeline struct {
	*Applier
	send     func(commit func()) // has a commit done beside what is judged meanwhile
	open     *round              // being judged; nil: none
	inFlight *inFlightRound      // being committed; nil: none
	last     uint64              // the index of the last commit
	chain    int                 // rounds since the last snapshot
	stale    bool                // the next round must start from a snapshot
	fence    bool                // it is not known what became of the last commit
	steps    bool                // a commit that has ended is taken in before anything is judged: the World that it began with may change in place
	// parked are the plans that wait for their gates.
	parked []*judged
	freed  bool // a plan freed room since the last snapshot
}

// round is plans judged one after the other on one World.
type round struct {
	edit  *scheduler.Edit
	base  uint64 // the index of the snapshot that it all began with
	plans []*judged
	// full: no more plans are judged into it. What moves a workflow on may be refused when it is committed, as the run may have changed: none of the
	// same entry must count on it.
	full bool
}

// judged is a plan with what of it is accepted.
type judged struct {
	*waiting
	since    time.Time // when it came
	rank     structs.Rank
	verdict  queue.Verdict // of the gate, at the last check
	unretain func()
	accepted *structs.JudgedPlan
	refused  []string
	reason   string
	err      error // of its commit
}

func (p *pipeline) committing() <-chan struct{} {
	if p.inFlight == nil {
		return nil
	}
	return p.inFlight.committed
}

// endCommitted records how the commit in flight went, if it has ended.
func (p *pipeline) endCommitted() {
	select {
	case <-p.committing():
		p.endCommit()
	default:
	}
}

// endCommit records how a commit went.
func (p *pipeline) endCommit() {
	f := p.inFlight
	p.inFlight = nil
	p.last = max(p.last, f.index)
	if f.err == nil {
		return
	}
	p.fence = p.fence || uncertain(f.err)
	p.stale = true
	if p.open != nil { // it counted on what has not happened
		for _, j := range p.open.plans {
			if p.opts.Gate != nil {
				p.opts.Gate.Judged(j.plan.EvalID, false, nil, nil)
			}
		}
		p.parked = append(p.parked, p.open.plans...)
		p.open = nil
	}
}

// advance judges what waits and commits what can be, as far as possible without
// waiting for a commit.
func (p *pipeline) advance(ctx context.Context) {
	for {
		if p.steps {
			p.endCommitted()
		}
		if p.open != nil && len(p.open.plans) == 0 {
			p.open = nil // an idle round would grow old
		}
		if (p.open == nil && p.queue.empty() && len(p.parked) == 0) || !p.ready(ctx) {
			return
		}
		for _, w := range p.queue.take(p.opts.BatchLimit - len(p.open.plans)) {
			p.take(w)
		}
		for p.admit() && len(p.parked) > 0 { // what was judged may let on those behind it
		}
		if p.inFlight != nil {
			return
		}
		if len(p.open.plans) == 0 {
			if p.open = nil; p.stale && len(p.parked) > 0 {
				continue // on a newer state
			}
			return
		}
		p.beginCommit(ctx)
	}
}

// mayJudge reports whether plans can be judged before the in-flight commit is done.
func (p *pipeline) mayJudge() bool {
	return p.open != nil || p.inFlight == nil || !p.stale && p.chain < p.opts.ChainLimit
}

// ready makes sure that there is a round to judge plans into; false: the in-flight commit must
// end first.
func (p *pipeline) ready(ctx context.Context) bool {
	if p.open != nil && p.open.edit != nil {
		return true
	}
	switch {
	case p.inFlight == nil:
		if p.fence && !p.settle(ctx) {
			return false
		}
		snap := p.store.Snapshot()
		if p.opts.Gate != nil && p.opts.Gate.CatchUp(ctx) != nil {
			return false
		}
		p.open = &round{edit: snap.World().Edit(), base: snap.Index()}
		p.chain, p.stale, p.freed = 0, false, false
	case p.stale || p.chain >= p.opts.ChainLimit:
		return false
	default:
		p.open = &round{edit: p.inFlight.round.edit.World().Edit(), base: p.inFlight.round.base}
		p.chain++
	}
	return true
}

// settle commits an empty entry: when it has been applied, so has whatever was before
// it. If that fails, those that wait get the error.
func (p *pipeline) settle(ctx context.Context) bool {
	_, err := p.commit.Apply(ctx, structs.LogPlanApply, &structs.PlanCommit{})
	if err == nil {
		p.fence = false
		return true
	}
	for _, j := range p.parked {
		j.answer(nil, err)
	}
	p.parked = nil
	for _, w := range p.queue.take(p.opts.QueueLimit) {
		w.done <- answer{err: err}
	}
	return false
}

// take retains a plan's lease and parks it; admit judges it.
func (p *pipeline) take(w *waiting) {
	seed := ""
	if len(w.plan.Place) > 0 {
		seed = w.plan.Place[0].Seed // minted for this plan
	}
	unretain, ok := func() {}, w.plan.Workflow != nil && w.plan.EvalID == "" // a workflow's reservation is of no evaluation
	if !ok {
		unretain, ok = p.leases.Retain(w.plan.EvalID, w.plan.EvalToken, seed)
	}
	if !ok {
		w.done <- answer{err: structs.Errorf(structs.CodeStaleRequest, "plan of evaluation %s: its worker no longer leases it, or this plan was submitted before", w.plan.EvalID)}
		return
	}
	p.parked = append(p.parked, &judged{waiting: w, unretain: unretain, since: p.opts.Clock.Now()})
}

func (p *pipeline) judge(j *judged) {
	start := p.opts.Clock.Now()
	p.open.full = j.plan.Advance != nil
	if j.refused = p.nodesOfPurgedJob(j.plan); len(j.refused) > 0 {
		j.accepted, j.reason = &structs.JudgedPlan{EvalID: j.plan.EvalID}, "the job was purged since, and may have been registered anew"
	} else {
		j.accepted, j.refused, j.reason = scheduler.Judge(p.open.edit, j.plan)
	}
	if p.opts.Gate != nil && j.plan.EvalID != "" {
		p.opts.Gate.Judged(j.plan.EvalID, len(j.refused) == 0, left(j.accepted), p.open)
		p.freed = p.freed || freeing(j.accepted)
	}
	j.accepted.Time, j.accepted.JudgedAt = start.UnixNano(), p.open.base
	p.open.plans = append(p.open.plans, j)
	refused := 0
	if len(j.refused) > 0 {
		refused = 1
		p.stale = true // the cause may be gone already: the next round starts from a new snapshot
		p.opts.Logger.Debug("plan refused", "eval", j.plan.EvalID, "job", j.plan.JobID, "nodes", len(j.refused), "reason", j.reason)
	}
	// Counted for accepted plans too: the mean of "refused" is the rate of refusals.
	real := clock.IsMachine(p.opts.Clock)
	refusedCount.If(real).Add(refused)
	nodeRejectedCount.If(real).Add(len(j.refused))
	evaluateTime.If(real).Since(start)
}

// Share returns the share of a namespace with all that has been judged.
func (r *round) Share(pool, namespace string) int { return scheduler.ShareOn(r.edit, pool, namespace) }

// UserShare returns that of a user.
func (r *round) UserShare(pool, user string) int { return scheduler.UserShareOn(r.edit, pool, user) }

// nodesOfPurgedJob returns the nodes of a plan for a job that was purged since. If one of the same name was registered meanwhile, even
// its version may be the same, and what was to be placed is not of it.
func (p *pipeline) nodesOfPurgedJob(plan *structs.Plan) (nodes []string) {
	for _, b := range plan.Place {
		if b.Resources == nil || b.Resources.Shared.Terms == nil || b.Resources.Shared.Terms.Submitted == 0 {
			continue
		}
		job := p.store.Snapshot().Job(nil, b.Namespace, b.JobID)
		if job != nil && job.CreateIndex == b.Resources.Shared.Terms.Submitted {
			continue
		}
		for i := range b.Nodes {
			nodes = append(nodes, b.Nodes[i].ID)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// beginCommit starts to commit the open round.
func (p *pipeline) beginCommit(ctx context.Context) {
	r := p.open
	p.open = nil
	f := &inFlightRound{round: r, committed: make(chan struct{}), index: max(r.base, p.last)}
	p.inFlight = f
	p.send(func() { f.commit(ctx, p.Applier) })
}

// end waits for what is in flight and answers the rest.
func (p *pipeline) end() {
	if p.inFlight != nil {
		<-p.inFlight.committed
	}
	if p.open != nil {
		p.parked = append(p.parked, p.open.plans...)
	}
	for _, j := range p.parked {
		j.answer(nil, notLeader())
	}
}

func (j *judged) answer(r *structs.PlanResult, err error) {
	j.unretain()
	j.done <- answer{result: r, err: err}
}

// uncertain reports whether an entry may have been committed although its commit failed.
func uncertain(err error) bool {
	return !errors.Is(err, structs.ErrBadRequest) && !errors.Is(err, structs.ErrLimited)
}
