package slot

import (
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// BesideOverflow returns a function that reports whether a node holds so much beside its overflow slots, which are nobody's, and used after everything
// else found no room (docs/design/semantics.md, part 4); nil: no node states any.
func BesideOverflow(e *world.Edit, request world.Vector) func(n *world.NodeState) bool {
	w := world.Base(e)
	if w.Slots() == nil || !w.Slots().AnyLeft(structs.SlotOverflow, 1) {
		return nil
	}
	kind := w.SlotSettings().TypeOf(structs.SlotOverflow)
	return func(n *world.NodeState) bool {
		count := int64(w.Slots().Stated(n.ID, structs.SlotOverflow))
		if count == 0 || n.Node.NodeResources == nil {
			return true
		}
		mhz, memory := kind.VolumeOn(n.Node.NodeResources)
		free := n.Free().Minus(request)
		return free.CPU >= count*mhz && free.MemoryMB >= count*memory
	}
}
