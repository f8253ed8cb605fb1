package scheduler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// gpuProjects is a cluster of nodes of eight GPUs with as many slots of one GPU each, two of half a node and one of a whole one.
func gpuProjects(t tester, nodes int) *projects {
	p := newProjects(t)
	p.config.Slots = &structs.SlotSettings{Types: []structs.SlotType{
		{Name: "gpu", GPUs: 1, MemoryMB: 1000}, {Name: "half", GPUs: 4, MemoryMB: 1000}, {Name: "whole", GPUs: 8, MemoryMB: 1000},
	}}
	p.configure()
	for i := range nodes {
		p.node(fmt.Sprint("n", i), schedtest.EightGPUs, func(n *structs.Node) {
			n.NodeResources.Slots = map[string]int{"gpu": 8, "half": 2, "whole": 1, "batch": 4}
		})
	}
	return p
}

// givesGPUs gives a project slots with GPUs.
func (p *projects) givesGPUs(name, slot string, count int) {
	p.t.Helper()
	p.projects[name] = &structs.ProjectNow{Name: name, Users: []string{name}}
	if count > 0 {
		cell, err := scheduler.CellOfSlot(p.w, p.config.Slots.TypeOf(slot))
		if err != nil {
			p.t.Fatal(err)
		}
		cell.Count, cell.Order = count, 1<<63|uint64(len(p.projects))
		p.projects[name].Rows, p.projects[name].Cells = []structs.CalendarRow{{Type: slot, Count: count}}, []structs.CellClaim{*cell}
	}
	e := p.w.Edit()
	scheduler.SetProject(e, name, p.projects[name])
	p.lose(e)
}

// ownsCells gives the default namespace cells.
func (p *projects) ownsCells(level string, count int) {
	e := p.w.Edit()
	var quotas []world.Quota
	if count > 0 {
		cell, _ := scheduler.CellOfSlot(p.w, structs.SlotType{Name: "gpu", GPUs: 1})
		cell.Level, cell.Count, cell.Order = level, count, 1
		quotas = append(quotas, world.QuotaOf(cell))
	}
	e.SetQuotas("default", quotas)
	p.lose(e)
}

// withGPUs makes a job one that requests GPUs, by slots of a type.
func withGPUs(slot string, gpus int) func(*structs.Job) {
	return func(j *structs.Job) {
		j.Slot = slot
		schedtest.Task(j).Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: gpus}}
	}
}

func inNamespace(name string) func(*structs.Job) { return func(j *structs.Job) { j.Namespace = name } }

// byClaim counts the running instances of a job by claim: on slots, by cells, without.
func (p *projects) byClaim(id string) string {
	n := map[string]int{}
	for _, a := range p.allocs {
		if a.JobID == id && !a.Terminal() {
			t := a.AllocatedResources.Shared.Terms
			n[strings.TrimSuffix(t.Claim+" "+t.CellLevel, " ")]++
		}
	}
	return strings.TrimPrefix(fmt.Sprint(n), "map")
}

func (p *projects) wantClaims(what, id, want string) {
	p.t.Helper()
	if got := p.byClaim(id); got != want {
		p.t.Fatalf("%s: %s, want %s", what, got, want)
	}
	if err := p.w.CheckClaims(); err != nil {
		p.t.Fatalf("%v", err)
	}
}

// TestSlotsWithGPUs: an instance on a slot with GPUs binds a cell of its project, as many as it costs; beyond them it is opportunistic, and raised where it
// runs when slots come free. What requests GPUs that its type of slots does not have uses none.
func TestSlotsWithGPUs(t *testing.T) {
	p := gpuProjects(t, 2)
	p.givesGPUs("chip", "gpu", 5)
	p.submit("chip", "ones", 4, withGPUs("gpu", 1))
	p.wantClaims("of four one is a slot each", "ones", "[slots gpu:4]")
	p.submit("chip", "twos", 1, withGPUs("gpu", 2))
	p.wantClaims("one of two GPUs costs two", "twos", "[:1]")
	p.ends("ones", 1)
	p.submit("chip", "more", 1, withGPUs("gpu", 2))
	p.wantClaims("two are free", "more", "[slots gpu:1]")
	p.givesGPUs("chip", "half", 1)
	p.wantClaims("the type is another one", "more", "[:1]")
	p.submit("chip", "half", 2, withGPUs("half", 1))
	p.wantClaims("each costs a slot, whatever it needs of it", "half", "[:1 slots socket:1]")
	p.givesGPUs("board", "gpu", 2)
	p.gives("chip", 4)
	p.submit("chip", "none", 1, withGPUs(structs.SlotBatch, 1))
	p.wantClaims("slots without GPUs", "none", "[:1]")
}

// TestGPUSlotsTakeRoom: where others use all GPUs without a claim, as many leave as a slot needs, after the grace; those of the cells of a virtual cluster and
// of other slots stay.
func TestGPUSlotsTakeRoom(t *testing.T) {
	p := gpuProjects(t, 3)
	p.ownsCells("node", 1)
	p.givesGPUs("board", "gpu", 4)
	p.givesGPUs("chip", "whole", 1)
	p.submit("", "train", 1, withGPUs("", 8))
	p.submit("board", "sim", 4, withGPUs("gpu", 1), inNamespace("other"))
	p.submit("", "rest", 20, withGPUs("", 1), inNamespace("other"))
	p.wantClaims("a virtual cluster", "train", "[cells node:1]")
	p.wantClaims("slots", "sim", "[slots gpu:4]")
	p.wantClaims("all others", "rest", "[:12]")
	p.submit("chip", "large", 1, withGPUs("whole", 8), inNamespace("other"))
	p.wantClaims("within the grace", "large", "[]")
	p.after(time.Minute)
	p.decide("large")
	p.wantClaims("after it", "large", "[slots node:1]")
	p.wantClaims("a virtual cluster stays", "train", "[cells node:1]")
	p.wantClaims("slots stay", "sim", "[slots gpu:4]")
	p.wantClaims("eight have left", "rest", "[:4]")
}

// TestCellsTakeNoSlots: a virtual cluster's instance takes what is opportunistic, and no GPU of a slot.
func TestCellsTakeNoSlots(t *testing.T) {
	p := gpuProjects(t, 2)
	p.ownsCells("node", 1)
	p.givesGPUs("chip", "gpu", 8)
	p.submit("chip", "sim", 16, withGPUs("gpu", 1), inNamespace("other"))
	p.wantClaims("eight slots, the rest borrowed", "sim", "[:8 slots gpu:8]")
	p.submit("", "train", 1, withGPUs("", 8))
	p.wantClaims("a virtual cluster takes its node at once", "train", "[cells node:1]")
	p.wantClaims("from what borrowed", "sim", "[slots gpu:8]")
}

// TestLostGPUSlots: an instance whose node is lost keeps its slot until that is given to another; cells of a virtual cluster are served before slots, and what
// the rest cannot have is explained.
func TestLostGPUSlots(t *testing.T) {
	p := gpuProjects(t, 2)
	p.ownsCells("node", 1)
	p.givesGPUs("chip", "gpu", 8)
	p.changeNode("n1", down)
	p.submit("chip", "sim", 1, withGPUs("gpu", 1), inNamespace("other"))
	p.wantClaims("the node that is left is the virtual cluster's", "sim", "[:1]")
	p.submit("chip", "sims", 1, withGPUs("gpu", 1), inNamespace("other"), func(j *structs.Job) { j.Class = structs.ClassGuaranteed })
	if m := p.last.FailedTGAllocs["g"]; m == nil || !strings.Contains(fmt.Sprint(m.DimensionExhausted), "cells doomed: 8 GPUs of the slots of project") {
		t.Errorf("%+v", m)
	}
	p.changeNode("n1", up)
	p.submit("chip", "again", 1, withGPUs("gpu", 1), inNamespace("other"))
	p.wantClaims("it is back", "again", "[slots gpu:1]")
}

// TestGPUSlotsMachine: whatever jobs come, nodes fail, and weeks and virtual clusters change, the accounts of cells agree with what runs, also in a World made
// anew; and no project waits longer than the grace while it has a cell free and others could leave.
func TestGPUSlotsMachine(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := gpuProjects(rt, 3)
		p.givesGPUs("chip", "gpu", 0)
		p.givesGPUs("board", "half", 0)
		names := []string{"", "chip", "board"}
		for i := range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0:
				p.givesGPUs("chip", rapid.SampledFrom([]string{"gpu", "half", "whole"}).Draw(rt, "slot"), rapid.IntRange(0, 1).Draw(rt, "slots"))
			case 1:
				p.givesGPUs("board", "gpu", rapid.IntRange(0, 8).Draw(rt, "slots"))
			case 2:
				p.ownsCells(rapid.SampledFrom([]string{"gpu", "socket", "node"}).Draw(rt, "level"), rapid.IntRange(0, 1).Draw(rt, "cells"))
			case 3:
				p.changeNode(fmt.Sprint("n", rapid.IntRange(0, 2).Draw(rt, "node")), rapid.SampledFrom([]func(*structs.Node){down, up}).Draw(rt, "status"))
			default:
				project := rapid.SampledFrom(names).Draw(rt, "project")
				id := fmt.Sprint("j", i)
				p.submit(project, id, rapid.IntRange(1, 6).Draw(rt, "count"), withGPUs(rapid.SampledFrom([]string{"gpu", "half", "whole"}).Draw(rt, "type"),
					rapid.IntRange(1, 8).Draw(rt, "gpus")))
				p.after(time.Minute)
				p.decide(id)
			}
			if err := p.w.CheckClaims(); err != nil {
				rt.Fatal(err)
			}
			p.checkWorld()
		}
	})
}

// TestGangSlotsWithGPUs: a gang uses slots with GPUs as a whole, or runs without.
func TestGangSlotsWithGPUs(t *testing.T) {
	p := gpuProjects(t, 2)
	p.givesGPUs("chip", "gpu", 5)
	p.submit("chip", "three", 3, withGPUs("gpu", 1), asGang)
	p.wantClaims("of three", "three", "[slots gpu:3]")
	p.submit("chip", "pairs", 2, withGPUs("gpu", 2), asGang)
	p.wantClaims("of two that cost four", "pairs", "[:2]")
	p.after(time.Second)
	p.submit("chip", "pair", 2, withGPUs("gpu", 1), asGang)
	p.wantClaims("of two that cost two", "pair", "[slots gpu:2]")
	p.givesGPUs("chip", "gpu", 4)
	p.wantClaims("of two, of which one lost its slot", "pair", "[:2]")
	p.wantClaims("of three, which began before", "three", "[slots gpu:3]")
}

func asGang(j *structs.Job) { j.TaskGroups[0].Gang = &structs.Gang{} }
