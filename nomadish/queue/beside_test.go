package queue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// TestSystemWaitsForWhatIsOwned: a system job that waits for GPUs which nobody owns is tried again when less is owned, though no
// node has more room than before. One without GPUs is not.
func TestSystemWaitsForWhatIsOwned(t *testing.T) {
	for _, device := range []string{"nvidia/gpu", ""} {
		run(t, func(b *bed) {
			n := node("s", "small")
			n.NodeResources.Devices = []*structs.NodeDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "H100"}}
			for _, id := range []string{"g0", "g1"} {
				n.NodeResources.Devices[0].Instances = append(n.NodeResources.Devices[0].Instances, &structs.NodeDevice{ID: id, Healthy: true})
			}
			b.register(n)
			b.Put(b, &structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: "team"}})
			owns := func(cells ...*structs.CellQuota) {
				b.Put(b, &structs.VirtualClusterUpsertEntry{VirtualCluster: &structs.VirtualCluster{Name: "team", Cells: cells}, EvalSeed: "seed"})
				synctest.Wait()
			}
			owns(&structs.CellQuota{Level: structs.LevelNode, Count: 1})
			task := &structs.Task{Name: "t", Driver: "mock_driver", Resources: &structs.Resources{CPU: 1}}
			if device != "" {
				task.Resources.Devices = []*structs.RequestedDevice{{Name: device, Count: 1}}
			}
			b.Put(b, &structs.JobRegisterEntry{Time: time.Now().UnixNano(), Job: &structs.Job{
				ID: "exporter", Namespace: "default", Type: structs.JobTypeSystem, Priority: 50, NodePool: structs.NodePoolDefault,
				TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1, Tasks: []*structs.Task{task}}},
			}})
			e := blockedEval("1", "exporter", b.store.LatestIndex())
			e.Type, e.FailedTGAllocs = structs.JobTypeSystem, map[string]*structs.AllocMetric{"g": {}}
			b.put(e)
			b.lease("")
			owns()
			if device == "" {
				b.lease("")
				return
			}
			b.tried("1")
		})
	}
}
