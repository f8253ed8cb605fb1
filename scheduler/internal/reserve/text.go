package reserve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/slotroom"
)

// textOf writes amounts that are missing of a request. MHz beside cores are further cores where the instances state cores only: slots of projects take MHz of a
// node, and none of its cores. MHz that the workflow states stay MHz.
func textOf(c *chooser, r *request, a workflow.Amounts) string {
	mhz := c.mhzPerCore()
	if more := a.CPU - a.Cores*mhz; more > 0 && mhz > 0 && r.rule.Stated.CPU == 0 && r.inCores(mhz) {
		a.Cores += (more + mhz - 1) / mhz
		a.CPU = a.Cores * mhz
	}
	return text(a, mhz)
}

// text writes amounts for users. Cores imply their MHz, mhz each: MHz are those beside them.
func text(a workflow.Amounts, mhz int64) string {
	var list []string
	a.CPU -= a.Cores * mhz
	for _, part := range []struct {
		n         int64
		one, many string
	}{
		{a.Cores, "core", "cores"}, {a.CPU, "MHz", "MHz"}, {a.MemoryMB, "MiB of memory", "MiB of memory"}, {a.DiskMB, "MiB of disk", "MiB of disk"},
		{a.Devices, "GPU", "GPUs"},
	} {
		switch {
		case part.n == 1:
			list = append(list, "1 "+part.one)
		case part.n > 1:
			list = append(list, fmt.Sprintf("%d %s", part.n, part.many))
		}
	}
	return strings.Join(list, ", ")
}

// inCores reports whether all instances of the stages state cores, and no MHz beside those of these.
func (r *request) inCores(mhz int64) bool {
	return !slices.ContainsFunc(r.stages, func(s []workflow.Instance) bool {
		return slices.ContainsFunc(s, func(i workflow.Instance) bool { return i.Needs.CPU != i.Needs.Cores*mhz })
	})
}

// isMissing states that amounts, as text writes them, are missing, and where.
func isMissing(amounts, where string) string {
	if strings.HasPrefix(amounts, "1 ") && !strings.Contains(amounts, ", ") {
		return amounts + where + " is missing"
	}
	return amounts + where + " are missing"
}

// largerText adds to what is missing that an instance needs more of a resource than any of the nodes has to be reserved, however empty, with so many MHz for a core; "": none
// does.
func (r *request) largerText(empty []workflow.Amounts, mhz int64) string {
	var need, has workflow.Amounts
	for _, stage := range r.stages {
		for i := range stage {
			need = need.Max(stage[i].Needs)
		}
	}
	for _, a := range empty {
		has = has.Max(a)
	}
	if r.inCores(mhz) { // these are compared
		need.CPU = 0
	}
	for _, of := range []func(a workflow.Amounts) workflow.Amounts{
		func(a workflow.Amounts) workflow.Amounts { return workflow.Amounts{Devices: a.Devices} },
		func(a workflow.Amounts) workflow.Amounts { return workflow.Amounts{Cores: a.Cores} },
		func(a workflow.Amounts) workflow.Amounts { return workflow.Amounts{CPU: a.CPU} },
		func(a workflow.Amounts) workflow.Amounts { return workflow.Amounts{MemoryMB: a.MemoryMB} },
		func(a workflow.Amounts) workflow.Amounts { return workflow.Amounts{DiskMB: a.DiskMB} },
	} {
		if need, has := of(need), of(has); !has.IsZero() && !need.Fits(has) {
			return fmt.Sprintf(": an instance needs %s, and no node has more than %s to reserve", text(need, 0), text(has, 0))
		}
	}
	return ""
}

// nowhereText says why what was lost of a reservation cannot be reserved anew: what no node has, however empty, or what is missing of what is free.
func nowhereText(c *chooser, r *request, packed workflow.Packing) string {
	if why := noNode(c, r); why != "" {
		return why
	}
	empty := slices.Clone(c.empty)
	for k, p := range r.left.parts { // what stays on a node that takes no work holds what runs there
		empty[p.Node] = empty[p.Node].Max(r.left.most[k])
	}
	if gang := r.gangs.Impossible(empty, r.stages); gang != nil {
		return neverText + "there is not enough room for " + gang.Name
	}
	if crowded := r.gangs.Crowded(empty, r.stages); crowded != nil {
		return neverText + crowdedText(crowded)
	}
	beside := besideSlots(c, r, &packed)
	packed.Missing = shortOf(c, r, packed.Missing)
	return "nowhere is so much free" + beside + ": " + isMissing(textOf(c, r, packed.Missing), where(packed, r))
}

// besideSlots names the slots that projects are given this week, and do not use, if only these are in the way of what is missing; "": they are not.
func besideSlots(c *chooser, r *request, packed *workflow.Packing) string {
	if c.freeNone == nil || packed.Missing.IsZero() || !r.pack(c.freeNone).Missing.IsZero() {
		return ""
	}
	return fmt.Sprintf(" beside the slots that projects are given this week (%s)", slotroom.Unused(c.w))
}

// plenty is more of a resource than any request states.
const plenty = 1 << 40

// shortOf returns of what is missing to be packed into the free nodes those resources that would be missing if there were plenty of all others: what has no node
// is missing with all that it needs. All of it, if it is their combination.
func shortOf(c *chooser, r *request, missing workflow.Amounts) (out workflow.Amounts) {
	for _, of := range []func(*workflow.Amounts) *int64{
		func(a *workflow.Amounts) *int64 { return &a.CPU }, func(a *workflow.Amounts) *int64 { return &a.MemoryMB },
		func(a *workflow.Amounts) *int64 { return &a.DiskMB }, func(a *workflow.Amounts) *int64 { return &a.Cores },
		func(a *workflow.Amounts) *int64 { return &a.Devices },
	} {
		if *of(&missing) <= 0 {
			continue
		}
		nodes := make([]workflow.Amounts, len(c.free))
		for i := range c.free {
			nodes[i] = workflow.Amounts{CPU: plenty, MemoryMB: plenty, DiskMB: plenty, Cores: plenty, Devices: plenty}
			*of(&nodes[i]) = *of(&c.free[i])
		}
		if packed := r.pack(nodes); !packed.Missing.IsZero() {
			*of(&out) = *of(&missing)
		}
	}
	if out.IsZero() {
		return missing
	}
	return out
}
