package structs

import "reflect"

// Copy returns a job that shares nothing with this one. Copy of nil is nil.
func (j *Job) Copy() *Job { return copyOf(j) }

// Copy returns a group that shares nothing with this one. Copy of nil is nil.
func (g *TaskGroup) Copy() *TaskGroup { return copyOf(g) }

// Copy returns a task that shares nothing with this one. Copy of nil is nil.
func (t *Task) Copy() *Task { return copyOf(t) }

// NamespacedID names the job among all jobs.
func (j *Job) NamespacedID() NamespacedID { return NamespacedID{ID: j.ID, Namespace: j.Namespace} }

// LookupTaskGroup returns the group of that name, or nil.
func (j *Job) LookupTaskGroup(name string) *TaskGroup {
	for _, g := range j.TaskGroups {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// LookupTask returns the group's task of that name, or nil.
func (g *TaskGroup) LookupTask(name string) *Task {
	for _, t := range g.Tasks {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Stopped reports whether nothing of the job is wanted any more. A job that is gone
// (nil) is stopped too.
func (j *Job) Stopped() bool { return j == nil || j.Stop }

// PerNode reports whether the job runs on every fitting node, not count times.
func (j *Job) PerNode() bool { return j.Type == JobTypeSystem || j.Type == JobTypeSysBatch }

// IsPeriodic reports whether the job launches others by the clock and never runs itself.
func (j *Job) IsPeriodic() bool { return j.Periodic != nil && j.ParentID == "" }

// IsParameterized reports whether the job waits to be dispatched and never runs itself.
func (j *Job) IsParameterized() bool { return j.ParameterizedJob != nil && !j.Dispatched }

// notSpecified are the fields of a job that are no part of its specification.
var notSpecified = map[string]bool{
	"Status": true, "Submission": true, "StatusDescription": true, "Stable": true, "Version": true, "VersionTag": true,
	"SubmitTime": true, "CreateIndex": true, "ModifyIndex": true, "JobModifyIndex": true, "NomadTokenID": true,
}

// SpecChanged reports whether j specifies something else than old: whether it is a new version.
// Both must be canonical.
func (j *Job) SpecChanged(old *Job) bool {
	if j == nil || old == nil {
		return j != old
	}
	a, b := reflect.ValueOf(j).Elem(), reflect.ValueOf(old).Elem()
	for _, f := range Fields(a.Type()) {
		if !notSpecified[f.Name] && !sameValue(a.FieldByIndex(f.Index), b.FieldByIndex(f.Index)) {
			return true
		}
	}
	return false
}

// TotalOf returns what ONE instance of a group requests, its tasks together.
type TotalOf struct {
	CPU         int // MHz; tasks that request Cores add none
	Cores       int
	MemoryMB    int
	MemoryMaxMB int // what the tasks may use at most, together
	DiskMB      int // the ephemeral disk
	Licenses    map[string]int
	Devices     []*RequestedDevice // of all tasks, in order; shared with the job
	Networks    []*NetworkResource // of the group and its tasks, in order; shared with the job
}

// TotalResources sums what one instance of a canonical group requests. Prestart and
// poststop tasks count like the others, though they do not run beside them.
func (g *TaskGroup) TotalResources() TotalOf {
	total := TotalOf{Networks: append([]*NetworkResource(nil), g.Networks...)}
	if g.EphemeralDisk != nil {
		total.DiskMB = g.EphemeralDisk.SizeMB
	}
	for _, t := range g.Tasks {
		r := t.Resources
		if r == nil {
			continue
		}
		total.CPU += r.CPU
		total.Cores += r.Cores
		total.MemoryMB += r.MemoryMB
		total.MemoryMaxMB += max(r.MemoryMB, r.MemoryMaxMB)
		total.Devices = append(total.Devices, r.Devices...)
		total.Networks = append(total.Networks, r.Networks...)
		for name, n := range r.Licenses {
			if total.Licenses == nil {
				total.Licenses = map[string]int{}
			}
			total.Licenses[name] += n
		}
	}
	return total
}
