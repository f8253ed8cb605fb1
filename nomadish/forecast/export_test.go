package forecast

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// What tests of packages that import this one need of its tests.

// The samples of these tests.
var (
	GPUJob  = gpuJob
	GPUNode = gpuNode
	SeedsOr = seedsOr
)

// Reality is a reality for other packages.
type Reality struct{ *reality }

// NewReality returns a cluster of so many nodes in virtual time.
func NewReality(t testing.TB, nodes int) Reality {
	r := newReality(t)
	r.nodes(nodes)
	return Reality{r}
}

// Plant submits so many jobs, which the same seed makes the same.
func (r Reality) Plant(jobs int, seed uint64) { plant(r.reality, rand.New(rand.NewPCG(seed, 1)), jobs) }

// Put commits an entry.
func (r Reality) Put(payload any) { r.put(payload) }

// Submit registers a job.
func (r Reality) Submit(j *structs.Job) { r.submit(j) }

// Until runs the cluster until a time.
func (r Reality) Until(end time.Time) { r.until(end) }

// Store returns the state.
func (r Reality) Store() *state.Store { return r.log.Store }

// NewID mints an ID.
func (r Reality) NewID() string { return r.newID() }

// Apply commits an entry.
func (r Reality) Apply(ctx context.Context, t structs.LogType, payload any) (uint64, error) {
	return r.log.Apply(ctx, t, payload)
}

// Starts returns when instances of a group started after a time, in order.
func (r Reality) Starts(namespace, job, group string, after time.Time) []time.Time {
	return r.started(&structs.RequestForecast{Namespace: namespace, JobID: job, Group: group}, after)
}
