package claimtable

import (
	"slices"
	"time"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Slots with GPUs are cells, too, of the weeks in which projects have them: what a calendar gives is admitted against what namespaces and other
// projects own then, and virtual clusters against the calendars (docs/design/semantics.md, part 4).

// slotWeeks returns the weeks in which projects have slots that are cells, but for those that are over.
func (x Edit) slotWeeks() (list []*structs.ProjectWeek) {
	now := x.time()
	for w := range x.Weeks {
		if len(w.Cells) > 0 && w.To > now {
			list = append(list, w)
		}
	}
	return list
}

// edges returns the times to come at which anything changes that virtual clusters or weeks give, each once, in their order.
func edges(clusters []*structs.VirtualCluster, weeks []*structs.ProjectWeek, from int64) (list []int64) {
	for _, v := range clusters {
		list = append(list, v.Edges(from)...)
	}
	for _, w := range weeks {
		for _, at := range [...]int64{w.From, w.To} {
			if at > from {
				list = append(list, at)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// ownedAt returns what all own at a time to come, by owner.
func (x Edit) ownedAt(clusters []*structs.VirtualCluster, weeks []*structs.ProjectWeek, at int64) map[string][]structs.CellClaim {
	all := map[string][]structs.CellClaim{}
	for _, v := range clusters {
		all[v.Name] = v.ClaimsAt(at, x.Index)
	}
	for _, w := range weeks {
		if w.From <= at && at < w.To {
			all[structs.ProjectOwner(w.Project)] = structs.SlotClaims(w.Cells)
		}
	}
	return all
}

// AdmitWeek returns an error of CodeConflict if a week gives a project more cells, as slots, than the cluster can hold beside what all others own
// at any time of it: now, if it has begun, and later. was is the week as it is stored, nil if it is not.
func (x Edit) AdmitWeek(was, now *structs.ProjectWeek) error {
	if len(now.Cells) == 0 {
		return nil
	}
	owner, claims, before := structs.ProjectOwner(now.Project), structs.SlotClaims(now.Cells), []structs.CellClaim(nil)
	if was != nil {
		before = structs.SlotClaims(was.Cells)
	}
	passed := x.time()
	if now.From <= passed {
		if err := scheduler.AdmitClaims(x.world(), owner, claims); err != nil {
			return err
		}
	}
	if err := x.behindPending(before, claims); err != nil {
		return err
	}
	clusters := slices.Collect(memtable.Rows[structs.VirtualCluster](x.Rows, false, VirtualClusters, byID))
	weeks := []*structs.ProjectWeek{now}
	for _, w := range x.slotWeeks() {
		if w.Project != now.Project || w.Week != now.Week {
			weeks = append(weeks, w)
		}
	}
	var times []scheduler.LaterClaims
	for _, at := range edges(clusters, weeks, passed) {
		if now.From <= at && at < now.To {
			times = append(times, scheduler.LaterClaims{At: timeText(at), All: x.ownedAt(clusters, weeks, at), Owner: owner, Was: before})
		}
	}
	return scheduler.AdmitLater(x.world(), times)
}

// behindPending returns an error of CodeConflict if a week gives more cells of a level of which virtual clusters wait for some.
func (x Edit) behindPending(was, now []structs.CellClaim) error {
	var more []structs.CellQuota
	for i := range now {
		n := 0
		for j := range now {
			if now[j].SameCells(&now[i]) {
				n += now[j].Count
			}
		}
		for j := range was {
			if was[j].SameCells(&now[i]) {
				n -= was[j].Count
			}
		}
		if n > 0 {
			more = append(more, now[i].Quota())
		}
	}
	if len(more) == 0 || !AnyWaits(x.Rows) {
		return nil
	}
	return structs.BehindSlots(x.waiters(""), more)
}

func timeText(at int64) string { return time.Unix(0, at).UTC().Format(time.RFC3339) }
