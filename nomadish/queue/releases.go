package queue

import (
	"cmp"
	"container/list"
	"maps"
	"slices"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// maxPositions bounds the nodes of one commit that are looked at one by one.
const maxPositions = 64

// releases gathers where a commit may have freed room.
type releases struct {
	snap    *state.Snapshot // not older than the commit
	classes map[string]bool // "" is every class
	nodes   map[string]string
	jobs    map[structs.NamespacedID]bool // whose own allocations ended
	// owners are the namespaces of which cells were bound, unbound, or came free within bound ones; allOwners: those of any may have
	// been. unbound are the classes of nodes of such cells: somebody else may bind them.
	owners    map[string]bool
	allOwners bool
	unbound   map[string]bool
	// projects are those whose slots came free, or of which fewer instances run; allProjects: it may be any.
	projects    map[string]bool
	allProjects bool
	// slotNodes are the nodes of which slots came free.
	slotNodes map[string]bool
	// unreserved are the classes of nodes of which a reservation ended and no other was made.
	unreserved map[string]bool
	// licenses are those of which some came free, or of which there are more.
	licenses map[string]bool
	// edited are the namespaces whose virtual clusters were.
	edited map[string]bool
	// lessens: a node can be used for less than before, or for other things.
	lessens bool
	// used are the namespaces that use more or less than before, users the users, if a job has one (else nil); sharesDiffer: what nodes
	// have, or in which pool they are, has changed.
	used         map[string]bool
	users        map[string]bool
	sharesDiffer bool
}

func (r *releases) node(n *structs.Node) {
	r.classes[n.ComputedClass] = true
	r.nodes[n.ID] = n.ComputedClass
}

func (r *releases) note(c *state.Change) {
	switch c.Kind {
	case state.KindNode:
		was, _ := c.Old.(*structs.Node)
		now, _ := c.New.(*structs.Node)
		if now != nil && now.Ready() && (was == nil || !was.Ready() || was.ComputedClass != now.ComputedClass || moreRoom(was, now)) {
			r.node(now)
		}
		r.allOwners = r.allOwners || cellsDiffer(was, now)
		r.allProjects = r.allProjects || now != nil && (was == nil || was.NodeResources != now.NodeResources)
		r.sharesDiffer = r.sharesDiffer || was == nil || now == nil || was.NodePool != now.NodePool || was.NodeResources != now.NodeResources
		r.lessens = r.lessens || was != nil && was.Ready() && (now == nil || !now.Ready() ||
			was.ComputedClass != now.ComputedClass || was.NodeResources != now.NodeResources)
	case state.KindAlloc:
		was, _ := c.Old.(*state.AllocRow)
		now, _ := c.New.(*state.AllocRow)
		r.noteClaim(was, now)
		r.noteUse(was, now)
		r.noteProject(was, now)
		if was == nil || was.Terminal() {
			return // it used nothing
		}
		if now == nil || now.Terminal() || now.DesiredStatus() != was.DesiredStatus() || now.Resources() != was.Resources() {
			r.jobs[was.JobID()] = true
			r.returned(was)
			if node := r.snap.Node(nil, was.NodeID()); node != nil && node.Ready() {
				r.node(node)
			}
		}
	case state.KindReservation:
		was, _ := c.Old.(*structs.Reservation)
		if node := r.snap.Node(nil, c.Key); was != nil && node != nil && node.Ready() {
			r.node(node)
			if c.New == nil {
				r.unreserved[node.ComputedClass] = true
			}
		}
	case state.KindConfig: // preemption or oversubscription may make room anywhere
		if c.Old != nil {
			r.classes[""], r.lessens, r.allOwners, r.allProjects = true, true, true, true
		}
	case state.KindVirtualCluster: // what one owner gives up others may have
		r.edited[c.Key], r.allOwners, r.lessens = true, true, true
	case state.KindJob, state.KindEval, state.KindRequest, state.KindNodePool, state.KindExchange:
	case state.KindWorkflow: // what idles of its reservation, and to whom it is lent
		was, _ := c.Old.(*structs.WorkflowRun)
		now, _ := c.New.(*structs.WorkflowRun)
		for _, run := range []*structs.WorkflowRun{was, now} {
			if run != nil {
				r.reservedBy(run)
			}
		}
		r.reservedDevices(was, now)
	case state.KindLicense:
		r.licenses[c.Key] = true
	case state.KindProject: // what its slots are, and whose
		names, all := state.ChangedProjects(c)
		r.allProjects, r.lessens = r.allProjects || all, true
		if r.snap.World().Slots().AnyFailed() {
			r.classes[""] = true // others may take what these use now
		}
		for _, name := range names {
			r.projects[name] = true
		}
	}
}

// reservedBy notes the nodes of which a workflow has reserved something: others may have more of them, or less, than before.
func (r *releases) reservedBy(run *structs.WorkflowRun) {
	r.lessens = r.lessens || len(run.Parts)+len(run.Keeps) > 0
	for _, l := range run.Licenses {
		r.licenses[l.Name] = true
	}
	for _, p := range slices.Concat(run.Parts, run.Keeps) {
		if node := r.snap.Node(nil, p.NodeID); node != nil && node.Ready() {
			r.node(node)
		}
	}
}

// reservedDevices notes whose cells a workflow's reservation has bound or released. Devices that it had beside all that is owned may complete the cells
// of anybody.
func (r *releases) reservedDevices(was, now *structs.WorkflowRun) {
	if was == nil || now != nil && was.Posted == now.Posted && structs.PartsEqual(was.Parts, now.Parts) {
		return
	}
	for i := range was.Parts {
		switch p := &was.Parts[i]; {
		case len(p.DeviceIDs) == 0:
		case p.CellLevel == "":
			r.allOwners = true
		default:
			r.owners[was.Namespace] = true
			if node := r.snap.Node(nil, p.NodeID); node != nil {
				r.unbound[node.ComputedClass] = true
			}
		}
	}
}

// returned notes the licenses that an allocation used and may use no more.
func (r *releases) returned(was *state.AllocRow) {
	if res := was.Resources(); res != nil && res.Shared.Terms != nil {
		for _, l := range res.Shared.Terms.Licenses.List() {
			r.licenses[l.Name] = true
		}
	}
}

// mayLicense reports whether a group of requests may wait for a license that came free.
func (r *releases) mayLicense(g *group) bool {
	return slices.ContainsFunc(g.requestKey.Licenses, func(name string) bool { return r.licenses[name] })
}

// noteUse notes whose shares an allocation may change.
func (r *releases) noteUse(was, now *state.AllocRow) {
	if was == nil || now == nil || was.Terminal() != now.Terminal() || was.DesiredStatus() != now.DesiredStatus() || was.Resources() != now.Resources() {
		r.used[cmp.Or(now, was).JobID().Namespace] = true
		r.noteUser(was)
		r.noteUser(now)
	}
}

func (r *releases) noteUser(a *state.AllocRow) {
	if r.users == nil || a == nil {
		return
	}
	user := ""
	if res := a.Resources(); res != nil && res.Shared.Terms != nil {
		user = res.Shared.Terms.User
	}
	r.users[user] = true
}

// nodeIDs are the nodes of which room came free; nil: there are none, or too many.
func (r *releases) nodeIDs() []string {
	if len(r.nodes) == 0 || len(r.nodes) > maxPositions {
		return nil
	}
	return slices.Sorted(maps.Keys(r.nodes))
}

// may reports whether what was freed may be what a group of requests waits for; byNodes: room of the nodes alone.
func (r *releases) may(g *group) (may, byNodes bool) {
	if r.classes[""] || r.mayLicense(g) || g.requestKey.Project != "" && (r.allProjects || r.projects[g.requestKey.Project]) || g.key.entitled && r.mayEntitled(g) || g.requestKey.BesideOwned && (r.allOwners || len(r.unbound) > 0) {
		return true, false
	}
	if len(r.nodes) > maxPositions {
		for class := range r.classes { // order does not matter: any will do
			if helps(g.known, class) {
				return true, true
			}
		}
		return false, false
	}
	for id, class := range r.nodes { // order does not matter: any will do
		if helps(g.known, class) && g.requestKey.Helped(r.snap.World(), id) {
			return true, true
		}
	}
	return false, false
}

// moreRoom reports whether a node that was ready came to have more, or other, than it had.
func moreRoom(was, now *structs.Node) bool {
	if was.NodeResources == nil || now.NodeResources == nil {
		return was.NodeResources != now.NodeResources
	}
	if was.ReservedResources != now.ReservedResources {
		return true // a copy of it, or other numbers: a look too many does no harm
	}
	a, z := was.NodeResources, now.NodeResources
	return z.Cpu.CpuShares > a.Cpu.CpuShares || z.Memory.MemoryMB > a.Memory.MemoryMB || z.Disk.DiskMB > a.Disk.DiskMB ||
		len(z.Cpu.ReservableCpuCores) > len(a.Cpu.ReservableCpuCores) || healthy(z.Devices) > healthy(a.Devices) ||
		!maps.Equal(z.Slots, a.Slots) || z.MinDynamicPort != a.MinDynamicPort || z.MaxDynamicPort != a.MaxDynamicPort
}

func healthy(groups []*structs.NodeDeviceResource) (n int) {
	for _, g := range groups {
		for _, d := range g.Instances {
			if d.Healthy {
				n++
			}
		}
	}
	return n
}

// freed is when room last came free in each class of nodes: what was decided on an older
// state has missed it.
type freed struct {
	latest *list.List // of freedClass, latest first
	at     map[string]*list.Element
	floor  uint64 // releases up to this index are not all remembered: any class may have had one
}

// freedClass returns when resources of a class last came free.
type freedClass struct {
	class string
	index uint64
}

// maxFreed bounds the classes whose last release is remembered one by one. The latest
// of those forgotten counts for every class.
const maxFreed = 4096

func newFreed() freed { return freed{latest: list.New(), at: map[string]*list.Element{}} }

// note remembers a release. Releases come in the order of their indexes.
func (f *freed) note(class string, index uint64) {
	if at, ok := f.at[class]; ok {
		f.latest.Remove(at)
	}
	f.at[class] = f.latest.PushFront(freedClass{class: class, index: index})
	if f.latest.Len() > maxFreed {
		oldest := f.latest.Remove(f.latest.Back()).(freedClass) // the list contains nothing else
		delete(f.at, oldest.class)
		f.floor = oldest.index
	}
}

// missed reports whether room that may help came free after the state that an evaluation
// was decided on.
func (f *freed) missed(e *structs.Evaluation) bool {
	for at := f.latest.Front(); at != nil; at = at.Next() {
		c := at.Value.(freedClass) // the list contains nothing else
		if c.index <= e.SnapshotIndex {
			return false // and so are all after it
		}
		if helps(e, c.class) {
			return true
		}
	}
	return f.floor > e.SnapshotIndex
}

// freedLicenses is when some of each license last came free, or more of it was made: what was decided on an older state has missed it. Licenses that
// are gone stay in it: names are few.
type freedLicenses map[string]uint64

func (f freedLicenses) note(r *releases, index uint64) {
	for name := range r.licenses { // order does not matter: all of one index
		f[name] = index
	}
}

// missed reports whether one of some licenses came free after the state that an evaluation was decided on.
func (f freedLicenses) missed(names []string, e *structs.Evaluation) bool {
	return slices.ContainsFunc(names, func(name string) bool { return f[name] > e.SnapshotIndex })
}

// helpsAny reports whether room in one of some classes may be what an evaluation waits for.
func helpsAny(e *structs.Evaluation, classes map[string]bool) bool {
	for class := range classes { // order does not matter: any will do
		if helps(e, class) {
			return true
		}
	}
	return false
}

// helps reports whether room in a class may be what an evaluation waits for. A class
// that it has not met may always be ("" is any class).
func helps(e *structs.Evaluation, class string) bool {
	if e.EscapedComputedClass || class == "" {
		return true
	}
	fits, known := e.ClassEligibility[class]
	return fits || !known
}
