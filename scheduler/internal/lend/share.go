package lend

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/reservable"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Who borrows first must not have what others have a share of. So what waits is tried in rounds (semantics part 5): in the first one each lend block
// gets no more than its share, and those that have no share get nothing. What nobody wanted then is for those that have a share: if more than one of them
// may want it, in proportion to their shares first. What is left then is for the rest. Where no share is stated, the first named comes first, and each of
// the others one round later.

// Rounds returns in how many rounds a job has to be tried until all that workflows lend has been offered to it; 1 where no workflow lends to it, or
// nobody else has a share of what it may borrow.
func Rounds(w *world.World, job *structs.Job) int {
	rounds := 1
	for _, c := range world.Workflows(w).All {
		if !c.Lends() || c.NodePool != job.NodePool || len(c.Lend) < 2 {
			continue
		}
		for i, l := range c.Lend {
			if lendsTo(w, l.To, job) {
				rounds = max(rounds, unbounded(c, i))
			}
		}
	}
	return rounds
}

// unbounded returns the first round in which a lend block is not bounded by its share.
func unbounded(c *structs.WorkflowClaim, i int) int {
	switch {
	case len(c.Lend) < 2:
		return 1
	case !c.Shared():
		return i + 1
	}
	shares := 0
	for _, l := range c.Lend {
		shares += min(1, l.Share)
	}
	first := 2
	if shares > 2 { // at least two may want what a third has not wanted: the second round divides it
		first = 3
	}
	if c.Lend[i].Share > 0 {
		return first
	}
	return first + 1
}

// Offers reports whether one more instance may borrow in a round, in which only so much is lent to each. Whether it has room is not looked at.
func (l *Lender) Offers(e *world.Edit, a *search.Request, round int) bool {
	if l.To == "" {
		return reservable.Spares(e, l.Claim, func(job string) bool { return job == a.By.Job }, a.NeedsOn)
	}
	c, i := l.Claim, indexOf(l.Claim, l.To)
	if round == 0 || round >= unbounded(c, i) {
		return true
	}
	d := division{c: c, round: round}
	within := c.Shared() && c.Lend[i].Share > 0 && l.withinShare(e, a, i, d) && l.withinLicenses(e, a, i, d)
	l.later = l.later || !within
	return within
}

// Later reports whether a workflow may lend more in a later round. Then nobody is to leave for what waits.
func Later(of []Lender) bool {
	return slices.ContainsFunc(of, func(l Lender) bool { return l.later })
}

// withinShare reports whether a lend block has no more than its share of what is lent with one more instance, in devices if the instance needs some,
// else in MHz. The share is rounded to whole instances by largest remainder.
func (l *Lender) withinShare(e *world.Edit, a *search.Request, i int, d division) bool {
	c, has := l.Claim, make([]int64, len(l.Claim.Lend))
	var total, need int64
	var mhz int64
	for p := range c.Parts {
		n, known := world.StateOf(e, c.Parts[p].NodeID)
		if !known || n.Capacity == nil {
			continue
		}
		needs := a.NeedsOn(n)
		measure := func(h world.Resources) int64 {
			if needs.Devices > 0 {
				return int64(h.Devices)
			}
			return h.Amount.CPU
		}
		lent, idle := n.Lends(c.Key())
		need, mhz = max(need, measure(needs)), max(mhz, n.Capacity.MHzPerCore)
		total += measure(lent) + measure(idle)
		for _, u := range n.Usages {
			if t := &u.Owner.Terms; t.BorrowsFrom() == c.Key() {
				has[indexOf(c, t.LentTo())] += measure(world.ResourcesOf(u))
			}
		}
	}
	most := int64(0)
	if c.LendMax != nil {
		if most = c.LendMax.Cores*mhz + c.LendMax.CPU; a.Reserved > 0 {
			most = c.LendMax.GPUs
		}
	}
	return d.within(i, total, most, has, need)
}

// withinLicenses reports whether a lend block has no more than its share of each license that one more instance requests and the workflow has reserved.
func (l *Lender) withinLicenses(e *world.Edit, a *search.Request, i int, d division) bool {
	c := l.Claim
	for _, r := range a.Group.Licenses().List() {
		book := world.Base(e).Licenses()
		s := book.ShareOf(r.Name, c.Key())
		if s.Total == 0 {
			continue
		}
		has := make([]int64, len(c.Lend))
		has[i] = s.Lent // less what the other lend blocks have: who is placed by this plan is among no users yet
		for id, n := range book.Users(r.Name) {
			u, counts := world.Usages(world.Base(e)).Get(id)
			if !counts || u.Owner.Terms.BorrowsFrom() != c.Key() {
				continue
			}
			if of := indexOf(c, u.Owner.Terms.LentTo()); of != i {
				has[of] += n
				has[i] -= n
			}
		}
		most := int64(0)
		if c.LendMax != nil {
			most = c.LendMax.Licenses[r.Name]
		}
		if !d.within(i, s.Lent+s.Idle-s.Lost, most, has, r.Count) {
			return false
		}
	}
	return true
}

// division divides what a workflow lends in a round that bounds each lend block.
type division struct {
	c     *structs.WorkflowClaim
	round int
}

// within reports whether a lend block may have what one more instance needs beside what each of them has, of a total of which at most most (0: all) is
// lent. After the first round a lend block that has less than its share has not wanted more.
func (d division) within(i int, total, most int64, has []int64, need int64) bool {
	if need <= 0 {
		return true
	}
	if most > 0 {
		total = min(total, most)
	}
	total /= need // instances
	shares, lends := make([]int64, len(d.c.Lend)), make([]workflow.Lend, len(d.c.Lend))
	for k, l := range d.c.Lend {
		shares[k] = int64(l.Share)
	}
	due := workflow.Shares(total, shares)
	if d.round > 1 {
		for k := range lends {
			used := (has[k] + need - 1) / need
			lends[k] = workflow.Lend{Share: shares[k], Used: used, Wants: total}
			if k != i && used < due[k] {
				lends[k].Wants = used
			}
		}
		due = workflow.Due(total, lends)
	}
	return has[i]+need <= need*due[i]
}
