package scheduler

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// feasibility decides which nodes a group may use at all: by what they are, not
// by what is free there. What classes have in common is decided once per class.
type feasibility struct {
	job   *structs.Job
	group *structs.TaskGroup
	m     *matcher

	drivers []string
	shared  []*structs.Constraint // of job, group and tasks; alike for a whole class
	single  []*structs.Constraint // those that look at unique.* targets
	texts   []string              // of single
	devices []deviceAsk
	// byClass are the verdicts found so far, within left aside; looked up only.
	byClass map[string]verdict
	// within is the cell that nodes must be under; nil: any.
	within *domain
	found  *setsFound // what is remembered of sets, within left aside; nil: nothing is
}

// verdict is what a node is for a group.
type verdict struct {
	inPool bool
	inDC   bool   // and in one of the job's datacenters
	reason string // why it was filtered; "": it was not
}

func (v verdict) ok() bool { return v.inPool && v.inDC && v.reason == "" }

func newFeasibility(job *structs.Job, group *structs.TaskGroup, m *matcher) *feasibility {
	f := &feasibility{job: job, group: group, m: m, byClass: map[string]verdict{}}
	f.add(job.Constraints)
	f.add(group.Constraints)
	for _, t := range group.Tasks {
		f.add(t.Constraints)
		if !slices.Contains(f.drivers, t.Driver) {
			f.drivers = append(f.drivers, t.Driver)
		}
		f.devices = append(f.devices, deviceAsks(t)...)
	}
	return f
}

func (f *feasibility) add(list []*structs.Constraint) {
	for _, c := range list {
		switch {
		case c.Operand == structs.ConstraintDistinctHosts, c.Operand == structs.ConstraintDistinctProperty:
			// They depend on where other instances are: see census.
		case unique(c.LTarget), unique(c.RTarget):
			f.single, f.texts = append(f.single, c), append(f.texts, constraintText(c))
		default:
			f.shared = append(f.shared, c)
		}
	}
}

// escaped tells whether nodes of one class may differ for this group, so that a
// blocked evaluation must look at every node that comes.
func (f *feasibility) escaped() bool { return len(f.single) > 0 || len(f.group.Candidates) > 0 }

// verdict decides on a node.
func (f *feasibility) verdict(n *structs.Node) verdict {
	v := f.class(n)
	if v.ok() {
		v.reason = f.alone(n)
	}
	return v
}

// class decides what all nodes of a node's class have in common.
func (f *feasibility) class(n *structs.Node) verdict {
	v, known := f.byClass[n.ComputedClass]
	if f.within != nil && !f.within.holds(n) { // most are not: the rest need not be known, and does not show
		if !known {
			v.inPool = n.InPool(cmp.Or(f.job.NodePool, structs.DefaultNodePool))
			v.inDC = v.inPool && f.inDatacenters(n)
		}
		v.reason = f.within.outside
		return v
	}
	if !known {
		v.inPool = n.InPool(cmp.Or(f.job.NodePool, structs.DefaultNodePool))
		v.inDC = v.inPool && f.inDatacenters(n)
		if v.inDC {
			v.reason = f.filter(n)
		}
		f.byClass[n.ComputedClass] = v
	}
	return v
}

// in gives the feasibility of nodes under a cell. It shares what was decided so far.
func (f *feasibility) in(d *domain) *feasibility {
	c := *f
	c.within = d
	return &c
}

func (f *feasibility) inDatacenters(n *structs.Node) bool {
	for _, pattern := range f.job.Datacenters {
		if ok, err := path.Match(pattern, n.Datacenter); err == nil && ok {
			return true
		}
	}
	return len(f.job.Datacenters) == 0
}

// filter gives why a class is filtered; "" if it is not.
func (f *feasibility) filter(n *structs.Node) string {
	if missing := f.missingDrivers(n); missing != "" {
		return "missing drivers: " + missing
	}
	resolve := nodeResolver(n)
	for _, c := range f.shared {
		if !f.m.match(resolve, c.LTarget, c.Operand, c.RTarget) {
			return constraintText(c)
		}
	}
	if what := f.missingVolume(n); what != "" {
		return what
	}
	for _, ask := range f.devices {
		matches := func(d *structs.NodeDeviceResource) bool { return ask.matches(f.m, d) }
		if n.NodeResources == nil || !slices.ContainsFunc(n.NodeResources.Devices, matches) {
			return "missing devices: " + ask.req.Name
		}
	}
	return ""
}

func (f *feasibility) missingDrivers(n *structs.Node) string {
	var missing []string
	for _, name := range f.drivers {
		d, known := n.Drivers[name]
		if !known || d == nil {
			v := n.Attributes["driver."+name] // what clients without driver reports say
			if v == "1" || v == "true" {
				continue
			}
		} else if d.Detected && d.Healthy {
			continue
		}
		missing = append(missing, name)
	}
	return strings.Join(missing, ", ")
}

func (f *feasibility) missingVolume(n *structs.Node) string {
	if len(f.group.Volumes) == 0 {
		return "" // it is asked of every class of nodes
	}
	for _, name := range slices.Sorted(maps.Keys(f.group.Volumes)) {
		v := f.group.Volumes[name]
		if v.Type != structs.VolumeTypeHost {
			return "missing CSI volume: " + v.Source
		}
		have := n.HostVolumes[v.Source]
		if have == nil || (have.ReadOnly && !v.ReadOnly) {
			return "missing compatible host volumes: " + v.Source
		}
	}
	return ""
}

// alone gives why one node is filtered by what only it has; "" if it is not.
func (f *feasibility) alone(n *structs.Node) string {
	if len(f.single) > 0 {
		resolve := nodeResolver(n)
		for i, c := range f.single {
			if !f.m.match(resolve, c.LTarget, c.Operand, c.RTarget) {
				return f.texts[i]
			}
		}
	}
	if f.within != nil && f.within.nodeID != "" && f.within.nodeID != n.ID {
		return f.within.outside
	}
	if c := f.group.Candidates; len(c) > 0 && !slices.Contains(c, n.ID) && !slices.Contains(c, n.Name) {
		return "not among the candidates"
	}
	return ""
}

// constraintText is a constraint as Nomad's CLI shows it.
func constraintText(c *structs.Constraint) string {
	parts := []string{c.LTarget, cmp.Or(c.Operand, structs.ConstraintEqual), c.RTarget}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, " ")
}

// census counts the job's live instances by node, for what depends on where the
// others are: distinct_hosts, distinct_property and spreads.
type census struct {
	w      *World
	counts []*propertyCount
}

// propertyCount counts instances by the value of a target: of one group, or of
// the whole job (group "").
type propertyCount struct {
	group   string
	target  string // hostTarget for distinct_hosts
	byValue map[string]int
}

// hostTarget is the target whose value is the node itself.
const hostTarget = "${node.unique.id}"

// count gives the counter of a target, made of the live allocations if need be.
func (c *census) count(group, target string, live []*structs.Allocation) *propertyCount {
	for _, p := range c.counts {
		if p.group == group && p.target == target {
			return p
		}
	}
	p := &propertyCount{group: group, target: target, byValue: map[string]int{}}
	c.counts = append(c.counts, p)
	for _, a := range live {
		if n, known := c.w.Node(a.NodeID); known {
			p.move(a.TaskGroup, n, 1)
		}
	}
	return p
}

func (p *propertyCount) move(group string, n *structs.Node, by int) {
	if p.group != "" && p.group != group {
		return
	}
	if v, found := nodeResolver(n)(p.target); found {
		p.byValue[v] += by
	}
}

// move counts an instance that came to a node (1) or left it (-1).
func (c *census) move(group, nodeID string, by int) {
	if len(c.counts) == 0 {
		return
	}
	n, known := c.w.Node(nodeID)
	if !known {
		return
	}
	for _, p := range c.counts {
		p.move(group, n, by)
	}
}

// of gives how many instances share a node's value; false: it has none.
func (p *propertyCount) of(n *structs.Node) (int, bool) {
	v, found := nodeResolver(n)(p.target)
	return p.byValue[v], found
}

// refusal is a distinct_hosts or distinct_property constraint: a node is refused
// whose value most instances have already.
type refusal struct {
	reason string
	count  *propertyCount
	most   int
}

func (r *refusal) refuses(n *structs.Node) bool {
	have, found := r.count.of(n)
	return !found || have >= r.most
}

// refusals gives the distinct_* constraints of a group: the job's own count all
// instances of the job, others the group's.
func (f *feasibility) refusals(c *census, live []*structs.Allocation) (out []refusal) {
	add := func(scope string, list []*structs.Constraint) {
		for _, con := range list {
			switch con.Operand {
			case structs.ConstraintDistinctHosts:
				if con.RTarget != "false" {
					out = append(out, refusal{structs.ConstraintDistinctHosts, c.count(scope, hostTarget, live), 1})
				}
			case structs.ConstraintDistinctProperty:
				most, err := strconv.Atoi(con.RTarget)
				if err != nil || most < 1 {
					most = 1
				}
				reason := structs.ConstraintDistinctProperty + ": " + con.LTarget
				out = append(out, refusal{reason, c.count(scope, con.LTarget, live), most})
			}
		}
	}
	add("", f.job.Constraints)
	add(f.group.Name, f.group.Constraints)
	for _, t := range f.group.Tasks {
		add(f.group.Name, t.Constraints)
	}
	return out
}
