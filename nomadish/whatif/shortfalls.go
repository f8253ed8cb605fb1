package whatif

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// lookEvery is how often it is looked what owners lack, beside when nodes and what is owned change: it walks all that is owned and all that waits.
const lookEvery = 30 * time.Minute

// lackKey is whose shortfall of what it is.
type lackKey struct{ owner, kind, level string }

// shortfalls are what owners of claims lack at worst.
type shortfalls struct {
	worst map[lackKey]*structs.WhatIfShortfall
	stale bool
	due   time.Time
}

func newShortfalls() *shortfalls {
	return &shortfalls{worst: map[lackKey]*structs.WhatIfShortfall{}, stale: true}
}

// look notes what owners lack now, if it is time for that.
func (s *shortfalls) look(snap *state.Snapshot, now time.Time) {
	if !s.stale && now.Before(s.due) {
		return
	}
	s.stale, s.due = false, now.Add(lookEvery)
	world := snap.World()
	views := scheduler.ClaimViews(world, "", false)
	for _, owner := range slices.Sorted(maps.Keys(views)) {
		for _, c := range views[owner].Cells {
			s.note(lackKey{owner, c.Kind, c.Level}, structs.WhatIfShortfall{Cells: c.Doomed, Waiting: c.Waiting}, now)
		}
	}
	entitled := map[string]int{}
	for r := range snap.Requests().Waiting(nil, structs.AllNamespaces) {
		job := snap.Job(nil, r.Namespace, r.JobID)
		if job == nil {
			continue
		}
		n := scheduler.Entitled(world, job, r.Group, r.Missing)
		if n == 0 {
			continue
		}
		entitled[ownerOf(world, job, r.Group)] += n
	}
	for _, owner := range slices.Sorted(maps.Keys(entitled)) {
		s.note(lackKey{owner: owner}, structs.WhatIfShortfall{Instances: entitled[owner]}, now)
	}
}

// ownerOf names whose claim a group of a job waits for.
func ownerOf(world *scheduler.World, job *structs.Job, group string) string {
	switch scheduler.EntitledKind(world, job, group) {
	case structs.ClaimRankWorkflow:
		if job.Workflow != nil {
			return "workflow " + job.Workflow.ID
		}
	case structs.ClaimRankSlots:
		return "project " + job.Project
	}
	return job.Namespace
}

// note keeps a shortfall that is worse than all before.
func (s *shortfalls) note(k lackKey, is structs.WhatIfShortfall, now time.Time) {
	was := s.worst[k]
	if was == nil {
		was = &structs.WhatIfShortfall{}
	}
	if is.Cells+is.Waiting+is.Instances <= was.Cells+was.Waiting+was.Instances {
		return
	}
	is.Owner, is.Kind, is.Level, is.Time = k.owner, k.kind, k.level, now.UnixNano()
	s.worst[k] = &is
}

// list returns them by owner, kind and level.
func (s *shortfalls) list() []structs.WhatIfShortfall {
	out := []structs.WhatIfShortfall{}
	for _, is := range s.worst { // order does not matter: sorted below
		out = append(out, *is)
	}
	slices.SortFunc(out, func(a, b structs.WhatIfShortfall) int {
		return cmp.Or(strings.Compare(a.Owner, b.Owner), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Level, b.Level))
	})
	return out
}
