package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/slots"
	"github.com/nomadish/nomadish/scheduler/internal/decide"
	"github.com/nomadish/nomadish/scheduler/internal/raise"
	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Why instances of a project use none of its slots.

// jobsNamed bounds the jobs that a text names.
const jobsNamed = 3

// slots explains why the instances that are left use no slot of their project. If others are to leave for them after their grace, it returns when.
func (x *explainer) slots(out *structs.GroupExplanation, left int) (until int64) {
	work := x.works[out.Group]
	if work == nil || left == 0 {
		return 0
	}
	since := x.s.Input.PendingSince(out.Group, x.in.Now.UnixNano())
	text, until := (decide.Waiting{S: x.s, Work: work}).WhyNoSlots(since)
	if text == "" {
		return 0
	}
	account := x.after.Slots().Account(x.in.Job.Project)
	of, _ := standing.Instance(x.after, x.in.Job, work.Group)
	if account == nil || of == nil {
		return 0
	}
	entitled := left
	if work.Gang == nil {
		entitled = account.Room(of, left)
	}
	add := func(n int, text string, until int64) {
		out.Waits = append(out.Waits, structs.Wait{Kind: structs.ReasonNoSlot, Instances: n, Text: text, Until: until})
	}
	given, by := account.Matching(&of.Submission)
	switch {
	case !account.Holds(of):
		add(left, text+usedBy(by), 0)
	case entitled < left:
		add(entitled, text, until)
		add(left-entitled, fmt.Sprintf("slots: project %q has %d slots of type %q that this job may use this week, which are too few for these instances", of.Project, given, of.Type), 0)
	default:
		add(left, text, until)
	}
	return until
}

// usedBy returns which jobs use slots, in parentheses.
func usedBy(by []slots.JobUse) string {
	if len(by) == 0 {
		return ""
	}
	var texts []string
	for _, u := range by[:min(len(by), jobsNamed)] {
		texts = append(texts, fmt.Sprintf("%d by job %q", u.Slots, u.Job))
	}
	if others := by[len(texts):]; len(others) > 0 {
		n := 0
		for _, u := range others {
			n += u.Slots
		}
		texts = append(texts, fmt.Sprintf("%d by other jobs", n))
	}
	return " (used: " + strings.Join(texts, ", ") + ")"
}

// beside explains why instances that run use no slot of their project.
func (x *explainer) beside(out *structs.GroupExplanation) {
	if x.in.Job.Project == "" || x.w.Slots() == nil || standing.Check(x.w, x.in.Job) != structs.SubmissionRecognised {
		return // what the submission check finds stands with the job
	}
	edit := x.w.Edit()
	var waits []structs.Wait
	for _, a := range x.in.Allocs {
		if a.TaskGroup != out.Group || a.Terminal() || a.Suspended() {
			continue
		}
		text := withoutSlot(edit, x.in.Job, a.ID)
		if text == "" {
			continue
		}
		at := slices.IndexFunc(waits, func(w structs.Wait) bool { return w.Text == text })
		if at < 0 {
			at = len(waits)
			waits = append(waits, structs.Wait{Kind: structs.ReasonNoSlot, Text: text})
		}
		w := &waits[at]
		w.Instances++
		w.AllocCount++
		if len(w.Allocs) < allocsNamed {
			w.Allocs = append(w.Allocs, a.ID)
		}
	}
	for _, w := range waits {
		w.Text = "placed without a slot: " + w.Text
		out.Waits = append(out.Waits, w)
	}
}

// withoutSlot returns why an allocation uses no slot of its project; "": it uses one, or another claim, or is of no project. job is nil if it is not
// known any more.
func withoutSlot(e *world.Edit, job *structs.Job, allocID string) string {
	w := world.Base(e)
	u, found := world.Usages(w).Get(allocID)
	if !found || w.Slots() == nil || u.Owner.Terms.Slots == nil || u.Guaranteed() || u.PerNode() || u.IsSuspended {
		return ""
	}
	of := world.SlotInstance(u)
	account := w.Slots().Account(of.Project)
	switch found := w.Slots().Spec(of.Project).Check(&of.Submission); {
	case found != slots.Recognised || account == nil:
		return fmt.Sprintf("the submission check of project %q finds %q", of.Project, found)
	case job != nil && job.Class == structs.ClassOpportunistic:
		return `its job states class = "opportunistic", and so uses no slots`
	case !account.Holds(of):
		return fullText(account, of)
	}
	if text := nodeText(w, u, of); text != "" {
		return text
	}
	raised := raise.WithSlots(e, u)
	if raised == nil {
		return "its node is not known any more"
	}
	if lack := world.ClaimLacks(e, raised); lack != "" {
		return lack
	}
	if _, gang := u.Owner.Gang(); gang {
		return "too few members of its gang could use one"
	}
	return fmt.Sprintf("a slot of type %q is free for it, which it uses from the next pass over the queue on", of.Type)
}

// fullText returns that no row of a project has room for an instance, and who uses them.
func fullText(account *slots.Account, of *slots.Instance) string {
	given, by := account.Matching(&of.Submission)
	text := fmt.Sprintf("project %q uses all %d slots of type %q that this job may use this week", of.Project, given, of.Type)
	if free := account.Free(&of.Submission); free > 0 {
		text = fmt.Sprintf("it costs %d slots of type %q, and project %q has %d free in one row that this job may use this week", of.Cost, of.Type, of.Project, free)
	}
	return text + usedBy(by)
}

// nodeText returns why the node of an instance has no slots for it; "": it may have some.
func nodeText(w *world.World, u *world.Usage, of *slots.Instance) string {
	stated, left := w.Slots().Stated(u.NodeID, of.Type), w.Slots().Left(u.NodeID, of.Type)
	switch {
	case stated == 0:
		return fmt.Sprintf("its node offers no slots of type %q", of.Type)
	case left == 0:
		return fmt.Sprintf("all %d slots of type %q that its node offers are in use there, guards included", stated, of.Type)
	case left < of.Cost:
		return fmt.Sprintf("it costs %d slots of type %q, and its node has %d of %d left", of.Cost, of.Type, left, stated)
	}
	return ""
}

// claimThreats returns what may be reclaimed from an opportunistic allocation, whatever its priority, for those who are guaranteed it.
func claimThreats(in *AllocInput, how string) (out []structs.Threat) {
	w := in.World
	u, found := world.Usages(w).Get(in.Alloc.ID)
	if !found || u.Guaranteed() || u.PerNode() {
		return nil
	}
	add := func(text, how string) {
		out = append(out, structs.Threat{Kind: "claim", How: how, Text: fmt.Sprintf("%s (%s)", text, how)})
	}
	switch {
	case standing.HasFailed(w, u):
		add("any job that passes the submission check, or names no project, may take its place at once, whatever its priority", how)
	case w.Slots() != nil && !u.Immune(&in.Config):
		add("jobs of projects that have free slots may take its place after the grace of these, whatever their priority", how)
	}
	if len(u.Devices) > 0 && slices.ContainsFunc(w.Owners(), func(owner string) bool { return !strings.HasPrefix(owner, structs.ProjectOwnerPrefix) }) {
		add("namespaces that own cells may reclaim its devices, whatever their priority", structs.ReclaimRequeue)
	}
	return out
}
