package search

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/frag"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/idle"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Bounds of what a Typical holds.
const (
	// maxTypical is how many requests count: the commonest. Each costs a few nanoseconds for each
	// node that is weighed.
	maxTypical = 256
	// maxFamilies is for how many families of nodes their typical requests are computed.
	maxFamilies = 4096
	// memoBits is for how many states of nodes their ability is measured: 2^memoBits.
	memoBits = 12
)

// Typical is the typical requests of the cluster, prepared for the policy
// least-fragmentation. It remembers what it measured, which makes it faster and changes no
// answer; so it is for one goroutine at a time.
type Typical struct {
	requests []typicalRequest
	total    int64
	m        *feasible.Matcher
	cores    bool // some request whole cores: what those are differs by node
	supply   supply
	users    map[string][]users // by family; see usersOf
	measures *measures          // of the World that supply was counted of
	apart    *measures          // the same for edits that have changed the supply, made last
}

// measures are the typical requests, each weighted by how scarce what it may use is, and what was
// measured with them.
type measures struct {
	*Typical
	scarcity []float64 // by request
	scarce   bool      // that of some request is more than 1
	kinds    map[family]*kinds
	made     uint32
	memo     []measured
	// requestKeys number the requests that came, and weighed is what was found for the like of
	// them, by set of nodes: of which state of the set, and the nodes.
	requestKeys map[nodeSetKey]uint32
	weighed     map[setRequestKey]weighedSet
	lists       []weighed // memory for those to come
	// losses are what states of nodes would lose.
	losses []lossOfNode
}

// Bounds of what is remembered of searches.
const (
	// maxWeighed is for how many sets and request keys it is remembered what was weighed.
	maxWeighed = 16384
	// lossBits is for how many nodes and request keys their loss is: 2^lossBits. Each keeps an old
	// state of a node in memory.
	lossBits = 13
)

// noRoom is the loss of a node that a request does not fit.
const noRoom = math.MaxInt64

// lossOfNode is what a state of a node would lose to a request key, in lossSteps.
type lossOfNode struct {
	node       *world.NodeState
	requestKey uint32
	level      int32 // of the devices that are best taken from; see leastFrag.loss
	steps      int64
}

// lossAt is where the loss of a node is remembered, whichever is there now.
func (t *measures) lossAt(n *world.NodeState, requestKey uint32) *lossOfNode {
	if t.losses == nil {
		t.losses = make([]lossOfNode, 1<<lossBits)
	}
	const odd = 0x9E3779B97F4A7C15
	h := (n.Hash ^ uint64(requestKey)) * odd
	h ^= uint64(n.Used.CPU)<<20 ^ uint64(n.Used.MemoryMB) // bits
	return &t.losses[h*odd>>(64-lossBits)]
}

// nodeSetKey is all that decides which nodes of a set are weighed for a request, and as
// what.
type nodeSetKey struct {
	byClass            bool
	need               bucket.Vector
	amount             world.Vector
	cores              int
	vendor, kind, name string
	count, share       int
}

// setRequestKey is a set of nodes and a request key.
type setRequestKey struct {
	set        string
	requestKey uint32
}

// weighedSet is what was weighed of a set, whose states are told apart by who made them.
type weighedSet struct {
	of   *world.Token
	list []weighed
}

// requestKeyOf numbers what a search looks for, from 1; 0 if more than its request key decides what
// is weighed.
func (t *measures) requestKeyOf(s *Search) uint32 {
	a := s.Request
	if s.order != nil || len(a.Devices) > 1 {
		return 0
	}
	requestKey := nodeSetKey{byClass: s.ByClass, need: a.Need, amount: a.Amount}
	for _, c := range a.Cores {
		requestKey.cores += c.n
	}
	if len(a.Devices) == 1 {
		d := &a.Devices[0]
		if d.Within != nil || len(d.Request.Constraints) > 0 {
			return 0
		}
		requestKey.vendor, requestKey.kind, requestKey.name, requestKey.count, requestKey.share = d.Vendor, d.Kind, d.Name, d.Count, d.Share
	}
	number, known := t.requestKeys[requestKey]
	if !known {
		if t.requestKeys == nil || len(t.requestKeys) >= maxWeighed {
			t.requestKeys, t.weighed = map[nodeSetKey]uint32{}, nil
		}
		t.made++
		number = t.made
		t.requestKeys[requestKey] = number
	}
	return number
}

// newList returns memory for what is weighed of a large set.
func (t *measures) newList() []weighed {
	const most, lists = (weighMost + 2*weighLeast) * weighScarce, 32
	if len(t.lists) < most {
		t.lists = make([]weighed, most*lists)
	}
	list := t.lists[:0:most]
	t.lists = t.lists[most:]
	return list
}

// remember keeps what was weighed.
func (t *measures) remember(key setRequestKey, of *world.Token, list []weighed) {
	if t.weighed == nil || len(t.weighed) >= maxWeighed {
		t.weighed = map[setRequestKey]weighedSet{}
	}
	t.weighed[key] = weighedSet{of, slices.Clip(list)}
}

// typicalRequest is a request with devices, and what decides where it may go.
type typicalRequest struct {
	fit     *feasible.Feasibility
	want    feasible.DeviceRequest // the first of its devices; all of one kind are added up in request
	request frag.Request
	cores   int64
	weight  int64
}

// family is nodes that typical requests cannot distinguish.
type family struct {
	name       string
	mhzPerCore int64 // 0 if no request is for cores
}

// kinds is the typical requests for the devices of a family's nodes.
type kinds struct {
	list []*kind
	// wanted reports whether any of the devices is requested; it is looked up once.
	wanted, looked bool
}

// plain reports whether a node of the family has no devices that any request is for.
func (k *kinds) plain(t *measures, n *world.NodeState) bool {
	if !k.looked {
		k.looked = true
		for p := range n.Pools {
			k.wanted = k.wanted || !t.find(k, n, p.Group).measure.Empty()
		}
	}
	return !k.wanted
}

// kind is the devices of a node that requests cannot distinguish.
type kind struct {
	vendor, kind, name string
	key                uint64 // see KindKey
	measure            *frag.Measure
	id                 uint32
}

// NewTypical makes requests ready. Requests without devices only lower the weight of the others:
// the policy leaves room by what they leave of devices. Of many requests the commonest are taken.
func NewTypical(requests []structs.TypicalRequest) *Typical {
	t := &Typical{m: feasible.NewMatcher()}
	for i := range requests {
		a := &requests[i]
		if a.Job == nil || a.Group == nil || a.Weight <= 0 {
			continue
		}
		t.total += a.Weight
		if made, some := t.read(a); some {
			t.requests = append(t.requests, made)
			t.cores = t.cores || made.cores > 0
		}
	}
	slices.SortStableFunc(t.requests, func(a, b typicalRequest) int { return cmp.Compare(b.weight, a.weight) })
	t.requests = t.requests[:min(len(t.requests), maxTypical)]
	return t
}

// read returns what a request wants; false: it wants no devices.
func (t *Typical) read(a *structs.TypicalRequest) (typicalRequest, bool) {
	out := typicalRequest{fit: feasible.NewFeasibility(a.Job, a.Group, t.m), weight: a.Weight, request: frag.Request{Weight: a.Weight}}
	// Meta differs within a family: constraints on it are assumed to be met.
	out.fit.Shared = slices.DeleteFunc(out.fit.Shared, func(c *structs.Constraint) bool { return feasible.IsMeta(c.LTarget) || feasible.IsMeta(c.RTarget) })
	for _, task := range a.Group.Tasks {
		if r := task.Resources; r != nil {
			if r.Cores > 0 {
				out.cores += int64(r.Cores)
			} else {
				out.request.CPU += int64(r.CPU)
			}
			out.request.Memory += int64(r.MemoryMB)
		}
	}
	for i, d := range out.fit.Devices {
		if i == 0 {
			out.want = d
		}
		if d.Kind == out.want.Kind {
			out.request.Count += d.Count
			out.request.Share = d.Share
		}
	}
	if out.request.Count > 1 {
		out.request.Share = world.WholeDevice
	}
	return out, out.request.Count > 0
}

// some reports whether any devices are typically requested.
func (t *Typical) some() bool { return t != nil && len(t.requests) > 0 }

// of returns the typical requests for the devices of a node's family.
func (t *measures) of(n *world.NodeState) *kinds {
	name := family{name: n.Capacity.Family}
	if t.cores {
		name.mhzPerCore = n.Capacity.MHzPerCore
	}
	k, known := t.kinds[name]
	if !known {
		if len(t.kinds) >= maxFamilies {
			clear(t.kinds)
		}
		k = &kinds{}
		t.kinds[name] = k
	}
	return k
}

// find returns the kind of a group of a node's devices.
func (t *measures) find(k *kinds, n *world.NodeState, group *structs.NodeDeviceResource) *kind {
	for _, c := range k.list {
		if c.name == group.Name && c.kind == group.Type && c.vendor == group.Vendor {
			return c
		}
	}
	var requests []frag.Request
	for _, i := range t.usersOf(n.Capacity.Family, n.Node)[groupAt(n.Node, group)].good {
		a := &t.requests[i]
		request := a.request
		request.CPU += a.cores * n.Capacity.MHzPerCore
		request.Scarcity = t.scarcity[i]
		requests = append(requests, request)
	}
	t.made++
	c := &kind{group.Vendor, group.Type, group.Name, idle.KindKey(group.Vendor, group.Type, group.Name), frag.New(requests, t.total), t.made}
	k.list = append(k.list, c)
	return c
}

// groupAt is which of a node's groups of devices one is; the node may be a copy of the one that has it.
func groupAt(n *structs.Node, group *structs.NodeDeviceResource) int {
	if at := slices.Index(n.NodeResources.Devices, group); at >= 0 {
		return at
	}
	return slices.IndexFunc(n.NodeResources.Devices, func(d *structs.NodeDeviceResource) bool {
		return d.Vendor == group.Vendor && d.Type == group.Type && d.Name == group.Name
	})
}

// only returns the kind of a node's devices if they are all of one, and it was found before.
func (k *kinds) only(n *world.NodeState) *kind {
	if n.Pool.Idle.Count == 0 || n.Dirty {
		return nil
	}
	for _, c := range k.list {
		if c.key == n.Pool.Kind {
			return c
		}
	}
	return nil
}

// measured is the ability of one room of one kind.
type measured struct {
	key     roomKey
	ability float64
}

// roomKey is a room as a value.
type roomKey struct {
	kind        uint32 // from 1
	cpu, memory int64
	idle        idle.Devices
}

func (k *roomKey) hash() uint64 {
	const odd = 0x9E3779B97F4A7C15
	h := uint64(k.kind)<<32 | uint64(k.idle.Count)                                                                      // not negative
	for _, w := range [...]uint64{uint64(k.cpu), uint64(k.memory), k.idle.Words[0], k.idle.Words[1], k.idle.Words[2]} { // bits
		hi, lo := bits.Mul64(h^w, odd)
		h = hi ^ lo ^ w
	}
	return h * odd
}

// is compares the fields that differ most first.
func (k *roomKey) is(o *roomKey) bool {
	return k.cpu == o.cpu && k.idle == o.idle && k.memory == o.memory && k.kind == o.kind
}

// ability measures a room, whose devices descend.
func (t *measures) ability(k *kind, r *frag.Room) float64 {
	if k.measure.Empty() || len(r.Idle) == 0 || r.Idle[0] == 0 {
		return 0
	}
	if len(r.Idle) > idle.Words*idle.PerWord {
		return k.measure.Ability(r)
	}
	key := roomKey{kind: k.id, cpu: r.CPU, memory: r.Memory}
	key.idle.Pack(r.Idle)
	if t.memo == nil {
		t.memo = make([]measured, 1<<memoBits)
	}
	at := &t.memo[key.hash()>>(64-memoBits)]
	if !at.key.is(&key) {
		*at = measured{key, k.measure.Ability(r)}
	}
	return at.ability
}
