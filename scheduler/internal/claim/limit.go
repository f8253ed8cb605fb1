package claim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// GPU is the type of the devices whose use a virtual cluster limits, whether it has cells with such or not.
const GPU = "gpu"

// Limit is what a namespace owns of the devices that a request is for, and what of it is in guaranteed use (semantics part 2, "Upper limit").
type Limit struct {
	Kind   string // of the devices, as their type says
	Given  int    // devices of all quota cells
	Doomed int    // of those: the hardware cannot hold them at present
	Used   int
	// room is what is left of each chain.
	room []int
	want int
}

// LimitsOf returns the limits that an instance of a request is subject to: one for its devices if a claim may hold all of them, else one for
// each request for GPUs, or for devices of a type of which its namespace owns some.
func LimitsOf(e *world.Edit, job *structs.Job, a *search.Request) (list []Limit) {
	pool := cmp.Or(job.NodePool, structs.DefaultNodePool)
	owned := world.Base(e).Quotas(job.Namespace)
	requests := a.Devices
	if together := feasible.Together(requests); together != nil {
		requests = []feasible.DeviceRequest{*together}
	}
	for i := range requests {
		d := &requests[i]
		if d.Kind != GPU && !slices.ContainsFunc(owned, func(q world.Quota) bool { return q.Chain.Type == d.Kind }) {
			continue
		}
		l := Limit{Kind: d.Kind, want: d.Count}
		for key := range world.Base(e).Chains {
			if matches(pool, d, key) {
				l.add(e, job.Namespace, key)
			}
		}
		list = append(list, l)
	}
	return list
}

func (l *Limit) add(e *world.Edit, owner string, key world.ChainKey) {
	chain, given, doomed := world.ChainEdit(e, key).View(), 0, 0
	for _, a := range chain.Accounts(owner) {
		given += a.Given * chain.Devices(a.Kind)
		doomed += (a.Doomed + a.Away) * chain.Devices(a.Kind)
	}
	used := world.Used(e, owner, key)
	l.Given, l.Doomed, l.Used = l.Given+given, l.Doomed+doomed, l.Used+used
	l.room = append(l.room, max(0, given-doomed-used))
}

// Exceeded reports whether so many more instances would exceed the limit.
func (l *Limit) Exceeded(instances int) bool {
	for _, n := range l.room {
		instances -= n / l.want
	}
	return instances > 0
}

// Exceeded returns the limits that so many instances of each of some requests would exceed together, one of each kind of devices.
func Exceeded(e *world.Edit, job *structs.Job, requests []*search.Request, instances []int) (list []Limit) {
	want := map[string]int{}
	for i, a := range requests {
		for _, l := range LimitsOf(e, job, a) {
			left := 0
			for _, n := range l.room {
				left += n
			}
			want[l.Kind] += l.want * instances[i]
			known := slices.ContainsFunc(list, func(o Limit) bool { return o.Kind == l.Kind })
			if !known && (want[l.Kind] > left || l.Exceeded(instances[i])) {
				list = append(list, l)
			}
		}
	}
	return list
}

// Reasons returns in words why an owner's instances use no claim: its limits that are exceeded, and the cells that it lacks at present.
// The longest-lived first.
func Reasons(owner string, exceeded []Limit) (texts []string) {
	for i := range exceeded {
		l := &exceeded[i]
		texts = append(texts, fmt.Sprintf("over the limit: namespace %q owns %s, %d in guaranteed use", owner, l.devices(l.Given), l.Used))
		if l.Doomed > 0 {
			texts = append(texts, fmt.Sprintf("cells doomed: %s of namespace %q cannot be had at present", l.devices(l.Doomed), owner))
		}
	}
	return texts
}

func (l *Limit) devices(n int) string {
	noun := l.Kind
	if noun == GPU {
		noun = "GPU"
	}
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// matches reports whether devices of a chain of a pool may be requested so.
func matches(pool string, w *feasible.DeviceRequest, key world.ChainKey) bool {
	return (pool == key.Pool || pool == structs.AllNodePool) && (w.Vendor == "" || w.Vendor == key.Vendor) && w.Kind == key.Type &&
		(w.Name == "" || w.Name == key.Model)
}
