package state

import (
	"time"

	"github.com/nomadish/nomadish/nomadish/state/internal/historytable"
	"github.com/nomadish/nomadish/nomadish/state/internal/projecthistory"
	"github.com/nomadish/nomadish/structs"
)

// record writes the history record of an allocation that has ended, and forgets the
// oldest records beyond the limit.
func (x *txn) record(a *structs.Allocation) {
	if x.unread && !x.remembers && projecthistory.TermsOf(a) == nil {
		return
	}
	x.tables.add(TableHistory)
	h := historytable.Record(a, jobVersion(x.rows, a.Namespace, a.JobID, a.JobVersion), x.index, x.now)
	if h.Type == "" { // the job was purged while it ran; its evaluations are kept
		if e := named[structs.Evaluation](x.rows, TableEvals, a.EvalID); e != nil {
			h.Type, h.Priority = e.Type, e.Priority
		}
	}
	x.past.Put(h)
	for x.past.Len() > x.opts.HistoryMax {
		x.past.Remove(x.past.Oldest())
	}
}

// consideredRuns is how many of a user's latest runs show how long the next takes.
const consideredRuns = 100

// userRuns returns how long the latest completed runs of a user's instances took.
func (v *view) userRuns(user string) []time.Duration { return v.past.LatestRuns(user, consideredRuns) }

// forgetHistory drops the records that ended before a time.
func (x *txn) forgetHistory(before int64) {
	for h := x.past.Oldest(); h != nil && h.Ended < before; h = x.past.Oldest() {
		x.past.Remove(h)
		x.tables.add(TableHistory)
	}
}
