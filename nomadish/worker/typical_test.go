package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/structs"
)

// gpuJob registers a job of so many instances that want a share of a GPU each.
func (b *bed) gpuJob(id string, count, share int) {
	job := &structs.Job{ID: id, Type: structs.JobTypeBatch, Priority: 50, Datacenters: []string{"*"}, TaskGroups: []*structs.TaskGroup{{
		Name: "g", Count: count, Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver", Resources: &structs.Resources{
			CPU: 100, MemoryMB: 10, Devices: []*structs.RequestedDevice{{Name: "gpu", Count: 1, Share: share}},
		}}},
	}}}
	job.Canonicalize()
	b.Put(b, &structs.JobRegisterEntry{Job: job})
}

// gpuNode registers a node with one GPU.
func (b *bed) gpuNode(id string) {
	node := testcluster.Node(id, 0)
	node.NodeResources = &structs.NodeResources{Devices: []*structs.NodeDeviceResource{{
		Vendor: "nvidia", Type: "gpu", Name: "T4", Instances: []*structs.NodeDevice{{ID: "g0", Healthy: true}},
	}}}
	node.ComputeClass()
	b.Put(b, &structs.NodeRegisterEntry{Node: node})
}

// What jobs want is counted by request key, not by job.
func TestTypicalRequestsAreLearned(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		b.gpuJob("a", 3, 500)
		b.gpuJob("b", 4, 500)
		b.gpuJob("c", 5, 300)
		weights := map[int]int64{}
		for _, a := range typicalRequests(b.store.Snapshot()) {
			weights[a.Group.Tasks[0].Resources.Devices[0].Share] += a.Weight
		}
		if len(weights) != 2 || weights[500] != 7 || weights[300] != 5 {
			t.Errorf("learned %v, want 7 of 500 and 5 of 300", weights)
		}
	})
}

// They are learned again when jobs have changed and some time has passed, and only
// if the policy needs them.
func TestTypicalRequestsAreKept(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		config := structs.DefaultSchedulerConfiguration()
		config.Policy = structs.AlgorithmBinpack
		l := learner{from: NewTypicals()}
		if got := l.typical(b.store.Snapshot(), nil, &config); got != nil {
			t.Error("binpack was told what is typical")
		}
		own := &structs.Job{Policy: structs.PolicyLeastFragmentation}
		if got := l.typical(b.store.Snapshot(), own, &config); got != nil {
			t.Error("something is typical though no node has devices")
		}
		b.gpuNode("n0")
		first := l.typical(b.store.Snapshot(), own, &config)
		b.gpuJob("a", 1, 500)
		if first == nil || l.typical(b.store.Snapshot(), own, &config) != first {
			t.Error("they were learned anew at once")
		}
		time.Sleep(typicalEvery)
		synctest.Wait()
		second := l.typical(b.store.Snapshot(), own, &config)
		if second == first {
			t.Error("they were not learned anew")
		}
		time.Sleep(typicalEvery)
		if l.typical(b.store.Snapshot(), own, &config) != second {
			t.Error("they were learned anew though no job changed")
		}
	})
}

// TestTypicalRequestsOfAState: what is learned from a state is of its jobs, whatever jobs there are when it is needed first, or later.
func TestTypicalRequestsOfAState(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		b.gpuJob("a", 3, 500)
		typicals := LearnFrom(b.store.Snapshot())
		for i, id := range []string{"b", "c"} {
			b.gpuJob(id, 4, 300)
			time.Sleep(typicalEvery)
			requests, version := typicals.learn(b.store.Snapshot(), time.Now())
			if len(requests) != 1 || requests[0].Weight != 3 || version != 1 {
				t.Errorf("%d jobs later: %+v, version %d", i+1, requests, version)
			}
		}
	})
}
