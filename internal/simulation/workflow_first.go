package simulation

import (
	"fmt"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/workflow"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/stages"
	"github.com/nomadish/nomadish/structs"
)

// first looks at who keeps what comes free: one workflow at most that has lost something, and one at most that waits for all, and only for a moment one that is not the
// first of those that may ever fit.
func (w *workflows) first(snap *state.Snapshot) {
	for class, posted := range []bool{false, true} {
		var keeps *structs.WorkflowRun
		for r := range snap.Workflows(nil).Alive() {
			if r.Posted != posted || posted && len(r.Keeps) == 0 || !posted && len(r.Parts) == 0 {
				continue
			}
			if keeps != nil {
				w.fail("workflows %s and %s both keep what comes free", keeps.ID, r.ID)
			}
			keeps = r
		}
		first := ""
		if keeps != nil {
			first = before(snap, keeps, w.now)
		}
		if first == "" {
			w.passed[class] = nil
			continue
		}
		switch pair, p := keeps.ID+" before "+first, w.passed[class]; {
		case p == nil || p.by != w.leader || p.pair != pair || w.leader != nil && w.leader.over:
			w.passed[class] = &passedOver{w.leader, pair, w.now}
		case w.now-p.since > passedOverFor:
			w.fail("what comes free is kept for workflow %s since %s:%s", pair, p.since, whoKeeps(snap))
		}
	}
}

// before returns which run is to keep what comes free before the one that does, "nobody" if that is to keep nothing, "" if it is the first: of those that have
// lost parts of their reservations, or of those that wait for theirs. A run that can never fit keeps nothing, and blocks no other.
func before(snap *state.Snapshot, keeps *structs.WorkflowRun, now time.Duration) string {
	var list []*structs.WorkflowRun
	for r := range snap.Workflows(nil).Alive() {
		if r.Posted && len(scheduler.LostParts(snap.World(), structs.WorkflowKey(r.Namespace, r.ID))) > 0 {
			list = append(list, r)
		}
	}
	if byRank(list); !keeps.Posted {
		list = waiting(snap)
	}
	for _, r := range list {
		if r.ID == keeps.ID {
			return ""
		}
		hopes := false
		if r.Posted {
			c, _ := stages.Renew(snap.World(), r, scheduler.WorkflowRenewal{}, workflow.BandsAt(snap, epoch.Add(now)))
			hopes = c.Missing == "" || len(c.Keeps) > 0
		} else {
			c := stages.Choose(snap.World(), r, false, workflow.BandsAt(snap, epoch.Add(now)))
			hopes = !c.Never && (c.Posted || len(c.Parts)+len(c.Licenses) > 0) // else it waits for cells of its namespace
		}
		if hopes {
			return r.ID
		}
	}
	return "nobody"
}

// whoKeeps describes the runs that keep what comes free, or might.
func whoKeeps(snap *state.Snapshot) string {
	text := ""
	for r := range snap.Workflows(nil).Alive() {
		text += fmt.Sprintf("\n    %s: %s, priority %d, submitted %d, posted %v, lacks %q, keeps %+v, lost %v", r.ID, r.State, r.Workflow.Priority, r.SubmitTime, r.Posted, r.Missing, r.Keeps,
			scheduler.LostParts(snap.World(), structs.WorkflowKey(r.Namespace, r.ID)))
	}
	return text
}
