package lend

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Lender is a workflow from whose reservation a job may borrow, by one of its lend blocks; or whose own job it is.
type Lender struct {
	Claim *structs.WorkflowClaim
	To    string // "": it is the job's own workflow, see Lenders
	later bool   // more is lent in a later round
}

// Lenders returns the workflows that lend to instances of a group, those of the highest priority first. A job borrows by the first lend block that
// names it and permits it to; none lends to jobs of itself, but for those that use its reservation without a claim, or to system jobs.
func Lenders(in *search.Input, w *world.World, group *structs.TaskGroup) (out []Lender) {
	if world.Workflows(w).Len() == 0 || in.Job.PerNode() {
		return nil
	}
	for _, c := range world.Workflows(w).All {
		if !c.Lends() || c.NodePool != in.Job.NodePool || in.Job.Workflow != nil && in.Job.Namespace == c.Namespace && in.Job.Workflow.ID == c.ID {
			continue
		}
		for _, l := range c.Lend {
			if lendsTo(w, l.To, in.Job) && inTime(in, w, c, l, group) {
				out = append(out, Lender{Claim: c, To: l.To})
				break
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Lender) int { return cmp.Compare(b.Claim.Priority, a.Claim.Priority) })
	// An instance for which no part has room as a whole, as one was lost, or holds too little of one resource, uses what idles of its own without a claim if it
	// finds no other room, with what is free beside that, as a borrower does.
	if own := feasible.OwnWorkflow(w, in.Job); own != nil {
		out = slices.Insert(out, 0, Lender{Claim: own})
	}
	return out
}

// LendsTo reports whether a workflow lends to a job, whatever its time limits are.
func LendsTo(w *world.World, c *structs.WorkflowClaim, job *structs.Job) bool {
	return c.Lends() && c.NodePool == job.NodePool && slices.ContainsFunc(c.Lend, func(l *structs.WorkflowLend) bool { return lendsTo(w, l.To, job) })
}

// LendersOf names the workflows that lend to a job, whatever its time limits are, each with the lend blocks that name it, and with the job's user where that counts.
func LendersOf(w *world.World, job *structs.Job) (out []string) {
	for key, c := range world.Workflows(w).All {
		if !c.Lends() || c.NodePool != job.NodePool {
			continue
		}
		for _, l := range c.Lend {
			if lendsTo(w, l.To, job) {
				if out = append(out, key, l.To); l.History && job.Submitter != nil { // whose earlier runs decide
					out = append(out, job.Submitter.User)
				}
			}
		}
	}
	return out
}

// lendsTo reports whether a lend block names a job.
func lendsTo(w *world.World, to string, job *structs.Job) bool {
	kind, name, _ := strings.Cut(to, ":")
	switch kind {
	case "user":
		return job.Submitter != nil && job.Submitter.User == name
	case "group":
		return job.Submitter != nil && slices.Contains(job.Submitter.Groups, name)
	case "project":
		member := standing.Check(w, job)
		return job.Project == name && member != structs.SubmissionUnknownProject && member != structs.SubmissionNotAMember
	case "namespace":
		return job.Namespace == name
	case "node_pool":
		return job.NodePool == name
	}
	return false
}

// inTime reports whether instances of a group may borrow from a workflow by a lend block, by how long they run and by what is left of its running stage.
func inTime(in *search.Input, w *world.World, c *structs.WorkflowClaim, l *structs.WorkflowLend, group *structs.TaskGroup) bool {
	rest, limited := Rest(w, c, in.Now.UnixNano())
	var runs []time.Duration
	if limited && l.History && group.MaxRunDuration == 0 {
		runs = userRuns(in)
	}
	return workflow.Terms{History: l.History, Longer: l.LendLonger}.MayBorrow(group.MaxRunDuration, time.Duration(rest), limited, runs)
}

// userRuns returns how long the latest completed runs of the job's user took.
func userRuns(in *search.Input) []time.Duration {
	if in.Job.Submitter == nil || in.UserRuns == nil {
		return nil
	}
	return in.UserRuns(in.Job.Submitter.User)
}

// Rest returns what is left of the running stage of a workflow, in nanoseconds: the latest time limit of its jobs, of those that have not started
// from now on. A job of which nothing uses the reservation, such as a sysbatch job, started when it was registered, once any of it runs. limited is false
// if a job has no limit, or no stage runs.
func Rest(w *world.World, c *structs.WorkflowClaim, now int64) (rest int64, limited bool) {
	if len(c.Jobs) == 0 {
		return 0, false
	}
	ends := map[string]int64{} // the latest of a job's instances; looked up only
	for i := range c.Parts {
		n, known := w.State(c.Parts[i].NodeID)
		if !known {
			continue
		}
		for _, u := range n.Usages {
			if t := &u.Owner.Terms; t.Claim == structs.ClaimWorkflow && t.WorkflowKey() == c.Key() {
				ends[u.Owner.Job] = max(ends[u.Owner.Job], u.Ends)
			}
		}
	}
	for _, j := range c.Jobs {
		if j.Limit == 0 {
			return 0, false
		}
		end := ends[j.JobID]
		switch {
		case end > 0:
		case j.Starting || j.Started == 0:
			end = now + int64(j.Limit)
		default:
			end = j.Started + int64(j.Limit)
		}
		rest = max(rest, end-now)
	}
	return rest, true
}

// NodesOf returns the nodes of a lender's reservation on which so much idles, with what is free beside it, that one more instance may have room,
// those with the least idle first; then, if it is the job's own, those on which it has once borrowers leave.
func (l *Lender) NodesOf(s *search.Search) (nodes []Node) {
	e, a := s.Edit, s.Request
	type room struct {
		id   string
		idle world.Resources
	}
	var rooms []room
	for i := range l.Claim.Parts {
		n, known := world.StateOf(e, l.Claim.Parts[i].NodeID)
		if !known || n.Node == nil || n.Capacity == nil {
			continue
		}
		part, has := n.Part(l.Claim.Key())
		if has && part.Idle != (world.Resources{}) && n.Lacks(a.Amount, &world.Taker{RequestName: a.By.RequestName, Borrows: l.Claim.Key()}) == "" {
			rooms = append(rooms, room{n.ID, part.Idle})
		}
	}
	slices.SortStableFunc(rooms, func(a, b room) int {
		return cmp.Or(cmp.Compare(a.idle.Devices, b.idle.Devices), cmp.Compare(a.idle.Amount.CPU, b.idle.Amount.CPU), strings.Compare(a.id, b.id))
	})
	for _, r := range rooms {
		nodes = append(nodes, Node{ID: r.id})
	}
	if l.To == "" {
		nodes = append(nodes, l.leftBy(s)...)
	}
	return nodes
}

// NodesToTry returns up to so many nodes on which all that some instances request together, of which one is of a group, has room with what is lent to that: first those
// on which nobody has to leave for the workflow's own, of these the ones that have least left.
func NodesToTry(e *world.Edit, in *search.Input, group *structs.TaskGroup, all *search.Request, most int) (ids []string) {
	type room struct {
		id    string
		leave int
		left  world.Resources
	}
	var rooms []room
	for _, l := range Lenders(in, world.Base(e), group) {
		by := &world.Taker{RequestName: all.By.RequestName, Borrows: l.Claim.Key()}
		for i := range l.Claim.Parts {
			n, known := world.StateOf(e, l.Claim.Parts[i].NodeID)
			if !known || n.Node == nil || n.Capacity == nil {
				continue
			}
			need, as := all.NeedsOn(n), []*world.NodeState{n}
			if l.To == "" {
				as = append(as, unlent(n, l.Claim))
			}
			for leave, n := range as {
				if free := freeFor(n, by); free.Lacks(need) == "" {
					rooms = append(rooms, room{n.ID, leave, free.Less(need)})
					break
				}
			}
		}
	}
	slices.SortStableFunc(rooms, func(a, b room) int {
		return cmp.Or(cmp.Compare(a.leave, b.leave), cmp.Compare(a.left.Devices, b.left.Devices), cmp.Compare(a.left.Amount.CPU, b.left.Amount.CPU), strings.Compare(a.id, b.id))
	})
	for _, r := range rooms {
		if len(ids) < most && !slices.Contains(ids, r.id) {
			ids = append(ids, r.id)
		}
	}
	return ids
}

// freeFor returns what a taker may use of a node.
func freeFor(n *world.NodeState, by *world.Taker) world.Resources {
	return world.Resources{Amount: n.Free(), Cores: n.FreeCores(), Devices: n.FreeDevices()}.Less(n.Withheld(by))
}
