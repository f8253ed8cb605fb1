package queue

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// TestEntitledLeavesTheRest: that the entitled part of a request was tried without success leaves alone when the rest of it is to be decided again.
func TestEntitledLeavesTheRest(t *testing.T) {
	run(t, func(b *bed) {
		n := node("s", "small")
		n.NodeResources.Devices = []*structs.NodeDeviceResource{{
			Vendor: "nvidia", Type: "gpu", Name: "H100", Instances: []*structs.NodeDevice{{ID: "g0", Healthy: true}, {ID: "g1", Healthy: true}},
		}}
		b.register(n)
		b.Put(b, &structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: "team"}})
		b.Put(b, &structs.VirtualClusterUpsertEntry{EvalSeed: "seed", VirtualCluster: &structs.VirtualCluster{
			Name: "team", Cells: []*structs.CellQuota{{Level: structs.LevelNode, Count: 1}},
		}})
		task := &structs.Task{Name: "t", Driver: "mock_driver", Resources: &structs.Resources{CPU: 1, Devices: []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 1}}}}
		b.Put(b, &structs.JobRegisterEntry{Time: time.Now().UnixNano(), Job: &structs.Job{
			ID: "train", Namespace: "team", Type: structs.JobTypeBatch, Priority: 50, NodePool: structs.NodePoolDefault,
			TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 2, Tasks: []*structs.Task{task}}},
		}})
		e := blockedEval("1", "train", b.store.LatestIndex())
		e.Namespace, e.Type, e.FailedTGAllocs = "team", structs.JobTypeBatch, map[string]*structs.AllocMetric{"g": {}}
		e.WaitUntil = time.Now().Add(time.Minute)
		b.put(e)
		b.lease("")
		b.mu.Lock()
		b.blocked.open(b.blocked.of[entryKey{"1", true}].group) // as when a cell comes free that no other may use
		b.mu.Unlock()
		left := e.Copy()
		left.WaitUntil = time.Time{}
		tried := func() {
			b.Helper()
			lease := b.lease("1")
			if !lease.EntitledOnly {
				b.Fatal("the rest is tried")
			}
			b.Tried(lease, b.store.LatestIndex(), left)
		}
		tried()
		b.lease("")
		time.Sleep(time.Minute)
		tried() // at the rank that it has then
		if b.lease("1").EntitledOnly {
			b.Fatal("the entitled part is tried again")
		}
	})
}
