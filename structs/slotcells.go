package structs

import (
	"cmp"
	"slices"
)

// Slots with GPUs are quota cells of their week (docs/design/semantics.md, part 4): their project owns them as a namespace owns those of its virtual cluster.

// ProjectOwnerPrefix begins the name of an owner that is a project. No namespace has such a name.
const ProjectOwnerPrefix = "project:"

// ProjectOwner returns the name by which a project is among those who own cells.
func ProjectOwner(project string) string { return ProjectOwnerPrefix + project }

// slotsAdmitted is added to the order of admission of cells that are slots: when hardware is lost, virtual clusters are served first.
const slotsAdmitted = 1 << 63

// SlotCells are quota cells of a project's slots of one type in a week.
type SlotCells struct {
	Slot  string // the type of the slots
	Claim CellClaim
}

// GiveSlotCells returns a claim on so many cells as slots of a type: what was given of that type before keeps its place in the order of admission,
// what is more comes at an index of the log, after all others.
func GiveSlotCells(slot string, c CellClaim, was []SlotCells, index uint64) (list []SlotCells) {
	var before []CellClaim
	for i := range was {
		if was[i].Slot == slot {
			before = append(before, was[i].Claim)
		}
	}
	for _, part := range c.inOrderOfAdmission(before, slotsAdmitted|index<<16) {
		list = append(list, SlotCells{slot, part})
	}
	return list
}

// SlotClaims returns the claims of slots, in the order of admission.
func SlotClaims(list []SlotCells) (claims []CellClaim) {
	for i := range list {
		claims = append(claims, list[i].Claim)
	}
	slices.SortStableFunc(claims, func(a, b CellClaim) int { return cmp.Compare(a.Order, b.Order) })
	return claims
}
