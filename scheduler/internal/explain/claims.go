package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/claim"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Why what a group's namespace owns does not help it, and what would.

// maxMoreCells bounds the cells that a remedy adds.
const maxMoreCells = 16

// claims explains why the instances that are left use no claim, and why they must not run opportunistically.
func (x *explainer) claims(out *structs.GroupExplanation, left int) {
	reasons, withheld := x.s.WithoutClaim(x.works[out.Group])
	if withheld != nil {
		reasons = withheld
	}
	for _, text := range reasons {
		kind := structs.ReasonNoCell
		for prefix, of := range claimReasons { // one at most fits: the order cannot show
			if strings.HasPrefix(text, prefix) {
				kind = of
			}
		}
		out.Waits = append(out.Waits, structs.Wait{Kind: kind, Instances: left, Text: text})
	}
}

// unusable explains why instances that run opportunistically by what they request use nothing of what their namespace owns.
func (x *explainer) unusable(out *structs.GroupExplanation) {
	g := x.in.Job.LookupTaskGroup(out.Group)
	if g == nil || !x.after.Owns(x.in.Job.Namespace) {
		return
	}
	n := 0
	for _, a := range x.in.Allocs {
		if a.TaskGroup == out.Group && a.JobVersion == x.in.Job.Version && !a.Terminal() && termsOf(a).Claim == "" {
			n++
		}
	}
	if n == 0 {
		return
	}
	for _, text := range claim.Unusable(x.s.Edit, x.in.Job, []*search.Request{search.NewRequest(x.s.Input, g)}) {
		out.Waits = append(out.Waits, structs.Wait{Kind: structs.ReasonNoCell, Instances: n, Text: "opportunistic: " + strings.TrimPrefix(text, "claim: ")})
	}
}

// claimReasons are the kinds of reasons by how their texts begin.
var claimReasons = map[string]string{
	"over the limit": structs.ReasonOverLimit, "cells doomed": structs.ReasonDoomed, "withheld": structs.ReasonWithheld,
}

// relaxClaims tries to run opportunistically, and to own more cells.
func (p *remedySearch) relaxClaims() {
	job := p.x.in.Job
	reasons, withheld := p.x.s.WithoutClaim(p.x.works[p.g.Name])
	if len(withheld) > 0 {
		p.check(alteration{job: func(j *structs.Job) { j.Class = structs.ClassOpportunistic }}, structs.Remedy{
			Kind: structs.RemedyClass, Size: 0.1, Edits: []structs.Edit{p.jobEdit("/Class", job.Class, structs.ClassOpportunistic)},
			Text: "run the job opportunistically (class = \"opportunistic\"): what it uses may be reclaimed at any time",
		})
	}
	if len(reasons)+len(withheld) == 0 {
		return
	}
	var tried []world.Quota
	for _, q := range p.x.after.Quotas(job.Namespace) {
		same := func(o world.Quota) bool { return o.Chain == q.Chain && o.Level == q.Level && o.Size == q.Size }
		if !slices.ContainsFunc(tried, same) {
			tried = append(tried, q)
			p.moreCells(q)
		}
	}
}

// moreCells tries to own more cells of a kind, as few as do.
func (p *remedySearch) moreCells(q world.Quota) {
	chain, known := p.x.w.Chain(q.Chain)
	if !known {
		return
	}
	k, _ := chain.KindOf(q.Level, q.Size)
	owner := p.x.in.Job.Namespace
	alt := func(n int) alteration {
		return alteration{world: func(e *world.Edit) {
			more := q
			more.Count, more.Order = n, ^uint64(0) // admitted after all others
			e.SetQuotas(owner, append(slices.Clone(p.x.w.Quotas(owner)), more))
		}}
	}
	most, queued := 0, p.before
	for n := 1; n <= min(maxMoreCells, p.before*max(1, p.devices()/max(1, chain.Devices(k)))); n *= 2 {
		if _, short := chain.Short(cells.Change{Kind: k, Count: n}); short > 0 {
			break // there are not so many
		}
		left, ok := p.try(alt(n))
		if ok && left < queued {
			most, queued = n, left
		}
		if queued == 0 || !ok {
			break
		}
	}
	if most == 0 {
		return
	}
	n := p.fewest(most, queued, alt)
	text := fmt.Sprintf("%d more cells of level %s for namespace %q", n, q.Level, owner)
	if n == 1 {
		text = fmt.Sprintf("1 more cell of level %s for namespace %q", q.Level, owner)
	}
	p.note(queued, structs.Remedy{
		Kind: structs.RemedyCells, Size: 0.3 + 0.01*float64(n*chain.Devices(k)), Text: text,
		Edits: []structs.Edit{{On: structs.EditCells, ID: owner, Op: structs.EditAdd, Path: "/Cells/-", Value: raw(&structs.CellQuota{
			Kind:     q.Chain.Vendor + "/" + q.Chain.Type + "/" + q.Chain.Model,
			NodePool: q.Chain.Pool, Level: q.Level, Size: q.Size, Count: n,
		})}},
	})
}

// devices is how many devices an instance of the group requests.
func (p *remedySearch) devices() (n int) {
	for _, t := range p.g.Tasks {
		if t.Resources != nil {
			for _, d := range t.Resources.Devices {
				n += max(1, d.Count)
			}
		}
	}
	return n
}
