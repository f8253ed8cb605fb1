package workflow

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/structs"
)

// TestPlanBesideCells: a workflow that needs more GPUs than there are beside cells learns that those of the cells are not counted: of its own namespace, as they do
// not hold every stage, or of others.
func TestPlanBesideCells(t *testing.T) {
	t.Parallel()
	f := func(owner string, gpus int, want string) {
		t.Helper()
		e, site := at(t, "")
		for _, id := range []string{"n-a", "n-b"} {
			n := testcluster.Node(id, 8000)
			group := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "H100"}
			for i := range 4 {
				group.Instances = append(group.Instances, &structs.NodeDevice{ID: fmt.Sprintf("%s-gpu-%d", id, i), Healthy: true})
			}
			n.NodeResources.Devices = []*structs.NodeDeviceResource{group}
			site.Put(&structs.NodeRegisterEntry{Node: n, Time: 1})
		}
		if owner != "" {
			site.Put(&structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: owner}})
			site.Put(&structs.VirtualClusterUpsertEntry{EvalSeed: "owns", VirtualCluster: &structs.VirtualCluster{
				Name: owner, Cells: []*structs.CellQuota{{Level: structs.LevelNode, Count: 1}},
			}})
		}
		w := chip()
		g := w.Stages[0].Jobs[0].Job.TaskGroups[0]
		g.Count, g.Tasks[0].Resources = gpus, &structs.Resources{CPU: 100, MemoryMB: 10, Devices: []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 1}}}
		reply, err := e.plan(t.Context(), &structs.WorkflowRunRequest{Workflow: w})
		if err != nil {
			t.Fatal(err)
		}
		if p := reply.Plan; !strings.HasSuffix(p.Missing, want) || (want == "") != p.Posted {
			t.Errorf("%d GPUs, of 8 of which %q owns 4: posted %v, missing %q, want %q", gpus, owner, p.Posted, p.Missing, want)
		}
	}
	f("default", 4, "")
	f("default", 6, `2 GPUs are missing; GPUs of the cells of namespace "default" are not counted, as these do not hold every stage`)
	f("team", 6, "2 GPUs are missing; GPUs of cells that others own are not counted")
	f("", 9, "1 GPU is missing")
}
