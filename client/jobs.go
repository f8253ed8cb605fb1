package client

import (
	"sync"

	"github.com/nomadish/nomadish/structs"
)

// jobs lets allocations of one job version share it, also across the client's
// nodes. It is a cache: it may be emptied at any time.
type jobs struct {
	mu    sync.Mutex
	known map[jobKey]*structs.Job
}

type jobKey struct {
	namespace, id  string
	version, index uint64
}

// maxJobs is how many job versions are kept for sharing.
const maxJobs = 1024

func newJobs() *jobs { return &jobs{known: map[jobKey]*structs.Job{}} }

// find gives the version that an allocation runs, of those that came with it; nil
// if it is not among them.
func (j *jobs) find(a *structs.Allocation, came []*structs.Job) *structs.Job {
	if a.Job != nil {
		return a.Job
	}
	for _, job := range came {
		if job.ID != a.JobID || job.Namespace != a.Namespace || job.Version != a.JobVersion {
			continue
		}
		key := jobKey{job.Namespace, job.ID, job.Version, job.CreateIndex}
		j.mu.Lock()
		defer j.mu.Unlock()
		if same, ok := j.known[key]; ok {
			return same
		}
		if len(j.known) >= maxJobs {
			clear(j.known)
		}
		j.known[key] = job
		return job
	}
	return nil
}
