package workflow

import (
	"context"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/stages"
	"github.com/nomadish/nomadish/structs"
)

// renewal is what was found for a run that has lost something of its reservation.
type renewal struct {
	stage int // at which the run was
	parts []structs.WorkflowPart
	lost  string // which parts were lost, and licenses; not how much is missing
	// What was missing was stated last at a time, with what was lost then. It changes with each allocation that ends: more often than once a minute it is
	// not written for that.
	wrote     time.Time
	wroteLost string
	// refused is how often what was chosen did not hold while nothing changed: it is chosen anew once, as it may have come too late, and not again until
	// something changes, or Options.Anew has passed.
	refused int
}

// renew makes a reservation whole that has lost something, or says what is missing. It reports whether that failed.
func (v *reserving) renew(ctx context.Context, snap *state.Snapshot, r *structs.WorkflowRun, k *keeping) (again bool) {
	key, now := structs.WorkflowKey(r.Namespace, r.ID), v.d.opts.Clock.Now()
	simple := !v.d.known(structs.LogWorkflowRenew)
	kept := k.renews(r.Workflow.NodePool)
	c := v.known[key]
	if c != nil && c.Posted && k.lacking[r.Workflow.NodePool] >= maxReserving && now.Sub(c.when) < v.d.opts.Anew {
		return false
	}
	refused := 0
	if v.freshAnew(c, r, kept, now) {
		refused = c.refused
	}
	switch {
	case refused > 1:
		return false
	case refused == 1 || !v.freshAnew(c, r, kept, now):
		if c = v.chooseAnew(snap, r, kept, simple, c); c == nil {
			return false
		}
		c.refused = refused
	}
	delete(v.known, key)
	if len(c.Keeps) > 0 {
		k.renewing = withPool(k.renewing, r.Workflow.NodePool)
		if k.letGo(ctx, k.before(r, false)) {
			return true
		}
	}
	if c.Missing != "" && (kept || simple || len(c.Keeps) > 0) {
		k.lacking[r.Workflow.NodePool]++
	}
	to := stages.Reservation(r, c.WorkflowChoice)
	if r.Missing != "" && to.Missing != "" && c.lost == c.wroteLost && now.Sub(c.wrote) < v.d.opts.Anew {
		to.Missing = r.Missing
	}
	changes := !stages.Same(r, to) || len(c.Claims) > 0
	if changes {
		choice := c.WorkflowChoice
		choice.Missing = to.Missing
		switch holds, err := v.offerAnew(ctx, r, choice); {
		case err != nil || !holds && len(c.Keeps) > 0: // who keeps what comes free changes with each round
			return true
		case !holds:
			c.refused++
			v.known[key] = c
			return c.refused == 1
		}
		c.wrote, c.wroteLost, c.Claims = now, c.lost, nil
	}
	if c.Missing != "" || !changes {
		v.known[key] = c
	}
	return false
}

// offerAnew has what was chosen committed, and reports whether it holds. What is missing is stated, and kept, also where instances may not use the rest as was chosen.
func (v *reserving) offerAnew(ctx context.Context, r *structs.WorkflowRun, choice scheduler.WorkflowChoice) (holds bool, err error) {
	holds, err = v.d.offer(ctx, v.d.store.Snapshot(), r, choice)
	if err != nil || holds || choice.Missing == "" || len(choice.Claims) == 0 {
		return holds, err
	}
	choice.Claims = nil
	return v.d.offer(ctx, v.d.store.Snapshot(), r, choice)
}

// freshAnew reports whether nothing has changed that what was chosen for a run depends on which has its reservation. What lacks nothing is chosen anew after some time,
// as other changes may have instances use the reservation than those that are noted.
func (v *reserving) freshAnew(c *chosen, r *structs.WorkflowRun, kept bool, now time.Time) bool {
	return c != nil && c.Posted && c.stage == r.Stage && structs.PartsEqual(c.parts, r.Parts) && v.fresh(c, r, kept) &&
		(c.Missing != "" && c.refused == 0 || now.Sub(c.when) < v.d.opts.Anew)
}

// chooseAnew chooses what a run reserves in place of what it has lost; nil: it has nothing reserved. was is what was chosen before; nil: nothing.
func (v *reserving) chooseAnew(snap *state.Snapshot, r *structs.WorkflowRun, kept, simple bool, was *chosen) *chosen {
	now := v.d.opts.Clock.Now()
	choice, has := stages.Renew(snap.World(), r, scheduler.WorkflowRenewal{Kept: kept, Simple: simple}, BandsAt(snap, now))
	if !has {
		return nil
	}
	short := licensesShort(snap, r)
	if short != "" {
		choice.Missing = strings.TrimPrefix(choice.Missing+"; "+short, "; ")
	}
	c := &chosen{
		WorkflowChoice: choice, run: r.Run, createIndex: r.CreateIndex, submitted: r.SubmitTime, kept: kept, at: v.at, when: now,
		renewal: renewal{stage: r.Stage, parts: r.Parts, lost: strings.Join(append(scheduler.LostParts(snap.World(), structs.WorkflowKey(r.Namespace, r.ID)), short), " ")},
	}
	if was != nil && was.Posted {
		c.wrote, c.wroteLost = was.wrote, was.wroteLost
	}
	return c
}
