package scheduler_test

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// TestSlotsNotFromSystem: what is entitled takes nothing from system jobs (part 0, rule 7); what of these was placed before there were slots is known to be theirs once
// their job has been evaluated.
func TestSlotsNotFromSystem(t *testing.T) {
	for _, before := range []bool{false, true} {
		p := newProjects(t)
		p.slotNode("n1", 2)
		if before {
			p.gives("a", 2)
		}
		p.submit("", "sys", 1, func(j *structs.Job) { j.Type = structs.JobTypeSystem })
		p.submit("", "fill", 1)
		if !before {
			p.gives("a", 2)
			p.decide("sys")
		}
		p.submit("a", "own", 2)
		p.after(5 * time.Minute)
		p.decide("own")
		if got := p.on(); got != "own 1+0, sys" {
			t.Errorf("slots before: %v: there run %s", before, got)
		}
	}
}
