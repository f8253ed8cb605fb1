package plan

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-metrics"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Committer commits a log entry through Raft.
type Committer interface {
	Apply(ctx context.Context, t structs.LogType, payload any) (index uint64, err error)
}

// Holder knows which evaluations workers hold.
type Holder interface {
	Outstanding(evalID string) (token string, ok bool)
}

// Options tunes an applier. Zero values are replaced by the defaults named.
type Options struct {
	QueueLimit int // plans that may wait (8192)
	BatchLimit int // plans judged at once (512)
	// EntryBytes bounds a log entry (512 KiB): larger ones hold up heartbeats between
	// servers and risk the leadership.
	EntryBytes int
	NewID      func() string
	Logger     hclog.Logger
}

// Applier is the plan queue and what empties it.
type Applier struct {
	opts   Options
	store  *state.Store
	commit Committer
	holder Holder
	queue  *queue
}

// New makes an applier; it refuses plans until it is run.
func New(opts Options, store *state.Store, commit Committer, holder Holder) *Applier {
	set := func(n *int, to int) {
		if *n <= 0 {
			*n = to
		}
	}
	set(&opts.QueueLimit, 8192)
	set(&opts.BatchLimit, 512)
	set(&opts.EntryBytes, 512<<10)
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	return &Applier{opts: opts, store: store, commit: commit, holder: holder, queue: newQueue(opts.QueueLimit)}
}

// Run judges and commits until ctx ends.
func (a *Applier) Run(ctx context.Context) {
	a.queue.enable(true)
	defer a.queue.enable(false)
	for {
		select {
		case <-a.queue.more:
		case <-ctx.Done():
			return
		}
		for batch := a.queue.take(a.opts.BatchLimit); len(batch) > 0; batch = a.queue.take(a.opts.BatchLimit) {
			a.deal(ctx, batch)
		}
	}
}

// judged is a plan with what of it holds.
type judged struct {
	*waiting
	holds   *structs.JudgedPlan
	refused []string
	reason  string
}

// deal judges a batch on the latest state and commits what holds.
func (a *Applier) deal(ctx context.Context, batch []*waiting) {
	start := time.Now()
	snap := a.store.Snapshot()
	edit := snap.World().Edit()
	now := start.UnixNano()
	var todo []*judged
	for _, w := range batch {
		if token, ok := a.holder.Outstanding(w.plan.EvalID); !ok || token != w.plan.EvalToken {
			w.done <- answer{err: structs.Errorf(structs.CodeStaleRequest, "plan of evaluation %s: its worker does not hold it any more", w.plan.EvalID)}
			continue
		}
		todo = append(todo, a.judge(edit, w, now))
	}
	metrics.MeasureSince([]string{"nomad", "plan", "evaluate"}, start)
	for len(todo) > 0 {
		entries, n := a.pack(todo)
		index, err := a.commitAll(ctx, entries)
		for _, j := range todo[:n] {
			j.done <- j.answer(index, snap.Index(), err)
		}
		if err == nil {
			a.lookAfter(ctx, todo[:n])
		}
		if todo = todo[n:]; err != nil { // what was judged after it counted on it
			for _, j := range todo {
				j.done <- answer{err: err}
			}
			return
		}
	}
}

func (a *Applier) judge(edit *scheduler.Edit, w *waiting, now int64) *judged {
	j := &judged{waiting: w}
	j.holds, j.refused, j.reason = edit.Judge(w.plan)
	j.holds.Time = now
	if len(j.refused) > 0 {
		metrics.IncrCounter([]string{"nomad", "plan", "refused"}, 1)
		metrics.IncrCounter([]string{"nomad", "plan", "node_rejected"}, float32(len(j.refused)))
		a.opts.Logger.Debug("a plan was refused in part", "eval", w.plan.EvalID, "nodes", len(j.refused), "reason", j.reason)
	}
	return j
}

func (j *judged) answer(index, judgedAt uint64, err error) answer {
	if err != nil {
		return answer{err: err}
	}
	r := &structs.PlanResult{AllocIndex: index, RefusedNodes: j.refused, RefusedReason: j.reason}
	r.Placed = instances(j.holds.Place)
	r.Refused = instances(j.plan.Place) - r.Placed
	if len(j.refused) > 0 {
		r.RefreshIndex = max(index, judgedAt)
	}
	return answer{result: r}
}

func instances(batches []*structs.PlacementBatch) (n int) {
	for _, b := range batches {
		n += len(b.Instances)
	}
	return n
}

func empty(p *structs.JudgedPlan) bool {
	return len(p.Place)+len(p.Stop)+len(p.Update)+len(p.Evals) == 0
}

// pack makes log entries of the first n plans: as many as fit into one, or the first
// alone, cut into several if it is too large for one and may be cut.
func (a *Applier) pack(todo []*judged) (entries []*structs.PlanCommit, n int) {
	one := &structs.PlanCommit{}
	size := 0
	for _, j := range todo {
		s := sizeOf(j.holds)
		if n > 0 && size+s > a.opts.EntryBytes {
			break
		}
		n++
		size += s
		if !empty(j.holds) {
			one.Plans = append(one.Plans, j.holds)
		}
	}
	if n == 1 && size > a.opts.EntryBytes && !todo[0].plan.AllAtOnce {
		for _, part := range cut(todo[0].holds, a.opts.EntryBytes) {
			entries = append(entries, &structs.PlanCommit{Plans: []*structs.JudgedPlan{part}})
		}
		return entries, n
	}
	if len(one.Plans) > 0 {
		entries = append(entries, one)
	}
	return entries, n
}

// commitAll commits entries in order and gives the index of the last. It does not
// stop when ctx ends: what was begun is carried through by Raft in any case.
func (a *Applier) commitAll(ctx context.Context, entries []*structs.PlanCommit) (index uint64, err error) {
	defer metrics.MeasureSince([]string{"nomad", "plan", "apply"}, time.Now())
	for _, e := range entries {
		if index, err = a.commit.Apply(ctx, structs.LogPlanApply, e); err != nil {
			return 0, err
		}
	}
	return index, nil
}

// lookAfter has the job looked at again when a node was lost between the judgement
// and the commit: the loss itself did not see what was placed after it.
func (a *Applier) lookAfter(ctx context.Context, done []*judged) {
	snap := a.store.Snapshot()
	var evals []*structs.Evaluation
	now := time.Now().UnixNano()
	for _, j := range done {
		for _, b := range j.holds.Place {
			for _, n := range b.Nodes {
				if node, ok := snap.World().Node(n.ID); ok && !node.Terminal() {
					continue
				}
				job := snap.Job(nil, b.Namespace, b.JobID)
				if job == nil {
					break
				}
				evals = append(evals, &structs.Evaluation{
					ID: a.opts.NewID(), Namespace: b.Namespace, JobID: b.JobID, Priority: job.Priority, Type: job.Type, NodeID: n.ID,
					TriggeredBy: structs.EvalTriggerNodeUpdate, Status: structs.EvalStatusPending, CreateTime: now, ModifyTime: now,
				})
				break
			}
		}
	}
	if len(evals) == 0 {
		return
	}
	if _, err := a.commit.Apply(ctx, structs.LogEvalUpsert, &structs.EvalUpsertEntry{Evals: evals, Time: now}); err != nil {
		a.opts.Logger.Error("evaluate jobs that were placed on lost nodes", "error", err)
	}
}
