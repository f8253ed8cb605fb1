package metric

import (
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// reservedNamed bounds the workflows that an explanation names as those who have what is lacking: others are counted together.
const reservedNamed = 8

// reservedBy is what names a workflow in a reason, that of a license included.
const reservedBy = "reserved by workflow "

// NamesGone reports whether a reason names a workflow that has no reservation any more as who has reserved what is lacking.
func NamesGone(m *structs.AllocMetric, w *world.World) bool {
	for text := range m.DimensionExhausted { // order does not matter: any will do
		for _, rest := range strings.Split(text, reservedBy)[1:] {
			if key, _, _ := strings.Cut(rest, ","); w.Workflow(key) == nil {
				return true
			}
		}
	}
	return false
}

// Current returns reasons that were counted before as they can be now: a node counts as one on which a workflow has reserved what is lacking only while the
// workflow has some of that idle. idle returns on how many nodes the workflow of a key has some idle of what a reason names, such as "cores". The metric itself stays
// as it is.
func Current(m *structs.AllocMetric, idle func(key, what string) int) *structs.AllocMetric {
	if m == nil {
		return nil
	}
	now := maps.Clone(m.DimensionExhausted)
	for _, text := range slices.Sorted(maps.Keys(m.DimensionExhausted)) {
		what, key, is := strings.Cut(text, ": "+reservedBy)
		over := m.DimensionExhausted[text]
		if is {
			over -= idle(key, what)
		}
		if !is || over <= 0 {
			continue
		}
		if now[text] -= over; now[text] == 0 {
			delete(now, text)
		}
		now[what] += over
	}
	c := *m
	c.DimensionExhausted = now
	return &c
}

// IdleOn returns on how many nodes a workflow has something idle, of what it has reserved or keeps, of what a reason names; of what is no resource, of anything.
func IdleOn(w *world.World, key, what string) (nodes int) {
	c := w.Workflow(key)
	if c == nil {
		return 0
	}
	seen := map[string]bool{} // looked up only
	for _, part := range slices.Concat(c.Parts, c.KeptParts()) {
		n, known := w.State(part.NodeID)
		if !known || seen[part.NodeID] {
			continue
		}
		seen[part.NodeID] = true
		if slices.ContainsFunc(n.Parts(), func(p world.Part) bool { return p.Workflow == key && idles(&p.Idle, what) }) {
			nodes++
		}
	}
	return nodes
}

// idles reports whether there is some of what a reason names.
func idles(r *world.Resources, what string) bool {
	switch what {
	case world.LacksCPU:
		return r.Amount.CPU > 0
	case world.LacksMemory:
		return r.Amount.MemoryMB > 0
	case world.LacksDisk:
		return r.Amount.DiskMB > 0
	case world.LacksCores:
		return r.Cores > 0
	case world.LacksDevices:
		return r.Devices > 0
	}
	return *r != world.Resources{}
}

// withOwner returns what a node lacks, with who has reserved it where the node would have enough if nobody had: "cores: reserved by workflow default/chip".
func (x Explanation) withOwner(a *search.Request, n *world.NodeState, what string) string {
	workflow := n.ReservedBy(&a.By)
	if workflow == "" && n.Reservation.Free(&a.By) || n.Capacity == nil {
		return what
	}
	cores, devices := a.Need[world.DimCores], a.Need[world.DimGPUs]
	need, free := a.Amount, n.Free()
	need.CPU += cores * n.Capacity.MHzPerCore
	if need.CPU > free.CPU || need.MemoryMB > free.MemoryMB || need.DiskMB > free.DiskMB || cores > int64(n.FreeCores()) || devices > int64(n.FreeDevices()) {
		return what
	}
	switch what {
	case world.LacksCPU:
		if cores > 0 {
			what = world.LacksCores
		}
	case world.LacksMemory, world.LacksDisk, world.LacksCores, world.LacksDevices:
	case world.LacksReserved: // of cores or devices
		if what = world.LacksDevices; cores > 0 && int64(n.FreeCores()-n.Withheld(&a.By).Cores) < cores {
			what = world.LacksCores
		}
	default:
		return what
	}
	if workflow == "" {
		return what + ": " + world.LacksReserved
	}
	text := what + ": " + reservedBy + workflow
	if _, named := x.DimensionExhausted[text]; !named && len(x.DimensionExhausted) >= reservedNamed {
		return what + ": reserved by other workflows"
	}
	return text
}

// reserved counts the nodes of a set of which workflows have reserved what the tests find lacking, and takes them out of the tests' counts: the index shows
// what is left of nodes, and not for whom the rest is.
func (x Explanation) reserved(s *search.Search, of string, tests []bucket.Test, lacking []string, counts []int) {
	w := world.Base(s.Edit)
	seen := map[string]bool{} // looked up only
	for _, claim := range world.Workflows(w).All {
		for _, p := range slices.Concat(claim.Parts, claim.KeptParts()) {
			n, known := world.NodeStates(w).Get(p.NodeID)
			if !known || seen[p.NodeID] || s.SetOf(n) != of {
				continue
			}
			seen[p.NodeID] = true
			if _, request := world.Reservations(w).Get(p.NodeID); request { // it was looked at
				continue
			}
			k := slices.IndexFunc(tests, func(t bucket.Test) bool { return !t.Met(&n.Indexed.At) })
			if k < 0 {
				continue
			}
			if what := x.withOwner(s.Request, n, lacking[k]); what != lacking[k] {
				counts[k]--
				x.Exhausted(n.Node, what, 1)
			}
		}
	}
}
