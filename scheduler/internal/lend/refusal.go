package lend

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/license"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Refusal states why a workflow, named by its key, lends instances of a group no more of what idles of its reservation, as a clause that begins with "which".
func Refusal(in *search.Input, w *world.World, group *structs.TaskGroup, key string) string {
	c := w.Workflow(key)
	switch {
	case c == nil:
		return "which does not lend it to this job now"
	case in.Job.Workflow != nil && in.Job.Namespace == c.Namespace && in.Job.Workflow.ID == c.ID:
		return fmt.Sprintf("which is its own: its stage does not fit into what there is of the reservation, as `nomadish workflow status %s` shows", c.ID)
	case !c.Posted:
		return "which waits for the rest of its reservation, and keeps what comes free"
	case len(c.Lend) == 0 && c.KeepsFree():
		return "which lends to nobody, and keeps what comes free in place of what it has lost"
	case len(c.Lend) == 0:
		return "which lends to nobody"
	case c.Closed:
		return "which lends nothing now, as a stage of it is about to start"
	case in.Job.PerNode():
		return "which lends nothing to system and sysbatch jobs"
	}
	if why := notBy(in, w, c, group); why != "" {
		return why
	}
	if why := atMost(w, c, search.NewRequest(in, group)); why != "" {
		return why
	}
	if why := licensesLack(w, c, group); why != "" { // the nodes may lack something else, which it would lend
		return why + ", and this job requests that license, too"
	}
	loans := LoansOf(w, key)
	switch {
	case loans != nil && loans.Idle.GPUs == 0 && search.NewRequest(in, group).Reserved > 0:
		return "of whose reservation no GPU idles now"
	case loans != nil && isNothing(loans.Idle) && loans.Leaves != "":
		return "of whose reservation nothing idles now that can be lent: " + loans.Leaves
	case loans == nil || isNothing(loans.Idle):
		return "of whose reservation nothing idles now: its own jobs and others that borrow use it"
	}
	return "which lends no more of it now: " + noMore(w, c, search.NewRequest(in, group))
}

// notBy states why instances of a group may borrow by none of a workflow's lend blocks: none names the job, or it runs for too long, by the first that does; "": they
// may by one.
func notBy(in *search.Input, w *world.World, c *structs.WorkflowClaim, group *structs.TaskGroup) string {
	var first *structs.WorkflowLend
	var to []string
	for _, l := range c.Lend {
		to = append(to, l.To)
		switch {
		case !lendsTo(w, l.To, in.Job):
		case inTime(in, w, c, l, group):
			return ""
		case first == nil:
			first = l
		}
	}
	if first == nil {
		return "which lends to " + strings.Join(to, ", ") + " only, and this job is not of these" + notOf(w, c, in.Job)
	}
	return tooLong(in, w, c, first, group)
}

// notOf states what keeps a job from being one of those to whom a workflow lends that its user may not see, to follow that it is none: it states no project, or one whose
// member its user is not; or who submits it is not stated. "": it is another user's, or of another namespace.
func notOf(w *world.World, c *structs.WorkflowClaim, job *structs.Job) string {
	var why []string
	for _, l := range c.Lend {
		text := ""
		switch kind, name, _ := strings.Cut(l.To, ":"); {
		case (kind == "user" || kind == "group") && job.Submitter == nil:
			text = "who submits it is not stated (job run -user NAME)"
		case kind != "project":
		case job.Project == "":
			text = "it states no project"
		case job.Project != name:
			text = fmt.Sprintf("it is of project %q", job.Project)
		case standing.Check(w, job) == structs.SubmissionUnknownProject:
			text = fmt.Sprintf("there is no project %q", name)
		case job.Submitter == nil:
			text = fmt.Sprintf("who submits it is not stated (job run -user NAME), and so is not a member of project %q", name)
		default:
			text = fmt.Sprintf("user %q, who submits it, is not a member of project %q", job.Submitter.User, name)
		}
		if text != "" && !slices.Contains(why, text) {
			why = append(why, text)
		}
	}
	if len(why) == 0 {
		return ""
	}
	return ": " + strings.Join(why, "; ")
}

// noMore states why no more is lent of room that idles: on no node there is enough of it, or jobs of the running stage have still to take it.
func noMore(w *world.World, c *structs.WorkflowClaim, a *search.Request) string {
	var idle, need world.Resources
	var mhz int64
	fits := false
	for i := range c.Parts {
		n, known := w.State(c.Parts[i].NodeID)
		if !known || n.Capacity == nil {
			continue
		}
		_, idles := n.Lends(c.Key())
		needs := a.NeedsOn(n)
		idle, need, mhz = idle.Plus(idles), needs, max(mhz, n.Capacity.MHzPerCore)
		fits = fits || idles.Lacks(needs) == ""
	}
	switch awaited := (world.WorkflowEdit{E: w.Edit()}).Awaited(c, mhz); {
	case !fits:
		return "what idles is too little on each node"
	case idle.Less(awaited).Lacks(need) != "":
		return "jobs of its running stage have still to take what idles"
	}
	return "this job cannot use what idles, on the nodes where that is enough"
}

// licensesLack states that no more of a license is lent that a group requests and lacks; "": that is not why.
func licensesLack(w *world.World, c *structs.WorkflowClaim, group *structs.TaskGroup) string {
	book, noRoom := w.Licenses(), world.WorkflowEdit{E: w.Edit()}.NoRoom(c.Key())
	for _, r := range group.Licenses().List() {
		s := book.ShareOf(r.Name, c.Key())
		switch {
		case s.Total == 0 || book.FreeFor(r.Name, &license.Taker{Borrows: c.Key(), NoRoom: noRoom}) >= r.Count:
		case c.LendMax != nil && c.LendMax.Licenses[r.Name] > 0 && s.Lent+r.Count > c.LendMax.Licenses[r.Name]:
			return fmt.Sprintf("which lends no more at once than lend_max states, licenses = { %s = %d }", r.Name, c.LendMax.Licenses[r.Name])
		case s.Idle-s.Lost < r.Count:
			return fmt.Sprintf("of whose reservation %d of license %q idle now", s.Idle-s.Lost, r.Name)
		default:
			return fmt.Sprintf("which lends no more of license %q now: jobs of its running stage have still to take it", r.Name)
		}
	}
	return ""
}

// isNothing reports whether there is neither room for an instance nor a license.
func isNothing(r structs.WorkflowResources) bool {
	return r.CPU+r.Cores == 0 && r.GPUs == 0 && len(r.Licenses) == 0
}

// Named returns the keys of the workflows with lend blocks that name a job, whatever is lent now.
func Named(w *world.World, job *structs.Job) (keys []string) {
	for key, c := range world.Workflows(w).All {
		own := job.Workflow != nil && job.Namespace == c.Namespace && job.Workflow.ID == c.ID
		if !own && c.NodePool == job.NodePool && slices.ContainsFunc(c.Lend, func(l *structs.WorkflowLend) bool { return lendsTo(w, l.To, job) }) {
			keys = append(keys, key)
		}
	}
	return keys
}

// tooLong states why a job runs for too long to borrow by a lend block.
func tooLong(in *search.Input, w *world.World, c *structs.WorkflowClaim, l *structs.WorkflowLend, group *structs.TaskGroup) string {
	rest, _ := Rest(w, c, in.Now.UnixNano())
	text := fmt.Sprintf("which lends to %s for the rest of its running stage only, at most %s, and this job ", l.To, time.Duration(rest).Round(time.Second))
	if group.MaxRunDuration > 0 {
		return text + fmt.Sprintf("has a max_run_duration of %s", group.MaxRunDuration)
	}
	text += "has no max_run_duration"
	if !l.History {
		return text
	}
	runs := userRuns(in)
	if usual, counts := workflow.Usual(runs); counts {
		return text + fmt.Sprintf(": 95 %% of its user's completed runs took up to %s", usual.Round(time.Second))
	}
	return text + fmt.Sprintf(": of its user %d completed runs are known, and at least 5 must be", len(runs))
}

// atMost states that no more is lent for lend_max; "": that is not why.
func atMost(w *world.World, c *structs.WorkflowClaim, a *search.Request) string {
	if c.LendMax == nil {
		return ""
	}
	var lent world.Resources // of all parts
	var mhz int64
	wants := world.Resources{Amount: a.Amount, Devices: a.Reserved}
	for _, t := range a.Group.Tasks {
		if t.Resources != nil {
			wants.Cores += t.Resources.Cores
		}
	}
	for i := range c.Parts {
		n, known := w.State(c.Parts[i].NodeID)
		if !known || n.Capacity == nil {
			continue
		}
		borrowed, _ := n.Lends(c.Key())
		lent, mhz = lent.Plus(borrowed), max(mhz, n.Capacity.MHzPerCore)
	}
	most := c.LendMax
	processor := fmt.Sprintf("cores = %d", most.Cores) // MHz are bounded together with whole cores
	switch {
	case most.Cores == 0:
		processor = fmt.Sprintf("cpu = %d", most.CPU)
	case most.CPU > 0:
		processor += fmt.Sprintf(", cpu = %d", most.CPU)
	}
	for _, of := range []struct {
		stated                 string
		lent, requested, bound int64
	}{
		{fmt.Sprintf("cores = %d", most.Cores), int64(lent.Cores), int64(wants.Cores), most.Cores},
		{processor, lent.Amount.CPU, wants.Amount.CPU + int64(wants.Cores)*mhz, most.Cores*mhz + most.CPU},
		{fmt.Sprintf("memory = %d", most.MemoryMB), lent.Amount.MemoryMB, wants.Amount.MemoryMB, most.MemoryMB},
		{fmt.Sprintf("gpus = %d", most.GPUs), int64(lent.Devices), int64(wants.Devices), most.GPUs},
	} {
		if of.bound > 0 && of.requested > 0 && of.lent+of.requested > of.bound {
			return "which lends no more at once than lend_max states, " + of.stated
		}
	}
	return ""
}
