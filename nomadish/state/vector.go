package state

const (
	vectorBits = 5
	vectorFan  = 1 << vectorBits
)

// vector is a persistent vector of rows by their ordinal: a radix tree whose pages
// are copied on the first change by each token. A copy of the struct is a snapshot;
// the zero value is empty. Pages without a row are not kept.
type vector struct {
	root  *vectorPage
	depth int // levels above the leaves
}

// vectorPage is a leaf (rows) or an inner page (kids).
type vectorPage struct {
	owner *token
	used  int // entries that are not nil
	rows  *[vectorFan]*row
	kids  *[vectorFan]*vectorPage
}

// reach is how many ordinals there is room for.
func (v *vector) reach() uint64 { return 1 << (vectorBits * (v.depth + 1)) }

// get gives the row of an ordinal; nil if there is none.
func (v *vector) get(n ordinal) *row {
	p := v.root
	if uint64(n) >= v.reach() {
		return nil
	}
	for d := v.depth; d > 0 && p != nil; d-- {
		p = p.kids[n>>(d*vectorBits)%vectorFan]
	}
	if p == nil {
		return nil
	}
	return p.rows[n%vectorFan]
}

// set sets the row of an ordinal; nil forgets it.
func (v *vector) set(tok *token, n ordinal, r *row) {
	for uint64(n) >= v.reach() {
		if v.root != nil {
			v.root = &vectorPage{owner: tok, used: 1, kids: &[vectorFan]*vectorPage{v.root}}
		}
		v.depth++
	}
	v.root = v.root.set(tok, n, r, v.depth)
}

// set gives the page that stands in p's place: p may be nil, and so may it.
func (p *vectorPage) set(tok *token, n ordinal, r *row, depth int) *vectorPage {
	if p == nil && r == nil {
		return nil
	}
	p = p.own(tok, depth)
	if depth == 0 {
		p.count(p.rows[n%vectorFan] != nil, r != nil)
		p.rows[n%vectorFan] = r
	} else {
		kid := &p.kids[n>>(depth*vectorBits)%vectorFan]
		had := *kid != nil
		*kid = (*kid).set(tok, n, r, depth-1)
		p.count(had, *kid != nil)
	}
	if p.used == 0 {
		return nil
	}
	return p
}

func (p *vectorPage) count(was, is bool) {
	switch {
	case is && !was:
		p.used++
	case was && !is:
		p.used--
	}
}

// own gives the page itself, or a copy that tok may change.
func (p *vectorPage) own(tok *token, depth int) *vectorPage {
	switch {
	case p == nil && depth == 0:
		return &vectorPage{owner: tok, rows: &[vectorFan]*row{}}
	case p == nil:
		return &vectorPage{owner: tok, kids: &[vectorFan]*vectorPage{}}
	case p.owner == tok:
		return p
	}
	c := &vectorPage{owner: tok, used: p.used}
	if depth == 0 {
		rows := *p.rows
		c.rows = &rows
	} else {
		kids := *p.kids
		c.kids = &kids
	}
	return c
}
