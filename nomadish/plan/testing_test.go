package plan

import (
	"context"
	"fmt"
	"sync"
	"testing"

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

	mu      sync.Mutex
	index   uint64
	entries []structs.PlanCommit // of plans
	sizes   []int                // of those entries, encoded
	// before, if set, is asked before an entry is committed; its error is the answer.
	before func(t structs.LogType, payload any) error
	// after, if set, may turn the answer of what was committed into an error.
	after func() error
}

func newLog() *log {
	l := &log{index: 10}
	l.store, l.writer = state.New(state.Options{})
	return l
}

func (l *log) Apply(_ context.Context, t structs.LogType, payload any) (uint64, error) {
	entry, err := fsm.Encode(t, payload)
	if err != nil {
		return 0, err
	}
	if l.before != nil {
		if err := l.before(t, payload); err != nil {
			return 0, err
		}
	}
	if _, payload, err = fsm.Decode(entry); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index++
	if p, ok := payload.(*structs.PlanCommit); ok {
		l.entries = append(l.entries, *p)
		l.sizes = append(l.sizes, len(entry))
	}
	if err := l.writer.Apply(l.index, t, payload); err != nil {
		return l.index, err
	}
	if l.after != nil {
		if err := l.after(); err != nil {
			return 0, err
		}
	}
	return l.index, nil
}

func (l *log) must(t interface{ Fatalf(string, ...any) }, typ structs.LogType, payload any) uint64 {
	index, err := l.Apply(context.Background(), typ, payload)
	if err != nil {
		t.Fatalf("apply %d: %v", typ, err)
	}
	return index
}

// holders lets everybody hold their evaluation, but those named.
type holders struct {
	mu       sync.Mutex
	gone     map[string]bool
	retained map[string]int
	seeds    map[string]string // of the last plan of each
}

func newHolders() *holders {
	return &holders{gone: map[string]bool{}, retained: map[string]int{}, seeds: map[string]string{}}
}

func (h *holders) Retain(id, _, seed string) (func(), bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone[id] {
		return nil, false
	}
	h.retained[id]++
	h.seeds[id] = seed
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.retained[id]--
	}, true
}

func node(id string, cpu int64) *structs.Node {
	return &structs.Node{
		ID: id, SecretID: "s", Name: id, Status: structs.NodeStatusReady, SchedulingEligibility: structs.NodeEligible,
		NodeResources: &structs.NodeResources{
			Cpu: structs.NodeCpuResources{CpuShares: cpu, TotalCpuCores: 4}, Memory: structs.NodeMemoryResources{MemoryMB: 1 << 20},
			Disk:           structs.NodeDiskResources{DiskMB: 1 << 20},
			MinDynamicPort: 20000, MaxDynamicPort: 32000,
		},
	}
}

// planOf places instances of 1 MHz × cpu on nodes, one after the other.
func planOf(id string, cpu int64, nodes ...string) *structs.Plan {
	b := &structs.PlacementBatch{
		Namespace: "default", JobID: "job-" + id, Group: "g", EvalID: id, Seed: "seed-" + id, CreateTime: 1,
		Resources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{
			"t": {Cpu: structs.AllocatedCpuResources{CpuShares: cpu}, Memory: structs.AllocatedMemoryResources{MemoryMB: 1}},
		}},
	}
	at := map[string]int{}
	for i, n := range nodes {
		if _, ok := at[n]; !ok {
			at[n] = len(b.Nodes)
			b.Nodes = append(b.Nodes, structs.PlacedNode{ID: n, Name: n})
		}
		b.Instances = append(b.Instances, structs.Instance{Ordinal: uint32(i), Index: i, Node: at[n]}) //nolint:gosec // small
	}
	return &structs.Plan{
		EvalID: id, EvalToken: "token", Namespace: "default", JobID: b.JobID, Priority: 50, Place: []*structs.PlacementBatch{b},
		Evals: []*structs.Evaluation{{
			ID: id, Namespace: "default", JobID: b.JobID, Type: structs.JobTypeService, Status: structs.EvalStatusComplete,
		}},
	}
}

// used is the CPU that unended allocations take of a node.
func (l *log) used(id string) (cpu int64) {
	for _, a := range l.store.Snapshot().AllocsByNode(nil, id) {
		if !a.Terminal() {
			c, _, _, _ := a.AllocatedResources.Total()
			cpu += c
		}
	}
	return cpu
}

func (l *log) nodes(t interface{ Fatalf(string, ...any) }, n int, cpu int64) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("node-%03d", i))
		l.must(t, structs.LogNodeRegister, &structs.NodeRegisterEntry{Node: node(ids[i], cpu)})
	}
	return ids
}

func (l *log) commits() []structs.PlanCommit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]structs.PlanCommit(nil), l.entries...)
}
