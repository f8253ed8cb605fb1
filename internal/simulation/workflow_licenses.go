package simulation

import (
	"strings"

	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

const (
	// license is one that jobs of all kinds request, also those of workflows, which reserve and lend it.
	license = "vcs"
	// licenseCount is how many there are of it.
	licenseCount = 8
)

// licensed reports whether there are licenses in a run: in that of one of three seeds that have workflows.
func licensed(seed uint64, w *workflows) bool { return w != nil && seed%8 == 7 }

// makeLicense makes the license, if it is not there yet; else the next leader does it.
func makeLicense(now clock.Clock, l *leader, w *workflows) {
	if licensed(l.r.seed, w) && l.r.store.Snapshot().Licenses().Get(nil, license) == nil {
		_, _ = l.Apply(forever, structs.LogLicenseUpsert, &structs.LicenseUpsertEntry{
			License: &structs.License{Name: license, Count: licenseCount}, CAS: true, Time: now.Now().UnixNano(),
		})
	}
}

// requestLicense has some jobs request the license.
func requestLicense(j *structs.Job, w *workflows) {
	if w != nil && licensed(w.seed, w) && w.IntN(3) == 0 && w.leader != nil && w.leader.r.store.Snapshot().Licenses().Get(nil, license) != nil {
		j.TaskGroups[0].Tasks[0].Resources.Licenses = map[string]int{license: 1}
	}
}

// checkLicenses looks at what is used, lent and idle of the license, by sums of its own.
func checkLicenses(snap *state.Snapshot, w *workflows) {
	l := snap.Licenses().Get(nil, license)
	if l == nil {
		return
	}
	var used, idle int64
	own := map[string]int64{}
	for n := range snap.Nodes(nil, "", false) {
		for _, a := range snap.AllocsByNode(nil, n.ID) {
			if a.Terminal() || a.Suspended() {
				continue
			}
			for _, r := range termsOf(a).Licenses.List() {
				if used += r.Count; a.Job != nil && a.Job.Workflow != nil && !a.Job.PerNode() && termsOf(a).BorrowsFrom() == "" {
					own[structs.WorkflowKey(a.Namespace, strings.Split(a.JobID, "/")[0])] += r.Count
				}
			}
		}
	}
	status := scheduler.LicenseUsers(snap.World(), l)
	if used != status.Used || used > l.Count {
		w.fail("license %s: %d are used by what runs, %d as the scheduler counts, of %d", license, used, status.Used, l.Count)
	}
	for _, r := range status.Reservations {
		key := structs.WorkflowKey(r.Namespace, r.Workflow)
		if r.Used != own[key] {
			w.fail("license %s: workflow %s uses %d, and its instances %d", license, key, r.Used, own[key])
		}
		if r.Pending {
			continue
		}
		if idle += r.Idle + r.Lost; r.Reserved != r.Used+r.Lent+r.Idle+r.Lost && r.Used <= r.Reserved {
			w.fail("license %s: workflow %s has reserved %d; %d are used, %d lent, %d idle, %d lost", license, key, r.Reserved, r.Used, r.Lent, r.Idle, r.Lost)
		}
	}
	if used+idle > l.Count {
		w.fail("license %s: %d are used and %d reserved and idle, of %d", license, used, idle, l.Count)
	}
}
