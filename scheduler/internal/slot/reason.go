package slot

import (
	"fmt"
	"time"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Why returns why an instance of a group uses no slot of its project, that has been pending since then, in Unix nanoseconds; "": it is entitled to
// none, as its job names no project or is not recognised. While others need not leave yet, until is when they must.
func Why(in *search.Input, e *world.Edit, group *structs.TaskGroup, since int64) (why string, until int64) {
	if why := WhyNoMore(world.Base(e), in.Job, group); why != "" {
		return why, 0
	}
	f := entitledTo(in, e, group)
	switch {
	case f == nil:
		return "", 0
	case !f.HasSlots():
		return f.WhyFull(), 0
	case !f.UnderAllocated():
		return f.WhyEnough(), 0
	case f.doomed() != "":
		return f.doomed(), 0
	case since+f.Grace() > in.Now.UnixNano():
		return f.WhyGrace(), since + f.Grace()
	}
	return f.WhyNobody(), 0
}

// WhyOfGang is [Why] of the first members of a gang, so many of each of its groups.
func WhyOfGang(in *search.Input, e *world.Edit, groups []*structs.TaskGroup, first []int, since int64) (why string, until int64) {
	if why := WhyNoMoreOf(world.Base(e), in.Job, groups, first); why != "" {
		return why, 0
	}
	g := NewGang(in, e, groups, first)
	if g == nil {
		return "", 0
	}
	now := in.Now.UnixNano()
	if at := since + g.Grace(); at > now && g.HasSlots() && g.UnderAllocated() {
		until = at
	}
	return g.Why(now, since), until
}

// Reasons returns a reason, and that cells of the project are doomed which are slots of the type, if some are.
func (f *Finder) Reasons(why string) []string {
	if text := f.doomed(); text != "" {
		return []string{text, why}
	}
	return []string{why}
}

// doomed is the reason where the hardware cannot hold all cells that are slots of the type at present; "": it can, or they are none.
func (f *Finder) doomed() string {
	if f.kind.GPUs == 0 || f.volume.GPUs == 0 {
		return ""
	}
	n := 0
	for _, chain := range world.Base(f.e).Chains {
		if level, fits := chain.LevelFor(f.kind.GPUs); fits {
			a := chain.Account(structs.ProjectOwner(f.of.Project), cells.Kind{Level: level})
			n += (a.Doomed + a.Away) * chain.Devices(a.Kind)
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("cells doomed: %d GPUs of the slots of project %q cannot be had at present", n, f.of.Project)
}

// WhyFull is the reason where no row of the project has room.
func (f *Finder) WhyFull() string {
	if f.of.Cost > 1 {
		if free := f.book().Account(f.of.Project).Free(&f.of.Submission); free > 0 {
			return fmt.Sprintf("slots: an instance costs %d slots of type %q, and project %q has %d free in one row that this job may use this week",
				f.of.Cost, f.of.Type, f.of.Project, free)
		}
	}
	return fmt.Sprintf("slots: project %q uses all slots of type %q that this job may use this week", f.of.Project, f.of.Type)
}

// WhyEnough is the reason where a row has room, and the project runs as many instances as it has slots.
func (f *Finder) WhyEnough() string {
	return fmt.Sprintf("slots: project %q runs as many instances as it has slots of type %q, some of them elsewhere", f.of.Project, f.of.Type)
}

// WhyGrace is the reason while others need not leave yet.
func (f *Finder) WhyGrace() string {
	return fmt.Sprintf("slots: no free slot of type %q has room; others leave for it after the grace of %s", f.of.Type, time.Duration(f.Grace()))
}

// WhyNobody is the reason where they would have to, and nobody may be taken from.
func (f *Finder) WhyNobody() string {
	return fmt.Sprintf("slots: no free slot of type %q has room, and nobody may be taken from there", f.of.Type)
}

// WhyNoMore is the reason where as many instances of a job's project run as complete what it is to complete in its time (objective "throughput"); "": one
// more may run.
func WhyNoMore(w *world.World, job *structs.Job, group *structs.TaskGroup) string {
	return whyNoMore(w, job, group, 1)
}

// whyNoMore is WhyNoMore of several at once.
func whyNoMore(w *world.World, job *structs.Job, group *structs.TaskGroup, together int) string {
	spec := w.Slots().Spec(job.Project)
	most, limited := spec.Enough(group.MaxRunDuration)
	if !limited || w.Slots().Instances(job.Project)+together <= most || standing.Check(w, job) != structs.SubmissionRecognised {
		return ""
	}
	if together > 1 {
		return fmt.Sprintf("slots: with all %d of a gang that start together project %q would run more than %d instances: as many complete %d in %s",
			together, job.Project, most, spec.Jobs, spec.Per)
	}
	return fmt.Sprintf("slots: %d instances of project %q run: as many as complete %d in %s", most, job.Project, spec.Jobs, spec.Per)
}
