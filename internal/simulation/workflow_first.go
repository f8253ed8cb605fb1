package simulation

import (
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/stages"
	"github.com/nomadish/nomadish/structs"
)

// first looks at who keeps what comes free: one workflow at most, and only for a moment one that is not the first of those that may ever fit.
func (w *workflows) first(snap *state.Snapshot) {
	var keeps *structs.WorkflowRun
	for r := range snap.Workflows(nil).Alive() {
		if r.Posted || len(r.Parts) == 0 {
			continue
		}
		if keeps != nil {
			w.fail("workflows %s and %s both keep what comes free", keeps.ID, r.ID)
		}
		keeps = r
	}
	list := waiting(snap)
	for keeps != nil && len(list) > 0 && list[0].ID != keeps.ID && stages.Choose(snap.World(), list[0], false, scheduler.WorkflowBands{}).Never {
		list = list[1:] // one that can never fit keeps nothing, and blocks no other
	}
	if keeps == nil || len(list) > 0 && list[0].ID == keeps.ID {
		w.passed = nil
		return
	}
	pair := keeps.ID + " before nobody"
	if len(list) > 0 {
		pair = keeps.ID + " before " + list[0].ID
	}
	switch p := w.passed; {
	case p == nil || p.by != w.leader || p.pair != pair || w.leader != nil && w.leader.over:
		w.passed = &passedOver{w.leader, pair, w.now}
	case w.now-p.since > passedOverFor:
		w.fail("what comes free is kept for workflow %s since %s", pair, p.since)
	}
}
