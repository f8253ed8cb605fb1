package historytable

import (
	"maps"
	"slices"

	"github.com/nomadish/nomadish/structs"
)

// Record returns the record of an allocation that has ended, as of an index and a time, in Unix nanoseconds. job is the version that it ran; nil:
// that is not known any more.
func Record(a *structs.Allocation, job *structs.Job, index uint64, now int64) *structs.HistoryRecord {
	h := &structs.HistoryRecord{
		AllocID: a.ID, Namespace: a.Namespace, JobID: a.JobID, JobVersion: a.JobVersion, Group: a.TaskGroup,
		NodeID: a.NodeID, NodeName: a.NodeName, Submitted: a.CreateTime, Placed: a.CreateTime,
		ClientStatus: a.ClientStatus, TimedOut: a.ClientTerminal() && a.ClientDescription == structs.DescMaxRunDuration, Index: index,
	}
	if a.DesiredStatus != structs.AllocDesiredRun { // else it describes what is so of one that runs, such as that it lost its claim
		h.Reason = a.DesiredDescription
	}
	if res := a.AllocatedResources; res != nil {
		for _, t := range res.Tasks { // order does not matter: sums
			if t == nil {
				continue
			}
			h.CPU += t.Cpu.CpuShares
			h.Cores += len(t.Cpu.ReservedCores)
			h.MemoryMB += t.Memory.MemoryMB
			for _, d := range t.Devices {
				if d != nil {
					h.Devices += len(d.DeviceIDs)
				}
			}
		}
		h.DiskMB = res.Shared.DiskMB
	}
	if job != nil {
		h.Type, h.Priority, h.Submitted = job.Type, job.Priority, job.SubmitTime
		if g := job.LookupTaskGroup(a.TaskGroup); g != nil && len(g.Tasks) > 0 && g.Tasks[0] != nil {
			h.User = g.Tasks[0].User
		}
		if job.Submitter != nil {
			h.Submitter = job.Submitter.User
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.TaskStates)) {
		addTask(h, name, a.TaskStates[name])
	}
	if h.Ended == 0 {
		h.Ended = max(a.ModifyTime, now)
	}
	return h
}

func addTask(h *structs.HistoryRecord, name string, t *structs.TaskState) {
	if t == nil {
		return
	}
	if !t.StartedAt.IsZero() {
		if at := t.StartedAt.UnixNano(); h.Started == 0 || at < h.Started {
			h.Started = at
		}
	}
	if !t.FinishedAt.IsZero() {
		h.Ended = max(h.Ended, t.FinishedAt.UnixNano())
	}
	if slices.Contains(t.Events, nil) {
		return // a report with holes in it: no exit code is better than a fault
	}
	if code, ok := t.ExitCode(); ok {
		if h.ExitCodes == nil {
			h.ExitCodes = map[string]int{}
		}
		h.ExitCodes[name] = code
	}
}
