package job

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// checkClass refuses a job that is to run by a claim alone where neither its namespace nor its project can have one, or where one of its groups can use
// none of what they have.
func checkClass(snap *state.Snapshot, job *structs.Job, now time.Time) error {
	if job.Class != structs.ClassGuaranteed {
		return nil
	}
	v := snap.VirtualClusters(nil).Get(job.Namespace)
	hasCells, hasSlots := v != nil && len(v.Cells)+len(v.Windows)+len(v.Changes) > 0, hasSlots(snap, job.Project, now)
	if !hasCells && !hasSlots {
		owner := "nothing"
		if job.Project != "" {
			owner = fmt.Sprintf("nothing, and project %q has no slots in this week or a later one", job.Project)
		}
		return structs.Errorf(structs.CodeBadRequest, "job %q: class is \"guaranteed\", but namespace %q owns %s", job.ID, job.Namespace, owner).
			WithHint("`nomadish vc apply` gives it cells; without class the job runs on what is idle")
	}
	group, why := scheduler.WithoutClaim(job)
	if hasSlots && !job.PerNode() && (!hasCells || why != "") {
		group, why = withoutSlot(snap, job, hasCells)
	}
	if why == "" {
		return nil
	}
	return structs.Errorf(structs.CodeBadRequest, "job %q: class is \"guaranteed\", but group %q can use no claim: %s", job.ID, group, why).
		WithHint("leave class out: then what can use a claim does, and the rest runs on what is idle")
}

// hasSlots reports whether a project has slots of any type in the week that it is, or in a later one.
func hasSlots(snap *state.Snapshot, project string, now time.Time) bool {
	projects := snap.Projects(nil)
	if project == "" || projects.Get(project) == nil {
		return false
	}
	for w := range projects.Weeks(project) {
		if w.To > now.UnixNano() && len(w.Rows) > 0 {
			return true
		}
	}
	return false
}

// withoutSlot returns a group of a job that can use neither slots of its project nor, where its namespace has some, cells; and why.
func withoutSlot(snap *state.Snapshot, job *structs.Job, hasCells bool) (group, why string) {
	config := snap.SchedulerConfig(nil)
	slot := config.SlotTypeOf(cmp.Or(job.Slot, structs.SlotBatch))
	for _, g := range job.TaskGroups {
		whole := scheduler.WholeDevices(g)
		switch {
		case hasCells && whole && g.Gang == nil: // of which it may use cells; a gang uses one kind of claim
		case hasDevices(g) && !whole:
			return g.Name, "it requests devices, and not whole ones of one kind alone"
		case hasDevices(g) && slot.GPUs == 0:
			return g.Name, fmt.Sprintf("slots of type %q have no GPUs", slot.Name)
		}
	}
	return "", ""
}

func hasDevices(g *structs.TaskGroup) bool {
	for _, t := range g.Tasks {
		if t.Resources != nil && len(t.Resources.Devices) > 0 {
			return true
		}
	}
	return false
}

// beyondShares warns of groups of a job that waits for a claim and can have none on the nodes that there are.
func beyondShares(snap *state.Snapshot, job *structs.Job) (warnings []string) {
	if job.Class != structs.ClassGuaranteed || job.PerNode() || !snap.World().Owns(job.Namespace) {
		return nil
	}
	for _, text := range scheduler.BeyondShares(snap.World(), scheduler.Input{Job: job, Config: snap.SchedulerConfig(nil)}) {
		warnings = append(warnings, fmt.Sprintf("job %q: %s, and waits as class is \"guaranteed\": request less, or more GPUs", job.ID, text))
	}
	return warnings
}

// checkLimit refuses a job of which an instance would run beyond what its namespace owns, where the virtual cluster wants
// that confirmed (over_limit = "ask"). A job that was registered with opportunistic=true has it.
func (e *Endpoint) checkLimit(ctx context.Context, snap *state.Snapshot, job *structs.Job) error {
	if !mustConfirm(snap, job) {
		return nil
	}
	select {
	case e.planning <- struct{}{}:
		defer func() { <-e.planning }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return e.overLimit(snap, job)
}

// overLimit returns an error if an instance of a job would be withheld because it would run beyond what its namespace owns.
func (e *Endpoint) overLimit(snap *state.Snapshot, job *structs.Job) error {
	now := e.Now()
	eval := structs.NewEval(e.NewID(), job, structs.EvalTriggerJobRegister, now.UnixNano())
	in := snap.Input(atOnce(job), snap.AllocsByJob(nil, job.Namespace, job.ID, false), &state.InputOptions{Now: now, NewID: e.NewID, Typical: e.Typical})
	in.Requests, in.SnapshotIndex = nil, 0
	plan, err := scheduler.Schedule(snap.World(), eval, in)
	if err != nil {
		return structs.Errorf(structs.CodeInternal, "job %q: whether it is over the limit of its namespace: %w", job.ID, err)
	}
	return withheldOverLimit(snap, job, plan)
}

// atOnce returns a job whose instances are all updated at once: a rolling update would be found over the limit only step by step.
func atOnce(job *structs.Job) *structs.Job {
	now := job.Copy()
	now.Update = nil
	for _, g := range now.TaskGroups {
		g.Update = nil
	}
	return now
}

// mustConfirm reports whether a job whose instances would run beyond what its namespace owns must be confirmed.
func mustConfirm(snap *state.Snapshot, job *structs.Job) bool {
	v := snap.VirtualClusters(nil).Get(job.Namespace)
	return v != nil && v.OverLimit == structs.OverLimitConfirm && job.OverLimit != structs.OverLimitOpportunistic && (job.Class == structs.ClassAuto || job.Class == "")
}

// withheldOverLimit returns an error if a job's plan withholds an instance because it would run beyond what its namespace owns.
func withheldOverLimit(snap *state.Snapshot, job *structs.Job, plan *structs.Plan) error {
	for _, m := range plan.FailedTGAllocs { // order does not matter: any will do
		for reason := range m.DimensionExhausted { // likewise
			if strings.HasPrefix(reason, "withheld by over_limit") {
				return structs.Errorf(structs.CodeConflict, "job %q: it requests more than namespace %q owns (%s); what is beyond it may be reclaimed at any time", job.ID, job.Namespace, ownedText(snap, job.Namespace)).
					WithHint("repeat `job run` with -opportunistic (opportunistic=true), or request less")
			}
		}
	}
	return nil
}

// refusal returns what `job plan` reports about a registration that would be refused for what the namespace owns; "": it would not be.
func (e *Endpoint) refusal(snap *state.Snapshot, job *structs.Job) string {
	err := checkClass(snap, job, e.Now())
	if err == nil && mustConfirm(snap, job) {
		err = e.overLimit(snap, job)
	}
	if err == nil {
		return ""
	}
	return "the job would be refused: " + err.Error()
}

// ownedText returns how many GPUs a namespace owns and uses.
func ownedText(snap *state.Snapshot, namespace string) string {
	owned, view := 0, scheduler.ClaimViews(snap.World(), namespace, false)[namespace]
	for _, c := range view.Cells {
		owned += c.GPUs
	}
	return fmt.Sprintf("%d GPUs, %d in guaranteed use", owned, view.GuaranteedGPUs)
}
