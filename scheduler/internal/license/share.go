package license

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/tree"
	"github.com/nomadish/nomadish/structs"
)

// What a workflow has reserved of a license (docs/design/semantics.md, part 5) is counted as its part of a node is: what its own instances use of it, what
// is lent, and what idles.
//
//   - used is what instances of the workflow use, wherever they run;
//   - lent is what borrowers use that is not free beside all reservations: when some comes free beside them, less is lent;
//   - idle is the rest, which is always free, unless there are fewer of the license than when it was reserved. Nobody but the workflow and those to
//     whom it lends may take it.
//
// A reservation that is pending keeps what it is to have before that is free.

// Share is what a workflow has reserved of a license.
type Share struct {
	Workflow string // see structs.WorkflowKey
	Pending  bool
	Total    int64
	// Used, Lent and Idle add up to Total, unless more is used than that. Of a pending one Idle is what it keeps beside all that is posted, which
	// may be more than is free.
	Used, Lent, Idle int64
	// Lost is what of Idle there is not, as the count was lowered since.
	Lost     int64
	borrowed int64
}

// Taker is who takes licenses.
type Taker struct {
	// Workflow is the one that it is of; Borrows the one from which it borrows. "": none.
	Workflow, Borrows string
	// Precedes reports that no reservation that is pending binds it.
	Precedes bool
	// NoRoom reports of a job of the workflow from which it borrows that it does not start, as it has no room on nodes or too few licenses: what it needs is not kept for it.
	NoRoom NoRoom
}

// NoRoom reports of a job of the running stage of a workflow that it does not start now.
type NoRoom func(*structs.WorkflowClaimJob) bool

// shareKey is a workflow's reservation of a license, with what borrowers use; with a job, what that job of the workflow's own uses.
type shareKey struct{ license, workflow, job string }

func compareShares(a, b shareKey) int {
	return cmp.Or(strings.Compare(a.license, b.license), strings.Compare(a.workflow, b.workflow), strings.Compare(a.job, b.job))
}

// share is kept of a license for each workflow that has reserved some or lends any, and for each of its jobs that use some.
type share struct {
	total   int64
	pending bool
	used    int64 // by borrowers; of a job, by it
}

// share counts what an instance uses of a workflow's reservation, if it does.
func (b *Book) share(tok *tree.Token, license, job string, terms *structs.AllocTerms, n int64) {
	key := shareKey{license: license, workflow: terms.BorrowsFrom()}
	if own := terms.LicensesOf(); own != "" {
		key.workflow, key.job = own, job
	}
	if key.workflow != "" {
		s, _ := b.shares.Get(key)
		s.used += n
		b.putShare(tok, key, s)
	}
}

func (b *Book) putShare(tok *tree.Token, key shareKey, s share) {
	if s == (share{}) {
		tree.Delete(tok, &b.shares, key)
		return
	}
	tree.Put(tok, &b.shares, key, s)
}

// Reserve has a workflow's reservation count in place of the one that it had, and returns the book with that.
func (b *Book) Reserve(tok *tree.Token, c *structs.WorkflowClaim) *Book {
	if b = b.Release(tok, c.Key()); len(c.Licenses) == 0 {
		return b
	}
	b = b.own(tok)
	for _, r := range c.Licenses {
		key := shareKey{license: r.Name, workflow: c.Key()}
		s, _ := b.shares.Get(key)
		s.total, s.pending = r.Count, !c.Posted
		b.putShare(tok, key, s)
	}
	tree.Put(tok, &b.claims, c.Key(), c)
	return b
}

// Release ends a workflow's reservation, if it has one, and returns the book without it.
func (b *Book) Release(tok *tree.Token, workflow string) *Book {
	c := b.claim(workflow)
	if c == nil {
		return b
	}
	b = b.own(tok)
	for _, r := range c.Licenses {
		key := shareKey{license: r.Name, workflow: workflow}
		s, _ := b.shares.Get(key)
		s.total, s.pending = 0, false
		b.putShare(tok, key, s)
	}
	tree.Delete(tok, &b.claims, workflow)
	return b
}

// claim returns the reservation of a workflow if it has licenses; nil: it has none.
func (b *Book) claim(workflow string) *structs.WorkflowClaim {
	if b == nil {
		return nil
	}
	c, _ := b.claims.Get(workflow)
	return c
}

// Shares returns what workflows have reserved of a license, and how that is used: those that are pending last, else by the workflows' keys.
func (b *Book) Shares(name string) (list []Share) {
	if b == nil || b.claims.Len() == 0 {
		return nil
	}
	b.shares.Ascend(shareKey{license: name}, func(k shareKey, s share) bool {
		if k.license != name {
			return false
		}
		if len(list) == 0 || list[len(list)-1].Workflow != k.workflow {
			list = append(list, Share{Workflow: k.workflow})
		}
		switch of := &list[len(list)-1]; k.job {
		case "":
			of.Total, of.Pending, of.borrowed = s.total, s.pending, s.used
		default:
			of.Used += s.used
		}
		return true
	})
	list = slices.DeleteFunc(list, func(s Share) bool { return s.Total == 0 })
	var left int64 // reserved and not used
	for i := range list {
		if s := &list[i]; !s.Pending {
			left += max(0, s.Total-s.Used)
		}
	}
	over := max(0, left-b.Of(name).Free())
	for i := range list {
		s := &list[i]
		s.Idle = max(0, s.Total-s.Used)
		if s.Pending { // what others have reserved comes free only with the end of their runs
			s.Idle = max(0, s.Idle-left)
			continue
		}
		s.Lent = min(over, s.Idle, s.borrowed)
		over -= s.Lent
		s.Idle -= s.Lent
	}
	for i := range list {
		if s := &list[i]; !s.Pending {
			s.Lost = min(over, s.Idle)
			over -= s.Lost
		}
	}
	slices.SortStableFunc(list, func(a, b Share) int { return pending(&a) - pending(&b) })
	return list
}

func pending(s *Share) int {
	if s.Pending {
		return 1
	}
	return 0
}

// ShareOf returns what a workflow has reserved of a license.
func (b *Book) ShareOf(name, workflow string) Share {
	for _, s := range b.Shares(name) {
		if s.Workflow == workflow {
			return s
		}
	}
	return Share{Workflow: workflow}
}

// FreeFor returns how many of a license somebody may take.
func (b *Book) FreeFor(name string, by *Taker) int64 {
	free, _ := b.freeFor(name, b.Of(name), by)
	return free
}

// FreeForAny returns how many of a license any job may take: what is free beside what workflows have reserved of it, or keep.
func (b *Book) FreeForAny(name string) int64 { return b.FreeFor(name, &Taker{}) }

// freeFor returns how many of a license somebody may take, and a text about what others have reserved.
func (b *Book) freeFor(name string, c Counter, by *Taker) (free int64, why string) {
	free = c.Free()
	beside, own, lendable, of := free, int64(0), int64(0), (*Share)(nil)
	var reserved []string
	shares := b.Shares(name)
	for i := range shares {
		s := &shares[i]
		beside -= s.Idle
		switch {
		case s.Workflow == by.Workflow:
			own = s.Idle
		case s.Pending && by.Precedes:
		case s.Workflow == by.Borrows:
			of, lendable = s, b.lendable(name, s, by.NoRoom)
		default:
			if free -= s.Idle; s.Idle > 0 {
				reserved = append(reserved, fmt.Sprintf("%d reserved by workflow %s", s.Idle, s.Workflow))
			}
		}
	}
	free = max(free, min(own, c.Free())) // there may be fewer than are reserved
	if of != nil {
		free = min(free, max(0, beside)+lendable)
	}
	if len(reserved) > 0 {
		why = ", " + strings.Join(reserved, ", ")
	}
	return max(0, free), why
}

// Lendable returns how much more of a license the workflow of a key may lend now, of whose jobs some have no room.
func (b *Book) Lendable(name, workflow string, noRoom NoRoom) int64 {
	s := b.ShareOf(name, workflow)
	if s.Total == 0 || s.Pending {
		return 0
	}
	return b.lendable(name, &s, noRoom)
}

// lendable returns how much more of a license a workflow may lend: of what idles what its running stage does not still have to take, as lend_max
// bounds it.
func (b *Book) lendable(name string, s *Share, noRoom NoRoom) int64 {
	c := b.claim(s.Workflow)
	if !c.Lends() {
		return 0
	}
	n := s.Idle
	for i := range c.Jobs { // which have just been registered, or of which nothing is there for now
		j := &c.Jobs[i]
		at, found := slices.BinarySearchFunc(j.Licenses, name, func(r structs.RequestedLicense, name string) int { return strings.Compare(r.Name, name) })
		if !found {
			continue
		}
		if has, there := b.shares.Get(shareKey{name, s.Workflow, j.JobID}); (j.Starting || !there) && (there || !noRoom(j)) {
			n -= max(0, j.Licenses[at].Count-has.used)
		}
	}
	if c.LendMax != nil && c.LendMax.Licenses[name] > 0 {
		n = min(n, c.LendMax.Licenses[name]-s.Lent)
	}
	return max(0, n)
}

// Obtainable returns how many of a license a workflow can have, beside what it uses, once all that borrow from it have left: what others use cannot be
// taken back.
func (b *Book) Obtainable(name, workflow string) int64 {
	if b == nil {
		return 0
	}
	borrowers, _ := b.shares.Get(shareKey{license: name, workflow: workflow})
	c := b.Of(name)
	free := c.Count - c.Used + borrowers.used // Used is above Count where that was lowered
	beside, own := free, int64(0)
	for _, s := range b.Shares(name) {
		switch {
		case s.Workflow == workflow:
			own = max(0, s.Total-s.Used)
		case !s.Pending:
			beside -= s.Idle
		}
	}
	return max(0, beside, min(own, free))
}

// Reservable returns how many of a license a workflow may reserve now: what is free and nobody else has reserved, and what it has already.
func (b *Book) Reservable(name, workflow string) int64 {
	c := b.Of(name)
	free := c.Count - c.Used // below 0 where there are fewer than before
	shares := b.Shares(name)
	var own int64
	for i := range shares {
		switch s := &shares[i]; {
		case s.Workflow == workflow:
			own = s.Used + s.Lent
		case !s.Pending:
			free -= s.Idle
		}
	}
	return max(0, free+own)
}

// LacksToReserve returns why a workflow cannot reserve licenses in place of what it has reserved; "": it can.
func (b *Book) LacksToReserve(was *structs.WorkflowClaim, of []structs.RequestedLicense) string {
	for _, r := range of {
		if was.Posted && slices.Contains(was.Licenses, r) { // it is the workflow's, whether or not there are as many now
			continue
		}
		if !b.Of(r.Name).Exists {
			return noSuch(r.Name)
		}
		if free := b.Reservable(r.Name, was.Key()); free < r.Count {
			return fmt.Sprintf("license %q: %d needed, %d of %d free to be reserved", r.Name, r.Count, free, b.Of(r.Name).Count)
		}
	}
	return ""
}
