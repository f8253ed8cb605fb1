package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/metric"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// reasonOrder is the order in which reasons are reported: what a node is, then what it has.
var reasonOrder = []string{
	structs.ReasonDown, structs.ReasonDisconnected, structs.ReasonNotReady, structs.ReasonDraining, structs.ReasonIneligible,
	structs.ReasonDiskFull, structs.ReasonDatacenter, structs.ReasonDriver, structs.ReasonConstraint, structs.ReasonVolume, structs.ReasonDeviceKind,
	structs.ReasonCandidates, structs.ReasonDistinctHosts, structs.ReasonDistinctValues,
	structs.ReasonCPU, structs.ReasonMemory, structs.ReasonDisk, structs.ReasonCores, structs.ReasonDevices, structs.ReasonCell,
	structs.ReasonShare, structs.ReasonPort, structs.ReasonDynamicPort, structs.ReasonHostNetwork, structs.ReasonReserved,
	structs.ReasonOwned, structs.ReasonOther, structs.ReasonTopology, structs.ReasonGang,
}

// survey checks every node of the World for one more instance of a group.
type survey struct {
	find   *search.Search
	about  *nodeReasons
	wide   *nodeReasons // about devices of any model; nil: not wanted yet
	counts structs.NodeCounts
	tally  map[reason]*structs.NodeReason
	// descriptions counts, for each driver that nodes lack, the health descriptions that they report.
	descriptions map[string]map[string]int
	// drivers are those that any node reports, working or not; nil: not wanted yet.
	drivers []string
	// holding are the nodes of a system job that have their instance.
	holding map[string]bool
	// withheld is of which resources workflows have reserved what the group lacks, by the subject of the reason; looked up only.
	withheld map[string][]string
	// refusal states why the workflow of a key does not lend to the group.
	refusal func(key string) string

	refused map[string]*refusedSet // by what refuses them; looked up only
	last    *refusedSet            // of the previous node, mostly
	sets    []*refusedSet          // in the order in which they were found
	short   []shortNode            // that nothing refuses, and that lack something
	fitting []*world.NodeState
}

// refusedSet is nodes that the same reasons refuse.
type refusedSet struct {
	pool    string // of another pool than the job's
	reasons []reason
	nodes   int
	fit     []*world.NodeState // that would take an instance otherwise, the first ones
}

// shortNode is a node that lacks something.
type shortNode struct {
	n     *world.NodeState
	lacks []lack
}

// setNodes bounds the nodes that a refusedSet names.
const setNodes = 64

// newSurvey returns a new survey of all nodes.
func newSurvey(find *search.Search, holding map[string]bool, refusal func(key string) string) *survey {
	x := &survey{
		find: find, refusal: refusal, about: newNodeReasons(find), tally: map[reason]*structs.NodeReason{}, descriptions: map[string]map[string]int{},
		withheld: map[string][]string{}, holding: holding, refused: map[string]*refusedSet{},
	}
	world.Flush(find.Edit)
	for _, n := range world.NodeStates(world.Base(find.Edit)).All {
		if n.Node != nil {
			x.look(n)
		}
	}
	return x
}

func (x *survey) look(n *world.NodeState) {
	x.counts.Known++
	inPool, list := x.about.refuse(n.Node)
	if !inPool {
		x.counts.OtherPools++
		x.refuse(n, cmp.Or(n.Node.NodePool, structs.NodePoolDefault), list)
		return
	}
	x.counts.InPool++
	switch {
	case x.holding[n.ID]:
		x.counts.Holding++
		return
	case len(list) > 0:
		x.counts.Refused++
		for _, r := range list {
			x.count(r, n.Node)
			x.hear(r, n.Node)
		}
		x.refuse(n, "", list)
		return
	}
	lacks := x.about.lacks(n)
	if len(lacks) == 0 {
		x.counts.Fitting++
		x.fitting = append(x.fitting, n)
		return
	}
	x.counts.Lacking++
	x.short = append(x.short, shortNode{n, lacks})
	for i := range lacks {
		x.lacking(&lacks[i], n.Node)
	}
}

func (x *survey) count(r reason, n *structs.Node) *structs.NodeReason {
	t := x.tally[r]
	if t == nil {
		t = &structs.NodeReason{Kind: r.kind, Subject: r.subject}
		x.tally[r] = t
	}
	t.Nodes++
	if n.NodeClass != "" {
		metric.AddCount(&t.Classes, n.NodeClass, 1)
	}
	return t
}

// hear counts what a node reports of a driver that it lacks.
func (x *survey) hear(r reason, n *structs.Node) {
	if r.kind != structs.ReasonDriver {
		return
	}
	if d := n.Drivers[r.subject]; d != nil && d.HealthDescription != "" {
		descriptions := x.descriptions[r.subject]
		metric.AddCount(&descriptions, d.HealthDescription, 1)
		x.descriptions[r.subject] = descriptions
	}
}

func (x *survey) lacking(l *lack, n *structs.Node) {
	t := x.count(l.reason, n)
	t.Need, t.Most = max(t.Need, l.need), max(t.Most, l.have)
	t.Free += l.free
	for _, what := range l.of {
		if list := x.withheld[l.subject]; !slices.Contains(list, what) {
			x.withheld[l.subject] = append(list, what)
		}
	}
	if l.by != nil {
		t.By = []structs.RequestName{{Namespace: l.by.Namespace, JobID: l.by.Job, Group: l.by.Group}}
	}
}

// refuse notes what would have to be otherwise for a node to take an instance.
func (x *survey) refuse(n *world.NodeState, pool string, list []reason) {
	set := x.last
	if set == nil || set.pool != pool || !slices.Equal(set.reasons, list) {
		set = x.set(pool, list)
		x.last = set
	}
	set.nodes++
	if len(set.fit) < setNodes && !hopeless(x.find.Request, n) && len(x.otherwise(list).lacks(n)) == 0 {
		set.fit = append(set.fit, n)
	}
}

// set returns the nodes that are refused so.
func (x *survey) set(pool string, list []reason) *refusedSet {
	var key strings.Builder
	key.WriteString(pool)
	for _, r := range list {
		key.WriteString("\x00" + r.kind + "\x01" + r.subject)
	}
	set := x.refused[key.String()]
	if set == nil {
		set = &refusedSet{pool: pool, reasons: slices.Clone(list)}
		x.refused[key.String()] = set
		x.sets = append(x.sets, set)
	}
	return set
}

// otherwise is what is known of nodes if the reasons were not: where they are about the
// devices, such of another model would do.
func (x *survey) otherwise(list []reason) *nodeReasons {
	ofDevices := func(r reason) bool {
		return r.kind == structs.ReasonDeviceKind || r.kind == structs.ReasonConstraint && strings.HasPrefix(r.subject, devicePrefix)
	}
	if !slices.ContainsFunc(list, ofDevices) {
		return x.about
	}
	if x.wide == nil {
		find := *x.find
		a := *find.Request
		a.Devices = slices.Clone(a.Devices)
		for i := range a.Devices {
			d := &a.Devices[i]
			req := *d.Request
			req.Constraints = nil
			d.Request, d.Name = &req, ""
		}
		find.Request = &a
		x.wide = newNodeReasons(&find)
	}
	return x.wide
}

// reasons returns the counted reasons, in the order in which they are reported.
func (x *survey) reasons() []structs.NodeReason {
	out := make([]structs.NodeReason, 0, len(x.tally))
	for _, t := range x.tally { // sorted below
		here := t.Most
		if x.measured(t.Kind) {
			for _, s := range x.fitting {
				t.Most = max(t.Most, x.has(t, s))
			}
			for i := range x.short {
				t.Most = max(t.Most, x.has(t, x.short[i].n))
			}
		}
		t.Text = x.text(t)
		if x.measured(t.Kind) && t.Most >= t.Need { // others have as much, which is reserved, or lack something else
			t.Text = x.measuredText(t, here, "on one of these nodes")
		}
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b structs.NodeReason) int {
		return cmp.Or(
			cmp.Compare(slices.Index(reasonOrder, a.Kind), slices.Index(reasonOrder, b.Kind)),
			cmp.Compare(b.Nodes, a.Nodes), strings.Compare(a.Subject, b.Subject))
	})
	return out
}

// measured reports whether a reason is about an amount that any node has some of.
func (x *survey) measured(kind string) bool {
	switch kind {
	case structs.ReasonCPU, structs.ReasonMemory, structs.ReasonDisk, structs.ReasonCores:
		return true
	}
	return false
}

// has is what a node has free of what others lack.
func (x *survey) has(t *structs.NodeReason, n *world.NodeState) int64 {
	free := n.Free()
	switch t.Kind {
	case structs.ReasonCPU:
		return free.CPU
	case structs.ReasonMemory:
		return free.MemoryMB
	case structs.ReasonDisk:
		return free.DiskMB
	}
	return int64(n.FreeCores())
}

// text returns what a reason is, after "n nodes: ".
func (x *survey) text(t *structs.NodeReason) string {
	switch t.Kind {
	case structs.ReasonDown:
		return "down"
	case structs.ReasonDisconnected:
		return "disconnected"
	case structs.ReasonNotReady:
		return "not ready yet"
	case structs.ReasonDraining:
		return "being drained"
	case structs.ReasonIneligible:
		return "not eligible for new work"
	case structs.ReasonDiskFull:
		return "with a full disk"
	case structs.ReasonDatacenter:
		return fmt.Sprintf("in datacenter %q, which the job does not name", t.Subject)
	case structs.ReasonDriver:
		if !x.knows(t.Subject) {
			return x.strange(t.Subject)
		}
		return fmt.Sprintf("driver %q is missing or not healthy", t.Subject) + x.heard(t)
	case structs.ReasonConstraint:
		return "constraint not met: " + t.Subject
	case structs.ReasonVolume:
		return fmt.Sprintf("volume %q is missing, or read-only where it is to be written", t.Subject)
	case structs.ReasonDeviceKind:
		return fmt.Sprintf("no device matches the request for %s", t.Subject)
	case structs.ReasonCandidates:
		return "not among the candidates"
	case structs.ReasonDistinctHosts:
		return "an instance runs there already (distinct_hosts)"
	case structs.ReasonDistinctValues:
		return "as many instances as may share its value run already: " + t.Subject
	}
	return x.roomText(t)
}

// knows reports whether any node reports a driver, be it that it cannot work there. What none does
// is most likely misspelt, or nothing that its clients have.
func (x *survey) knows(driver string) bool {
	if x.drivers == nil {
		all := map[string]bool{}
		for _, n := range world.NodeStates(world.Base(x.find.Edit)).All {
			if n.Node == nil {
				continue
			}
			for name := range n.Node.Drivers { // sorted below
				all[name] = true
			}
			for key := range n.Node.Attributes { // what clients without driver reports state
				if name, of := strings.CutPrefix(key, "driver."); of && !strings.Contains(name, ".") {
					all[name] = true
				}
			}
		}
		x.drivers = slices.AppendSeq([]string{}, maps.Keys(all))
		slices.Sort(x.drivers)
	}
	return slices.Contains(x.drivers, driver)
}

// strange returns the text for a driver that no node knows, with the nearest known name.
func (x *survey) strange(driver string) string {
	text := fmt.Sprintf("no node knows driver %q", driver)
	if near := structs.Nearest(driver, x.drivers); near != "" {
		return text + fmt.Sprintf("; did you mean %q?", near)
	}
	if len(x.drivers) > 0 {
		text += "; nodes have " + strings.Join(x.drivers, ", ")
	}
	return text
}

// heard returns the most frequent health description that nodes report of a driver that they lack.
func (x *survey) heard(t *structs.NodeReason) string {
	descriptions, most := x.descriptions[t.Subject], ""
	for _, text := range slices.Sorted(maps.Keys(descriptions)) {
		if descriptions[text] > descriptions[most] {
			most = text
		}
	}
	switch descriptions[most] {
	case 0:
		return ""
	case t.Nodes:
		return ": " + most
	}
	return fmt.Sprintf("; %d of them report: %s", descriptions[most], most)
}

// reservedBy begins the text about room that a workflow has reserved, before the workflow's key.
const reservedBy = "what is free is reserved by workflow "

// measuredText is the text about an amount of which at most so much is free somewhere.
func (x *survey) measuredText(t *structs.NodeReason, most int64, where string) string {
	what := map[string]string{
		structs.ReasonCPU: "cpu: %d MHz", structs.ReasonMemory: "memory: %d MiB", structs.ReasonDisk: "disk: %d MiB", structs.ReasonCores: "cores: %d",
	}[t.Kind]
	return fmt.Sprintf(what+" are requested, at most %d are free %s", t.Need, most, where)
}

func (x *survey) roomText(t *structs.NodeReason) string {
	if x.measured(t.Kind) {
		return x.measuredText(t, t.Most, "on a node")
	}
	switch t.Kind {
	case structs.ReasonDevices:
		return fmt.Sprintf("%s: %d are requested, at most %d are free on one of these nodes, %d on all of them", t.Subject, t.Need, t.Most, t.Free)
	case structs.ReasonCell:
		return fmt.Sprintf("%d devices are free, but no free cell of level %s fits the %d that are requested", t.Free, t.Subject, t.Need)
	case structs.ReasonShare:
		return fmt.Sprintf("%s: a share of %d is requested, at most %d of a device is left", t.Subject, t.Need, t.Most)
	case structs.ReasonPort:
		return "port " + t.Subject + " is in use"
	case structs.ReasonDynamicPort:
		return "no dynamic port is free"
	case structs.ReasonHostNetwork:
		return fmt.Sprintf("there is no host network %q", t.Subject)
	case structs.ReasonReserved:
		if key, is := strings.CutPrefix(t.Subject, ofWorkflow); is {
			return strings.Join(x.withheld[t.Subject], ", ") + ": " + reservedBy + key + ", " + x.refusal(key)
		}
		return "room is reserved for " + t.Subject + ", which has waited longer"
	}
	return t.Subject
}
