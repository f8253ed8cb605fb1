package licensetake

import (
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Placed is instances that an edit has placed, by their terms.
type Placed struct {
	Terms      *structs.AllocTerms
	Job        string
	Instances  int
	Recognised bool // by the submission check
}

// PlacedBy returns the instances of a batch.
func PlacedBy(b *structs.PlacementBatch, recognised bool) Placed {
	return Placed{Terms: b.Resources.Shared.Terms, Job: b.JobID, Instances: len(b.Instances), Recognised: recognised}
}

// MayStay reports whether instances that an edit has placed would have found their licenses if a usage that left for them had not.
func MayStay(e *world.Edit, u *world.Usage, placed []Placed) bool {
	edit := world.LicenseEdit{E: e}
	for _, p := range placed {
		edit.Reserve("", p.Job, p.Terms, -int64(p.Instances))
	}
	edit.Reserve("", u.Owner.Job, &u.Owner.Terms, 1)
	lacks := false
	for _, p := range placed {
		lacks = lacks || edit.LacksFor(p.Terms, p.Instances, p.Recognised) != ""
		edit.Reserve("", p.Job, p.Terms, int64(p.Instances))
	}
	edit.Reserve("", u.Owner.Job, &u.Owner.Terms, -1)
	return !lacks
}

// Over reports whether a usage that was there before would use licenses by now that others use or have reserved.
func Over(e *world.Edit, u *world.Usage) bool {
	edit, t := world.LicenseEdit{E: e}, &u.Owner.Terms
	if t.BorrowsFrom() == "" {
		return edit.LacksFor(t, 1, true) != ""
	}
	edit.Reserve("", u.Owner.Job, t, 1)
	defer edit.Reserve("", u.Owner.Job, t, -1)
	return world.Base(e).Licenses().Over(t.Licenses) != ""
}
