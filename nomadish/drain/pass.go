package drain

import (
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// pass is one look at the draining nodes: what it calls for.
type pass struct {
	snap    *state.Snapshot
	now     time.Time
	moves   map[string]*structs.Job // allocations to be moved, with their jobs
	waiting map[structs.NamespacedID]bool
	groups  map[groupKey]*group
	again   time.Duration // when time alone calls for another look; 0: it does not
}

type groupKey struct {
	job  structs.NamespacedID
	name string
}

// group is how a group of a job stands, everywhere.
type group struct {
	spare int             // how many more of its instances may be away
	away  map[string]bool // instances that do no work: to move them costs nothing
}

func newPass(snap *state.Snapshot, now time.Time) *pass {
	return &pass{
		snap: snap, now: now, moves: map[string]*structs.Job{}, waiting: map[structs.NamespacedID]bool{}, groups: map[groupKey]*group{},
	}
}

// after has another look taken in so much time.
func (p *pass) after(d time.Duration) {
	if d > 0 && (p.again == 0 || d < p.again) {
		p.again = d
	}
}

// node marks what is to move from a node; true: nothing is left on it.
func (p *pass) node(node *structs.Node) (done bool) {
	s := node.DrainStrategy
	force := s.Deadline < 0
	if !s.ForceDeadline.IsZero() {
		force = force || !p.now.Before(s.ForceDeadline)
		p.after(s.ForceDeadline.Sub(p.now))
	}
	var system []*structs.Allocation
	others := 0
	for _, a := range p.snap.AllocsByNode(nil, node.ID) {
		if a.ClientTerminal() {
			continue
		}
		kind := structs.JobTypeService
		if a.Job != nil {
			kind = a.Job.Type
		}
		switch kind {
		case structs.JobTypeSystem, structs.JobTypeSysBatch:
			if !s.IgnoreSystemJobs {
				system = append(system, a)
			}
			continue
		case structs.JobTypeBatch:
			if force {
				p.move(a)
			}
		default:
			if force || p.may(a) {
				p.move(a)
			}
		}
		others++
		p.waiting[jobOf(a)] = true
	}
	if others > 0 && !force {
		return false
	}
	for _, a := range system {
		p.move(a)
	}
	return others == 0 && len(system) == 0
}

func jobOf(a *structs.Allocation) structs.NamespacedID {
	return structs.NamespacedID{ID: a.JobID, Namespace: a.Namespace}
}

// moving reports whether an allocation is on its way out already.
func moving(a *structs.Allocation) bool {
	return a.ServerTerminal() || a.DesiredTransition.ShouldMigrate()
}

// move requests the migration of an allocation, once. What is left of a job that is gone
// is stopped without our request.
func (p *pass) move(a *structs.Allocation) {
	job := p.snap.Job(nil, a.Namespace, a.JobID)
	if job != nil && !moving(a) {
		p.moves[a.ID] = job
	}
}

// may reports whether an allocation of a service may move now, and counts it if so.
func (p *pass) may(a *structs.Allocation) bool {
	if moving(a) {
		return false
	}
	key := groupKey{jobOf(a), a.TaskGroup}
	g := p.groups[key]
	if g == nil {
		g = p.group(a)
		p.groups[key] = g
	}
	if g.away[a.ID] {
		return true
	}
	if g.spare <= 0 {
		return false
	}
	g.spare--
	return true
}

// group counts how a's group stands: max_parallel of its count may be away.
func (p *pass) group(a *structs.Allocation) *group {
	g := &group{spare: 1, away: map[string]bool{}}
	healthyAfter := time.Duration(0)
	there, wanted := 0, 0
	if job := p.snap.Job(nil, a.Namespace, a.JobID); job != nil && !job.Stop {
		if tg := job.LookupTaskGroup(a.TaskGroup); tg != nil {
			wanted = tg.Count
			if tg.Migrate != nil && tg.Migrate.MaxParallel != nil {
				g.spare = *tg.Migrate.MaxParallel
			}
			if tg.Migrate != nil && tg.Migrate.MinHealthyTime != nil {
				healthyAfter = *tg.Migrate.MinHealthyTime
			}
		}
	}
	for _, other := range p.snap.AllocsByJob(nil, a.Namespace, a.JobID, false) {
		if other.TaskGroup != a.TaskGroup || other.Terminal() {
			continue
		}
		there++
		switch {
		case moving(other):
			g.spare--
		case !p.healthy(other, healthyAfter):
			g.away[other.ID] = away(other)
			g.spare--
		}
	}
	g.spare -= max(0, wanted-there) // those that have no place now
	return g
}

// away reports whether an allocation that is not healthy does no work. One that has not run for long enough to be called healthy does:
// it counts as missing, but is not moved, as it may be all that serves.
func away(a *structs.Allocation) bool {
	if s := a.DeploymentStatus; s != nil && s.Healthy != nil {
		return true
	}
	return a.ClientStatus != structs.AllocClientRunning
}

// healthy reports whether an allocation does its work: as its client has found, or, if
// that has not (it watches some only), when it has run for long enough.
func (p *pass) healthy(a *structs.Allocation, after time.Duration) bool {
	if s := a.DeploymentStatus; s != nil && s.Healthy != nil {
		return *s.Healthy
	}
	if a.ClientStatus != structs.AllocClientRunning {
		return false
	}
	since := time.Unix(0, a.CreateTime)
	for _, t := range a.TaskStates { // order does not matter: a maximum
		if t.State == structs.TaskStateRunning && t.StartedAt.After(since) {
			since = t.StartedAt
		}
	}
	left := since.Add(after).Sub(p.now)
	p.after(left)
	return left <= 0
}
