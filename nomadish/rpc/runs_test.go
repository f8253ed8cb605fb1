package rpc

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

// What is passed over because it only says that an allocation runs gives no evaluation, whatever the allocation was.
func TestRuns(t *testing.T) {
	statuses := rapid.SampledFrom([]string{
		structs.AllocClientPending, structs.AllocClientRunning, structs.AllocClientComplete, structs.AllocClientFailed,
		structs.AllocClientLost, structs.AllocClientUnknown, structs.AllocClientSuspended,
	})
	yes, no, one := true, false, 1
	healths := rapid.SampledFrom([]*structs.AllocDeploymentStatus{nil, {}, {Healthy: &yes}, {Healthy: &no}})
	job := &structs.Job{Type: structs.JobTypeService, TaskGroups: []*structs.TaskGroup{{Name: "g", Update: &structs.UpdateStrategy{MaxParallel: &one}}}}
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		was := &structs.Allocation{
			TaskGroup: "g", ClientStatus: statuses.Draw(t, "was"), DeploymentStatus: healths.Draw(t, "was well"),
			DesiredStatus: rapid.SampledFrom([]string{structs.AllocDesiredRun, structs.AllocDesiredStop, structs.AllocDesiredSuspend}).Draw(t, "desired"),
			Job:           &structs.Job{Type: rapid.SampledFrom([]string{structs.JobTypeService, structs.JobTypeBatch}).Draw(t, "type")},
		}
		now := &structs.AllocClientUpdate{ClientStatus: statuses.Draw(t, "now"), DeploymentStatus: healths.Draw(t, "well")}
		if !runs(was.ClientStatus, now) {
			return
		}
		passed++
		if trigger := triggerOf(job, was, now); trigger != "" {
			t.Fatal(trigger)
		}
	})
	if passed == 0 {
		t.Error("nothing was passed over")
	}
}
