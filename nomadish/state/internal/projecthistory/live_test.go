package projecthistory

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler/persist"
	"github.com/nomadish/nomadish/structs"
)

// allocOf is a running allocation of project chip that uses a claim.
func allocOf(claim string, terms structs.SlotTerms) *structs.Allocation {
	terms.Project, terms.Type = "chip", structs.SlotBatch
	a := &structs.Allocation{ID: "a", JobID: "sim", DesiredStatus: structs.AllocDesiredRun, ClientStatus: structs.AllocClientRunning, AllocatedResources: &structs.AllocatedResources{}}
	a.AllocatedResources.Shared.Terms = &structs.AllocTerms{Claim: claim, Slots: &terms}
	return a
}

// TestLevels: what an allocation amounts to follows from its claim; one that is suspended or is to end amounts to nothing.
func TestLevels(t *testing.T) {
	heavy := structs.SlotTerms{Cost: 2, Guards: 3}
	suspended, stopped := allocOf("", heavy), allocOf(structs.ClaimSlots, heavy)
	suspended.DesiredStatus, stopped.DesiredStatus = structs.AllocDesiredSuspend, structs.AllocDesiredStop
	for _, c := range []struct {
		what string
		of   *structs.Allocation
		want structs.SlotLevels
	}{
		{"on slots", allocOf(structs.ClaimSlots, heavy), structs.SlotLevels{Used: 2, Guards: 3}},
		{"a light one", allocOf(structs.ClaimSlots, structs.SlotTerms{Cost: 1, Guards: 1, Light: true}), structs.SlotLevels{Used: 1}},
		{"without a claim", allocOf("", structs.SlotTerms{Cost: 2}), structs.SlotLevels{Borrowed: 2}},
		{"without a cost", allocOf("", structs.SlotTerms{}), structs.SlotLevels{Borrowed: 1}},
		{"by cells", allocOf(structs.ClaimCells, heavy), structs.SlotLevels{Beside: 2}},
		{"suspended", suspended, structs.SlotLevels{}},
		{"stopped", stopped, structs.SlotLevels{}},
	} {
		if got := LevelsOf(c.of, TermsOf(c.of)); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
	if TermsOf(&structs.Allocation{}) != nil || TermsOf(nil) != nil {
		t.Error("an allocation of no project has terms")
	}
}

// TestLiveShares: a copy stays as it is, and classes of other projects are not among a project's.
func TestLiveShares(t *testing.T) {
	var live Live
	tok := persist.NewToken()
	live.Add(tok, allocOf("", structs.SlotTerms{Cost: 2, Step: "place"}))
	live.Add(tok, allocOf(structs.ClaimSlots, structs.SlotTerms{Cost: 1}))
	was := live
	other := allocOf("", structs.SlotTerms{Cost: 9})
	other.AllocatedResources.Shared.Terms.Slots.Project = "chip-b"
	tok = persist.NewToken()
	live.Add(tok, other)
	live.move(tok, Class{Project: "chip", Type: structs.SlotBatch, Job: "sim"}, structs.SlotLevels{Used: -1})
	if was.Equal(&live) || !was.Equal(&was) {
		t.Error("a copy has changed")
	}
	sum, classes := structs.SlotLevels{}, 0
	live.ClassesOf("chip", func(_ Class, l structs.SlotLevels) { sum, classes = sum.Add(l), classes+1 })
	if want := (structs.SlotLevels{Borrowed: 2}); sum != want || classes != 1 {
		t.Errorf("%d classes use %+v, want %+v of one", classes, sum, want)
	}
	if (&Moves{}).Empty() != true {
		t.Error("nothing is not empty")
	}
	var m Moves
	m.Alloc(nil, other, time.Second, nil)
	if m.Empty() {
		t.Error("a placement is empty")
	}
}
