package state

import (
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// world is a store under test, with the next log index.
type world struct {
	t     testing.TB
	store *Store
	w     *Writer
	index uint64
}

func newWorld(t testing.TB, opts ...Options) *world {
	t.Helper()
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	store, w := New(o)
	return &world{t: t, store: store, w: w}
}

// apply applies an entry at the next index; entries have the index's second as time.
func (w *world) apply(payload any) error {
	w.t.Helper()
	w.index++
	err := w.w.Apply(w.index, 0, payload)
	if d := Differences(w.store.Snapshot()); len(d) > 0 {
		w.t.Fatalf("after entry %d (%T): %v", w.index, payload, d)
	}
	if got := w.store.LatestIndex(); got != w.index {
		w.t.Fatalf("index %d after entry %d", got, w.index)
	}
	return err
}

func (w *world) must(payload any) *Snapshot {
	w.t.Helper()
	if err := w.apply(payload); err != nil {
		w.t.Fatalf("entry %d (%T): %v", w.index, payload, err)
	}
	return w.store.Snapshot()
}

func (w *world) refuses(payload any, code structs.Code) {
	w.t.Helper()
	before := w.store.Snapshot().Hash()
	if err := w.apply(payload); err == nil || structs.CodeOf(err) != code {
		w.t.Fatalf("entry %d (%T): error %v, want one of code %s", w.index, payload, err, code)
	}
	if w.store.Snapshot().Hash() != before {
		w.t.Fatalf("entry %d (%T) was refused and changed the state", w.index, payload)
	}
}

func (w *world) now() int64 { return int64(w.index+1) * 1e9 } // small

func node(id string) *structs.Node {
	return &structs.Node{
		ID: id, Name: id, Datacenter: "dc1", NodePool: "default", Status: structs.NodeStatusReady, SecretID: "secret of " + id,
		NodeResources: &structs.NodeResources{
			Cpu: structs.NodeCpuResources{CpuShares: 8000, TotalCpuCores: 8}, Memory: structs.NodeMemoryResources{MemoryMB: 16000},
			Disk: structs.NodeDiskResources{DiskMB: 100_000}, MinDynamicPort: 20000, MaxDynamicPort: 32000,
		},
	}
}

func job(id string) *structs.Job {
	return &structs.Job{
		ID: id, Name: id, Namespace: "default", Type: structs.JobTypeService, Priority: 50, NodePool: "default", Datacenters: []string{"*"},
		TaskGroups: []*structs.TaskGroup{{Name: "web", Count: 2, Tasks: []*structs.Task{{Name: "t", Driver: "mock", User: "ann"}}}},
	}
}

func eval(id, jobID, status string) *structs.Evaluation {
	return &structs.Evaluation{
		ID: id, Namespace: "default", JobID: jobID, Type: structs.JobTypeService, Priority: 50, Status: status,
		TriggeredBy: structs.EvalTriggerJobRegister,
	}
}

func (w *world) register(j *structs.Job) *Snapshot {
	w.t.Helper()
	return w.must(&structs.JobRegisterEntry{Job: j, Time: w.now()})
}

func (w *world) node(id string) *Snapshot {
	w.t.Helper()
	return w.must(&structs.NodeRegisterEntry{Node: node(id), Time: w.now(), EvalSeed: "register " + id})
}

// batch places n instances of a job's version on a node.
func batch(jobID string, version uint64, nodeID, seed string, n int) *structs.PlacementBatch {
	b := &structs.PlacementBatch{
		Namespace: "default", JobID: jobID, JobVersion: version, Group: "web", EvalID: "e-" + seed, Seed: seed, CreateTime: 7,
		Nodes: []structs.PlacedNode{{ID: nodeID, Name: nodeID}},
		Resources: &structs.AllocatedResources{
			Tasks: map[string]*structs.AllocatedTaskResources{"t": {
				Cpu: structs.AllocatedCpuResources{CpuShares: 100}, Memory: structs.AllocatedMemoryResources{MemoryMB: 64},
			}},
			Shared: structs.AllocatedSharedResources{DiskMB: 10},
		},
		Metrics: &structs.AllocMetric{NodesEvaluated: 1},
	}
	for i := range n {
		b.Instances = append(b.Instances, structs.Instance{Ordinal: uint32(i), Index: i}) // small
	}
	return b
}

func (w *world) plan(p *structs.JudgedPlan) *Snapshot {
	w.t.Helper()
	if p.Time == 0 {
		p.Time = w.now()
	}
	return w.must(&structs.PlanCommit{Plans: []*structs.JudgedPlan{p}})
}

// place places n instances and gives their IDs.
func (w *world) place(jobID string, version uint64, nodeID, seed string, n int) []string {
	w.t.Helper()
	w.plan(&structs.JudgedPlan{EvalID: "e-" + seed, Place: []*structs.PlacementBatch{batch(jobID, version, nodeID, seed, n)}})
	ids := make([]string, n)
	for i := range ids {
		ids[i] = structs.DeriveID(seed, uint64(i)) // small
	}
	return ids
}

func (w *world) report(status string, ids ...string) *Snapshot {
	w.t.Helper()
	e := &structs.AllocClientEntry{Time: w.now()}
	for _, id := range ids {
		e.Updates = append(e.Updates, &structs.AllocClientUpdate{ID: id, ClientStatus: status, ModifyTime: w.now()})
	}
	return w.must(e)
}

func check[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
