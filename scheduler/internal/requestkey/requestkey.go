// Package requestkey finds what the pending groups of a job need: which requests fail alike, and which nodes may help them at all. It
// must never look for room: what it denies does not fit, what it grants may not fit either. The queue uses it between decisions,
// so it stands apart from what decides.
package requestkey

import (
	"crypto/sha256"
	"encoding/json"
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/slots"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/lend"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Key is what the groups of a job that wait need, as far as it can be known without looking
// at the cluster: which requests fail alike, and which nodes may help at all.
type Key struct {
	// Key: of requests with the same key none finds room for an instance where one of them did not.
	// "": it can be compared with no other.
	Key   string
	needs []need
	any   bool // room on any node may help, however little
	// BesideOwned: the groups are of a system or sysbatch job, and their devices must be what nobody owns.
	BesideOwned bool
	// Project is the one that the job names, if there are any.
	Project string
	// Licenses are the names of those that the groups request.
	Licenses []string
	// LendRounds is in how many rounds the groups are tried, in each of which more is lent to them (lend.Rounds).
	LendRounds int
	// recognised: of no project, or of one whose submission check the job passes: it may take from those that failed it.
	recognised bool
	// Entitlement is what the groups may claim of what their namespace owns.
	Entitlement feasible.Entitlement
}

// need is from below what one instance of a group takes of its node.
type need struct {
	amount        world.Vector
	cores, device int64
}

// Of returns the request key of the groups of a job that wait, with what the job has
// already. holds reports that nodes are reserved for the job: it may find room there where no other job can.
// Where the job's namespace owns cells, the key is that of no other namespace.
func Of(
	w *world.World, job *structs.Job, groups []string, has []*structs.Allocation, config structs.SchedulerConfiguration, fits bool,
) Key {
	// What stands on room of its own needs less than its groups state, and only there.
	stands := standsOn(job, groups, has)
	s := Key{any: config.Preempts(job.Type) || job.Reclaim == structs.ReclaimSuspend || len(groups) == 0 || stands, Entitlement: feasible.EntitlementOf(w, job, groups)}
	// Of two groups one may have found room where the other did not.
	alike := len(groups) == 1 && !fits && !stands && !job.PerNode() && !feasible.AllOrNone(job) && !apart(job.Constraints) &&
		job.Reclaim != structs.ReclaimSuspend
	in := &search.Input{Job: job, Config: config}
	names := slices.Sorted(slices.Values(groups))
	k := &jobKey{
		Type: job.Type, Datacenters: job.Datacenters, Pool: job.NodePool, Constraints: job.Constraints,
		Policy: job.Policy, Prefer: job.Prefer, Class: job.Class, OverLimit: job.OverLimit,
	}
	if w.Owns(job.Namespace) {
		k.Owner = job.Namespace
	}
	s.recognised = standing.Of(w, job) != structs.StandingFailed
	if w.Slots() != nil && job.Project != "" { // which rows of its project give it slots
		of := standing.SubmissionOf(job)
		if !w.Slots().Spec(job.Project).NamesJobs() {
			of.Job = ""
		}
		k.Project, s.Project = &of, job.Project
	}
	if world.Workflows(w).Len() > 0 { // whose reservation it uses, and who lends to it
		k.Workflow, k.Lenders = job.Workflow, lend.LendersOf(w, job)
		s.LendRounds = lend.Rounds(w, job)
		k.LendRounds = s.LendRounds
		s.any = s.any || job.Workflow != nil
	}
	if config.Preempts(job.Type) {
		k.Priority, k.Partial = job.Priority, job.Partial
	}
	for _, name := range names {
		g := job.LookupTaskGroup(name)
		if g == nil {
			s.any, alike = true, false
			continue
		}
		a := search.NewRequest(in, g)
		s.needs = append(s.needs, need{a.Amount, a.Need[world.DimCores], a.Need[world.DimGPUs]})
		for _, r := range g.Licenses().List() {
			s.Licenses = append(s.Licenses, r.Name)
		}
		s.BesideOwned = s.BesideOwned || job.PerNode() && len(a.Devices) > 0
		alike = alike && g.Gang == nil && g.Topology == nil && !apart(g.Constraints)
		k.Groups = append(k.Groups, groupKeyOf(g))
	}
	if !alike {
		return s
	}
	text, err := json.Marshal(k)
	if err != nil {
		return s
	}
	sum := sha256.Sum256(text)
	s.Key = string(sum[:])
	return s
}

// standsOn reports whether something that waits would take room which the job has already: a
// suspended instance goes on where it is, and an instance that is updated, or a gang that moves,
// may be replaced where it runs.
func standsOn(job *structs.Job, groups []string, has []*structs.Allocation) bool {
	gang := slices.ContainsFunc(groups, func(name string) bool {
		g := job.LookupTaskGroup(name)
		return g != nil && g.Gang != nil
	})
	together := gang || feasible.AllOrNone(job) // then all its groups are one matter
	return slices.ContainsFunc(has, func(a *structs.Allocation) bool {
		if a.Terminal() || !together && !slices.Contains(groups, a.TaskGroup) {
			return false
		}
		old := a.JobVersion != job.Version || a.Job != nil && a.Job.CreateIndex != job.CreateIndex
		return gang || old || a.Suspended() && !a.DesiredTransition.ShouldSuspend()
	})
}

// apart reports whether constraints depend on where the job's own instances are.
func apart(list []*structs.Constraint) bool {
	return slices.ContainsFunc(list, func(c *structs.Constraint) bool {
		return c.Operand == structs.ConstraintDistinctHosts || c.Operand == structs.ConstraintDistinctProperty
	})
}

// jobKey is all of a job that decides whether an instance finds room.
type jobKey struct {
	Type, Pool, Policy, Class, Partial, OverLimit string
	Owner                                         string               // the namespace, if it owns cells
	Project                                       *slots.Submission    `json:",omitempty"` // nil: it is of none
	Workflow                                      *structs.JobWorkflow `json:",omitempty"`
	Lenders                                       []string             `json:",omitempty"`
	LendRounds                                    int                  `json:",omitempty"`
	Priority                                      int
	Datacenters, Prefer                           []string
	Constraints                                   []*structs.Constraint
	Groups                                        []groupKey
}

type groupKey struct {
	Candidates  []string
	Limit       int64
	Constraints []*structs.Constraint
	Networks    []*structs.NetworkResource
	Volumes     map[string]*structs.VolumeRequest
	Disk        *structs.EphemeralDisk
	Tasks       []taskKey
}

type taskKey struct {
	Name, Driver string
	Constraints  []*structs.Constraint
	Resources    *structs.Resources
}

func groupKeyOf(g *structs.TaskGroup) groupKey {
	k := groupKey{
		Candidates: g.Candidates, Limit: int64(g.MaxRunDuration), Constraints: g.Constraints, Networks: g.Networks,
		Volumes: g.Volumes, Disk: g.EphemeralDisk,
	}
	for _, t := range g.Tasks {
		k.Tasks = append(k.Tasks, taskKey{t.Name, t.Driver, t.Constraints, t.Resources})
	}
	return k
}

// Helped reports whether room on a node, as it is now, may be what a request with the key waits
// for. It is wrong in one direction only: what it denies does not fit there.
func (s *Key) Helped(w *world.World, nodeID string) bool {
	if s.byLittle(w) {
		return true
	}
	n, known := world.NodeStates(w).Get(nodeID)
	return known && slices.ContainsFunc(s.needs, func(x need) bool { return x.fits(n) })
}

// byLittle reports whether room on any node may help, however little: others may leave for it.
func (s *Key) byLittle(w *world.World) bool {
	return s.any || s.Entitlement.Project() != "" || s.recognised && w.Slots().AnyFailed()
}

// fits reports whether a node may have room for one instance.
func (x need) fits(n *world.NodeState) bool {
	if n.Node == nil || n.Capacity == nil {
		return false
	}
	free := n.Free()
	if x.amount.CPU > free.CPU || x.amount.MemoryMB > free.MemoryMB || x.amount.DiskMB > free.DiskMB {
		return false
	}
	return (x.cores == 0 || int64(n.FreeCores()) >= x.cores) && (x.device == 0 || int64(n.FreeDevices()) >= x.device) && n.Node.Ready()
}
