package structs

import (
	"cmp"
	"reflect"
	"slices"
)

// Change describes what becomes of running instances when their job changes.
type Change int

// The kinds of change, least first.
const (
	ChangeNone        Change = iota // nothing of the group differs
	ChangeInPlace                   // they keep running, under the new version
	ChangeDestructive               // they are replaced
)

// String names the change as a plan shows it.
func (c Change) String() string {
	switch c {
	case ChangeNone:
	case ChangeInPlace:
		return UpdateTypeInplaceUpdate
	case ChangeDestructive:
		return UpdateTypeDestructiveUpdate
	}
	return UpdateTypeIgnore
}

// Fields whose change leaves running instances alone, as in Nomad. Everything
// else replaces them, so a field that is new here does, until somebody states
// otherwise. Whether the node still meets changed constraints is for the
// scheduler to check.
var (
	inPlaceOfJob = map[string]bool{
		"Name": true, "Type": true, "Priority": true, "AllAtOnce": true, "Datacenters": true, "NodePool": true,
		"Project": true, "Step": true, "Slot": true, "Reclaim": true, "Partial": true, "Class": true, "Policy": true,
		"Prefer": true, "Constraints": true, "Update": true, "Reschedule": true, "Migrate": true, "Multiregion": true,
		"Periodic": true, "ParameterizedJob": true, "UI": true, "Stop": true, "Region": true, "Submitter": true,
	}
	inPlaceOfGroup = map[string]bool{
		"Count": true, "Constraints": true, "Candidates": true, "RestartPolicy": true, "ReschedulePolicy": true,
		"Disconnect": true, "Update": true, "Migrate": true, "Scaling": true, "Services": true, "ShutdownDelay": true,
		"MaxRunDuration": true, "StopAfterClientDisconnect": true, "MaxClientDisconnect": true,
		"PreventRescheduleOnLost": true,
	}
	inPlaceOfTask = map[string]bool{
		"Constraints": true, "KillTimeout": true, "KillSignal": true, "Leader": true, "ShutdownDelay": true,
		"LogConfig": true, "RestartPolicy": true, "ScalingPolicies": true, "Services": true, "Schedule": true,
		"Actions": true,
	}
)

// GroupChange returns what a change of a group alone does to its running instances. See
// [JobGroupChange] for what the job's own fields do. Both must be canonical.
func GroupChange(old, new *TaskGroup) Change {
	if old == new {
		return ChangeNone
	}
	if old == nil || new == nil {
		return ChangeDestructive
	}
	change := structChange(structOf(old), structOf(new), inPlaceOfGroup, map[string]bool{"Tasks": true})
	change = max(change, servicesChange(old.Services, new.Services))
	if renders(old.RestartPolicy) != renders(new.RestartPolicy) {
		return ChangeDestructive
	}
	if len(old.Tasks) != len(new.Tasks) {
		return ChangeDestructive
	}
	for i, t := range old.Tasks {
		other := new.Tasks[i]
		if other.Name != t.Name {
			if other = new.LookupTask(t.Name); other == nil {
				return ChangeDestructive
			}
			change = max(change, ChangeInPlace) // only their order differs
		}
		if change = max(change, taskChange(t, other)); change == ChangeDestructive {
			return change
		}
	}
	return change
}

// JobGroupChange returns what going from one version of a job to another does to the running
// instances of a group. Both must be canonical.
func JobGroupChange(old, new *Job, group string) Change {
	if old == new {
		return ChangeNone
	}
	if old == nil || new == nil {
		return ChangeDestructive
	}
	change := GroupChange(old.LookupTaskGroup(group), new.LookupTaskGroup(group))
	skip := map[string]bool{"TaskGroups": true, "ID": true, "DispatchIdempotencyToken": true}
	for name := range notSpecified {
		skip[name] = true
	}
	return max(change, structChange(structOf(old), structOf(new), inPlaceOfJob, skip))
}

func structChange(a, b reflect.Value, inPlace, skip map[string]bool) Change {
	change := ChangeNone
	for _, f := range Fields(a.Type()) {
		if skip[f.Name] || sameValue(a.FieldByIndex(f.Index), b.FieldByIndex(f.Index)) {
			continue
		}
		if !inPlace[f.Name] {
			return ChangeDestructive
		}
		change = ChangeInPlace
	}
	return change
}

func taskChange(old, new *Task) Change {
	if old == new {
		return ChangeNone
	}
	change := structChange(structOf(old), structOf(new), inPlaceOfTask, nil)
	change = max(change, servicesChange(old.Services, new.Services))
	if (old.LogConfig != nil && old.LogConfig.Disabled) != (new.LogConfig != nil && new.LogConfig.Disabled) {
		return ChangeDestructive
	}
	return change
}

// servicesChange finds what a changed service does: its mesh is part of what runs.
func servicesChange(old, new []*Service) Change {
	mesh := func(list []*Service) []*Service {
		var out []*Service
		for _, s := range list {
			if s.Connect != nil {
				out = append(out, s)
			}
		}
		slices.SortStableFunc(out, func(a, b *Service) int { return cmp.Compare(a.Name, b.Name) })
		return out
	}
	if a, b := mesh(old), mesh(new); !sameValue(reflect.ValueOf(a), reflect.ValueOf(b)) {
		return ChangeDestructive
	}
	return ChangeNone
}

func renders(p *RestartPolicy) bool {
	return p != nil && p.RenderTemplates != nil && *p.RenderTemplates
}

// Annotate adds to a diff what the change does: counts by group (nil: none are
// known), and what it forces.
func (d *JobDiff) Annotate(updates map[string]*DesiredUpdates) {
	for _, g := range d.TaskGroups {
		g.annotateUpdates(updates[g.Name])
		for _, f := range g.Fields {
			if f.Name == "Count" && g.Type == DiffTypeEdited {
				f.annotateCount()
			}
		}
		for _, t := range g.Tasks {
			t.annotate(g.Type)
		}
	}
}

func (d *TaskGroupDiff) annotateUpdates(u *DesiredUpdates) {
	if u == nil {
		return
	}
	for _, count := range []struct {
		kind string
		n    uint64
	}{
		{UpdateTypeIgnore, u.Ignore}, {UpdateTypeCreate, u.Place}, {UpdateTypeDestroy, u.Stop},
		{UpdateTypeMigrate, u.Migrate}, {UpdateTypeCanary, u.Canary}, {UpdateTypeInplaceUpdate, u.InPlaceUpdate},
		{UpdateTypeDestructiveUpdate, u.DestructiveUpdate},
	} {
		if count.n == 0 {
			continue
		}
		if d.Updates == nil {
			d.Updates = map[string]uint64{}
		}
		d.Updates[count.kind] = count.n
	}
}

func (d *FieldDiff) annotateCount() {
	// Shorter is smaller, of numbers without a sign; so is what sorts first.
	if smaller := cmp.Or(cmp.Compare(len(d.Old), len(d.New)), cmp.Compare(d.Old, d.New)); smaller < 0 {
		d.Annotations = append(d.Annotations, AnnotationForcesCreate)
		return
	}
	d.Annotations = append(d.Annotations, AnnotationForcesDestroy)
}

func (d *TaskDiff) annotate(group string) {
	if group == DiffTypeAdded || group == DiffTypeDeleted {
		return // states it for all of them
	}
	switch d.Type {
	case DiffTypeAdded:
		d.Annotations = append(d.Annotations, AnnotationForcesCreate)
	case DiffTypeDeleted:
		d.Annotations = append(d.Annotations, AnnotationForcesDestroy)
	case DiffTypeEdited:
		note := AnnotationForcesInplaceUpdate
		if d.destructive() {
			note = AnnotationForcesDestructiveUpdate
		}
		d.Annotations = append(d.Annotations, note)
	}
}

func (d *TaskDiff) destructive() bool {
	for _, f := range d.Fields {
		if !inPlaceOfTask[f.Name] {
			return true
		}
	}
	inPlace := map[string]bool{}
	for name := range inPlaceOfTask {
		inPlace[objectName(name)] = true
	}
	for _, o := range d.Objects {
		mesh := slices.ContainsFunc(o.Objects, func(in *ObjectDiff) bool { return in.Name == "Connect" })
		off := slices.ContainsFunc(o.Fields, func(f *FieldDiff) bool {
			return f.Name == "Disabled" && f.Type != DiffTypeNone
		})
		if !inPlace[o.Name] || mesh || off {
			return true
		}
	}
	return false
}
