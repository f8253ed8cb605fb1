package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// gpuSlots is a row of slots of one GPU, or, of the type "whole", of eight.
func gpuSlots(slot string, count int) structs.CalendarRow {
	return structs.CalendarRow{Type: slot, Count: count}
}

// gpuProjects is a store with two nodes of eight GPUs, each with eight slots of one GPU and one of eight, and two projects, in 2026-W48.
func gpuProjects(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	for _, id := range []string{"n0", "n1"} {
		n := gpuNode(id, "r1")
		n.NodeResources.Slots, n.NodeResources.Cpu.TotalCpuCores = map[string]int{"gpu": 8, "whole": 1, "three": 2}, 16
		w.must(&structs.NodeRegisterEntry{Node: n, Time: w.now()})
	}
	config := structs.DefaultSchedulerConfiguration()
	config.Slots = &structs.SlotSettings{Types: []structs.SlotType{{Name: "gpu", GPUs: 1}, {Name: "three", GPUs: 3}, {Name: "whole", GPUs: 8, Kind: "H100"}}}
	w.must(&structs.SchedulerConfigEntry{Config: config, Time: w.now()})
	for _, name := range []string{"a", "b"} {
		w.must(&structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: name}})
	}
	w.must(&structs.ProjectUpsertEntry{Project: &structs.Project{Name: "chip"}})
	w.must(&structs.ProjectUpsertEntry{Project: &structs.Project{Name: "board"}})
	w.advanceTo(0)
	return w
}

// advanceTo states that a day of the nth week after 2026-W48 has come.
func (w *world) advanceTo(n int) {
	w.t.Helper()
	w.must(&structs.ClaimsTimeEntry{Now: firstWeek.Add(time.Duration(n)*weekLength + time.Hour).UnixNano(), EvalSeed: fmt.Sprint("turn", n)})
}

// cellsNow returns how many cells of levels a project owns now, and how many of them are doomed: "gpu 8 (0)".
func (w *world) cellsNow(project string) (text string) {
	of := w.store.Snapshot().World()
	for key, chain := range of.Chains {
		for _, a := range chain.Accounts(structs.ProjectOwner(project)) {
			if a.Given > 0 {
				text += fmt.Sprintf("%s %d (%d) of %s;", chain.LevelName(a.Kind), a.Given, a.Doomed, key.Model)
			}
		}
	}
	return text
}

// TestGPUSlotsAreCells: slots with GPUs are quota cells of the smallest level that holds one, in the week in which they are given, whoever
// restores the state.
func TestGPUSlotsAreCells(t *testing.T) {
	w := gpuProjects(t)
	w.must(weekEdit("chip", 0, gpuSlots("gpu", 6), gpuSlots("three", 1)))
	w.must(weekEdit("chip", 1, gpuSlots("gpu", 2)))
	w.must(weekEdit("board", 1, gpuSlots("whole", 1), gpuSlots("gpu", 3)))
	check(t, "this week", w.cellsNow("chip")+" "+w.cellsNow("board"), "gpu 6 (0) of H100;socket 1 (0) of H100; ")
	w.advanceTo(1)
	check(t, "the next", w.cellsNow("chip")+" "+w.cellsNow("board"), "gpu 2 (0) of H100; gpu 3 (0) of H100;node 1 (0) of H100;")
	if d := Differences(w.store.Snapshot()); len(d) > 0 {
		t.Error(d)
	}
	w.must(&structs.ProjectDeleteEntry{Name: "board", Time: firstWeek.Add(weekLength + 2*time.Hour).UnixNano()})
	check(t, "deleted", w.cellsNow("board"), "")
	w.advanceTo(2)
	if w.store.Snapshot().World().AnyOwner() {
		t.Error("nobody has slots with GPUs, and somebody owns cells")
	}
}

// TestCalendarsAgainstVirtualClusters: a calendar cannot give out, as slots with GPUs, what virtual clusters own in that week, and these cannot have what
// calendars give out; the week and what is short are named.
func TestCalendarsAgainstVirtualClusters(t *testing.T) {
	w := gpuProjects(t)
	w.must(owns("a", cellsOf("node", 0, 1)))
	w.refusesWith(weekEdit("chip", 0, gpuSlots("gpu", 9)), structs.CodeConflict, `project "chip": calendar "2026-W48": the GPUs of its slots: level gpu: 1 short`)
	w.must(weekEdit("chip", 0, gpuSlots("gpu", 8)))
	w.refusesWith(weekEdit("board", 0, gpuSlots("gpu", 1)), structs.CodeConflict, "level gpu: 1 short")
	w.refusesWith(owns("b", cellsOf("gpu", 0, 1)), structs.CodeConflict, "level gpu: 1 short")
	w.refusesWith(owns("a", cellsOf("node", 0, 2)), structs.CodeConflict, "level gpu: 8 short")
	// What is given already may become less, and stay.
	w.must(weekEdit("chip", 0, gpuSlots("gpu", 7)))
	w.must(owns("b", cellsOf("gpu", 0, 1)))
	w.refusesWith(weekEdit("chip", 0, gpuSlots("gpu", 8)), structs.CodeConflict, "level gpu: 1 short")
	// A later week is another matter, whoever comes first.
	w.refusesWith(weekEdit("chip", 2, gpuSlots("whole", 2)), structs.CodeConflict, `calendar "2026-W50": the GPUs of its slots: level node: 1 short from 2026-12-07T00:00:00Z`)
	w.refusesWith(weekEdit("chip", 2, gpuSlots("whole", 1)), structs.CodeConflict, "level gpu: 1 short")
	w.must(weekEdit("chip", 2, gpuSlots("gpu", 7)))
	w.must(weekEdit("chip", 0))
	w.refusesWith(owns("b", cellsOf("gpu", 0, 2)), structs.CodeConflict, "level gpu: 1 short from 2026-12-07T00:00:00Z")
	// Windows count, too: those that begin within the week.
	window := owns("b", cellsOf("gpu", 0, 1))
	from := firstWeek.Add(3*weekLength + 24*time.Hour)
	window.VirtualCluster.Windows = []*structs.CellWindow{{From: from, To: from.Add(time.Hour), Cells: []*structs.CellQuota{cellsOf("gpu", 0, 8)}}}
	w.must(window)
	w.refusesWith(weekEdit("board", 3, gpuSlots("gpu", 1)), structs.CodeConflict, `calendar "2026-W51": the GPUs of its slots: level gpu: 1 short from 2026-12-15T00:00:00Z`)
	// The other way round, as the hardware may be away.
	w.must(&structs.NodeStatusEntry{NodeIDs: []string{"n1"}, Status: structs.NodeStatusDown, Time: w.now(), EvalSeed: "s"})
	w.refusesWith(weekEdit("board", 0, gpuSlots("gpu", 1)), structs.CodeConflict, "level gpu: 1 short")
}

// TestUnclearGPUSlots: which cells are meant must be known.
func TestUnclearGPUSlots(t *testing.T) {
	w := gpuProjects(t)
	other := gpuNode("n2", "r1")
	other.NodeResources.Slots, other.NodeResources.Cpu.TotalCpuCores = map[string]int{"gpu": 8, "whole": 1}, 16
	other.NodeResources.Devices[0].Name = "A100"
	w.must(weekEdit("chip", 1, gpuSlots("gpu", 4)))
	w.must(&structs.NodeRegisterEntry{Node: other, Time: w.now()})
	w.refusesWith(weekEdit("chip", 0, gpuSlots("gpu", 1)), structs.CodeBadRequest, `type "gpu": the nodes with such slots have GPUs of several kinds: nvidia/gpu/A100/2x2x2 (node pool default), nvidia/gpu/H100/2x2x2`)
	w.must(weekEdit("chip", 1, gpuSlots("gpu", 3))) // what is given may become less
	w.must(weekEdit("chip", 0, gpuSlots("whole", 1)))
	check(t, "of the kind that is named", w.cellsNow("chip"), "node 1 (0) of H100;")
	config := structs.DefaultSchedulerConfiguration()
	config.Slots = &structs.SlotSettings{Types: []structs.SlotType{{Name: "gpu", GPUs: 16, Kind: "H100"}, {Name: "whole", GPUs: 8, Kind: "B200"}}}
	w.must(&structs.SchedulerConfigEntry{Config: config, Time: w.now()})
	w.refusesWith(weekEdit("chip", 2, gpuSlots("whole", 1)), structs.CodeBadRequest, `type "whole": the nodes with such slots have no GPUs of kind "B200"`)
	w.refusesWith(weekEdit("chip", 2, gpuSlots("gpu", 1)), structs.CodeBadRequest, `a slot has 16 GPUs, and no node of kind nvidia/gpu/H100 has so many`)
}

// TestCellsBeforeSlots: when hardware is lost, virtual clusters are served before slots, and of slots the latest admitted are short first; the turn of a week
// keeps to the order in which its slots were given.
func TestCellsBeforeSlots(t *testing.T) {
	w := gpuProjects(t)
	w.must(weekEdit("board", 1, gpuSlots("gpu", 4)))
	w.must(weekEdit("chip", 0, gpuSlots("gpu", 4)))
	w.must(weekEdit("board", 0, gpuSlots("gpu", 4)))
	w.must(weekEdit("chip", 1, gpuSlots("gpu", 4)))
	w.must(owns("a", cellsOf("gpu", 0, 6)))
	doomed := func() string {
		of := w.store.Snapshot().World()
		text := w.cellsNow("chip") + w.cellsNow("board")
		for _, chain := range of.Chains {
			for _, a := range chain.Accounts("a") {
				text += fmt.Sprint(" a ", a.Doomed)
			}
		}
		if d := Differences(w.store.Snapshot()); len(d) > 0 {
			t.Error(d)
		}
		return text
	}
	status := func(s string) {
		w.must(&structs.NodeStatusEntry{NodeIDs: []string{"n1"}, Status: s, Time: w.now(), EvalSeed: "s"})
	}
	status(structs.NodeStatusDown)
	check(t, "this week", doomed(), "gpu 4 (2) of H100;gpu 4 (4) of H100; a 0")
	w.advanceTo(1)
	check(t, "the next week", doomed(), "gpu 4 (4) of H100;gpu 4 (2) of H100; a 0")
	status(structs.NodeStatusReady)
	check(t, "it is back", doomed(), "gpu 4 (0) of H100;gpu 4 (0) of H100; a 0")
}
