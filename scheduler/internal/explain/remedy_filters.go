package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Wanting less: another level or port, fewer constraints; and nodes that are otherwise.

// maxFilterSets bounds the sets of reasons that are tried.
const maxFilterSets = 16

// relaxTopology tries a wider cell, or none: of an instance's devices, and of the gang.
func (p *remedySearch) relaxTopology(sv *survey) {
	seen := map[int]bool{}
	for i := range sv.short {
		for _, l := range sv.short[i].lacks {
			if l.kind == structs.ReasonCell && !seen[l.device] {
				seen[l.device] = true
				p.deviceTopology(sv, sv.short[i].n, l.device)
			}
		}
	}
	if t := p.g.Topology; t != nil && t.Required && p.x.works[p.g.Name].Gang != nil {
		levels := p.x.in.Config.SiteLevels()
		names := make([]string, len(levels))
		for i, l := range levels {
			names[i] = l.Name
		}
		p.widen(t, names, p.groupPath()+"/Topology", "its gang", func(g *structs.TaskGroup) *structs.TopologyConstraint { return g.Topology })
	}
}

func (p *remedySearch) deviceTopology(sv *survey, n *world.NodeState, number int) {
	at, ok := p.device(sv, number)
	if !ok {
		return
	}
	d := at.of(p.g)
	if d.Topology == nil {
		return
	}
	var levels []string
	for _, t := range n.Capacity.Trees {
		if own := t.Layout.Levels(); slices.Contains(own, d.Topology.Level) {
			levels = own
		}
	}
	p.widen(d.Topology, levels, at.path(p)+"/Topology", d.Name, func(g *structs.TaskGroup) *structs.TopologyConstraint {
		t := *at.of(g).Topology // a copy of a job shares it
		at.of(g).Topology = &t
		return &t
	})
}

// widen tries the levels above the requested one, then no required level.
func (p *remedySearch) widen(t *structs.TopologyConstraint, levels []string, path, of string, find func(*structs.TaskGroup) *structs.TopologyConstraint) {
	at := slices.Index(levels, t.Level)
	for i, level := range levels[at+1:] {
		if at < 0 {
			break
		}
		if p.check(alteration{job: func(j *structs.Job) { find(p.copied(j)).Level = level }}, structs.Remedy{
			Kind: structs.RemedyTopology, Size: 0.03 * float64(i+1),
			Text:  fmt.Sprintf("require level %s instead of %s for %s", level, t.Level, of),
			Edits: []structs.Edit{p.jobEdit(path+"/Level", t.Level, level)},
		}) {
			break
		}
	}
	p.check(alteration{job: func(j *structs.Job) { find(p.copied(j)).Required = false }}, structs.Remedy{
		Kind: structs.RemedyTopology, Size: 0.15,
		Text:  fmt.Sprintf("prefer level %s for %s, but do not require it", t.Level, of),
		Edits: []structs.Edit{p.jobEdit(path+"/Required", true, false)},
	})
}

// portPath is where the job requests a static port.
type portPath struct {
	path string
	port *structs.Port
	of   func(g *structs.TaskGroup) *structs.Port
}

func (p *remedySearch) staticPorts() (out []portPath) {
	add := func(path string, list []*structs.NetworkResource, of func(*structs.TaskGroup) []*structs.NetworkResource) {
		for i, n := range list {
			for k := range n.ReservedPorts {
				out = append(out, portPath{
					path: fmt.Sprintf("%s/Networks/%d/ReservedPorts/%d/Value", path, i, k), port: &n.ReservedPorts[k],
					of: func(g *structs.TaskGroup) *structs.Port { return &of(g)[i].ReservedPorts[k] },
				})
			}
		}
	}
	add(p.groupPath(), p.g.Networks, func(g *structs.TaskGroup) []*structs.NetworkResource { return g.Networks })
	for i, t := range p.g.Tasks {
		if t.Resources != nil {
			add(p.taskPath(i)+"/Resources", t.Resources.Networks, func(g *structs.TaskGroup) []*structs.NetworkResource {
				return g.Tasks[i].Resources.Networks
			})
		}
	}
	return out
}

// portsAhead bounds how far a free port is looked for.
const portsAhead = 64

// relaxPorts tries another static port, the next one that is free on enough nodes.
func (p *remedySearch) relaxPorts(sv *survey) {
	places := p.staticPorts()
	for _, at := range places {
		lacking := reason{structs.ReasonPort, strconv.Itoa(at.port.Value)}
		var nodes []*world.NodeState
		for i := range sv.short {
			if l := sv.short[i].lacks; len(l) == 1 && l[0].reason == lacking {
				nodes = append(nodes, sv.short[i].n)
			}
		}
		port := nextPort(nodes, at.port, places, p.before)
		if port == 0 {
			continue
		}
		p.check(alteration{job: func(j *structs.Job) { at.of(p.copied(j)).Value = port }}, structs.Remedy{
			Kind: structs.RemedyPort, Size: 0.05, Edits: []structs.Edit{p.jobEdit(at.path, at.port.Value, port)},
			Text: fmt.Sprintf("take static port %d instead of %d (%q)", port, at.port.Value, at.port.Label),
		})
	}
}

// nextPort finds a port free on as many nodes as are needed, or else on most.
func nextPort(nodes []*world.NodeState, p *structs.Port, others []portPath, enough int) (best int) {
	most := 0
	for port := p.Value + 1; port <= min(p.Value+portsAhead, 65535); port++ {
		if slices.ContainsFunc(others, func(o portPath) bool { return o.port.Value == port }) {
			continue
		}
		free := 0
		for _, n := range nodes {
			_, fallback := search.DefaultAddress(n.Node)
			if ip, ok := search.PortAddress(n.Node, p.HostNetwork, fallback); ok && !n.PortTaken(world.HostPort{Port: port, IP: ip}) {
				free++
			}
		}
		if free > most {
			best, most = port, free
		}
		if most >= enough {
			break
		}
	}
	return best
}

// relaxFilters lets go of what refuses nodes that would take an instance otherwise: those sets of
// reasons first that are small.
func (p *remedySearch) relaxFilters(sv *survey) {
	var sets []*refusedSet
	for _, s := range sv.sets {
		if len(s.fit) > 0 {
			sets = append(sets, s)
		}
	}
	slices.SortStableFunc(sets, func(a, b *refusedSet) int {
		return cmp.Or(cmp.Compare(a.changes(), b.changes()), cmp.Compare(b.nodes, a.nodes))
	})
	for _, s := range sets[:min(len(sets), maxFilterSets)] {
		p.relaxFilterSet(sv, s)
	}
}

func (s *refusedSet) changes() int {
	if s.pool != "" {
		return len(s.reasons) + 1
	}
	return len(s.reasons)
}

// filterRelaxation is what lets the nodes of a set in.
type filterRelaxation struct {
	p     *remedySearch
	set   *refusedSet
	size  float64
	texts []string
	edits []structs.Edit
	job   []func(*structs.Job)
	// meant are the constraints that go.
	meant []func(prefix string, c *structs.Constraint) bool
	// ofNodes: it changes single nodes, or names them.
	ofNodes []reason
}

func (p *remedySearch) relaxFilterSet(sv *survey, s *refusedSet) {
	d := &filterRelaxation{p: p, set: s}
	if s.pool != "" {
		d.add(0.6, fmt.Sprintf("let the job run in node pool %q", s.pool), p.jobEdit("/NodePool", p.x.in.Job.NodePool, s.pool),
			func(j *structs.Job) { j.NodePool = s.pool })
	}
	for _, r := range s.reasons {
		if r.kind == structs.ReasonDriver && !sv.knows(r.subject) {
			return // nobody could follow that
		}
		if !d.reason(r) {
			return
		}
	}
	d.removeConstraints()
	if len(d.ofNodes) == 0 {
		p.check(d.alteration(0), d.remedy(0))
		return
	}
	// As few nodes as will do.
	most := min(len(s.fit), p.before)
	queued, ok := p.try(d.alteration(most))
	if !ok || queued >= p.before {
		return
	}
	p.note(queued, d.remedy(p.fewest(most, queued, d.alteration)))
}

func (d *filterRelaxation) add(size float64, text string, edit structs.Edit, job func(*structs.Job)) bool {
	d.size += size
	d.texts, d.edits = append(d.texts, text), append(d.edits, edit)
	if job != nil {
		d.job = append(d.job, job)
	}
	return true
}

// reason adds what lets go of one reason; false: nothing can.
func (d *filterRelaxation) reason(r reason) bool {
	p := d.p
	switch r.kind {
	case structs.ReasonDown, structs.ReasonDisconnected, structs.ReasonNotReady, structs.ReasonDraining, structs.ReasonIneligible,
		structs.ReasonDiskFull, structs.ReasonDriver, structs.ReasonVolume, structs.ReasonCandidates:
		d.ofNodes = append(d.ofNodes, r)
		d.size += nodeSizes[r.kind]
		return true
	case structs.ReasonDatacenter:
		return d.add(0.3, fmt.Sprintf("let the job run in datacenter %q", r.subject), structs.Edit{
			On: structs.EditJob, ID: p.x.in.Job.ID, Op: structs.EditAdd, Path: "/Datacenters/-", Value: raw(r.subject),
		}, func(j *structs.Job) { j.Datacenters = append(slices.Clone(j.Datacenters), r.subject) })
	case structs.ReasonConstraint:
		return d.constraints("constraint "+r.subject, 0.5, func(path string, c *structs.Constraint) bool {
			return !strings.HasPrefix(c.Operand, "distinct_") && path+feasible.ConstraintText(c) == r.subject
		})
	case structs.ReasonDistinctHosts:
		return d.constraints("distinct_hosts", 0.4, func(_ string, c *structs.Constraint) bool {
			return c.Operand == structs.ConstraintDistinctHosts
		})
	case structs.ReasonDistinctValues:
		return d.constraints(r.subject, 0.4, func(_ string, c *structs.Constraint) bool {
			return c.Operand == structs.ConstraintDistinctProperty && structs.ConstraintDistinctProperty+": "+c.LTarget == r.subject
		})
	case structs.ReasonDeviceKind:
		return d.otherModel(r.subject)
	}
	return false
}

// nodeSizes is how much it is to have nodes otherwise.
var nodeSizes = map[string]float64{
	structs.ReasonDown: 0.6, structs.ReasonDisconnected: 0.6, structs.ReasonNotReady: 0.6, structs.ReasonDraining: 0.4,
	structs.ReasonIneligible: 0.35, structs.ReasonDiskFull: 0.5, structs.ReasonDriver: 0.7, structs.ReasonVolume: 0.7, structs.ReasonCandidates: 0.1,
}

// constraints has those go that are meant; false: there is none.
func (d *filterRelaxation) constraints(noun string, size float64, meant func(prefix string, c *structs.Constraint) bool) bool {
	some := false
	d.p.constraintLists(func(_, prefix string, list []*structs.Constraint, _ func(*structs.Job) *[]*structs.Constraint) {
		some = some || slices.ContainsFunc(list, func(c *structs.Constraint) bool { return meant(prefix, c) })
	})
	if some {
		d.size += size
		d.texts = append(d.texts, "drop "+noun)
		d.meant = append(d.meant, meant)
	}
	return some
}

// removeConstraints removes them, wherever in the job they stand.
func (d *filterRelaxation) removeConstraints() {
	if len(d.meant) == 0 {
		return
	}
	d.p.constraintLists(func(path, prefix string, list []*structs.Constraint, of func(*structs.Job) *[]*structs.Constraint) {
		goes := func(c *structs.Constraint) bool {
			return slices.ContainsFunc(d.meant, func(meant func(string, *structs.Constraint) bool) bool { return meant(prefix, c) })
		}
		for i, c := range slices.Backward(list) { // from the end: each removal leaves the others in their places
			if goes(c) {
				d.edits = append(d.edits, structs.Edit{
					On: structs.EditJob, ID: d.p.x.in.Job.ID, Op: structs.EditRemove, Path: fmt.Sprintf("%s/%d", path, i), Was: raw(c),
				})
			}
		}
		d.job = append(d.job, func(j *structs.Job) { *of(j) = slices.DeleteFunc(slices.Clone(*of(j)), goes) })
	})
}

// constraintLists visits the job's constraints, the group's, and those of its tasks and
// their devices, with the paths where they stand.
func (p *remedySearch) constraintLists(visit func(path, prefix string, list []*structs.Constraint, of func(*structs.Job) *[]*structs.Constraint)) {
	visit("/Constraints", "", p.x.in.Job.Constraints, func(j *structs.Job) *[]*structs.Constraint { return &j.Constraints })
	visit(p.groupPath()+"/Constraints", "", p.g.Constraints, func(j *structs.Job) *[]*structs.Constraint { return &p.copied(j).Constraints })
	for i, t := range p.g.Tasks {
		visit(p.taskPath(i)+"/Constraints", "", t.Constraints, func(j *structs.Job) *[]*structs.Constraint { return &p.copied(j).Tasks[i].Constraints })
		if t.Resources == nil {
			continue
		}
		for k, dev := range t.Resources.Devices {
			at := devicePath{i, k}
			visit(at.path(p)+"/Constraints", devicePrefix+dev.Name+": ", dev.Constraints, func(j *structs.Job) *[]*structs.Constraint {
				return &at.of(p.copied(j)).Constraints
			})
		}
	}
}

// otherModel tries a device request without its model.
func (d *filterRelaxation) otherModel(name string) bool {
	parts := strings.SplitN(name, "/", 3)
	if len(parts) < 3 {
		return false
	}
	wide, some := parts[0]+"/"+parts[1], false
	for i, t := range d.p.g.Tasks {
		if t.Resources == nil {
			continue
		}
		for k, dev := range t.Resources.Devices {
			at := devicePath{i, k}
			if dev.Name == name {
				some = true
				d.edits = append(d.edits, d.p.jobEdit(at.path(d.p)+"/Name", name, wide))
				d.job = append(d.job, func(j *structs.Job) { at.of(d.p.copied(j)).Name = wide })
			}
		}
	}
	d.size += 0.3
	d.texts = append(d.texts, fmt.Sprintf("request any %s, not only %s", wide, name))
	return some
}

// alteration is the change with n of the nodes otherwise.
func (d *filterRelaxation) alteration(n int) alteration {
	alt := alteration{job: func(j *structs.Job) {
		for _, f := range d.job {
			f(j)
		}
		if d.has(structs.ReasonCandidates) {
			g := d.p.copied(j)
			g.Candidates = slices.Clone(g.Candidates)
			for _, s := range d.set.fit[:n] {
				g.Candidates = append(g.Candidates, s.ID)
			}
		}
	}}
	if len(d.job) == 0 && !d.has(structs.ReasonCandidates) {
		alt.job = nil
	}
	if n > 0 {
		alt.world = func(e *world.Edit) {
			for _, s := range d.set.fit[:n] {
				e.UpsertNode(d.mended(s.Node))
			}
		}
	}
	return alt
}

func (d *filterRelaxation) has(kind string) bool {
	return slices.ContainsFunc(d.ofNodes, func(r reason) bool { return r.kind == kind })
}

// mended is a node as it would have to be.
func (d *filterRelaxation) mended(n *structs.Node) *structs.Node {
	c := n.Copy()
	for _, r := range d.ofNodes {
		switch r.kind {
		case structs.ReasonDown, structs.ReasonDisconnected, structs.ReasonNotReady:
			c.Status = structs.NodeStatusReady
		case structs.ReasonDraining:
			c.DrainStrategy, c.SchedulingEligibility = nil, structs.NodeEligible
		case structs.ReasonIneligible:
			c.SchedulingEligibility = structs.NodeEligible
		case structs.ReasonDiskFull:
			c.DiskFull = ""
		case structs.ReasonDriver:
			if c.Drivers == nil {
				c.Drivers = map[string]*structs.DriverInfo{}
			}
			c.Drivers[r.subject] = &structs.DriverInfo{Detected: true, Healthy: true}
		case structs.ReasonVolume:
			if c.HostVolumes == nil {
				c.HostVolumes = map[string]*structs.HostVolumeInfo{}
			}
			c.HostVolumes[r.subject] = &structs.HostVolumeInfo{Name: r.subject}
		}
	}
	c.ComputedClass = ""
	c.ComputeClass()
	return c
}

// remedy is the change with n of the nodes otherwise, for people and programs.
func (d *filterRelaxation) remedy(n int) structs.Remedy {
	r := structs.Remedy{Kind: structs.RemedyFilter, Size: d.size, Edits: slices.Clone(d.edits)}
	texts := slices.Clone(d.texts)
	if n > 0 {
		r.Size += 0.05 * float64(n-1)
		if len(d.texts) == 0 && !d.has(structs.ReasonCandidates) {
			r.Kind = structs.RemedyNodeState
		}
		texts = append(texts, d.nodeTexts(n)...)
		for _, s := range d.set.fit[:n] {
			for _, what := range d.ofNodes {
				r.Edits = append(r.Edits, d.nodeEdits(s.Node, what)...)
			}
		}
	}
	r.Text = strings.Join(texts, ", and ")
	return r
}

func (d *filterRelaxation) nodeTexts(n int) (out []string) {
	var names []string
	for _, s := range d.set.fit[:min(n, 5)] {
		names = append(names, cmp.Or(s.Node.Name, structs.ShortID(s.ID)))
	}
	if n > 5 {
		names = append(names, fmt.Sprintf("%d more", n-5))
	}
	nodes := "node " + strings.Join(names, ", ")
	for _, r := range d.ofNodes {
		switch r.kind {
		case structs.ReasonDown, structs.ReasonDisconnected, structs.ReasonNotReady:
			out = append(out, "bring back "+nodes)
		case structs.ReasonDraining:
			out = append(out, "end the drain of "+nodes)
		case structs.ReasonIneligible:
			out = append(out, "make "+nodes+" eligible")
		case structs.ReasonDiskFull:
			out = append(out, "free some room on the disk of "+nodes)
		case structs.ReasonDriver:
			out = append(out, fmt.Sprintf("have driver %q working on %s", r.subject, nodes))
		case structs.ReasonVolume:
			out = append(out, fmt.Sprintf("offer volume %q, to be written, on %s", r.subject, nodes))
		case structs.ReasonCandidates:
			out = append(out, "name "+nodes+" as a candidate")
		}
	}
	return out
}

func (d *filterRelaxation) nodeEdits(n *structs.Node, r reason) []structs.Edit {
	edit := func(op, path string, was, value any) structs.Edit {
		e := structs.Edit{On: structs.EditNode, ID: n.ID, Op: op, Path: path}
		if was != nil {
			e.Was = raw(was)
		}
		if value != nil {
			e.Value = raw(value)
		}
		return e
	}
	switch r.kind {
	case structs.ReasonDraining:
		return []structs.Edit{
			edit(structs.EditRemove, "/DrainStrategy", n.DrainStrategy, nil),
			edit(structs.EditReplace, "/SchedulingEligibility", n.SchedulingEligibility, structs.NodeEligible),
		}
	case structs.ReasonIneligible:
		return []structs.Edit{edit(structs.EditReplace, "/SchedulingEligibility", n.SchedulingEligibility, structs.NodeEligible)}
	case structs.ReasonDiskFull:
		return []structs.Edit{edit(structs.EditRemove, "/DiskFull", n.DiskFull, nil)}
	case structs.ReasonDriver:
		return []structs.Edit{edit(structs.EditAdd, "/Drivers/"+pointerText(r.subject), nil, &structs.DriverInfo{Detected: true, Healthy: true})}
	case structs.ReasonVolume:
		return []structs.Edit{edit(structs.EditAdd, "/HostVolumes/"+pointerText(r.subject), nil, &structs.HostVolumeInfo{Name: r.subject})}
	case structs.ReasonCandidates:
		return []structs.Edit{{
			On: structs.EditJob, ID: d.p.x.in.Job.ID, Op: structs.EditAdd, Path: d.p.groupPath() + "/Candidates/-", Value: raw(n.ID),
		}}
	}
	return []structs.Edit{edit(structs.EditReplace, "/Status", n.Status, structs.NodeStatusReady)}
}

// pointerText is a name as a JSON Pointer writes it.
func pointerText(s string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(s) }
