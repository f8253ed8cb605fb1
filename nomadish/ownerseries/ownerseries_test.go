package ownerseries

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// world is a state in which namespaces own cells.
type world struct {
	*testcluster.Log
	t *testing.T
}

func (w *world) put(entry any) {
	w.t.Helper()
	w.Put(w.t, entry)
}

// node registers a node of 2 sockets × 2 switches × 2 GPUs.
func (w *world) node(id, model string, bad ...int) {
	w.t.Helper()
	n := testcluster.Node(id, 1000)
	d := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: model}
	for i := range 8 {
		d.Instances = append(d.Instances, &structs.NodeDevice{
			ID: fmt.Sprintf("%s-gpu-%d", id, i), Healthy: !slices.Contains(bad, i), Locality: &structs.NodeDeviceLocality{Socket: i / 4, Switch: i / 2},
		})
	}
	n.NodeResources.Devices = []*structs.NodeDeviceResource{d}
	w.put(&structs.NodeRegisterEntry{Node: n, Time: 1, EvalSeed: "e"})
}

func (w *world) owns(name string, points int64, cells ...*structs.CellQuota) {
	w.t.Helper()
	w.put(&structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: name}})
	w.put(&structs.VirtualClusterUpsertEntry{VirtualCluster: &structs.VirtualCluster{Name: name, Points: points, Cells: cells}, EvalSeed: "seed-" + name})
}

// job registers a job of a namespace with some GPUs for each instance.
func (w *world) job(ns string, gpus int) *structs.Job {
	w.t.Helper()
	j := testcluster.Job("train", structs.JobTypeBatch, 4)
	j.Namespace = ns
	j.TaskGroups[0].Name = "g"
	j.TaskGroups[0].Tasks[0].Resources = &structs.Resources{CPU: 10, MemoryMB: 10, Devices: []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: gpus}}}
	j.Canonicalize()
	w.put(&structs.JobRegisterEntry{Job: j, Time: 1})
	return j
}

// use has an allocation of a namespace with GPUs on a node, by its claim on cells of a level, or without a claim; share is of each.
func (w *world) use(ns, node, level string, share int, numbers ...int) {
	w.t.Helper()
	j := w.job(ns, 1)
	terms := &structs.AllocTerms{CellLevel: level}
	if level != "" {
		terms.Claim = structs.ClaimCells
	}
	devices := &structs.AllocatedDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "H100", Share: share}
	for _, i := range numbers {
		devices.DeviceIDs = append(devices.DeviceIDs, fmt.Sprintf("%s-gpu-%d", node, i))
	}
	task := j.TaskGroups[0].Tasks[0].Name
	w.put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: 1, JudgedAt: w.Index(), Place: []*structs.PlacementBatch{{
		Namespace: ns, JobID: j.ID, Group: "g", Seed: fmt.Sprint(ns, node, numbers, share, w.Index()),
		Resources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{task: {}}, Shared: structs.AllocatedSharedResources{Terms: terms}},
		Nodes:     []structs.PlacedNode{{ID: node, Name: node}},
		Instances: []structs.Instance{{Devices: map[string][]*structs.AllocatedDeviceResource{task: {devices}}}},
	}}}}})
}

// shown is what a scrape of the series shows of virtual clusters, a line each without what all begin with.
func shown(t *testing.T, s *Series, w *world, limit int) string {
	t.Helper()
	h := telemetry.NewHub(telemetry.Options{MaxSeries: limit})
	h.Add(func(b *telemetry.Batch) { s.Add(b, w.Store.Snapshot()) })
	var text strings.Builder
	if err := h.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(text.String()) {
		if after, ok := strings.CutPrefix(line, "nomad_nomad_virtual_cluster_"); ok {
			out = append(out, strings.TrimSpace(after))
		}
		if strings.HasPrefix(line, `nomad_telemetry_series_dropped{of="namespaces"}`) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return strings.Join(out, "\n")
}

func TestSeries(t *testing.T) {
	w := &world{testcluster.New(0, state.Options{}), t}
	for i, model := range []string{"H100", "H100", "H100", "A100"} {
		w.node(fmt.Sprint("n", i), model)
	}
	kept := &Series{}
	f := func(what, want string) {
		t.Helper()
		want = strings.TrimSpace(strings.ReplaceAll(want, "\t", ""))
		for name, s := range map[string]*Series{"kept": kept, "new": {}} {
			if got := shown(t, s, w, 1000); got != want {
				t.Errorf("%s, %s:\n%s\nwant\n%s", what, name, got, want)
			}
		}
	}
	f("nobody owns anything", `nomad_telemetry_series_dropped{of="namespaces"} 0`)

	const h100 = "nvidia/gpu/H100"
	w.owns("b", 7, &structs.CellQuota{Kind: h100, Level: "node", Count: 1, Pin: []string{"n0"}}, &structs.CellQuota{Kind: h100, Level: "socket", Count: 1})
	w.owns("a", 0, &structs.CellQuota{Kind: h100, Level: "node", Count: 1})
	w.use("b", "n0", "node", 0, 0, 1)
	w.use("b", "n0", "", 0, 2)       // its own, but not by its claim
	w.use("b", "n0", "", 0, 3)       // likewise
	w.use("b", "n3", "", 0, 5)       // of a kind that it does not own
	w.use("a", "n0", "", 250, 7)     // lent, a share
	w.use("a", "n0", "", 250, 7)     // and another of the same GPU
	w.use("default", "n0", "", 0, 6) // lent to a namespace that owns nothing
	w.use("default", "n1", "", 0, 0) // of nobody's cell
	w.node("n1", "H100", 4)          // a bad GPU: no whole node is left for a
	w.node("n2", "H100", 0, 1, 2, 3) // likewise
	j := w.job("a", 4)               // waits, and owns a node that is doomed
	w.put(testcluster.Commit(&structs.JudgedPlan{Time: 1, Requests: []*structs.RequestUpdate{{Namespace: "a", JobID: j.ID, Group: "g", Missing: 4, EvalID: "b"}}}))
	j = w.job("b", 4)
	w.put(testcluster.Commit(&structs.JudgedPlan{Time: 1, Requests: []*structs.RequestUpdate{{Namespace: "b", JobID: j.ID, Group: "g", Missing: 4, EvalID: "b"}}}))
	f("all of it", `
		points_balance{namespace="a"} 0
		points_balance{namespace="b"} 7
		entitled_missing{namespace="a"} 0
		entitled_missing{namespace="b"} 2
		gpus_owned{namespace="a",node_pool="default",kind="nvidia/gpu/H100"} 8
		gpus_owned{namespace="b",node_pool="default",kind="nvidia/gpu/A100"} 0
		gpus_owned{namespace="b",node_pool="default",kind="nvidia/gpu/H100"} 12
		gpus_guaranteed{namespace="a",node_pool="default",kind="nvidia/gpu/H100"} 0
		gpus_guaranteed{namespace="b",node_pool="default",kind="nvidia/gpu/A100"} 0
		gpus_guaranteed{namespace="b",node_pool="default",kind="nvidia/gpu/H100"} 2
		gpus_opportunistic{namespace="a",node_pool="default",kind="nvidia/gpu/H100"} 1
		gpus_opportunistic{namespace="b",node_pool="default",kind="nvidia/gpu/A100"} 1
		gpus_opportunistic{namespace="b",node_pool="default",kind="nvidia/gpu/H100"} 2
		gpus_lent{namespace="a",node_pool="default",kind="nvidia/gpu/H100"} 0
		gpus_lent{namespace="b",node_pool="default",kind="nvidia/gpu/A100"} 0
		gpus_lent{namespace="b",node_pool="default",kind="nvidia/gpu/H100"} 2
		gpus_doomed{namespace="a",node_pool="default",kind="nvidia/gpu/H100"} 8
		gpus_doomed{namespace="b",node_pool="default",kind="nvidia/gpu/A100"} 0
		gpus_doomed{namespace="b",node_pool="default",kind="nvidia/gpu/H100"} 0
		nomad_telemetry_series_dropped{of="namespaces"} 0`)

	w.put(&structs.VirtualClusterPointsEntry{Name: "b", Points: 2})
	if got := shown(t, kept, w, 1000); !strings.Contains(got, `points_balance{namespace="b"} 9`) {
		t.Errorf("with two points more:\n%s", got)
	}

	// What is beyond the limit is left out: owners before their kinds, in the order of their names.
	if got := shown(t, kept, w, 9); strings.Count(got, "\n") != 9 || !strings.HasSuffix(got, "} 10") || strings.Contains(got, `owned{namespace="b"`) {
		t.Errorf("at most 9:\n%s", got)
	}
}

// TestSeriesWithoutSlots: what is entitled by slots of a project is not by what its namespace owns.
func TestSeriesWithoutSlots(t *testing.T) {
	w := &world{testcluster.New(0, state.Options{}), t}
	w.node("n0", "H100")
	w.owns("a", 0, &structs.CellQuota{Kind: "nvidia/gpu/H100", Level: "node", Count: 1})
	n := testcluster.Node("n1", 8000)
	n.NodeResources.Slots = map[string]int{structs.SlotBatch: 8}
	w.put(&structs.NodeRegisterEntry{Node: n, Time: 1, EvalSeed: "e"})
	w.put(&structs.ProjectUpsertEntry{Project: &structs.Project{Name: "chip", Users: []string{"ada"}}, Time: 1})
	w.put(&structs.ProjectCalendarEntry{Time: 1, Week: &structs.ProjectWeek{
		Project: "chip", Week: "2026-W48", Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Count: 4}}, From: 1, To: 1000,
	}})
	w.put(&structs.ClaimsTimeEntry{Now: 2, EvalSeed: "s"})
	j := testcluster.Job("sims", structs.JobTypeBatch, 3)
	j.Namespace, j.Project, j.Submitter = "a", "chip", &structs.Submitter{User: "ada"}
	j.TaskGroups[0].Name = "g"
	w.put(&structs.JobRegisterEntry{Job: j, Time: 3})
	w.put(testcluster.Commit(&structs.JudgedPlan{Time: 3, Requests: []*structs.RequestUpdate{{Namespace: "a", JobID: j.ID, Group: "g", Missing: 3, EvalID: "b"}}}))
	if n := scheduler.Entitled(w.Store.Snapshot().World(), j, "g", 3); n != 3 {
		t.Fatalf("%d are entitled by slots", n)
	}
	if got := shown(t, &Series{}, w, 1000); !strings.Contains(got, `entitled_missing{namespace="a"} 0`) {
		t.Error(got)
	}
}
