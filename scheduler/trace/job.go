package trace

import (
	"cmp"
	"math"
	"strconv"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// epoch is when traces start, in Unix nanoseconds: a request's Since of 0 would mean that it does
// not wait.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()

// never is a time that does not come.
const never = math.MaxInt64

// job is one row that has arrived and not ended.
type job struct {
	spec       *structs.Job
	requestKey *requestKey
	row        *Row
	size       int // its class of sizes, see sizes
	request    structs.PendingRequest
	rank       structs.Rank
	heapIndex  int // in requestKey.requests; -1: it does not wait

	arrived int64 // Unix nanoseconds, virtual
	whole   bool  // all of it has been placed once
	ended   int   // instances
	runs    []*run
	// look is when it may reserve room, or when its reservations end.
	look   int64
	usages int // nodes on which it has reserved room

	flow            *flow   // nil: it is of no workflow
	tenant          *tenant // nil: nobody owns anything
	specs           [modes]*structs.Job
	lost, lostAlone bool // it has been counted
}

// missingMilli is what its missing instances take of GPUs.
func (j *job) missingMilli() int64 { return int64(j.request.Missing) * j.row.instanceMilli() }

// run is instances that were placed together and end together.
type run struct {
	job   *job
	batch *structs.PlacementBatch
	ids   []string // of the allocations
	nodes []int    // in the ledger
	gone  []bool   // taken back; nil: none is
	live  int      // instances that are not
	start int64
	end   int64
	// rest is what is left of a suspended run; it is not among those that end.
	rest      int64
	spent     int64 // how long it ran before it was suspended
	suspended bool
	ended     bool
	at        int // in the heap of ends; -1: not there
	// guaranteed: it uses what its tenant owns. cells are which of its cells, by instance, alone is where it would be in a cluster of
	// its own.
	guaranteed bool
	cells      [][]cellUse
	alone      []cellUse
}

// runHeap is runs by their ends, those placed first before others.
type runHeap []*run

func (h runHeap) Len() int { return len(h) }
func (h runHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	if a.end != b.end {
		return a.end < b.end
	}
	if a.job != b.job {
		return a.job.spec.CreateIndex < b.job.spec.CreateIndex
	}
	return a.ids[0] < b.ids[0]
}
func (h runHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}
func (h *runHeap) Push(x any) {
	r := x.(*run)
	r.at = len(*h)
	*h = append(*h, r)
}
func (h *runHeap) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	r.at = -1
	return r
}

// due is a request key that is to be tried at a time though nothing came free.
type due struct {
	at         int64
	seq        uint64
	requestKey *requestKey
}

type dueHeap []due

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)   { *h = append(*h, x.(due)) }
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = due{}
	*h = (*h)[:last]
	return d
}

// newJob makes a job of a row, the number of which counts from 1. of is the job as a workflow registers it; nil: it is of none.
func (r *replay) newJob(row *Row, number uint64, of *flowJob) *job {
	key := row.key(r.config.Band(priority(row)))
	key.tenant = cmp.Or(row.Tenant, structs.DefaultNamespace)
	owner := r.tenants.of(key.tenant)
	if of != nil && r.flows.reserves() {
		key.workflow = of.flow.key()
	}
	s := r.queue.requestKeyOf(row, key)
	s.jobs++
	groups := s.groups[row.Count]
	if groups == nil {
		groups = row.groups()
		if len(s.groups) < maxCounts {
			s.groups[row.Count] = groups
		}
	}
	name := cmp.Or(row.Name, "row") + "-" + strconv.FormatUint(number, 10) // names may repeat
	spec := &structs.Job{
		Namespace: cmp.Or(row.Tenant, structs.DefaultNamespace), ID: name, Name: name, Type: structs.JobTypeBatch, Priority: priority(row),
		Reclaim: row.Reclaim, TaskGroups: groups, SubmitTime: r.now, CreateIndex: number, ModifyIndex: number, JobModifyIndex: number,
	}
	j := &job{spec: spec, requestKey: s, row: row, size: sizeOf(row), heapIndex: -1, arrived: r.now, look: never, tenant: owner}
	if of != nil {
		j.flow, spec.ID, spec.Name = of.flow, of.spec.ID, of.spec.ID
		if r.flows.reserves() {
			spec.Workflow = of.spec.Workflow
		}
	}
	if r.flows != nil { // reservations are of a pool
		spec.NodePool = structs.DefaultNodePool
	}
	j.request = structs.PendingRequest{Namespace: spec.Namespace, JobID: spec.ID, Group: groupName, Missing: row.Count, Since: r.now}
	if after, ever := r.config.ReserveAfter(); ever {
		j.look = r.now + int64(after)
	}
	j.rank = r.rankOf(j)
	return j
}

// rankOf returns the rank of what a job misses. What its workflow has reserved is a claim.
func (r *replay) rankOf(j *job) structs.Rank {
	rank := r.config.Rank(j.spec, &j.request, 0)
	if j.spec.Workflow != nil {
		return rank.Entitled(structs.ClaimRankWorkflow)
	}
	return rank
}

// maxCounts bounds the task groups that a request key keeps for counts seen before.
const maxCounts = 16

func priority(row *Row) int {
	if row.Priority == 0 {
		return structs.JobDefaultPriority
	}
	return row.Priority
}

// allocs are the job's allocations as the state would have them; nil if it was never
// placed.
func (j *job) allocs() []*structs.Allocation {
	var out []*structs.Allocation
	for _, x := range j.runs {
		for i := range x.batch.Instances {
			if x.gone != nil && x.gone[i] {
				continue
			}
			a := x.batch.Allocation(i)
			a.Job = j.spec
			a.ClientStatus = structs.AllocClientRunning
			switch {
			case x.ended:
				a.ClientStatus = structs.AllocClientComplete
			case x.suspended:
				a.DesiredStatus, a.ClientStatus = structs.AllocDesiredSuspend, structs.AllocClientSuspended
			}
			out = append(out, a)
		}
	}
	return out
}
