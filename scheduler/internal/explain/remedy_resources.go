package explain

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/amount"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Requesting fewer resources of those that nodes lack.

// maxShortages bounds the sets of dimensions that are tried.
const maxShortages = 6

// shortage is nodes that lack the same dimensions, all of them measurable.
type shortage struct {
	kinds []string // sorted
	best  shortNode
	share float64
}

// relaxResources tries a smaller request in each dimension that is exhausted.
func (p *remedySearch) relaxResources(sv *survey) {
	var list []*shortage
	var last *shortage
	var kinds []string
	for i := range sv.short {
		n := &sv.short[i]
		share, ok := p.measure(sv, n, &kinds, false)
		if !ok {
			continue
		}
		s := last
		if s == nil || !slices.Equal(s.kinds, kinds) {
			at := slices.IndexFunc(list, func(o *shortage) bool { return slices.Equal(o.kinds, kinds) })
			if s = nil; at >= 0 {
				s, last = list[at], list[at]
			}
		}
		if s != nil && share >= s.share {
			continue // the more so when its devices are checked
		}
		if share, ok = p.measure(sv, n, &kinds, true); !ok {
			continue
		}
		if s == nil {
			s = &shortage{kinds: slices.Clone(kinds), share: 2 * float64(len(kinds))}
			list, last = append(list, s), s
		}
		if share < s.share {
			s.best, s.share = *n, share
		}
	}
	slices.SortStableFunc(list, func(a, b *shortage) int {
		return cmp.Or(cmp.Compare(len(a.kinds), len(b.kinds)), cmp.Compare(a.share, b.share))
	})
	for _, s := range list[:min(len(list), maxShortages)] {
		p.relaxShortage(sv, s)
	}
}

// measure returns of which dimensions a node has too little, if it is only of such that
// can be requested less, and how much of them in all. Of devices it returns that only where it
// is to be exact, which takes a while; else it may return less.
func (p *remedySearch) measure(sv *survey, n *shortNode, into *[]string, exact bool) (share float64, ok bool) {
	kinds := (*into)[:0]
	for i := range n.lacks {
		l := n.lacks[i]
		switch l.kind {
		case structs.ReasonCPU, structs.ReasonMemory, structs.ReasonDisk, structs.ReasonCores, structs.ReasonShare:
		case structs.ReasonDevices, structs.ReasonCell:
			if l.have = int64(min(sv.find.Request.Devices[l.device].Count-1, n.n.FreeDevices())); exact {
				l.have = int64(mostDevices(sv.find, n.n, l.device))
				n.lacks[i].have = l.have
			}
			if l.have == 0 {
				return 0, false
			}
		default:
			return 0, false
		}
		if l.have <= 0 {
			return 0, false
		}
		share += l.share()
		kinds = append(kinds, l.kind)
	}
	slices.Sort(kinds)
	*into = kinds
	for i := 1; i < len(kinds); i++ {
		if kinds[i] == kinds[i-1] {
			return 0, false // which of two to request less of is not known
		}
	}
	return share, true
}

// mostDevices returns how many devices of a node a request could get that gets none now.
func mostDevices(find *search.Search, n *world.NodeState, number int) int {
	want := find.Request.Devices[number]
	// A job may request any number: what the node has not is not tried.
	for want.Count = min(want.Count-1, n.FreeDevices()); want.Count > 0; want.Count-- {
		want.Find.Count = want.Count
		if c := find.Request.Choose(n, &want, n.Cells, find.Fit.Matcher); c.Tree != nil {
			return want.Count
		}
	}
	return 0
}

// cut is a field of the job with less in it.
type cut struct {
	path     string
	was, now int
	set      func(g *structs.TaskGroup, n int)
	text     string
}

func (p *remedySearch) alter(cuts []cut) alteration {
	return alteration{job: func(j *structs.Job) {
		for _, c := range cuts {
			c.set(p.copied(j), c.now)
		}
	}}
}

// relaxShortage requests as much as the node has that lacks least; if that does not place all,
// for less of the one dimension, if it is one.
func (p *remedySearch) relaxShortage(sv *survey, s *shortage) {
	cuts, ok := p.cuts(sv, s)
	if !ok {
		return
	}
	queued, ok := p.try(p.alter(cuts))
	if !ok {
		return
	}
	if queued > 0 && len(s.kinds) == 1 && len(cuts) == 1 {
		if all, ok := p.cutForAll(sv, cuts[0]); ok {
			p.note(0, p.cutRemedy([]cut{all}))
			return
		}
	}
	p.note(queued, p.cutRemedy(cuts))
}

// cutForAll returns the most that can be requested so that all are placed.
func (p *remedySearch) cutForAll(sv *survey, c cut) (cut, bool) {
	places := func(n int) bool {
		c.now = n
		queued, ok := p.try(p.alter([]cut{c}))
		return ok && queued == 0
	}
	least := p.leastOf(c)
	if least >= c.now {
		return c, false
	}
	// What cannot be for want of room on all nodes together is not tried.
	free := p.freeOfAll(sv)
	most := least - 1 + sort.Search(c.now-least+1, func(i int) bool { return !p.mayPlace(free, c, least+i) })
	if most < least {
		return c, false
	}
	if places(most) {
		c.now = most
		return c, true
	}
	if most == least || !places(least) {
		return c, false
	}
	c.now = least + sort.Search(most-least-1, func(i int) bool { return !places(least + i + 1) })
	return c, true
}

// freeOfAll is what each node that nothing refuses has free, before the decision; nil where
// that does not bound what may be placed: others may be preempted, or instances of the job are
// there, which may be replaced.
func (p *remedySearch) freeOfAll(sv *survey) []amount.Amount {
	if p.x.in.Config.Preempts(p.x.in.Job.Type) || len(p.x.in.Allocs) > 0 {
		return nil
	}
	taken := map[string]bool{} // the decision has placed some there
	for _, b := range p.x.plan.Place {
		for _, n := range b.Nodes {
			taken[n.ID] = true
		}
	}
	out := make([]amount.Amount, 0, len(sv.short)+len(sv.fitting))
	add := func(n *world.NodeState) {
		if taken[n.ID] {
			n, _ = world.NodeStates(p.x.w).Get(n.ID)
		}
		out = append(out, amount.Free(n))
	}
	for i := range sv.short {
		add(sv.short[i].n)
	}
	for _, n := range sv.fitting {
		add(n)
	}
	return out
}

// mayPlace reports whether nodes that have so much free may have room for all that is missing if a
// field stated n. It is wrong in one direction only; of no nodes it knows nothing.
func (p *remedySearch) mayPlace(free []amount.Amount, c cut, n int) bool {
	g := p.g.Copy()
	c.set(g, n)
	request, left := amount.OfRequest(search.NewRequest(p.x.s.Input, g)), int64(p.x.missing[p.g.Name])
	for i := 0; i < len(free) && left > 0; i++ {
		left -= free[i].Fits(request)
	}
	return left <= 0 || free == nil
}

// leastOf is the least that may be stated in a field.
func (p *remedySearch) leastOf(c cut) int {
	if strings.HasSuffix(c.path, "/MemoryMB") {
		return leastMemory
	}
	return 1
}

// leastMemory is the least memory of a task, in MiB.
const leastMemory = 10

func (p *remedySearch) cutRemedy(cuts []cut) structs.Remedy {
	r := structs.Remedy{Kind: structs.RemedyResources}
	var parts []string
	for _, c := range cuts {
		r.Edits = append(r.Edits, p.jobEdit(c.path, c.was, c.now))
		r.Size += float64(c.was-c.now) / float64(max(1, c.was))
		parts = append(parts, fmt.Sprintf("%s %d instead of %d", c.text, c.now, c.was))
	}
	r.Text = "request less: " + strings.Join(parts, ", ")
	return r
}

// cuts returns the fields to change so that a node's shortage is met; false: they cannot be cut so
// far.
func (p *remedySearch) cuts(sv *survey, s *shortage) (out []cut, ok bool) {
	for i := range s.best.lacks {
		l := &s.best.lacks[i]
		var more []cut
		switch l.kind {
		case structs.ReasonCPU:
			if slices.Contains(s.kinds, structs.ReasonCores) {
				continue // with fewer cores it needs less
			}
			more = p.cutCPU(l, s.best.n)
		case structs.ReasonMemory:
			more = p.cutTasks(l.need-l.have, "memory", "MemoryMB", leastMemory, func(r *structs.Resources) *int { return &r.MemoryMB })
		case structs.ReasonDisk:
			more = p.cutDisk(l)
		case structs.ReasonCores:
			more = p.cutTasks(l.need-l.have, "cores", "Cores", 1, func(r *structs.Resources) *int { return &r.Cores })
		case structs.ReasonDevices, structs.ReasonCell, structs.ReasonShare:
			more = p.cutDevice(sv, l)
		}
		if more == nil {
			return nil, false
		}
		out = append(out, more...)
	}
	return out, len(out) > 0
}

// cutCPU requests fewer MHz, or fewer cores where whole cores are requested.
func (p *remedySearch) cutCPU(l *lack, n *world.NodeState) []cut {
	by := l.need - l.have
	if cuts := p.cutTasks(by, "cpu", "CPU", 1, func(r *structs.Resources) *int {
		if r.Cores > 0 {
			return new(int)
		}
		return &r.CPU
	}); cuts != nil {
		return cuts
	}
	if mhz := n.Capacity.MHzPerCore; mhz > 0 {
		return p.cutTasks((by+mhz-1)/mhz, "cores", "Cores", 1, func(r *structs.Resources) *int { return &r.Cores })
	}
	return nil
}

// cutTasks takes an amount from the tasks that request most; nil: they request too little.
func (p *remedySearch) cutTasks(by int64, noun, field string, least int, of func(*structs.Resources) *int) (out []cut) {
	order := make([]int, 0, len(p.g.Tasks))
	for i, t := range p.g.Tasks {
		if t.Resources != nil {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(*of(p.g.Tasks[b].Resources), *of(p.g.Tasks[a].Resources))
	})
	for _, i := range order {
		t := p.g.Tasks[i]
		was := *of(t.Resources)
		take := min(int(by), was-least)
		if by <= 0 || take <= 0 {
			continue
		}
		by -= int64(take)
		out = append(out, cut{
			path: p.taskPath(i) + "/Resources/" + field, was: was, now: was - take, text: fmt.Sprintf("%s of task %q", noun, t.Name),
			set: func(g *structs.TaskGroup, n int) { *of(g.Tasks[i].Resources) = n },
		})
	}
	if by > 0 {
		return nil
	}
	return out
}

func (p *remedySearch) cutDisk(l *lack) []cut {
	if p.g.EphemeralDisk == nil || l.have < 1 {
		return nil
	}
	return []cut{{
		path: p.groupPath() + "/EphemeralDisk/SizeMB", was: p.g.EphemeralDisk.SizeMB, now: int(l.have), text: "ephemeral disk",
		set: func(g *structs.TaskGroup, n int) { g.EphemeralDisk.SizeMB = n },
	}}
}

// cutDevice requests fewer devices of a kind, or for a smaller share.
func (p *remedySearch) cutDevice(sv *survey, l *lack) []cut {
	at, ok := p.device(sv, l.device)
	if !ok {
		return nil
	}
	d := at.of(p.g)
	if l.kind == structs.ReasonShare {
		return []cut{{
			path: at.path(p) + "/Share", was: d.Share, now: int(l.have), text: "share of " + d.Name,
			set: func(g *structs.TaskGroup, n int) { at.of(g).Share = n },
		}}
	}
	return []cut{{
		path: at.path(p) + "/Count", was: max(1, d.Count), now: int(l.have), text: "count of " + d.Name,
		set: func(g *structs.TaskGroup, n int) { at.of(g).Count = n },
	}}
}

// devicePath is where the job requests a device.
type devicePath struct{ task, device int }

func (at devicePath) of(g *structs.TaskGroup) *structs.RequestedDevice {
	return g.Tasks[at.task].Resources.Devices[at.device]
}

func (at devicePath) path(p *remedySearch) string {
	return fmt.Sprintf("%s/Resources/Devices/%d", p.taskPath(at.task), at.device)
}

// device returns where the job has a request's n-th device request.
func (p *remedySearch) device(sv *survey, n int) (devicePath, bool) {
	req := sv.find.Request.Devices[n].Request
	for i, t := range p.g.Tasks {
		if t.Resources == nil {
			continue
		}
		if k := slices.Index(t.Resources.Devices, req); k >= 0 {
			return devicePath{i, k}, true
		}
	}
	return devicePath{}, false
}
