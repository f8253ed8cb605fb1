package projecttable

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/structs"
)

// slotCapacity returns how many slots of each type may be given out: those that nodes offer and hold, down ones too, but not ineligible ones.
// Types without any are among them if they are built in, or if the scheduler's configuration has them.
// reserved is what workflows have reserved of nodes, by their IDs: what slots have room beside.
func (x Edit) slotCapacity(reserved map[string]structs.WorkflowPart) map[string]int {
	out := map[string]int{}
	for _, t := range x.Slots.Effective().Types {
		out[t.Name] = 0
	}
	type plain struct { // of a node that states no slots and has no devices: most are alike
		cores  uint16
		memory int64
	}
	alike := map[plain]map[string]int{}
	for n := range x.Nodes {
		if n.SchedulingEligibility == structs.NodeIneligible {
			continue
		}
		var fit map[string]int
		if p, some := reserved[n.ID]; some {
			fit = x.Slots.SlotsBeside(n, p.CPU, p.MemoryMB)
		} else if r := n.NodeResources; r != nil && r.Slots == nil && len(r.Devices) == 0 {
			kind := plain{r.Cpu.TotalCpuCores, r.Memory.MemoryMB}
			if fit = alike[kind]; fit == nil {
				fit = x.Slots.FittingSlots(n)
				alike[kind] = fit
			}
		} else {
			fit = x.Slots.FittingSlots(n)
		}
		for name, count := range fit { // order does not matter: they are summed
			out[name] += count
		}
	}
	delete(out, structs.SlotOverflow)
	return out
}

// givenSlots returns the slots that other projects than one have in a week, by type.
func (x Edit) givenSlots(week, but string) map[string]int {
	out := map[string]int{}
	for w := range memtable.Rows[structs.ProjectWeek](x.Rows, false, Weeks, byWeek, week) {
		if w.Project == but {
			continue
		}
		for _, r := range w.Rows {
			out[r.Type] += r.Count
		}
	}
	return out
}

// checkSlots returns an error if what a project is to have in a week exceeds what the nodes offer less what others have. Slots that it has
// already stay allowed if the nodes have become too few: an edit that takes none of a type more is never refused for it. In the week that has begun
// nodes offer no slots where workflows have reserved the room; a later week begins, as far as is known, after their runs.
func (x Edit) checkSlots(was, now *structs.ProjectWeek) error {
	capacity, reserved := x.slotCapacity(nil), map[string]int{}
	if now.From <= x.Now {
		beside := x.slotCapacity(x.Reserved())
		for name, count := range capacity { // order does not matter: each has its own place
			reserved[name] = count - beside[name]
		}
	}
	for i, r := range now.Rows {
		if _, known := capacity[r.Type]; !known {
			return structs.Errorf(structs.CodeBadRequest, "project %q: calendar %q: slots %d: type: no node has slots of type %q, nor does the scheduler's configuration", now.Project, now.Week, i+1, r.Type).
				WithHint("known types are %s", strings.Join(slices.Sorted(maps.Keys(capacity)), ", "))
		}
	}
	total, before, others := structs.RowsTotal(now.Rows), map[string]int{}, x.givenSlots(now.Week, now.Project)
	if was != nil {
		before = structs.RowsTotal(was.Rows)
	}
	for _, name := range slices.Sorted(maps.Keys(total)) {
		if excess := total[name] + others[name] + reserved[name] - capacity[name]; excess > 0 && total[name] > before[name] {
			hint := "state less, or take slots of that week from another project first"
			if capacity[name] == 0 {
				hint = "no eligible node offers slots of this type: state them in client { slots { … } } of the nodes' agents"
			}
			by := ""
			if reserved[name] > 0 {
				by = fmt.Sprintf(" workflows have reserved the room of %d until they end,", reserved[name])
				hint = "state less until then: `nomadish workflow list` shows the workflows that run"
			}
			return structs.Errorf(structs.CodeConflict, "project %q: calendar %q: type %q: there are %d slots, %d of them are given to other projects,%s and %d are requested: %d too many",
				now.Project, now.Week, name, capacity[name], others[name], by, total[name], excess).
				WithHint("%s", hint)
		}
	}
	return nil
}

// giveCells finds the quota cells that slots with GPUs are, and returns an error if others own them.
func (x Edit) giveCells(was, now *structs.ProjectWeek) error {
	var before []structs.SlotCells
	if was != nil {
		before = was.Cells
	}
	now.Cells = nil
	total := structs.RowsTotal(now.Rows)
	for _, name := range slices.Sorted(maps.Keys(total)) {
		t := x.Slots.TypeOf(name)
		if t.GPUs == 0 || total[name] == 0 {
			continue
		}
		had, cell := 0, (*structs.CellClaim)(nil)
		for i := range before {
			if before[i].Slot == name {
				cell, had = &before[i].Claim, had+before[i].Claim.Count
			}
		}
		is, err := x.CellOfSlot(t)
		switch {
		case err == nil && is != nil:
			cell = is
		case err != nil && total[name] > had: // what there was already may become less
			return structs.Errorf(structs.CodeBadRequest, "project %q: calendar %q: type %q: %w", now.Project, now.Week, name, err)
		}
		if cell != nil {
			of := *cell
			of.Count = total[name]
			now.Cells = append(now.Cells, structs.GiveSlotCells(name, of, before, x.Index)...)
		}
	}
	if err := x.Admit(was, now); err != nil {
		var admit *structs.Error
		if errors.As(err, &admit) {
			err = admit.WithHint("") // which is about virtual clusters
		}
		return structs.Errorf(structs.CodeConflict, "project %q: calendar %q: the GPUs of its slots: %w", now.Project, now.Week, err).
			WithHint("state fewer slots with GPUs: `nomadish vc list` and `nomadish project list` show who owns the others")
	}
	return nil
}
