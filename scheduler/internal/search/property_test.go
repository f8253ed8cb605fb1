package search

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/random"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// hunter finds nodes for instances one by one, and compares what a search finds with
// a dumb look at every node.
type hunter struct {
	t       *rapid.T
	w       *world.World
	config  structs.SchedulerConfiguration
	seed    uint64
	typical *Typical

	census *feasible.Census
	search *Search
	placed int
	// strict: nothing was avoided, nor found beside the cursors, so that the order
	// of the policy holds.
	strict bool
	last   string // the node taken last
	taken  map[string]bool
	policy string // of the jobs; "": any
}

// startOfHunt is the time at which everything is decided.
var startOfHunt = time.Unix(1_700_000_000, 0).UTC()

func newHunter(t *rapid.T) *hunter {
	return &hunter{t: t, w: world.New(), config: structs.DefaultSchedulerConfiguration(), seed: 1}
}

// begin begins the search for the first group of a job that has no allocations yet.
func (h *hunter) begin(j *structs.Job) {
	in := Input{Job: j, Config: h.config, Now: startOfHunt, Seed: h.seed, Typical: h.typical}
	h.census = &feasible.Census{World: h.w}
	fit := feasible.NewFeasibility(j, schedtest.Group(j), feasible.NewMatcher())
	h.search = ForGroup(&in, schedtest.Group(j), h.w.Edit(), fit, &random.Numbers{State: h.seed}, h.census, nil)
}

// fitting is all nodes that fit now.
func (h *hunter) fitting() (out []Found) {
	for id := range world.NodeStates(world.Base(h.search.Edit)).All {
		if f, ok := h.search.on(id); ok {
			f.entry = bucket.Entry[*world.NodeState]{ID: id, At: f.Node.Vector(), Value: f.Node}
			out = append(out, f)
		}
	}
	return out
}

// hunt places one instance, if any node fits.
func (h *hunter) hunt(avoid []string) bool {
	s := h.search
	all := h.fitting()
	f := s.Next(avoid)
	if f == nil {
		if len(all) > 0 {
			h.t.Fatalf("instance %d finds no node, but %s fits (cell %d)", h.placed, all[0].Node.ID, all[0].Grant.cell)
		}
		return false
	}
	at := slices.IndexFunc(all, func(o Found) bool { return o.Node.ID == f.Node.ID })
	if at < 0 {
		h.t.Fatalf("instance %d goes to %s, which does not fit", h.placed, f.Node.ID)
	}
	if want := all[at].Grant.Usage; !slices.Equal(f.Grant.Usage.Devices, want.Devices) || !slices.Equal(f.Grant.Usage.Cores, want.Cores) {
		h.t.Fatalf("instance %d is granted what was free before: %v, now %v", h.placed, f.Grant.Usage, all[at].Grant.Usage)
	}
	if slices.Contains(avoid, f.Node.ID) {
		for _, o := range all {
			if !slices.Contains(avoid, o.Node.ID) {
				h.t.Fatalf("instance %d goes to %s, which it avoids, though %s fits", h.placed, f.Node.ID, o.Node.ID)
			}
		}
	}
	own := f.Node.Reservation != nil && f.Node.Reservation.RequestName == s.Request.By.RequestName
	foreign := f.Node.Reservation != nil && !own
	if !own {
		for _, o := range all {
			if o.Node.Reservation != nil && o.Node.Reservation.RequestName == s.Request.By.RequestName && !slices.Contains(avoid, o.Node.ID) && s.Candidates == nil {
				h.t.Fatalf("instance %d goes to %s, though %s is reserved for it", h.placed, f.Node.ID, o.Node.ID)
			}
		}
	}
	h.strict = h.strict && len(avoid) == 0 && !own && !foreign
	if h.strict && s.Scorer == nil {
		h.order(*f, all[at], all)
	}
	if own {
		s.Edit.Unreserve(f.Node.ID)
	}
	s.Take(f)
	h.census.Move(s.Fit.Group.Name, f.Node.ID, 1)
	h.last, h.taken[f.Node.ID] = f.Node.ID, true
	h.placed++
	return true
}

// order checks that the node taken is the first in the policy's order.
func (h *hunter) order(f, got Found, all []Found) {
	s := h.search
	unreserved := slices.DeleteFunc(slices.Clone(all), func(o Found) bool { return o.Node.Reservation != nil })
	power := true // cells of sizes between powers of two are looked for on a few nodes only
	for i := range s.Request.Devices {
		power = power && bits.OnesCount(uint(s.Request.Devices[i].Whole())) <= 1
	}
	for _, o := range unreserved {
		first := false
		switch {
		case o.Node.ID == got.Node.ID:
		case s.Policy == PolicyFirstFit:
			first = o.Node.ID < got.Node.ID
		case s.Policy == PolicyNextFit && s.Candidates == nil:
			first = h.after(o.Node.ID) < h.after(got.Node.ID)
		case s.Policy == PolicySpread: // what was taken may come again when the others of as much room have come
			first = !h.taken[o.Node.ID] && s.before(o, got)
		case s.frag != nil:
			a, b := s.weighOne(o), s.weighOne(got)
			first = s.compareWeighed(&a, &b) < 0
		case s.Policy == PolicyBinpack && len(s.Request.Devices) == 0:
			first = s.before(o, got)
		case s.Policy == PolicyBinpack && power && !mixed(o.Node): // the index shows cells of any models
			first = o.Grant.cell < got.Grant.cell
		}
		if first {
			h.t.Fatalf("%s: instance %d goes to %s (cell %d, %v), not to %s (cell %d, %v)", s.Policy, h.placed,
				f.Node.ID, got.Grant.cell, got.entry.At, o.Node.ID, o.Grant.cell, o.entry.At)
		}
	}
}

// mixed reports whether a node has devices of several models in one tree.
func mixed(n *world.NodeState) bool {
	return slices.ContainsFunc(n.Capacity.Trees, func(t *world.DeviceTree) bool { return !t.Single })
}

// after orders nodes as next-fit does: those after the last one first, it itself last
// but for its being offered again.
func (h *hunter) after(id string) string {
	if h.last == "" || id > h.last {
		return "0" + id
	}
	return "1" + id
}

// A search finds a node whenever one fits, the first in the policy's order, whatever
// it has gone past.
func TestSearchAgainstEveryNode(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHunter(rt)
		h.seed = rapid.Uint64().Draw(rt, "seed")
		ids := []string{"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"}[:rapid.IntRange(1, 8).Draw(rt, "nodes")]
		e := h.w.Edit()
		for _, id := range ids {
			e.UpsertNode(schedtest.DrawNode(rt, id))
		}
		if rapid.Bool().Draw(rt, "granular") {
			h.config.Granularity = map[string]int64{"cpu": int64(rapid.IntRange(1, 2000).Draw(rt, "granularity"))}
		}
		e.Configure(&h.config)
		h.w = e.World()
		for i := range rapid.IntRange(1, 3).Draw(rt, "jobs") {
			h.job(ids, i)
		}
	})
}

// job places a job's instances until none fits.
func (h *hunter) job(ids []string, i int) {
	rt := h.t
	j := schedtest.DrawJob(rt)
	j.ID, j.Type = fmt.Sprint("job", i), structs.JobTypeService
	if rapid.IntRange(0, 3).Draw(rt, "prefers an order") == 0 {
		j.Prefer = rapid.SampledFrom([][]string{{"memory", "cpu"}, {"cpu"}, {"memory", "gpus"}}).Draw(rt, "order")
	}
	if h.policy != "" {
		j.Policy = h.policy
	}
	if rapid.IntRange(0, 5).Draw(rt, "candidates") == 0 {
		schedtest.Group(j).Candidates = []string{rapid.SampledFrom(ids).Draw(rt, "candidate"), "name-" + rapid.SampledFrom(ids).Draw(rt, "another")}
	}
	if rapid.IntRange(0, 4).Draw(rt, "racks") == 0 {
		schedtest.Group(j).Constraints = append(schedtest.Group(j).Constraints, &structs.Constraint{
			Operand: structs.ConstraintDistinctProperty, LTarget: "${meta.rack}", RTarget: "2",
		})
	}
	e := h.w.Edit()
	if rapid.IntRange(0, 2).Draw(rt, "reservations") == 0 {
		for range rapid.IntRange(1, 3).Draw(rt, "how many") {
			e.Reserve(&structs.Reservation{
				NodeID: rapid.SampledFrom(ids).Draw(rt, "reserved"), Namespace: j.Namespace, JobID: rapid.SampledFrom([]string{j.ID, "other"}).Draw(rt, "by"),
				Group: "g", CPU: int64(rapid.IntRange(0, 3000).Draw(rt, "reserved cpu")), Devices: rapid.IntRange(0, 4).Draw(rt, "reserved GPUs"),
				Cores: rapid.IntRange(0, 4).Draw(rt, "reserved cores"), DueAt: startOfHunt.UnixNano(),
			})
		}
	}
	h.w = e.World()
	h.begin(j)
	h.placed, h.last, h.strict, h.taken = 0, "", true, map[string]bool{}
	avoids := rapid.IntRange(0, 2).Draw(rt, "avoids") == 0
	for h.placed < 40 {
		var avoid []string
		if avoids && rapid.Bool().Draw(rt, "avoid") {
			avoid = rapid.SliceOfN(rapid.SampledFrom(ids), 1, 3).Draw(rt, "nodes to avoid")
		}
		if rapid.IntRange(0, 9).Draw(rt, "flush") == 0 {
			world.Flush(h.search.Edit)
		}
		if !h.hunt(avoid) {
			break
		}
	}
	h.w = h.search.Edit.World()
}
