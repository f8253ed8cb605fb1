package explain

import (
	"cmp"
	"path"
	"slices"
	"strconv"

	"github.com/nomadish/nomadish/scheduler/cell"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/random"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Everything that keeps an instance from a node, and not the first thing alone: what a
// search needs only one reason for. Source: semantics part 6.

// reason names one thing that keeps an instance from nodes.
type reason struct{ kind, subject string }

// lack is something that a node has too little of for one more instance.
type lack struct {
	reason
	// need is what the instance takes, have what the node has for it: MHz, MiB, cores,
	// devices or thousandths of one. Both 0 where that cannot be measured.
	need, have int64
	free       int64              // devices of the kind that are free on the node
	by         *world.Reservation // of a reservation
	device     int                // which of the request's devices
	of         []string           // of a reservation of a workflow: the resources of which too little is left
}

// share is how much of the request is missing, of 1.
func (l *lack) share() float64 {
	if l.need <= 0 {
		return 1
	}
	return min(1, float64(l.need-l.have)/float64(l.need))
}

// refusals of a node's class: what all its nodes have in common.
type classRefusals struct {
	inPool bool
	list   []reason
}

// nodeReasons finds out about nodes for one group.
type nodeReasons struct {
	find    *search.Search
	byClass map[string]*classRefusals // looked up only
	rng     *random.Numbers
	spare   []lack // what lacks are written into
}

func newNodeReasons(find *search.Search) *nodeReasons {
	return &nodeReasons{find: find, byClass: map[string]*classRefusals{}, rng: &random.Numbers{State: 1}}
}

// refuse returns every reason that refuses a node by what it is. Of a node of another pool
// it returns what would refuse it in the job's pool.
func (x *nodeReasons) refuse(n *structs.Node) (inPool bool, out []reason) {
	f := x.find.Fit
	c := x.class(n)
	out = append(out, stateReasons(n)...)
	out = append(out, c.list...)
	for i, con := range f.Single {
		if !f.Matcher.Match(feasible.NodeResolver(n), con.LTarget, con.Operand, con.RTarget) {
			out = append(out, reason{structs.ReasonConstraint, f.Texts[i]})
		}
	}
	if list := f.Group.Candidates; len(list) > 0 && !slices.Contains(list, n.ID) && !slices.Contains(list, n.Name) {
		out = append(out, reason{kind: structs.ReasonCandidates})
	}
	for i := range x.find.Refusals {
		if r := &x.find.Refusals[i]; r.Refuses(n) {
			kind := structs.ReasonDistinctValues
			if r.Count.Target == feasible.HostTarget {
				kind = structs.ReasonDistinctHosts
			}
			out = append(out, reason{kind, r.Reason})
		}
	}
	return c.inPool, dedupe(out)
}

// dedupe leaves out what stands twice: a constraint may be the job's and the group's.
func dedupe(list []reason) []reason {
	out := list[:0]
	for _, r := range list {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// stateReasons is why nothing new may go to a node.
func stateReasons(n *structs.Node) (out []reason) {
	switch n.Status {
	case structs.NodeStatusReady:
	case structs.NodeStatusDown:
		out = append(out, reason{kind: structs.ReasonDown})
	case structs.NodeStatusDisconnected:
		out = append(out, reason{kind: structs.ReasonDisconnected})
	default:
		out = append(out, reason{kind: structs.ReasonNotReady})
	}
	if n.DrainStrategy != nil {
		out = append(out, reason{kind: structs.ReasonDraining}) // which makes it ineligible as well
	} else if n.SchedulingEligibility == structs.NodeIneligible {
		out = append(out, reason{kind: structs.ReasonIneligible})
	}
	if n.DiskFull != "" {
		out = append(out, reason{kind: structs.ReasonDiskFull})
	}
	return out
}

// class returns what refuses all nodes of a node's class.
func (x *nodeReasons) class(n *structs.Node) *classRefusals {
	if c, known := x.byClass[n.ComputedClass]; known {
		return c
	}
	f := x.find.Fit
	c := &classRefusals{inPool: n.InPool(cmp.Or(f.Job.NodePool, structs.DefaultNodePool))}
	x.byClass[n.ComputedClass] = c
	add := func(kind, subject string) { c.list = append(c.list, reason{kind, subject}) }
	if !inDatacenters(f.Job, n.Datacenter) {
		add(structs.ReasonDatacenter, n.Datacenter)
	}
	for _, driver := range f.Drivers {
		if !hasDriver(n, driver) {
			add(structs.ReasonDriver, driver)
		}
	}
	resolve := feasible.NodeResolver(n)
	for _, con := range f.Shared {
		if !f.Matcher.Match(resolve, con.LTarget, con.Operand, con.RTarget) {
			add(structs.ReasonConstraint, feasible.ConstraintText(con))
		}
	}
	for _, source := range missingVolumes(f.Group, n) {
		add(structs.ReasonVolume, source)
	}
	for i := range f.Devices {
		c.list = append(c.list, deviceRefusals(&f.Devices[i], f.Matcher, n)...)
	}
	return c
}

func inDatacenters(job *structs.Job, dc string) bool {
	for _, pattern := range job.Datacenters {
		if ok, err := path.Match(pattern, dc); err == nil && ok {
			return true
		}
	}
	return len(job.Datacenters) == 0
}

func hasDriver(n *structs.Node, name string) bool {
	if d := n.Drivers[name]; d != nil {
		return d.Detected && d.Healthy
	}
	v := n.Attributes["driver."+name] // what clients without driver reports state
	return v == "1" || v == "true"
}

// missingVolumes returns the sources that a node lacks, sorted.
func missingVolumes(group *structs.TaskGroup, n *structs.Node) (out []string) {
	for _, v := range group.Volumes { // sorted below
		have := n.HostVolumes[v.Source]
		if v.Type != structs.VolumeTypeHost || have == nil || (have.ReadOnly && !v.ReadOnly) {
			out = append(out, v.Source)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// deviceRefusals is why no device of a node is of the requested kind.
func deviceRefusals(want *feasible.DeviceRequest, m *feasible.Matcher, n *structs.Node) (out []reason) {
	var named []*structs.NodeDeviceResource
	if n.NodeResources != nil {
		plain := *want
		plain.Request = &structs.RequestedDevice{Name: want.Request.Name}
		for _, d := range n.NodeResources.Devices {
			switch {
			case want.Matches(m, d):
				return nil
			case plain.Matches(m, d):
				named = append(named, d)
			}
		}
	}
	if len(named) == 0 {
		return []reason{{structs.ReasonDeviceKind, want.Request.Name}}
	}
	for _, c := range want.Request.Constraints {
		met := func(d *structs.NodeDeviceResource) bool {
			return m.Match(feasible.DeviceResolver(d), c.LTarget, c.Operand, c.RTarget)
		}
		if !slices.ContainsFunc(named, met) {
			out = append(out, reason{structs.ReasonConstraint, deviceConstraint(want.Request, c)})
		}
	}
	if len(out) == 0 { // each is met by some device, but not all by one
		out = append(out, reason{structs.ReasonDeviceKind, want.Request.Name})
	}
	return out
}

func deviceConstraint(d *structs.RequestedDevice, c *structs.Constraint) string {
	return devicePrefix + d.Name + ": " + feasible.ConstraintText(c)
}

// ofWorkflow begins the subject of a reservation that is a workflow's.
const ofWorkflow = "workflow "

// devicePrefix begins the subject of a constraint on devices.
const devicePrefix = "device "

// lacks returns everything that a node lacks for one more instance; nil: it would take
// one. It reports a reservation where without it there would be enough.
func (x *nodeReasons) lacks(n *world.NodeState) (out []lack) {
	if n.Capacity == nil {
		return []lack{{reason: reason{structs.ReasonOther, "it has no resources"}}}
	}
	a := x.find.Request
	r := roomOf(a, n)
	if cap(x.spare)-len(x.spare) < lacksMost {
		x.spare = make([]lack, 0, 64*lacksMost)
	}
	r.out = x.spare[len(x.spare):]
	r.amounts()
	r.cores()
	r.devices(x.find.Fit.Matcher)
	r.ports(x.rng)
	switch workflow := n.ReservedBy(&a.By); {
	case !r.reserved:
	case workflow != "":
		r.out = append(r.out, lack{reason: reason{structs.ReasonReserved, ofWorkflow + workflow}, of: r.of})
	default:
		r.out = append(r.out, lack{reason: reason{structs.ReasonReserved, n.Reservation.Text()}, by: n.Reservation})
	}
	if len(r.out) == 0 {
		if _, what := a.Grant(n, x.find.Fit.Matcher, x.rng); what != "" {
			kind := structs.ReasonOther
			if what == world.LacksUnowned {
				kind = structs.ReasonOwned
			}
			r.out = append(r.out, lack{reason: reason{kind, what}})
		}
	}
	if used := len(x.spare) + len(r.out); used <= cap(x.spare) { // else it was moved
		x.spare = x.spare[:used]
	}
	return slices.Clip(r.out)
}

// lacksMost is more than a node mostly lacks.
const lacksMost = 16

// hopeless reports whether a node lacks something, if that can be seen without checking
// at what has names. It is wrong in one direction only.
func hopeless(a *search.Request, n *world.NodeState) bool {
	return n.Capacity == nil || n.Lacks(a.Amount, &a.By) != "" || int64(n.FreeDevices()) < a.Need[world.DimGPUs]
}

// roomCheck compares one request with one node.
type roomCheck struct {
	a        *search.Request
	n        *world.NodeState
	withheld world.Resources // what is reserved of it for others
	reserved bool            // that is what is in the way
	of       []string        // of these resources
	out      []lack
}

func roomOf(a *search.Request, n *world.NodeState) roomCheck {
	return roomCheck{a: a, n: n, withheld: n.Withheld(&a.By)}
}

func (r *roomCheck) compare(kind string, need, have, reserved int64) {
	switch {
	case need > have:
		r.out = append(r.out, lack{reason: reason{kind: kind}, need: need, have: max(0, have)})
	case need > have-reserved:
		r.inTheWay(kind)
	}
}

// inTheWay notes that there would be enough of a resource without what is reserved of it.
func (r *roomCheck) inTheWay(what string) {
	if r.reserved = true; !slices.Contains(r.of, what) {
		r.of = append(r.of, what)
	}
}

// amounts checks what can be added up, with the MHz of whole cores.
func (r *roomCheck) amounts() {
	free, need := r.n.Capacity.Amount.Minus(r.n.Used), r.a.Amount
	need.CPU += r.a.Need[world.DimCores] * r.n.Capacity.MHzPerCore
	reserved := r.withheld.Amount
	r.compare(structs.ReasonCPU, need.CPU, free.CPU, reserved.CPU)
	if r.reserved && r.a.Need[world.DimCores] > 0 { // the MHz of cores
		r.of = []string{structs.ReasonCores}
	}
	r.compare(structs.ReasonMemory, need.MemoryMB, free.MemoryMB, reserved.MemoryMB)
	r.compare(structs.ReasonDisk, need.DiskMB, free.DiskMB, reserved.DiskMB)
}

func (r *roomCheck) cores() {
	if len(r.a.Cores) == 0 {
		return
	}
	r.compare(structs.ReasonCores, r.a.Need[world.DimCores], int64(r.n.FreeCores()), int64(r.withheld.Cores))
}

// devices tries the requests for devices one after the other, as a grant takes them.
func (r *roomCheck) devices(m *feasible.Matcher) {
	cells, opened := r.n.Cells, 0
	for i := range r.a.Devices {
		want := &r.a.Devices[i]
		if want.Share == world.WholeDevice && i == 0 && r.n.FreeDevices() == 0 {
			r.out = append(r.out, lack{reason: reason{structs.ReasonDevices, want.Request.Name}, device: i, need: int64(want.Count)})
			continue
		}
		c := r.a.Choose(r.n, want, cells, m)
		if c.Tree == nil {
			l := lackOfDevices(want, i, r.n, cells, m)
			if l.kind == structs.ReasonCell && r.n.FreeDevices()-want.Count < r.withheld.Devices { // some that are free are named by a reservation
				r.inTheWay(want.Request.Name)
				continue
			}
			r.out = append(r.out, l)
			continue
		}
		for _, number := range c.Devices {
			if cells[c.At].FreeShare(number) == world.WholeDevice {
				opened++
			}
		}
		cells = c.Taken(cells, want.Share)
	}
	if opened > 0 && r.n.FreeDevices()-opened < r.withheld.Devices {
		r.inTheWay(r.a.Devices[0].Request.Name)
	}
}

// lackOfDevices returns why a node has no devices for a request.
func lackOfDevices(want *feasible.DeviceRequest, number int, n *world.NodeState, cells []*cell.State, m *feasible.Matcher) lack {
	most, part, sum := freeDevicesFor(want, n, cells, m)
	l := lack{device: number, need: int64(want.Count), have: int64(most), free: int64(sum)}
	switch {
	case want.Share < world.WholeDevice:
		l.reason = reason{structs.ReasonShare, want.Request.Name}
		l.need, l.have = int64(want.Share), int64(part)
	case most < want.Count:
		l.reason = reason{structs.ReasonDevices, want.Request.Name}
	default:
		l.reason = reason{structs.ReasonCell, want.Find.Level}
	}
	return l
}

// freeDevicesFor counts a node's free devices of the requested kind: the most
// of one group, the largest part that is left of any, and all.
func freeDevicesFor(want *feasible.DeviceRequest, n *world.NodeState, cells []*cell.State, m *feasible.Matcher) (most, part, sum int) {
	for at, t := range n.Capacity.Trees {
		if (want.Vendor != "" && want.Vendor != t.Vendor) || want.Kind != t.Kind {
			continue
		}
		for i, group := range t.Groups {
			if slices.Index(t.Groups, group) != i || !want.Matches(m, group) {
				continue
			}
			free := 0
			for number, of := range t.Groups {
				if of != group {
					continue
				}
				left := cells[at].FreeShare(number)
				part = max(part, left)
				if left == world.WholeDevice {
					free++
				}
			}
			most, sum = max(most, free), sum+free
		}
	}
	return most, part, sum
}

// ports tries each requested port.
func (r *roomCheck) ports(rng *random.Numbers) {
	g := search.Grant{Usage: &world.Usage{}}
	for _, want := range r.a.Networks {
		if want.Mode == structs.NetworkModeNone {
			continue
		}
		_, ip := search.DefaultAddress(r.n.Node)
		for _, p := range want.ReservedPorts {
			if what := g.PickStatic(&p, r.n, ip); what != "" {
				kind, subject := structs.ReasonPort, strconv.Itoa(p.Value)
				if what != world.PortInUse(p.Value) {
					kind, subject = structs.ReasonHostNetwork, p.HostNetwork
				}
				r.add(reason{kind, subject})
			}
		}
		for _, p := range want.DynamicPorts {
			switch what := g.PickDynamic(&p, r.n, ip, rng); what {
			case "":
			case world.LacksDynamic:
				r.add(reason{kind: structs.ReasonDynamicPort})
			default:
				r.add(reason{structs.ReasonHostNetwork, p.HostNetwork})
			}
		}
	}
}

func (r *roomCheck) add(what reason) {
	if !slices.ContainsFunc(r.out, func(l lack) bool { return l.reason == what }) {
		r.out = append(r.out, lack{reason: what})
	}
}
