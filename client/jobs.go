package client

import (
	"reflect"
	"sync"

	"github.com/nomadish/nomadish/structs"
)

// jobs lets allocations of one job version share it and what else is the same in them, also across the client's
// nodes. It is a cache: it may be emptied at any time.
type jobs struct {
	mu    sync.Mutex
	known map[jobKey]*knownJob
}

type jobKey struct {
	namespace, id  string
	version, index uint64
}

// knownJob is a job version with the allocation of each of its groups that came last. None of it is ever changed.
type knownJob struct {
	job  *structs.Job
	last map[string]*structs.Allocation
}

// maxJobs is how many job versions are kept for sharing.
const maxJobs = 1024

func newJobs() *jobs { return &jobs{known: map[jobKey]*knownJob{}} }

// adopt attaches to an allocation that has just come its job, of those that came with it, and lets it share what it can: most of
// what an allocation consists of is the same in many. Job stays nil if it is not among those that came.
func (j *jobs) adopt(a *structs.Allocation, came []*structs.Job) {
	a.Metrics = nil // how its node was chosen, if earlier servers sent it
	if a.Job != nil {
		return
	}
	for _, job := range came {
		if job.ID != a.JobID || job.Namespace != a.Namespace || job.Version != a.JobVersion {
			continue
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		known := j.remember(job)
		a.Job = known.job
		last := known.last[a.TaskGroup]
		if last == nil {
			last = a
		}
		shareWith(a, last)
		known.last[a.TaskGroup] = a
		return
	}
}

func (j *jobs) remember(job *structs.Job) *knownJob {
	key := jobKey{job.Namespace, job.ID, job.Version, job.CreateIndex}
	known := j.known[key]
	if known == nil {
		if len(j.known) >= maxJobs {
			clear(j.known)
		}
		known = &knownJob{job: job, last: map[string]*structs.Allocation{}}
		j.known[key] = known
	}
	return known
}

// shareWith has a refer to the parts of another allocation of its group that are the same.
func shareWith(a, other *structs.Allocation) {
	if a != other && reflect.DeepEqual(a.AllocatedResources, other.AllocatedResources) {
		a.AllocatedResources = other.AllocatedResources
	}
	for _, same := range [...][2]*string{
		{&a.Namespace, &a.Job.Namespace}, {&a.JobID, &a.Job.ID}, {&a.TaskGroup, &other.TaskGroup},
		{&a.EvalID, &other.EvalID}, {&a.DeploymentID, &other.DeploymentID},
		{&a.DesiredStatus, &other.DesiredStatus}, {&a.ClientStatus, &other.ClientStatus},
	} {
		if mine, others := same[0], same[1]; *mine == *others {
			*mine = *others
		}
	}
}
