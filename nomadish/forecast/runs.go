package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// runsWaiting returns the runs of workflows that wait for their reservation, by namespace and ID.
func runsWaiting(snap *state.Snapshot) (list []*structs.WorkflowRun) {
	for r := range snap.Workflows(nil).Alive() {
		if r.State == structs.WorkflowPending && !r.Posted {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *structs.WorkflowRun) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.ID, b.ID))
	})
	return list
}

// awaitedRun is a run that waits for its reservation, as the forecast goes on.
type awaitedRun struct {
	is    *structs.WorkflowRun // as it was seen last
	stage int                  // that comes first
	whole bool                 // it is seen until its end, and not until it starts alone
	over  bool                 // all is seen of it that is to be
	ends  []ending             // whose room it reserves
	// endless is a job of it that has no end, so that no stage comes after its; empty: all have one.
	endless string
}

// start is when its first stage starts, in Unix nanoseconds; 0: it has not.
func (a *awaitedRun) start() int64 { return a.is.Stages[a.stage].Start }

// await has the watch see runs, too: when they start or, if whole, what becomes of them until they end.
func (w *watch) await(runs []*structs.WorkflowRun, whole bool) {
	w.open += len(runs)
	w.runs = make(map[structs.NamespacedID]*awaitedRun, len(runs))
	for _, r := range runs {
		a := &awaitedRun{is: r, stage: r.Stage, whole: whole}
		w.order = append(w.order, a)
		w.runs[r.NamespacedID()] = a
	}
}

// moved takes in a run as it is now.
func (w *watch) moved(r *structs.WorkflowRun) {
	a := w.runs[r.NamespacedID()]
	if a == nil || a.over || a.is.Run != r.Run {
		return
	}
	if r.Posted && !a.is.Posted {
		for _, part := range r.Parts { // it keeps what came free there
			a.ends = w.freedFor(a.ends, part.NodeID)
		}
		if len(r.Parts) == 0 { // licenses alone
			a.ends = w.freedFor(a.ends, "")
		}
	}
	a.is = r
	if !r.Alive() || !a.whole && a.start() > 0 {
		w.close(a)
	}
}

// runStarts takes in that an instance of a run starts.
func (w *watch) runStarts(id structs.NamespacedID, in *instance) {
	if a := w.runs[id]; a != nil && !a.over && a.whole && w.clients.lasting(in, 0) == 0 {
		a.endless = in.is.job.ID
		w.close(a)
	}
}

func (w *watch) close(a *awaitedRun) {
	a.over = true
	w.open--
}

// runResults returns when each run starts; why states why the forecast ended before some of them did.
func (w *watch) runResults(why string) []structs.WorkflowStartForecast {
	out := make([]structs.WorkflowStartForecast, len(w.order))
	for i, a := range w.order {
		s := &out[i]
		s.Start, s.WaitsFor = a.start(), w.waitsFor(a.ends)
		switch {
		case s.Start == 0:
			s.Unknown = joined(joined(why, a.is.Missing), w.clients.holding(a.is.Workflow.NodePool))
		case a.endless != "":
			s.Unknown = fmt.Sprintf("job %q has no end: no max_run_duration and no finished run of it or its user", a.endless)
		case !a.over:
			s.Unknown = why
		}
		if !a.whole {
			continue
		}
		for _, stage := range a.is.Stages[a.stage:] {
			s.Stages = append(s.Stages, structs.StageForecast{Name: stage.Name, Start: stage.Start, End: stage.End})
		}
	}
	return out
}
