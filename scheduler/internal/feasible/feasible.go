package feasible

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Feasibility decides which nodes a group may use at all: by what they are, not
// by what is free there. What classes have in common is decided once per class.
type Feasibility struct {
	Job     *structs.Job
	Group   *structs.TaskGroup
	Matcher *Matcher

	Drivers []string
	Shared  []*structs.Constraint // of job, group and tasks; alike for a whole class
	Single  []*structs.Constraint // those on unique.* targets
	Texts   []string              // of single
	Devices []DeviceRequest
	// byClass are the verdicts found so far, within left aside; looked up only.
	byClass map[string]Verdict
	// Within is the cell that nodes must be under; nil: any.
	Within *Domain
	found  *setsFound // what is remembered of sets, within left aside; nil: nothing is
}

// Verdict is what a node is for a group.
type Verdict struct {
	InPool bool
	InDC   bool   // and in one of the job's datacenters
	Reason string // why it was filtered; "": it was not
}

// OK reports whether the group may use the node.
func (v Verdict) OK() bool { return v.InPool && v.InDC && v.Reason == "" }

// NewFeasibility returns a new Feasibility of a group; m decides its constraints.
func NewFeasibility(job *structs.Job, group *structs.TaskGroup, m *Matcher) *Feasibility {
	f := &Feasibility{Job: job, Group: group, Matcher: m, byClass: map[string]Verdict{}}
	f.add(job.Constraints)
	f.add(group.Constraints)
	for _, t := range group.Tasks {
		f.add(t.Constraints)
		if !slices.Contains(f.Drivers, t.Driver) {
			f.Drivers = append(f.Drivers, t.Driver)
		}
		f.Devices = append(f.Devices, DeviceRequests(t)...)
	}
	return f
}

func (f *Feasibility) add(list []*structs.Constraint) {
	for _, c := range list {
		switch {
		case c.Operand == structs.ConstraintDistinctHosts, c.Operand == structs.ConstraintDistinctProperty:
			// They depend on where other instances are: see census.
		case IsUnique(c.LTarget), IsUnique(c.RTarget):
			f.Single, f.Texts = append(f.Single, c), append(f.Texts, ConstraintText(c))
		default:
			f.Shared = append(f.Shared, c)
		}
	}
}

// Escaped reports whether nodes of one class may differ for this group, so that a blocked
// evaluation must check every node that comes.
func (f *Feasibility) Escaped() bool { return len(f.Single) > 0 || len(f.Group.Candidates) > 0 }

// Verdict decides on a node.
func (f *Feasibility) Verdict(n *structs.Node) Verdict {
	v := f.Class(n)
	if v.OK() {
		v.Reason = f.Alone(n)
	}
	return v
}

// Class decides what all nodes of a node's class have in common.
func (f *Feasibility) Class(n *structs.Node) Verdict {
	v, known := f.byClass[n.ComputedClass]
	if f.Within != nil && !f.Within.contains(n) { // most are not: the rest need not be known, and does not show
		if !known {
			v.InPool = n.InPool(cmp.Or(f.Job.NodePool, structs.DefaultNodePool))
			v.InDC = v.InPool && f.inDatacenters(n)
		}
		v.Reason = f.Within.outside
		return v
	}
	if !known {
		v.InPool = n.InPool(cmp.Or(f.Job.NodePool, structs.DefaultNodePool))
		v.InDC = v.InPool && f.inDatacenters(n)
		if v.InDC {
			v.Reason = f.filter(n)
		}
		f.byClass[n.ComputedClass] = v
	}
	return v
}

// In returns the feasibility of nodes under a cell. It shares what was decided so far.
func (f *Feasibility) In(d *Domain) *Feasibility {
	c := *f
	c.Within = d
	return &c
}

func (f *Feasibility) inDatacenters(n *structs.Node) bool {
	for _, pattern := range f.Job.Datacenters {
		if ok, err := path.Match(pattern, n.Datacenter); err == nil && ok {
			return true
		}
	}
	return len(f.Job.Datacenters) == 0
}

// filter returns why a class is filtered; "" if it is not.
func (f *Feasibility) filter(n *structs.Node) string {
	if missing := f.missingDrivers(n); missing != "" {
		return "missing drivers: " + missing
	}
	resolve := NodeResolver(n)
	for _, c := range f.Shared {
		if !f.Matcher.Match(resolve, c.LTarget, c.Operand, c.RTarget) {
			return ConstraintText(c)
		}
	}
	if what := f.missingVolume(n); what != "" {
		return what
	}
	for _, request := range f.Devices {
		matches := func(d *structs.NodeDeviceResource) bool { return request.Matches(f.Matcher, d) }
		if n.NodeResources == nil || !slices.ContainsFunc(n.NodeResources.Devices, matches) {
			return "missing devices: " + request.Request.Name
		}
	}
	return ""
}

func (f *Feasibility) missingDrivers(n *structs.Node) string {
	var missing []string
	for _, name := range f.Drivers {
		d, known := n.Drivers[name]
		if !known || d == nil {
			v := n.Attributes["driver."+name] // what clients without driver reports state
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

func (f *Feasibility) missingVolume(n *structs.Node) string {
	if len(f.Group.Volumes) == 0 {
		return "" // it is called of every class of nodes
	}
	for _, name := range slices.Sorted(maps.Keys(f.Group.Volumes)) {
		v := f.Group.Volumes[name]
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

// Alone returns why one node is filtered by what only it has; "" if it is not.
func (f *Feasibility) Alone(n *structs.Node) string {
	if len(f.Single) > 0 {
		resolve := NodeResolver(n)
		for i, c := range f.Single {
			if !f.Matcher.Match(resolve, c.LTarget, c.Operand, c.RTarget) {
				return f.Texts[i]
			}
		}
	}
	if f.Within != nil && f.Within.NodeID != "" && f.Within.NodeID != n.ID {
		return f.Within.outside
	}
	if c := f.Group.Candidates; len(c) > 0 && !slices.Contains(c, n.ID) && !slices.Contains(c, n.Name) {
		return "not among the candidates"
	}
	return ""
}

// ConstraintText is a constraint as Nomad's CLI shows it.
func ConstraintText(c *structs.Constraint) string {
	parts := []string{c.LTarget, cmp.Or(c.Operand, structs.ConstraintEqual), c.RTarget}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, " ")
}

// Census counts the job's live instances by node, for what depends on where the
// others are: distinct_hosts, distinct_property and spreads.
type Census struct {
	World  *world.World
	counts []*PropertyCount
}

// PropertyCount counts instances by the value of a target: of one group, or of
// the whole job (group "").
type PropertyCount struct {
	group   string
	Target  string // HostTarget for distinct_hosts
	ByValue map[string]int
}

// HostTarget is the target whose value is the node itself.
const HostTarget = "${node.unique.id}"

// Count returns the counter of a target, made of the live allocations if need be.
func (c *Census) Count(group, target string, live []*structs.Allocation) *PropertyCount {
	for _, p := range c.counts {
		if p.group == group && p.Target == target {
			return p
		}
	}
	p := &PropertyCount{group: group, Target: target, ByValue: map[string]int{}}
	c.counts = append(c.counts, p)
	for _, a := range live {
		if n, known := c.World.Node(a.NodeID); known {
			p.move(a.TaskGroup, n, 1)
		}
	}
	return p
}

func (p *PropertyCount) move(group string, n *structs.Node, by int) {
	if p.group != "" && p.group != group {
		return
	}
	if v, found := NodeResolver(n)(p.Target); found {
		p.ByValue[v] += by
	}
}

// Move counts an instance that came to a node (1) or left it (-1).
func (c *Census) Move(group, nodeID string, by int) {
	if len(c.counts) == 0 {
		return
	}
	n, known := c.World.Node(nodeID)
	if !known {
		return
	}
	for _, p := range c.counts {
		p.move(group, n, by)
	}
}

// Of returns how many instances share a node's value; false: it has none.
func (p *PropertyCount) Of(n *structs.Node) (int, bool) {
	v, found := NodeResolver(n)(p.Target)
	return p.ByValue[v], found
}

// Refusal is a distinct_hosts or distinct_property constraint: a node is refused
// whose value most instances have already.
type Refusal struct {
	Reason string
	Count  *PropertyCount
	most   int
}

// Refuses reports whether one more instance may not go to a node.
func (r *Refusal) Refuses(n *structs.Node) bool {
	have, found := r.Count.Of(n)
	return !found || have >= r.most
}

// Distinct is a distinct_hosts or distinct_property constraint: at most some instances share a value.
type Distinct struct {
	Reason string
	Scope  string // the group whose instances count; "": all of the job
	Target string // whose value it is; [HostTarget] for distinct_hosts
	Most   int    // from 1
}

// Distinct returns the distinct_* constraints of a group: the job's own count all instances of the job, others the group's.
func (f *Feasibility) Distinct() (out []Distinct) {
	add := func(scope string, list []*structs.Constraint) {
		for _, con := range list {
			switch con.Operand {
			case structs.ConstraintDistinctHosts:
				if con.RTarget != "false" {
					out = append(out, Distinct{structs.ConstraintDistinctHosts, scope, HostTarget, 1})
				}
			case structs.ConstraintDistinctProperty:
				most, err := strconv.Atoi(con.RTarget)
				if err != nil || most < 1 {
					most = 1
				}
				out = append(out, Distinct{structs.ConstraintDistinctProperty + ": " + con.LTarget, scope, con.LTarget, most})
			}
		}
	}
	add("", f.Job.Constraints)
	add(f.Group.Name, f.Group.Constraints)
	for _, t := range f.Group.Tasks {
		add(f.Group.Name, t.Constraints)
	}
	return out
}

// Refusals returns the distinct_* constraints of a group, which count the live instances.
func (f *Feasibility) Refusals(c *Census, live []*structs.Allocation) (out []Refusal) {
	for _, d := range f.Distinct() {
		out = append(out, Refusal{d.Reason, c.Count(d.Scope, d.Target, live), d.Most})
	}
	return out
}

// LooksAtMeta reports whether nodes of one family may differ for a group.
func (f *Feasibility) LooksAtMeta() bool {
	if f.Within != nil && f.Within.NodeID == "" {
		return true
	}
	for _, c := range f.Shared {
		if IsMeta(c.LTarget) || IsMeta(c.RTarget) {
			return true
		}
	}
	constraints := slices.Concat(f.Job.Constraints, f.Group.Constraints)
	affinities := slices.Concat(f.Job.Affinities, f.Group.Affinities)
	for _, t := range f.Group.Tasks {
		constraints, affinities = append(constraints, t.Constraints...), append(affinities, t.Affinities...)
	}
	return slices.ContainsFunc(constraints, func(c *structs.Constraint) bool { return IsMeta(c.LTarget) || IsMeta(c.RTarget) }) ||
		slices.ContainsFunc(affinities, func(a *structs.Affinity) bool { return IsMeta(a.LTarget) || IsMeta(a.RTarget) }) ||
		slices.ContainsFunc(slices.Concat(f.Job.Spreads, f.Group.Spreads), func(s *structs.Spread) bool { return IsMeta(s.Attribute) })
}
