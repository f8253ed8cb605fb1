package state

import (
	"testing"

	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/structs"
)

// An allocation without statuses, as no writer of ours makes one, is read as it is.
func TestRowWithoutStatuses(t *testing.T) {
	a := &structs.Allocation{ID: "00000000-0000-7000-8000-000000000001", Name: "j.g[0]", JobID: "j", TaskGroup: "g", NodeID: "n"}
	b := &common{jobID: "j", group: "g"}
	r := newRow(a, b, &place{id: indexkey.Hash("n")}, nil)
	if r.clientStatus() != "" || r.desiredStatus() != "" || r.Terminal() {
		t.Errorf("statuses %q and %q", r.clientStatus(), r.desiredStatus())
	}
}
