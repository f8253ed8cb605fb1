package node

import (
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// What is passed over because it only says that an allocation runs makes no evaluation, whatever the allocation was.
func TestRuns(t *testing.T) {
	statuses := []string{
		structs.AllocClientPending, structs.AllocClientRunning, structs.AllocClientComplete, structs.AllocClientFailed,
		structs.AllocClientLost, structs.AllocClientUnknown, structs.AllocClientSuspended,
	}
	yes, no, one := true, false, 1
	healths := []*structs.AllocDeploymentStatus{nil, {}, {Healthy: &yes}, {Healthy: &no}}
	desired := []string{structs.AllocDesiredRun, structs.AllocDesiredStop, structs.AllocDesiredSuspend}
	types := []string{structs.JobTypeService, structs.JobTypeBatch}
	job := &structs.Job{Type: structs.JobTypeService, TaskGroups: []*structs.TaskGroup{{Name: "g", Update: &structs.UpdateStrategy{MaxParallel: &one}}}}
	passed, all := 0, len(statuses)*len(statuses)*len(healths)*len(healths)*len(desired)*len(types)
	for i := range all {
		pick := func(n int) int {
			at := i % n
			i /= n
			return at
		}
		was := &structs.Allocation{
			TaskGroup: "g", ClientStatus: statuses[pick(len(statuses))], DeploymentStatus: healths[pick(len(healths))],
			DesiredStatus: desired[pick(len(desired))], Job: &structs.Job{Type: types[pick(len(types))]},
		}
		now := &structs.AllocClientUpdate{ClientStatus: statuses[pick(len(statuses))], DeploymentStatus: healths[pick(len(healths))]}
		if !runs(was.ClientStatus, now) {
			continue
		}
		passed++
		if trigger := structs.ReportTrigger(job, was, now); trigger != "" {
			t.Errorf("%s, desired %s, %+v, now %s, %+v: %s", was.ClientStatus, was.DesiredStatus, was.DeploymentStatus, now.ClientStatus, now.DeploymentStatus, trigger)
		}
	}
	if passed == 0 || passed == all {
		t.Errorf("%d of %d are passed over", passed, all)
	}
}
