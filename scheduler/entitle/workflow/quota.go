package workflow

import "cmp"

// quota is how much each lend is to lose when an amount of one resource is taken back. The last is that of borrowers whose lend is
// not known.
type quota struct {
	resource int
	shares   []int64
	inOrder  bool
	lent     []int64 // before anything is taken
	loses    []int64 // what each is to lose of that
	lost     []int64 // what each has lost
	sum      int64   // of what has been lost
	planned  int64   // how much is to be taken in all
	previous int64   // what was planned before a trial
}

func newQuota(resource int, shares []int64) quota {
	n := len(shares) + 1
	q := quota{
		resource: resource, shares: make([]int64, n), inOrder: true,
		lent: make([]int64, n), loses: make([]int64, n), lost: make([]int64, n),
	}
	for i, s := range shares {
		q.shares[i] = max(s, 0)
		q.inOrder = q.inOrder && s <= 0
	}
	return q
}

// index returns the index of a borrower's lend.
func (q *quota) index(b *Borrower) int {
	if unknown := len(q.shares) - 1; b.Lend < 0 || b.Lend > unknown {
		return unknown
	}
	return b.Lend
}

// lend adds a borrower to what was lent.
func (q *quota) lend(b *Borrower) { q.lent[q.index(b)] += b.Uses.of(q.resource) }

// plan computes what each lend loses when an amount is taken back: what stays is divided as it would be lent.
func (q *quota) plan(amount int64) {
	q.planned = amount
	unknown := len(q.shares) - 1
	clear(q.loses)
	q.loses[unknown] = min(q.lent[unknown], amount)
	amount -= q.loses[unknown]
	if q.inOrder {
		for i := range unknown {
			q.loses[i] = min(q.lent[i], amount)
			amount -= q.loses[i]
		}
		return
	}
	lends := make([]Lend, unknown)
	var stays int64
	for i := range lends {
		lends[i] = Lend{Share: q.shares[i], Wants: q.lent[i]}
		stays += q.lent[i]
	}
	for i, due := range Due(stays-amount, lends) {
		q.loses[i] = q.lent[i] - due
	}
}

// need plans for more if an amount is needed and less than that is planned still.
func (q *quota) need(amount int64) {
	if q.sum+amount > q.planned {
		q.plan(q.sum + amount)
	}
}

// begin plans for a trial that needs an amount; end plans as before.
func (q *quota) begin(amount int64) {
	q.previous = q.planned
	q.need(amount)
}

func (q *quota) end() {
	if q.planned != q.previous {
		q.plan(q.previous)
	}
}

// take counts a borrower as lost, leave as not lost.
func (q *quota) take(b *Borrower) {
	q.lost[q.index(b)] += b.Uses.of(q.resource)
	q.sum += b.Uses.of(q.resource)
}

func (q *quota) leave(b *Borrower) {
	q.lost[q.index(b)] -= b.Uses.of(q.resource)
	q.sum -= b.Uses.of(q.resource)
}

// rest returns what a borrower's lend is still to lose; less than 0 if it has lost more.
func (q *quota) rest(b *Borrower) int64 { return q.loses[q.index(b)] - q.lost[q.index(b)] }

// over returns by how much a lend would lose more than it is to lose if a borrower were taken.
func (q *quota) over(b *Borrower) int64 {
	return max(0, min(b.Uses.of(q.resource), b.Uses.of(q.resource)-q.rest(b)))
}

// unfairness compares sets of borrowers that could be taken back.
type unfairness struct {
	spared int   // borrowers of lends that have nothing to lose any more, since they are not above their share
	over   int64 // how much lends would lose above what they are to lose
}

// add adds a borrower that is taken next.
func (u *unfairness) add(q *quota, b *Borrower) {
	u.over += q.over(b)
	if q.rest(b) <= 0 {
		u.spared++
	}
}

func (u unfairness) compare(v unfairness) int {
	return cmp.Or(cmp.Compare(u.spared, v.spared), cmp.Compare(u.over, v.over))
}

// before reports whether of two borrowers the first is taken back: the fairer, then the first named; of one lend who uses less, then the one that borrowed later.
func (q *quota) before(a, b *Borrower) bool {
	var first, second unfairness
	first.add(q, a)
	second.add(q, b)
	return cmp.Or(
		first.compare(second),
		cmp.Compare(q.index(a), q.index(b)),
		cmp.Compare(a.Uses.of(q.resource), b.Uses.of(q.resource)),
		cmp.Compare(b.Since, a.Since),
		cmp.Compare(a.ID, b.ID),
	) < 0
}
