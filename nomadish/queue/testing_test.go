package queue

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/leaks"
	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// log is a Raft of one: entries go through their encoding into a real state.
type log struct {
	store  *state.Store
	writer *state.Writer

	mu    sync.Mutex
	index uint64
	lost  bool // refuses everything
	gate  func(structs.LogType)
}

func newLog(opts state.Options) *log {
	l := &log{index: 10}
	l.store, l.writer = state.New(opts)
	return l
}

func (l *log) Apply(_ context.Context, t structs.LogType, payload any) (uint64, error) {
	entry, err := fsm.Encode(t, payload)
	if err != nil {
		return 0, err
	}
	if _, payload, err = fsm.Decode(entry); err != nil {
		return 0, err
	}
	if l.gate != nil {
		l.gate(t)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost {
		return 0, structs.Errorf(structs.CodeNoLeader, "leadership lost")
	}
	l.index++
	return l.index, l.writer.Apply(l.index, t, payload)
}

func (l *log) must(t interface{ Fatalf(string, ...any) }, typ structs.LogType, payload any) uint64 {
	index, err := l.Apply(context.Background(), typ, payload)
	if err != nil {
		t.Fatalf("apply %d: %v", typ, err)
	}
	return index
}

func (l *log) evals(t interface{ Fatalf(string, ...any) }, evals ...*structs.Evaluation) uint64 {
	return l.must(t, structs.LogEvalUpsert, &structs.EvalUpsertEntry{Evals: evals, Time: time.Now().UnixNano()})
}

// status is an evaluation's status in the state.
func (l *log) status(id string) string {
	if e := l.store.Snapshot().Eval(nil, id); e != nil {
		return e.Status
	}
	return "gone"
}

// newID makes IDs that are easy to read.
func newID() func() string {
	var mu sync.Mutex
	n := 0
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprintf("id-%d", n)
	}
}

func eval(id, job string, priority int) *structs.Evaluation {
	return &structs.Evaluation{
		ID: id, Namespace: "default", JobID: job, Priority: priority, Type: structs.JobTypeService,
		TriggeredBy: structs.EvalTriggerJobRegister, Status: structs.EvalStatusPending,
	}
}

func with(e *structs.Evaluation, status string) *structs.Evaluation {
	c := e.Copy()
	c.Status = status
	return c
}

func node(id, class string) *structs.Node {
	return &structs.Node{
		ID: id, SecretID: "s", Name: id, ComputedClass: class, Status: structs.NodeStatusReady,
		SchedulingEligibility: structs.NodeEligible,
		NodeResources: &structs.NodeResources{
			Cpu: structs.NodeCpuResources{CpuShares: 1000}, Memory: structs.NodeMemoryResources{MemoryMB: 1000},
		},
	}
}

var service = []string{structs.JobTypeService}
