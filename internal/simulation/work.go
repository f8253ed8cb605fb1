package simulation

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/structs"
)

// catchUp is how long a worker waits for its replica's state.
const catchUp = 10 * time.Second

// leased is how many evaluations a worker may have at a time.
const leased = 3

// hand is a worker of a replica.
type hand struct {
	*replica
	worker  *worker.Worker
	calling bool // it is about to request work
	busy    int  // evaluations that it has
}

func newHand(r *replica, assumed *worker.Assumed) *hand {
	now := &wall{time: &r.timeline, skew: &r.skew}
	return &hand{replica: r, worker: worker.New(worker.Options{
		Schedulers: jobTypes, NewID: r.newID, Assumed: assumed, Typicals: r.typicals, Clock: now,
	}, far{r}, r.store)}
}

// far is the leader as the workers of a replica reach it.
type far struct{ *replica }

func (f far) reach() (*leader, error) {
	if f.leader == nil || f.leader.over || !f.reachable() {
		return nil, noLeader()
	}
	return f.leader, nil
}

// Dequeue implements queue.Leader; the hands call for themselves.
func (f far) Dequeue(context.Context, []string, time.Duration) (*structs.EvalDequeueReply, error) {
	return nil, noLeader()
}

// Submit implements queue.Leader, likewise.
func (f far) Submit(context.Context, *structs.Plan) (*structs.PlanResult, error) {
	return nil, noLeader()
}

// Ack implements queue.Leader.
func (f far) Ack(_ context.Context, evalID, token string) error {
	l, err := f.reach()
	if err != nil {
		return err
	}
	defer l.stir()
	return l.broker.Ack(evalID, token)
}

// Nack implements queue.Leader.
func (f far) Nack(_ context.Context, evalID, token string) error {
	l, err := f.reach()
	if err != nil {
		return err
	}
	defer l.stir()
	return l.broker.Nack(evalID, token)
}

// Update implements queue.Leader.
func (f far) Update(_ context.Context, evalID, token string, evals []*structs.Evaluation) error {
	if _, err := f.reach(); err != nil {
		return err
	}
	return f.call(wire.MethodEvalUpdate, &structs.EvalUpdateRequest{EvalID: evalID, Token: token, Evals: evals}, &structs.WriteReply{})
}

// wake has a worker of the replica request work.
func (r *replica) wake() {
	if !r.reachable() {
		return
	}
	if h := one(r.sim, r.workers...); !h.calling && h.busy < leased {
		h.calling = true
		r.after(r.between(0, 8*time.Millisecond), "ask for work", r.id, h.call)
	}
}

// call takes an evaluation on, if there is one.
func (h *hand) call() {
	h.calling = false
	l, err := far{h.replica}.reach()
	if err != nil || h.busy >= leased {
		return
	}
	got, err := l.evals.Take(jobTypes)
	if err != nil || got.Eval == nil {
		return
	}
	h.has[got.Eval.ID] = got.Token
	if h.chance(150) {
		h.fault("an evaluation is lost on its way to a worker", h.id)
		return
	}
	if h.seams.index != nil {
		got.WaitIndex = h.seams.index(got.WaitIndex)
	}
	h.busy++
	j := &job{hand: h, life: h.life, Work: h.worker.Begin(got)}
	h.after(0, "work", h.id, func() { j.decide(catchUp) })
	l.wakeOne()
}

// job is an evaluation that a worker has.
type job struct {
	*hand
	*worker.Work
	life int // of the replica in which it was taken
}

// gone reports whether the process that had it has ended.
func (j *job) gone() bool { return j.hand.life != j.life }

// decide decides as soon as the replica's state is as new as it must be.
func (j *job) decide(patience time.Duration) {
	switch {
	case j.gone():
		return
	case j.chance(200):
		j.fault("a worker forgets its evaluation", j.id)
		j.busy--
		return
	case j.index() < j.Index() && patience <= 0:
		j.end(structs.Errorf(structs.CodeNoLeader, "the state does not come to index %d", j.Index()))
		return
	case j.index() < j.Index():
		j.replicate()
		wait := j.between(5*time.Millisecond, 50*time.Millisecond)
		j.after(wait, "wait for the state", j.id, func() { j.decide(patience - wait) })
		return
	}
	plan, err := j.Decide(forever)
	if err != nil || plan == nil {
		if err != nil {
			j.fail("%v", err)
		}
		j.end(err)
		return
	}
	j.result.Plans++
	wait := j.between(0, 10*time.Millisecond)
	if j.chance(15) {
		j.fault("a plan is late", j.id)
		wait = j.between(100*time.Millisecond, 2*nackAfter)
	}
	if j.chance(25) {
		j.fault("a plan comes twice", j.id)
		j.send(wait+j.between(0, 20*time.Millisecond), copied(j.sim, plan), func(*structs.PlanResult, error) {})
	}
	j.send(wait, copied(j.sim, plan), j.learn)
}

// send delivers a plan.
func (j *job) send(wait time.Duration, plan *structs.Plan, tell func(*structs.PlanResult, error)) {
	j.after(wait, "plan", j.id, func() {
		if j.gone() {
			return
		}
		l, err := far{j.replica}.reach()
		if err != nil {
			tell(nil, err)
			return
		}
		l.submit(plan, tell)
	})
}

// copied is a plan as it comes over the wire.
func copied(s *sim, p *structs.Plan) *structs.Plan {
	out := &structs.Plan{}
	data, err := codec.Encode(p)
	if err == nil {
		err = codec.Decode(data, out)
	}
	if err != nil {
		s.fail("send a plan: %v", err)
	}
	return out
}

func (j *job) learn(result *structs.PlanResult, err error) {
	if j.gone() {
		return
	}
	if j.chance(200) {
		j.fault("a worker is not told what became of its plan", j.id)
		result, err = nil, structs.Errorf(structs.CodeNoLeader, "the connection was lost")
	}
	again, err := j.Learn(forever, result, err)
	if again {
		j.decide(catchUp)
		return
	}
	j.end(err)
}

// end answers the evaluation.
func (j *job) end(err error) {
	j.after(j.between(0, 5*time.Millisecond), "answer", j.id, func() {
		if j.gone() {
			return
		}
		j.busy--
		if j.chance(200) {
			j.fault("a worker's answer is lost", j.id)
		} else {
			j.End(forever, err)
		}
		j.wake()
	})
}
