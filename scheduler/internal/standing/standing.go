// Package standing is what the submission check finds of a job, and how its requests rank for it (docs/design/semantics.md, part 4). It follows from
// the projects as they are now: an edit of a project, or the turn of a week, counts at once.
package standing

import (
	"cmp"

	"github.com/nomadish/nomadish/scheduler/entitle/slots"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// SubmissionOf returns what the submission check looks at of a job.
func SubmissionOf(job *structs.Job) slots.Submission {
	s := slots.Submission{Project: job.Project, Step: job.Step, Type: cmp.Or(job.Slot, structs.SlotBatch), Job: job.ID}
	if job.ParentID != "" {
		s.Job = job.ParentID // what a schedule or a dispatch made is of the job that was registered
	}
	if job.Submitter != nil {
		s.User, s.Groups = job.Submitter.User, job.Submitter.Groups
	}
	return s
}

// Check returns what the submission check finds of a job, one of the Submission constants; "" if it names no project.
func Check(w *world.World, job *structs.Job) string {
	if job.Project == "" {
		return ""
	}
	s := SubmissionOf(job)
	return string(w.Slots().Spec(job.Project).Check(&s))
}

// Of returns the standing of a job's requests, as far as no claim may hold them, one of the Standing constants.
func Of(w *world.World, job *structs.Job) int {
	switch Check(w, job) {
	case "":
		return structs.StandingNormal
	case structs.SubmissionRecognised:
		return structs.StandingRecognised
	}
	return structs.StandingFailed
}

// HasFailed reports whether the job of what runs fails the submission check by now.
func HasFailed(w *world.World, u *world.Usage) bool {
	if u.Owner.Terms.Slots == nil || w.Slots() == nil || u.Guaranteed() {
		return false
	}
	of := world.SlotInstance(u)
	return w.Slots().Spec(of.Project).Check(&of.Submission) != slots.Recognised
}

// Recognised reports whether the submission check recognises the job of a usage, so that it ranks above the reservation of a workflow that is pending, if that was not posted before.
func Recognised(w *world.World, u *world.Usage) bool {
	return world.PendingWorkflows(w).Len() > 0 && u.Owner.Terms.Slots != nil && w.Slots() != nil && !HasFailed(w, u)
}

// Instance returns an instance of a group as its project's slots count it, and what it requests; nil: there are no projects, or its job names none.
func Instance(w *world.World, job *structs.Job, group *structs.TaskGroup) (of *slots.Instance, volume slots.Volume) {
	book := w.Slots()
	if book == nil || job.Project == "" {
		return nil, volume
	}
	pool := cmp.Or(job.NodePool, structs.DefaultNodePool)
	if pool == structs.AllNodePool {
		pool = ""
	}
	of = &slots.Instance{Submission: SubmissionOf(job)}
	volume = volumeOf(group, book.Slowest(pool))
	kind := w.SlotSettings().TypeOf(of.Type)
	of.Cost = slots.Cost(volume, slots.Volume{MilliCores: 1000 * int64(kind.Cores), GPUs: int64(kind.GPUs)})
	return of, volume
}

// volumeOf returns what an instance of a group requests; slowest is how many MHz a core has at least.
func volumeOf(group *structs.TaskGroup, slowest int64) (v slots.Volume) {
	for _, t := range group.Tasks {
		r := t.Resources
		if r == nil {
			continue
		}
		v.MemoryMB += int64(r.MemoryMB)
		switch {
		case r.Cores > 0:
			v.MilliCores += 1000 * int64(r.Cores)
		case slowest > 0:
			v.MilliCores += (1000*int64(r.CPU) + slowest - 1) / slowest
		}
		for _, d := range r.Devices {
			v.GPUs += int64(max(1, d.Count))
		}
	}
	return v
}
