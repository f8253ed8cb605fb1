package ownerseries

import (
	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
)

var licenseFamilies = [...]*telemetry.Family{telemetry.Named("nomad.license.count"), telemetry.Named("nomad.license.used"), telemetry.Named("nomad.license.reserved")}

// AddLicenses adds how many there are of each license, and how many are used, to a batch, as a snapshot of the state has them.
func AddLicenses(b *telemetry.Batch, snap *state.Snapshot) {
	for l := range snap.Licenses().List(nil, "", false) {
		if !b.Room(telemetry.OfNamespaces, len(licenseFamilies)) {
			continue // it counts as dropped
		}
		use, labels := scheduler.LicenseUse(snap.World(), l), telemetry.Labels("license", l.Name)
		for i, n := range [...]int64{use.Count, use.Used, use.Reserved} {
			b.Add(licenseFamilies[i], float64(n), labels)
		}
	}
}
