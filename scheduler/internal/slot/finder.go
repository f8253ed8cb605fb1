package slot

import (
	"iter"
	"math"

	"github.com/nomadish/nomadish/scheduler/entitle/slots"
	"github.com/nomadish/nomadish/scheduler/internal/claim"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/slotbook"
	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// fewNodes is up to how many nodes with slots left are tried one by one: of more, most have room where any has.
const fewNodes = 32

// Finder finds where instances of a group may use slots of their project.
type Finder struct {
	e      *world.Edit
	of     *slots.Instance // nil: instances use no slots
	volume slots.Volume
	kind   structs.SlotType
	part   float64 // of a slot, up to which an instance is light
	search *search.Search
	few    *search.Search // among the few nodes that have slots left
	listed bool
	cells  *claim.Finder // nil: instances need no devices
	// failed: only those are taken from that failed the submission check.
	failed bool
	config *structs.SchedulerConfiguration
	// pending returns how many instances of a project are pending.
	pending func(project string) int
}

// OfFailed returns a Finder of who leaves for an instance that uses no slot: those whose jobs failed the submission check.
func OfFailed(in *search.Input, e *world.Edit, s *search.Search) *Finder {
	return &Finder{e: e, search: s, failed: true, config: &in.Config, pending: in.Pending}
}

// OfFailed returns a Finder of who leaves for an instance that uses slots: those whose jobs failed the submission check.
func (f *Finder) OfFailed() *Finder {
	of := *f
	of.failed = true
	return &of
}

// NewFinder returns a Finder for a group of a job; nil: the job's instances use no slots. begin returns a new search for the group.
func NewFinder(in *search.Input, e *world.Edit, group *structs.TaskGroup, begin func() *search.Search) *Finder {
	f := entitledTo(in, e, group)
	if f == nil {
		return nil
	}
	f.search = begin()
	f.search.Request.By.Entitled = true
	if f.volume.GPUs > 0 {
		if f.cells = claim.NewSlotFinder(in.Job, in.Job.Project, f.kind.GPUs, f.search); f.cells == nil {
			return nil
		}
	}
	f.search.Allow = func(n *world.NodeState) bool {
		_, ok := f.On(n)
		return ok
	}
	return f
}

// entitledTo returns a Finder that searches nothing yet.
func entitledTo(in *search.Input, e *world.Edit, group *structs.TaskGroup) *Finder {
	w := world.Base(e)
	if w.Slots() == nil || in.Job.Project == "" || in.Job.PerNode() || in.Job.Class == structs.ClassOpportunistic ||
		standing.Check(w, in.Job) != structs.SubmissionRecognised {
		return nil
	}
	f := &Finder{e: e, config: &in.Config, pending: in.Pending, kind: w.SlotSettings().TypeOf(standing.SubmissionOf(in.Job).Type), part: in.Config.LightPart()}
	if f.of, f.volume = standing.Instance(w, in.Job, group); f.volume.GPUs > 0 && (f.kind.GPUs == 0 || !feasible.MayClaim(group)) {
		return nil
	}
	f.of.ID, f.of.Start = "", math.MaxInt64
	return f
}

// Use is what an instance takes of a node's slots beside its cost. Level is that of the cells that its devices are in, "" without devices.
type Use struct {
	Guards int
	Light  bool
	Level  string
}

// On returns what an instance would take of a node's slots; false: the node has not enough left.
func (f *Finder) On(n *world.NodeState) (u Use, ok bool) {
	if f.of == nil {
		return u, true
	}
	u = f.use(n)
	return u, f.book().Holds(n.ID, f.of.Type, f.of.Cost, u.Guards, u.Light)
}

// use returns what an instance takes of a node's slots, whether or not the node has so many.
func (f *Finder) use(n *world.NodeState) (u Use) {
	r := n.Node.NodeResources
	if r == nil {
		return u
	}
	_, memory := f.kind.VolumeOn(r)
	slot := slots.Volume{MilliCores: 1000 * int64(f.kind.Cores), MemoryMB: memory, GPUs: int64(f.kind.GPUs)}
	return Use{slots.Guards(f.volume, slot, f.of.Cost), slots.IsLight(f.volume, slot, f.part), f.level(n)}
}

// level returns the level of the cells that are slots, on a node; "" if instances need no devices, or nothing can be owned of those of the node.
func (f *Finder) level(n *world.NodeState) string {
	if f.volume.GPUs == 0 {
		return ""
	}
	return Level(world.Base(f.e), n, f.kind.GPUs)
}

// Level returns the level of the cells on a node that are slots of so many GPUs; "": there are none.
func Level(w *world.World, n *world.NodeState, gpus int) string {
	keys, _ := world.NodeChains(n.Node, n.Capacity)
	for _, key := range keys {
		if chain, known := w.Chain(key); known && key.Type == claim.GPU {
			if level, fits := chain.LevelFor(gpus); fits {
				return chain.Levels()[level].Name
			}
		}
	}
	return ""
}

// InCells reports whether instances need devices: their slots are cells of their project.
func (f *Finder) InCells() bool { return f.cells != nil }

// Cells calls yield for the cells of the project that may hold one more instance, on nodes that have slots left, or on one node if it is named, with what
// it would take of their slots. The edit may change before the next is taken only if no other is.
func (f *Finder) Cells(node string) iter.Seq2[claim.Cell, Use] {
	return func(yield func(claim.Cell, Use) bool) {
		for at := range f.cells.Cells(f.e, node) {
			if n, known := world.StateOf(f.e, at.Node); known && n.Node != nil {
				if use, ok := f.On(n); ok && !yield(at, use) {
					return
				}
			}
		}
	}
}

// Aim keeps a request for slots to a cell of a node.
func (f *Finder) Aim(a *search.Request, at claim.Cell) {
	if n, known := world.StateOf(f.e, at.Node); known {
		f.cells.Aim(a, n, at)
	}
}

func (f *Finder) book() *slotbook.Book { return world.Base(f.e).Slots() }

// Instance returns an instance of the group as its project's slots count it.
func (f *Finder) Instance() *slots.Instance { return f.of }

// HasSlots reports whether a row of the project has room for one more instance.
func (f *Finder) HasSlots() bool {
	account := f.book().Account(f.of.Project)
	return account != nil && account.Holds(f.of)
}

// UnderAllocated reports whether the project runs so few instances, on slots or not, that with one more it does not exceed its slots of the type.
func (f *Finder) UnderAllocated() bool {
	account := f.book().Account(f.of.Project)
	return account != nil && f.book().Running(f.of.Project, f.of.Type)+f.of.Cost <= account.Given(f.of.Type)
}

// Next finds a node for one more instance that has slots left and room.
func (f *Finder) Next(avoid []string) *search.Found {
	if s := f.among(); s != nil {
		return s.Next(avoid)
	}
	return f.search.Next(avoid)
}

// among returns the search among the nodes that have slots left; nil: they are many, or not to be tried one by one. Light instances may use guards
// of nodes that have none left.
func (f *Finder) among() *search.Search {
	if f.search.Candidates != nil || f.search.Scorer != nil || f.mayBeLight() {
		return nil
	}
	if !f.listed {
		f.listed, f.few = true, nil
		if list := f.book().NodesLeft(f.of.Type, f.of.Cost, fewNodes); list != nil {
			s := f.search.ForNamed(f.search.Request)
			s.Candidates = list
			f.few = s
		}
	}
	return f.few
}

// mayBeLight reports whether an instance may be a light one on any node.
func (f *Finder) mayBeLight() bool {
	return float64(f.volume.MilliCores) <= f.part*1000*float64(f.kind.Cores)
}

// Taken goes on after an instance has been placed where Next found.
func (f *Finder) Taken(at *search.Found) {
	if f.few == nil {
		f.search.Taken(at)
	}
}

// Rewind begins the search anew, as room was freed.
func (f *Finder) Rewind() {
	f.search.Rewind()
	f.listed = false
}

// Grace returns how long an instance waits before it is taken room for.
func (f *Finder) Grace() int64 { return int64(*f.kind.Grace) }
