package plan

import (
	"fmt"
	"sync"
	"testing"

	"github.com/nomadish/nomadish/internal/leaks"
	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// log is the cluster's log, with the entries of plans that were committed.
type log struct {
	*testcluster.Log
	store   *state.Store
	entries []structs.PlanCommit
	sizes   []int // of those entries, encoded
}

func newLog() *log {
	l := &log{Log: testcluster.New(10, state.Options{})}
	l.store = l.Store
	l.Committed = func(e testcluster.Entry) {
		if p, ok := e.Payload.(*structs.PlanCommit); ok {
			l.entries = append(l.entries, *p)
			l.sizes = append(l.sizes, len(e.Data))
		}
	}
	return l
}

// owners lets everybody keep the lease of their evaluation, but those named.
type owners struct {
	mu       sync.Mutex
	gone     map[string]bool
	retained map[string]int
	seeds    map[string]string // of the last plan of each
}

func newOwners() *owners {
	return &owners{gone: map[string]bool{}, retained: map[string]int{}, seeds: map[string]string{}}
}

func (h *owners) Retain(id, _, seed string) (func(), bool) {
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
		b.Instances = append(b.Instances, structs.Instance{Ordinal: uint32(i), Index: i, Node: at[n]}) // small
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

func (l *log) nodes(t testcluster.TB, n int, cpu int64) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("node-%03d", i))
		l.Put(t, &structs.NodeRegisterEntry{Node: testcluster.Node(ids[i], cpu)})
	}
	return ids
}

func (l *log) commits() []structs.PlanCommit {
	l.Lock()
	defer l.Unlock()
	return append([]structs.PlanCommit(nil), l.entries...)
}
