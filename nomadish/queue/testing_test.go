package queue

import (
	"context"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/leaks"
	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// log is the cluster's log.
type log struct {
	*testcluster.Log
	store *state.Store
}

func newLog(opts state.Options) *log {
	l := testcluster.New(10, opts)
	return &log{l, l.Store}
}

func (l *log) evals(t testcluster.TB, evals ...*structs.Evaluation) uint64 {
	return l.Put(t, &structs.EvalUpsertEntry{Evals: evals, Time: time.Now().UnixNano()})
}

// status is an evaluation's status in the state.
func (l *log) status(id string) string {
	if e := l.store.Snapshot().Eval(nil, id); e != nil {
		return e.Status
	}
	return "gone"
}

func eval(id, job string, priority int) *structs.Evaluation {
	j := &structs.Job{ID: job, Namespace: structs.DefaultNamespace, Type: structs.JobTypeService, Priority: priority}
	return testcluster.Eval(id, j, structs.EvalStatusPending)
}

func with(e *structs.Evaluation, status string) *structs.Evaluation {
	c := e.Copy()
	c.Status = status
	return c
}

func node(id, class string) *structs.Node {
	n := testcluster.Node(id, 1000)
	n.ComputedClass, n.NodeResources.Memory.MemoryMB = class, 1000
	return n
}

var service = []string{structs.JobTypeService}

// dequeued is what Dequeue answers, part by part.
func (b *bed) dequeued(ctx context.Context, kinds []string, timeout time.Duration) (e *structs.Evaluation, token string, index uint64, err error) {
	got, err := b.Dequeue(ctx, kinds, timeout)
	if err != nil {
		return nil, "", 0, err
	}
	return got.Eval, got.Token, got.WaitIndex, nil
}

// sharesNow are the shares of namespaces and, by "user " and name, of users, in any pool.
type sharesNow map[string]int

func (s sharesNow) Share(_, namespace string) int { return s[namespace] }
func (s sharesNow) UserShare(_, user string) int  { return s["user "+user] }
