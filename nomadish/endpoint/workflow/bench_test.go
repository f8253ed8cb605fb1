package workflow

import (
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/structs"
)

// BenchmarkCount counts what the instances of 100 jobs do, 1,000 of each, which all run: each status of a workflow has that.
func BenchmarkCount(b *testing.B) {
	const jobs, instances = 100, 1000
	site := endpointtest.New(b)
	site.Put(&structs.NodeRegisterEntry{Node: testcluster.Node("n", 10_000), Time: 1})
	list := make([]structs.WorkflowJobStatus, jobs)
	for k := range list {
		id := fmt.Sprintf("chip/1/j%d", k)
		site.Put(&structs.JobRegisterEntry{Job: testcluster.Job(id, structs.JobTypeBatch, instances), Time: 1})
		site.Put(testcluster.Place("", 1, testcluster.Batch(id, "n", id, instances)))
		e := &structs.AllocClientEntry{Time: 2}
		for i := range instances {
			at := int64(k*instances + i)
			event := func(kind string) *structs.TaskEvent {
				return &structs.TaskEvent{Type: kind, Time: at, DisplayMessage: kind, Details: map[string]string{}}
			}
			e.Updates = append(e.Updates, &structs.AllocClientUpdate{ID: testcluster.AllocID(id, i), ClientStatus: structs.AllocClientRunning,
				TaskStates: map[string]*structs.TaskState{"t": {State: structs.TaskStateRunning, Events: []*structs.TaskEvent{
					event(structs.TaskReceived), event(structs.TaskSetup), event(structs.TaskStarted),
				}}}})
		}
		site.Put(e)
		list[k] = structs.WorkflowJobStatus{ID: id, State: structs.StageRunning, Attempt: 1, Instances: instances}
	}
	snap := site.Store.Snapshot()
	for b.Loop() {
		for k := range list {
			j := list[k]
			if count(nil, snap, "default", &j, false); j.Running != instances {
				b.Fatalf("%+v", j)
			}
		}
	}
}
