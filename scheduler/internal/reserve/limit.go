package reserve

import (
	"fmt"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// GPUs beside its cells are more than a namespace owns. They are nobody's, so that no claim is broken; but where over_limit withholds from the namespace's jobs
// what is beyond the limit, its workflows wait for the cells, too (part 5, "counts against its tenant's limit").

// limited reports whether GPUs that are missing of what a workflow is to reserve have to be in cells of its namespace.
func limited(c *chooser, r *request) bool {
	if r.devices() == 0 {
		return false
	}
	policy := overLimit(c)
	return policy == structs.OverLimitWait || policy == structs.OverLimitConfirm
}

// overLimit is what becomes of what the workflow's namespace requests beyond what it owns.
func overLimit(c *chooser) string {
	if c.bands.OverLimit == nil {
		return ""
	}
	return c.bands.OverLimit(c.namespace())
}

// devices is how many devices are to be reserved beside those of the parts that are left.
func (r *request) devices() int64 {
	total := r.want
	for _, s := range r.stages {
		total = total.Max(workflow.Total(s))
	}
	for _, p := range r.left.parts {
		total.Devices -= p.Amounts.Devices
	}
	return max(0, total.Devices)
}

// withheld is what is chosen for a workflow whose GPUs have to be in cells of its namespace, which it cannot have now: these do not hold them, or inCells they do, and
// it lacks licenses, or the stages need so much more than was to be reserved.
func withheld(c *chooser, r *request, inCells bool, enlarged workflow.Amounts) (out Choice) {
	out.Withheld = true
	if !inCells {
		out.Missing, out.Never = lackOfCells(c, r)
		return out
	}
	if err := r.rule.Check(enlarged); err != nil {
		out.Missing, out.Never, out.Enlarged = err.Error(), true, enlarged
		return out
	}
	out.Missing = isMissing(r.licenses.missing, "")
	return out
}

// lackOfCells states that the cells of the workflow's namespace do not hold what it is to reserve, so that it waits for them; never reports that they could not if they
// were free.
func lackOfCells(c *chooser, r *request) (why string, never bool) {
	owner, owned, used := c.namespace(), 0, 0
	for key := range c.w.Chains {
		if key.Pool != c.pool {
			continue
		}
		chain := world.ChainEdit(c.e, key).View()
		for _, a := range chain.Accounts(owner) {
			owned += (a.Given - a.Doomed - a.Away) * chain.Devices(a.Kind)
		}
		used += world.Used(c.e, owner, key)
	}
	does := "do not hold"
	if never = r.devices() > int64(owned); never {
		does = "cannot hold"
	}
	return fmt.Sprintf("the cells of namespace %q (%s, %d in guaranteed use) %s %s, and nothing is reserved beside them: over_limit = %q",
		owner, gpus(int64(owned)), used, does, gpus(r.devices()), overLimit(c)), never
}

// gpus writes a number of GPUs.
func gpus(n int64) string {
	if n == 1 {
		return "1 GPU"
	}
	return fmt.Sprintf("%d GPUs", n)
}
