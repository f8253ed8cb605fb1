package queueview

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Line is a group of a job that waits, in its place.
type Line struct {
	Job   *structs.Job
	Group *structs.TaskGroup
	// Request is its row. Where no plan has spoken of it yet it is one made of the job's
	// evaluation; it must not be changed.
	Request *structs.PendingRequest
	// Missing is how many instances wait at this position.
	Missing int
	// Rank is that of the job: of its best group; of what is entitled, its rank as that.
	Rank structs.Rank
	// Standing is what the submission check makes of the job, one of the Standing constants.
	Standing int
	// Place is the job's in its pool's queue, from 1.
	Place int
	// Tried: a plan has spoken of it since it came.
	Tried bool
}

// Pool is the node pool in whose queue it waits.
func (l *Line) Pool() string { return poolOf(l.Job) }

func poolOf(job *structs.Job) string { return cmp.Or(job.NodePool, structs.DefaultNodePool) }

// Watch registers with ws all that an order is made of.
func Watch(ws *state.WatchSet, snap *state.Snapshot) {
	snap.Requests().Waiting(ws, structs.AllNamespaces)
	snap.OpenEvals(ws, structs.EvalStatusPending)
	snap.OpenEvals(ws, structs.EvalStatusBlocked)
	snap.SchedulerConfig(ws)
}

// Order returns all that waits at a time (Unix nanoseconds) by pool and rank. What waits is
// what the requests state; beside them, of jobs with an evaluation that nobody has decided yet,
// what is missing of them as far as their allocations show. A delayed evaluation requests
// nothing before its time.
func Order(snap *state.Snapshot, now int64) []*Line {
	config := snap.SchedulerConfig(nil)
	q := newQueue(snap)
	for ev := range snap.OpenEvals(nil, structs.EvalStatusPending) {
		if ev.WaitUntil.IsZero() || ev.WaitUntil.UnixNano() <= now {
			q.pending(ev)
		}
	}
	out := make([]*Line, 0, len(q.jobs))
	shares := q.shares()
	for _, w := range q.jobs {
		w.rank(&config, shares)
		out = w.split(shares.world, out)
	}
	slices.SortFunc(out, compare)
	for i, l := range out {
		switch {
		case i == 0 || l.Pool() != out[i-1].Pool():
			l.Place = 1
		case l.Job == out[i-1].Job && l.Rank == out[i-1].Rank:
			l.Place = out[i-1].Place
		default:
			l.Place = out[i-1].Place + 1
		}
	}
	return out
}

func compare(a, b *Line) int {
	if by := strings.Compare(a.Pool(), b.Pool()); by != 0 {
		return by
	}
	return cmp.Or(a.Rank.Compare(&b.Rank), strings.Compare(a.Group.Name, b.Group.Name))
}

// queue gathers what waits by job.
type queue struct {
	snap *state.Snapshot
	jobs []waiting
	// requested is how many of jobs have requests: the first, by namespace and ID. Where the others are, of which only evaluations state that they wait, is in others.
	requested int
	others    map[structs.NamespacedID]int
}

// waiting is what waits of one job.
type waiting struct {
	job   *structs.Job
	lines []*Line
}

// newQueue returns what waits by its requests. All lines are made at once: a queue may have a hundred thousand.
func newQueue(snap *state.Snapshot) *queue {
	requests := slices.Collect(snap.Requests().Waiting(nil, structs.AllNamespaces))
	q := &queue{snap: snap, jobs: make([]waiting, 0, len(requests)), others: map[structs.NamespacedID]int{}}
	lines, refs := make([]Line, len(requests)), make([]*Line, len(requests))
	for i := 0; i < len(requests); {
		job, first := waits(snap, requests[i].Job()), i
		for of := requests[i].Job(); i < len(requests) && requests[i].Job() == of; i++ { // those of a job are together
			lines[i].Request, lines[i].Tried, refs[i] = requests[i], requests[i].EvalID != "", &lines[i]
		}
		if job != nil {
			w := waiting{job, refs[first:first:i]}
			for _, l := range refs[first:i] {
				if l.Job, l.Group = job, job.LookupTaskGroup(l.Request.Group); l.Group != nil {
					w.lines = append(w.lines, l)
				}
			}
			q.jobs = append(q.jobs, w)
		}
	}
	q.requested = len(q.jobs)
	return q
}

// waits returns a job; nil if it cannot wait: it is gone, stopped, or launches others.
func waits(snap *state.Snapshot, id structs.NamespacedID) *structs.Job {
	job := snap.Job(nil, id.Namespace, id.ID)
	if job == nil || job.Stop || job.IsPeriodic() || job.IsParameterized() {
		return nil
	}
	return job
}

// of is a job's; nil if it cannot wait.
func (q *queue) of(id structs.NamespacedID) *waiting {
	i, found := slices.BinarySearchFunc(q.jobs[:q.requested], id, func(w waiting, id structs.NamespacedID) int {
		return cmp.Or(strings.Compare(w.job.Namespace, id.Namespace), strings.Compare(w.job.ID, id.ID))
	})
	if !found {
		if i, found = q.others[id]; !found {
			job := waits(q.snap, id)
			if job == nil {
				return nil
			}
			i = len(q.jobs)
			q.others[id], q.jobs = i, append(q.jobs, waiting{job: job})
		}
	}
	return &q.jobs[i]
}

func (w *waiting) has(group string) bool {
	return slices.ContainsFunc(w.lines, func(l *Line) bool { return l.Group.Name == group })
}

// pending adds what is missing of a job that is to be looked at.
func (q *queue) pending(ev *structs.Evaluation) {
	w := q.of(structs.NamespacedID{ID: ev.JobID, Namespace: ev.Namespace})
	if w == nil || w.job.PerNode() {
		return // how many nodes shall have one is decided by the scheduler
	}
	counts := q.snap.JobSummary(nil, ev.Namespace, ev.JobID)
	for _, g := range w.job.TaskGroups {
		missing := g.Count
		if counts != nil {
			c := counts.Summary[g.Name]
			missing -= c.Running + c.Starting + c.Unknown
			if w.job.Type == structs.JobTypeBatch {
				missing -= c.Complete
			}
		}
		if missing > 0 && !w.has(g.Name) {
			w.lines = append(w.lines, &Line{Job: w.job, Group: g, Request: q.stand(ev, g.Name, missing)})
		}
	}
}

// stand returns what stands for a request that waits since an evaluation was made. What the
// group has waited before counts.
func (q *queue) stand(ev *structs.Evaluation, group string, missing int) *structs.PendingRequest {
	request := structs.PendingRequest{Namespace: ev.Namespace, JobID: ev.JobID, Group: group}
	if was := q.snap.Requests().Get(nil, ev.Namespace, ev.JobID, group); was != nil {
		request = *was
	}
	request.Missing, request.Since, request.EvalID, request.ModifyIndex = missing, ev.CreateTime, ev.ID, ev.ModifyIndex
	return &request
}

// rank sets the job's rank on all its lines: that of its best request.
func (w *waiting) rank(c *structs.SchedulerConfiguration, shares *shares) {
	var best structs.Rank
	for i, l := range w.lines {
		if r := c.Rank(w.job, l.Request, l.Request.Since); i == 0 || r.Compare(&best) < 0 {
			best = r
		}
	}
	standing := scheduler.Standing(shares.world, w.job)
	best = best.OfProject(standing, c).Shared(shares.ofNamespace(w.job), shares.ofUser(w.job))
	for _, l := range w.lines {
		l.Rank, l.Standing = best, standing
	}
}

// shares are those that ranks depend on.
type shares struct {
	world *scheduler.World
	// namespaces are those of namespaces that were looked up, by pool and namespace.
	namespaces map[[2]string]int
	// users are those of users that were looked up, by pool and user; nil: no job that waits has a user, so that they make no difference.
	users map[[2]string]int
}

// shares returns the shares by which the jobs that wait rank.
func (q *queue) shares() *shares {
	s := &shares{world: q.snap.World(), namespaces: map[[2]string]int{}}
	for _, w := range q.jobs {
		if w.job.Submitter != nil {
			s.users = map[[2]string]int{}
			break
		}
	}
	return s
}

// ofNamespace returns the share that a job's namespace has of the job's pool.
func (s *shares) ofNamespace(job *structs.Job) int {
	key := [2]string{poolOf(job), job.Namespace}
	percent, known := s.namespaces[key]
	if !known {
		percent = s.world.Share(key[0], key[1])
		s.namespaces[key] = percent
	}
	return percent
}

// ofUser returns the share that the user who submitted a job has of the job's pool.
func (s *shares) ofUser(job *structs.Job) int {
	if s.users == nil {
		return 0
	}
	key := [2]string{poolOf(job), job.UserName()}
	percent, known := s.users[key]
	if !known {
		percent = s.world.UserShare(key[0], key[1])
		s.users[key] = percent
	}
	return percent
}

// split adds the job's lines to others, with two of a group of which a part is entitled (semantics part 0, rule 6).
func (w *waiting) split(world *scheduler.World, lines []*Line) []*Line {
	for _, l := range w.lines {
		l.Missing = l.Request.Missing
		n := scheduler.Entitled(world, l.Job, l.Group.Name, l.Missing)
		if n > 0 {
			entitled := *l
			entitled.Missing, entitled.Rank = n, l.Rank.Entitled(scheduler.EntitledKind(world, l.Job, l.Group.Name))
			lines = append(lines, &entitled)
			l.Missing -= n
		}
		if l.Missing > 0 {
			lines = append(lines, l)
		}
	}
	return lines
}
