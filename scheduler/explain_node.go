package scheduler

import (
	"cmp"
	"path"
	"slices"
	"strconv"

	"github.com/nomadish/nomadish/scheduler/cell"
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
	free       int64 // devices of the kind that are free on the node
	by         *hold // of a reservation
	device     int   // which of the ask's devices
}

// share is how much of the ask is missing, of 1.
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
	find    *search
	byClass map[string]*classRefusals // looked up only
	rng     *random
	spare   []lack // what lacks are written into
}

func newNodeReasons(find *search) *nodeReasons {
	return &nodeReasons{find: find, byClass: map[string]*classRefusals{}, rng: &random{1}}
}

// refuse gives everything that refuses a node by what it is. Of a node of another pool
// it says what would refuse it in the job's.
func (x *nodeReasons) refuse(n *structs.Node) (inPool bool, out []reason) {
	f := x.find.f
	c := x.class(n)
	out = append(out, stateReasons(n)...)
	out = append(out, c.list...)
	for i, con := range f.single {
		if !f.m.match(nodeResolver(n), con.LTarget, con.Operand, con.RTarget) {
			out = append(out, reason{structs.ReasonConstraint, f.texts[i]})
		}
	}
	if list := f.group.Candidates; len(list) > 0 && !slices.Contains(list, n.ID) && !slices.Contains(list, n.Name) {
		out = append(out, reason{kind: structs.ReasonCandidates})
	}
	for i := range x.find.refuse {
		if r := &x.find.refuse[i]; r.refuses(n) {
			kind := structs.ReasonDistinctValues
			if r.count.target == hostTarget {
				kind = structs.ReasonDistinctHosts
			}
			out = append(out, reason{kind, r.reason})
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

// class gives what refuses all nodes of a node's class.
func (x *nodeReasons) class(n *structs.Node) *classRefusals {
	if c, known := x.byClass[n.ComputedClass]; known {
		return c
	}
	f := x.find.f
	c := &classRefusals{inPool: n.InPool(cmp.Or(f.job.NodePool, structs.DefaultNodePool))}
	x.byClass[n.ComputedClass] = c
	add := func(kind, subject string) { c.list = append(c.list, reason{kind, subject}) }
	if !inDatacenters(f.job, n.Datacenter) {
		add(structs.ReasonDatacenter, n.Datacenter)
	}
	for _, driver := range f.drivers {
		if !hasDriver(n, driver) {
			add(structs.ReasonDriver, driver)
		}
	}
	resolve := nodeResolver(n)
	for _, con := range f.shared {
		if !f.m.match(resolve, con.LTarget, con.Operand, con.RTarget) {
			add(structs.ReasonConstraint, constraintText(con))
		}
	}
	for _, source := range missingVolumes(f.group, n) {
		add(structs.ReasonVolume, source)
	}
	for i := range f.devices {
		c.list = append(c.list, deviceRefusals(&f.devices[i], f.m, n)...)
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
	v := n.Attributes["driver."+name] // what clients without driver reports say
	return v == "1" || v == "true"
}

// missingVolumes gives the sources that a node lacks, sorted.
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

// deviceRefusals is why no device of a node is of the kind that is asked for.
func deviceRefusals(want *deviceAsk, m *matcher, n *structs.Node) (out []reason) {
	var named []*structs.NodeDeviceResource
	if n.NodeResources != nil {
		plain := *want
		plain.req = &structs.RequestedDevice{Name: want.req.Name}
		for _, d := range n.NodeResources.Devices {
			switch {
			case want.matches(m, d):
				return nil
			case plain.matches(m, d):
				named = append(named, d)
			}
		}
	}
	if len(named) == 0 {
		return []reason{{structs.ReasonDeviceKind, want.req.Name}}
	}
	for _, c := range want.req.Constraints {
		met := func(d *structs.NodeDeviceResource) bool {
			return m.match(deviceResolver(d), c.LTarget, c.Operand, c.RTarget)
		}
		if !slices.ContainsFunc(named, met) {
			out = append(out, reason{structs.ReasonConstraint, deviceConstraint(want.req, c)})
		}
	}
	if len(out) == 0 { // each is met by some device, but not all by one
		out = append(out, reason{structs.ReasonDeviceKind, want.req.Name})
	}
	return out
}

func deviceConstraint(d *structs.RequestedDevice, c *structs.Constraint) string {
	return devicePrefix + d.Name + ": " + constraintText(c)
}

// devicePrefix begins the subject of a constraint on devices.
const devicePrefix = "device "

// lacks gives everything that a node lacks for one more instance; nil: it would take
// one. Of a reservation it tells where without it there would be enough.
func (x *nodeReasons) lacks(n *nodeState) (out []lack) {
	if n.has == nil {
		return []lack{{reason: reason{structs.ReasonOther, "it has no resources"}}}
	}
	a := x.find.ask
	r := roomOf(a, n)
	if cap(x.spare)-len(x.spare) < lacksMost {
		x.spare = make([]lack, 0, 64*lacksMost)
	}
	r.out = x.spare[len(x.spare):]
	r.amounts()
	r.cores()
	r.devices(x.find.f.m)
	r.ports(x.rng)
	if r.reserved {
		r.out = append(r.out, lack{reason: reason{structs.ReasonReserved, n.hold.text()}, by: n.hold})
	}
	if len(r.out) == 0 {
		if _, what := a.grant(n, x.find.f.m, x.rng); what != "" {
			r.out = append(r.out, lack{reason: reason{structs.ReasonOther, what}})
		}
	}
	if used := len(x.spare) + len(r.out); used <= cap(x.spare) { // else it was moved
		x.spare = x.spare[:used]
	}
	return slices.Clip(r.out)
}

// lacksMost is more than a node mostly lacks.
const lacksMost = 16

// hopeless tells, of a node that lacks something, whether that can be seen without looking
// at what has names. It is wrong in one direction only.
func (a *ask) hopeless(n *nodeState) bool {
	return n.has == nil || n.lacks(a.amount, &a.by) != "" || int64(n.freeDevices()) < a.need[dimGPUs]
}

func (h *hold) text() string { return h.namespace + "/" + h.job + "/" + h.group }

// roomCheck compares one ask with one node.
type roomCheck struct {
	a        *ask
	n        *nodeState
	held     *hold // what is reserved of it for others; nil: nothing
	reserved bool  // that is what is in the way
	out      []lack
}

func roomOf(a *ask, n *nodeState) roomCheck {
	r := roomCheck{a: a, n: n}
	if !n.hold.free(&a.by) {
		r.held = n.hold
	}
	return r
}

func (r *roomCheck) compare(kind string, need, have, held int64) {
	switch {
	case need > have:
		r.out = append(r.out, lack{reason: reason{kind: kind}, need: need, have: max(0, have)})
	case need > have-held:
		r.reserved = true
	}
}

// amounts checks what can be added up, with the MHz of whole cores.
func (r *roomCheck) amounts() {
	free, need := r.n.has.amount.minus(r.n.used), r.a.amount
	need.CPU += r.a.need[dimCores] * r.n.has.mhzPerCore
	var held Vector
	if r.held != nil {
		held = r.held.amount
	}
	r.compare(structs.ReasonCPU, need.CPU, free.CPU, held.CPU)
	r.compare(structs.ReasonMemory, need.MemoryMB, free.MemoryMB, held.MemoryMB)
	r.compare(structs.ReasonDisk, need.DiskMB, free.DiskMB, held.DiskMB)
}

func (r *roomCheck) cores() {
	if len(r.a.cores) == 0 {
		return
	}
	held := int64(0)
	if r.held != nil {
		held = int64(r.held.cores)
	}
	r.compare(structs.ReasonCores, r.a.need[dimCores], int64(r.n.freeCores()), held)
}

// devices tries the asks for devices one after the other, as a grant takes them.
func (r *roomCheck) devices(m *matcher) {
	cells, opened := r.n.cells, 0
	for i := range r.a.devices {
		want := &r.a.devices[i]
		if want.share == wholeDevice && i == 0 && r.n.freeDevices() == 0 {
			r.out = append(r.out, lack{reason: reason{structs.ReasonDevices, want.req.Name}, device: i, need: int64(want.count)})
			continue
		}
		c := r.a.choose(r.n, want, cells, m)
		if c.tree == nil {
			r.out = append(r.out, lackOfDevices(want, i, r.n, cells, m))
			continue
		}
		for _, number := range c.Devices {
			if cells[c.at].FreeShare(number) == wholeDevice {
				opened++
			}
		}
		cells = c.taken(cells, want.share)
	}
	if r.held != nil && opened > 0 && r.n.freeDevices()-opened < r.held.devices {
		r.reserved = true
	}
}

// lackOfDevices says why a node has no devices for an ask.
func lackOfDevices(want *deviceAsk, number int, n *nodeState, cells []*cell.State, m *matcher) lack {
	most, part, sum := freeDevicesFor(want, n, cells, m)
	l := lack{device: number, need: int64(want.count), have: int64(most), free: int64(sum)}
	switch {
	case want.share < wholeDevice:
		l.reason = reason{structs.ReasonShare, want.req.Name}
		l.need, l.have = int64(want.share), int64(part)
	case most < want.count:
		l.reason = reason{structs.ReasonDevices, want.req.Name}
	default:
		l.reason = reason{structs.ReasonCell, want.find.Level}
	}
	return l
}

// freeDevicesFor counts a node's free devices of the kind that is asked for: the most
// of one group, the largest part that is left of any, and all.
func freeDevicesFor(want *deviceAsk, n *nodeState, cells []*cell.State, m *matcher) (most, part, sum int) {
	for at, t := range n.has.trees {
		if (want.vendor != "" && want.vendor != t.vendor) || want.kind != t.kind {
			continue
		}
		for i, group := range t.groups {
			if slices.Index(t.groups, group) != i || !want.matches(m, group) {
				continue
			}
			free := 0
			for number, of := range t.groups {
				if of != group {
					continue
				}
				left := cells[at].FreeShare(number)
				part = max(part, left)
				if left == wholeDevice {
					free++
				}
			}
			most, sum = max(most, free), sum+free
		}
	}
	return most, part, sum
}

// ports tries each port that is asked for.
func (r *roomCheck) ports(rng *random) {
	g := grant{use: &use{}}
	for _, want := range r.a.networks {
		if want.Mode == structs.NetworkModeNone {
			continue
		}
		_, ip := defaultAddress(r.n.node)
		for _, p := range want.ReservedPorts {
			if what := g.pickStatic(&p, r.n, ip); what != "" {
				kind, subject := structs.ReasonPort, strconv.Itoa(p.Value)
				if what != portInUse(p.Value) {
					kind, subject = structs.ReasonHostNetwork, p.HostNetwork
				}
				r.add(reason{kind, subject})
			}
		}
		for _, p := range want.DynamicPorts {
			switch what := g.pickDynamic(&p, r.n, ip, rng); what {
			case "":
			case lacksDynamic:
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
