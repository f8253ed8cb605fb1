package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

// firstWeek is when week 2026-W48 begins.
var firstWeek = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

const weekLength = 7 * 24 * time.Hour

// weekEdit is an edit of the nth week after 2026-W48, made in the middle of 2026-W48.
func weekEdit(project string, n int, list ...structs.CalendarRow) *structs.ProjectCalendarEntry {
	from := firstWeek.Add(time.Duration(n) * weekLength)
	year, number := from.ISOWeek()
	return &structs.ProjectCalendarEntry{
		Week: &structs.ProjectWeek{
			Project: project, Week: fmt.Sprintf("%04d-W%02d", year, number), Rows: list, From: from.UnixNano(), To: from.Add(weekLength).UnixNano(),
		},
		Time: firstWeek.Add(weekLength / 2).UnixNano(),
	}
}

func slots(count int, step ...string) structs.CalendarRow {
	r := structs.CalendarRow{Type: structs.SlotBatch, Count: count}
	if len(step) > 0 {
		r.Step = step[0]
	}
	return r
}

// projectWorld is a store with nodes that offer 100 batch and 10 big slots, a flow and two projects.
func projectWorld(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	for i := range 10 {
		n := node(fmt.Sprintf("n%d", i))
		n.NodeResources.Slots, n.NodeResources.Cpu.TotalCpuCores = map[string]int{"batch": 10, "big": 1, structs.SlotOverflow: 5}, 16
		w.must(&structs.NodeRegisterEntry{Node: n, Time: w.now()})
	}
	w.must(&structs.FlowUpsertEntry{Flow: &structs.Flow{Name: "asic", Steps: []string{"synthesis", "place"}}})
	w.must(&structs.ProjectUpsertEntry{Project: &structs.Project{Name: "chip", Users: []string{"ada"}, Flow: "asic"}})
	w.must(&structs.ProjectUpsertEntry{Project: &structs.Project{Name: "board", Steps: []string{"layout"}}})
	return w
}

// TestWrongCalendars lists what is refused, and how. Nothing of it is stored.
func TestWrongCalendars(t *testing.T) {
	w := projectWorld(t)
	w.must(weekEdit("board", 1, slots(70)))
	before := w.store.Snapshot().Hash()
	named := func(name string) *structs.ProjectCalendarEntry {
		e := weekEdit("chip", 1, slots(1))
		e.Week.Week = name
		return e
	}
	row := func(r structs.CalendarRow) *structs.ProjectCalendarEntry { return weekEdit("chip", 1, slots(1), r) }
	for _, bad := range []struct {
		entry *structs.ProjectCalendarEntry
		code  structs.Code
		text  string
	}{
		{weekEdit("nobody", 1, slots(1)), structs.CodeNotFound, `project "nobody": not found`},
		{weekEdit("chip", -1, slots(1)), structs.CodeBadRequest, `calendar "2026-W47": the week is over since 2026-11-23T00:00:00Z`},
		{weekEdit("chip", 106, slots(1)), structs.CodeBadRequest, "weeks up to 104 ahead"},
		{named("2026-W54"), structs.CodeBadRequest, `there is no week "2026-W54"`},
		{named("2027-W53"), structs.CodeBadRequest, `there is no week "2027-W53"`},
		{named("26-W1"), structs.CodeBadRequest, `there is no week "26-W1"`},
		{row(slots(-1)), structs.CodeBadRequest, "slots 2: count: must be 0 to 1000000, not -1"},
		{row(slots(2)), structs.CodeBadRequest, "slots 2: the type, step, user, group and job are those of slots 1"},
		{row(slots(1, "layout")), structs.CodeBadRequest, `slots 2: step: the project has no step "layout" (its steps are synthesis, place)`},
		{row(structs.CalendarRow{Count: 1}), structs.CodeBadRequest, "slots 2: type is missing"},
		{row(structs.CalendarRow{Type: "huge"}), structs.CodeBadRequest, `no node has slots of type "huge", nor does the scheduler's configuration (known types are batch, big, interactive-heavy, interactive-light)`},
		{row(structs.CalendarRow{Type: "overflow", Count: 1}), structs.CodeBadRequest, "belong to nobody, and are in no calendar"},
		{row(structs.CalendarRow{Type: "batch", User: "ada", Group: "chip"}), structs.CodeBadRequest, "user and group are both stated"},
		{row(structs.CalendarRow{Type: "batch", User: "a b"}), structs.CodeBadRequest, `user: "a b"`},
		{row(structs.CalendarRow{Type: "batch", Job: "[a"}), structs.CodeBadRequest, "must be a glob"},
		{weekEdit("chip", 1, slots(31)), structs.CodeConflict, `calendar "2026-W49": type "batch": there are 100 slots, 70 of them are given to other projects, and 31 are requested: 1 too many`},
		{row(structs.CalendarRow{Type: "big", Count: 12}), structs.CodeConflict, `type "big": there are 10 slots, 0 of them are given to other projects, and 12 are requested: 2 too many`},
		{row(structs.CalendarRow{Type: structs.SlotInteractiveLight, Count: 1}), structs.CodeConflict, "there are 0 slots"},
	} {
		w.refusesWith(bad.entry, bad.code, bad.text)
	}
	if w.store.Snapshot().Hash() != before {
		t.Error("something of what was refused is stored")
	}
}

// TestSlotCapacity: nodes that are down count, ineligible ones do not; one that states no slots offers its cores unless it has devices.
func TestSlotCapacity(t *testing.T) {
	w := projectWorld(t)
	w.must(&structs.NodeStatusEntry{NodeIDs: []string{"n0"}, Status: structs.NodeStatusDown, Time: w.now(), EvalSeed: "s"})
	w.must(weekEdit("chip", 0, slots(100)))
	w.must(&structs.NodeEligibilityEntry{NodeID: "n1", Eligibility: structs.NodeIneligible, Time: w.now(), EvalSeed: "s"})
	// What is given already stays, and may become less, but not more.
	w.must(weekEdit("chip", 0, slots(99)))
	w.must(weekEdit("chip", 0, slots(99), slots(0, "place")))
	w.refusesWith(weekEdit("chip", 0, slots(99), slots(1, "place")), structs.CodeConflict, "there are 90 slots, 0 of them are given to other projects, and 100 are requested: 10 too many")
	w.must(&structs.NodeRegisterEntry{Node: node("plain"), Time: w.now()})
	cores := int(node("plain").NodeResources.Cpu.TotalCpuCores)
	w.must(&structs.NodeRegisterEntry{Node: gpuNode("gpus", "r1"), Time: w.now()})
	w.refusesWith(weekEdit("board", 2, slots(91+cores)), structs.CodeConflict, fmt.Sprintf("there are %d slots", 90+cores))
	w.must(weekEdit("board", 2, slots(90+cores)))
}

// TestSlotsBesideReservations: in the week that has begun no slots are given out of which workflows have reserved the room; in later ones they are, as
// runs end. What is free beside the slots of a node may be reserved without that.
func TestSlotsBesideReservations(t *testing.T) {
	w := projectWorld(t)
	j := job("j")
	j.Type = structs.JobTypeBatch
	wf := &structs.Workflow{ID: "wf", Stages: []*structs.WorkflowStage{{Name: "s", Jobs: []*structs.WorkflowJob{{Name: "j", Job: j}}}}}
	wf.Canonicalize()
	w.must(&structs.WorkflowRunEntry{Workflow: wf, Time: w.now()})
	each := node("n0").NodeResources.Cpu
	each.TotalCpuCores = 16
	reserve := func(cores ...int64) {
		r := &structs.WorkflowReservation{Namespace: structs.DefaultNamespace, ID: "wf", Run: 1, Posted: true}
		for i, n := range cores {
			r.Parts = append(r.Parts, structs.WorkflowPart{NodeID: fmt.Sprintf("n%d", i), CPU: n * each.MHzPerCore(), MemoryMB: 100})
		}
		w.plan(&structs.JudgedPlan{JudgedAt: w.index, Workflow: r})
	}
	reserve(4)
	w.must(weekEdit("chip", 0, slots(100)))
	w.must(weekEdit("chip", 0))
	reserve(8, 8) // of each of these nodes 2 of the 10 slots
	w.refusesWith(weekEdit("chip", 0, slots(97)), structs.CodeConflict,
		"there are 100 slots, 0 of them are given to other projects, workflows have reserved the room of 4 until they end, and 97 are requested: 1 too many")
	w.must(weekEdit("chip", 0, slots(96)))
	w.must(weekEdit("chip", 1, slots(100)))
}

// TestFittingSlots: no more slots of a node may be given out than its cores and its memory hold, whether it states them or not.
func TestFittingSlots(t *testing.T) {
	w := newWorld(t)
	w.must(&structs.ProjectUpsertEntry{Project: &structs.Project{Name: "chip"}})
	config := structs.DefaultSchedulerConfiguration()
	for _, row := range []struct {
		of    map[string]int
		batch structs.SlotType
		want  int
	}{
		{map[string]int{"batch": 8}, structs.SlotType{}, 8}, {map[string]int{"batch": 8}, structs.SlotType{Cores: 2}, 4}, {nil, structs.SlotType{Cores: 2}, 4},
		{map[string]int{"batch": 8}, structs.SlotType{MemoryMB: 5000}, 3}, {map[string]int{"aside": 5, "batch": 8}, structs.SlotType{}, 3},
		{map[string]int{"batch": 2}, structs.SlotType{Cores: 100}, 1},
	} {
		n := node("n0") // of 8 cores and 16,000 MiB
		n.NodeResources.Slots, row.batch.Name = row.of, structs.SlotBatch
		w.must(&structs.NodeRegisterEntry{Node: n, Time: w.now()})
		config.Slots = &structs.SlotSettings{Types: []structs.SlotType{row.batch}}
		w.must(&structs.SchedulerConfigEntry{Config: config, Time: w.now()})
		w.refusesWith(weekEdit("chip", 1, slots(row.want+1)), structs.CodeConflict, fmt.Sprintf("there are %d slots", row.want))
		w.must(weekEdit("chip", 1, slots(row.want)))
		w.must(weekEdit("chip", 1))
	}
}

// TestConfiguredSlotTypes: a type that only the scheduler's configuration has is known, of no slots until nodes state some, and unknown
// again without it.
func TestConfiguredSlotTypes(t *testing.T) {
	w := projectWorld(t)
	wide := func(count int) *structs.ProjectCalendarEntry {
		return weekEdit("chip", 1, structs.CalendarRow{Type: "wide", Count: count})
	}
	w.refusesWith(wide(1), structs.CodeBadRequest, `no node has slots of type "wide"`)
	config := structs.DefaultSchedulerConfiguration()
	config.Slots = &structs.SlotSettings{Types: []structs.SlotType{{Name: "wide", Cores: 4}}}
	w.must(&structs.SchedulerConfigEntry{Config: config, Time: w.now()})
	w.refusesWith(wide(1), structs.CodeConflict, `type "wide": there are 0 slots`)
	w.must(wide(0))
	w.refusesWith(weekEdit("chip", 1, structs.CalendarRow{Type: "wider", Count: 1}), structs.CodeBadRequest, "known types are batch, big, interactive-heavy, interactive-light, wide)")
	w.refusesWith(weekEdit("chip", 1, structs.CalendarRow{Type: structs.SlotOverflow, Count: 1}), structs.CodeBadRequest, "belong to nobody")
	n := node("large")
	n.NodeResources.Slots = map[string]int{"wide": 2}
	w.must(&structs.NodeRegisterEntry{Node: n, Time: w.now()})
	w.must(wide(2))
	config.Slots = nil
	w.must(&structs.SchedulerConfigEntry{Config: config, Time: w.now()})
	w.must(wide(1))
}

// TestTwoEditsOfOneWeek: one wins, and the other is shown what it would have overwritten.
func TestTwoEditsOfOneWeek(t *testing.T) {
	w := projectWorld(t)
	first, second := weekEdit("chip", 3, slots(4, "place")), weekEdit("chip", 3, slots(7))
	first.CAS, second.CAS, first.By = true, true, "lead"
	w.must(first)
	w.refusesWith(second, structs.CodeConflict, fmt.Sprintf(`calendar "2026-W51": it was last edited at index %d by lead, not 0, and has 4 batch (place, any) now`, w.index))
	second.CheckIndex = w.index - 1
	w.must(second)
	edits := slices.Collect(w.store.Snapshot().Projects(nil).Edits("chip"))
	if len(edits) != 2 || edits[1].By != "lead" || edits[1].Time != first.Time || len(edits[1].Before) != 0 || structs.RowsText(edits[0].Before) != "4 batch (place, any)" ||
		structs.RowsText(edits[0].After) != "7 batch (any, any)" || edits[0].Index != w.index {
		t.Errorf("%+v %+v", edits[0], edits[1])
	}
	// What changes nothing is no edit.
	w.must(weekEdit("chip", 3, slots(7)))
	if week := w.store.Snapshot().Projects(nil).Week("chip", "2026-W51"); week.ModifyIndex != w.index-1 {
		t.Errorf("an edit that changes nothing moved the index to %d", week.ModifyIndex)
	}
	w.refusesWith(first, structs.CodeConflict, fmt.Sprintf("at index %d by operator, not 0, and has 7 batch (any, any) now", w.index-1))
	for i := range structs.MaxCalendarEdits + 5 {
		w.must(weekEdit("chip", 3, slots(i%2)))
	}
	if n := len(slices.Collect(w.store.Snapshot().Projects(nil).Edits("chip"))); n != structs.MaxCalendarEdits {
		t.Errorf("%d edits are kept", n)
	}
}

// TestProjectsAndFlows: what projects, flows and calendars require of each other.
func TestProjectsAndFlows(t *testing.T) {
	w := projectWorld(t)
	put := func(p structs.Project) *structs.ProjectUpsertEntry {
		return &structs.ProjectUpsertEntry{Project: &p, Time: firstWeek.UnixNano()}
	}
	steps := func(names ...string) *structs.FlowUpsertEntry {
		return &structs.FlowUpsertEntry{Flow: &structs.Flow{Name: "asic", Steps: names}, Time: firstWeek.UnixNano()}
	}
	w.refusesWith(put(structs.Project{Name: "new", Flow: "none"}), structs.CodeBadRequest, `there is no flow "none"`)
	w.refusesWith(&structs.FlowDeleteEntry{Name: "asic"}, structs.CodeConflict, `project "chip" follows it`)
	w.must(weekEdit("chip", 0, slots(1, "place")))
	w.refusesWith(steps("synthesis"), structs.CodeConflict, `the calendar of 2026-W48 has 1 batch (place, any), and the step "place" would be gone`)
	w.refusesWith(put(structs.Project{Name: "chip", Steps: []string{"synthesis"}}), structs.CodeConflict, `the step "place" would be gone`)
	w.must(steps("place", "route"))
	w.must(put(structs.Project{Name: "chip", Steps: []string{"place"}}))
	if p := w.store.Snapshot().Projects(nil).Get("chip"); p.Objective != structs.ObjectiveVelocity || p.ModifyIndex != w.index || p.CreateIndex == w.index {
		t.Errorf("%+v", p)
	}
	late := put(structs.Project{Name: "chip"})
	late.Time = firstWeek.Add(weekLength).UnixNano()
	w.must(late) // the week with the step is over
	w.must(&structs.FlowDeleteEntry{Name: "asic"})
	w.refusesWith(&structs.FlowDeleteEntry{Name: "asic"}, structs.CodeNotFound, "not found")
	cas := put(structs.Project{Name: "board"})
	cas.CAS, cas.CheckIndex = true, 1
	w.refusesWith(cas, structs.CodeConflict, "not 1")
	w.must(&structs.ProjectDeleteEntry{Name: "chip"})
	s := w.store.Snapshot().Projects(nil)
	if s.Get("chip") != nil || s.Week("chip", "2026-W48") != nil || len(slices.Collect(s.Edits("chip"))) > 0 {
		t.Error("something of a deleted project is left")
	}
	w.must(weekEdit("board", 0, slots(1)))
	year := weekEdit("board", 60, slots(1))
	year.Time = firstWeek.Add(60 * weekLength).UnixNano()
	w.must(year)
	if weeks := slices.Collect(w.store.Snapshot().Projects(nil).Weeks("board")); len(weeks) != 1 {
		t.Errorf("%d weeks are kept", len(weeks))
	}
}

// TestCalendarMachine: whatever is edited, no week gives out more than there is, and the edits, one after the other, lead to the rows.
func TestCalendarMachine(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := projectWorld(t)
		for range rapid.IntRange(1, 30).Draw(rt, "edits") {
			project := rapid.SampledFrom([]string{"chip", "board"}).Draw(rt, "project")
			var list []structs.CalendarRow
			for i := range rapid.IntRange(0, 3).Draw(rt, "rows") {
				list = append(list, structs.CalendarRow{
					Type: rapid.SampledFrom([]string{"batch", "big"}).Draw(rt, "type"), User: fmt.Sprint("u", i), Count: rapid.IntRange(0, 60).Draw(rt, "count"),
				})
			}
			_ = w.apply(weekEdit(project, rapid.IntRange(-1, 2).Draw(rt, "week"), list...))
		}
		s := w.store.Snapshot().Projects(nil)
		totals, replayed := map[string]int{}, map[string][]structs.CalendarRow{}
		for _, project := range []string{"chip", "board"} {
			edits := slices.Collect(s.Edits(project))
			slices.Reverse(edits)
			for _, e := range edits {
				if !slices.Equal(replayed[project+e.Week], e.Before) {
					rt.Fatalf("%s %s: before the edit at %d: %v, want %v", project, e.Week, e.Index, e.Before, replayed[project+e.Week])
				}
				replayed[project+e.Week] = e.After
			}
			for week := range s.Weeks(project) {
				if !slices.Equal(replayed[project+week.Week], week.Rows) {
					rt.Fatalf("%s %s: the edits lead to %v, the rows are %v", project, week.Week, replayed[project+week.Week], week.Rows)
				}
				for name, n := range structs.RowsTotal(week.Rows) {
					totals[week.Week+" "+name] += n
				}
			}
		}
		for what, n := range totals {
			if strings.HasSuffix(what, "batch") && n > 100 || strings.HasSuffix(what, "big") && n > 10 {
				rt.Fatalf("%s: %d slots are given out", what, n)
			}
		}
	})
}

// BenchmarkCalendarEdit edits a week of a calendar of 500 projects and 12 weeks, on 10,000 nodes.
func BenchmarkCalendarEdit(b *testing.B) {
	_, wr := New(Options{})
	index := uint64(0)
	must := func(payload any) {
		index++
		if err := wr.Apply(index, 0, payload); err != nil {
			b.Fatal(err)
		}
	}
	first := node("first")
	first.NodeResources.Slots, first.NodeResources.Cpu.TotalCpuCores = map[string]int{structs.SlotBatch: 10_000}, 10_000
	must(&structs.NodeRegisterEntry{Node: first, EvalSeed: "s"})
	for i := range 500 {
		name := fmt.Sprintf("p%03d", i)
		must(&structs.ProjectUpsertEntry{Project: &structs.Project{Name: name, Steps: []string{"a", "b", "c"}}})
		for n := range 12 {
			must(weekEdit(name, n, slots(4), slots(3, "a"), slots(2, "b"), slots(1, "c")))
		}
	}
	for i := range 10_000 {
		must(&structs.NodeRegisterEntry{Node: node(fmt.Sprintf("n%05d", i)), EvalSeed: "s"})
	}
	b.ResetTimer()
	for i := range b.N {
		must(weekEdit(fmt.Sprintf("p%03d", i%500), i%12, slots(4), slots(3, "a"), slots(2, "b"), slots(2+i/6000%2, "c")))
	}
}
