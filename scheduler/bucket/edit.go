package bucket

// edit is one change on its way down the pages and back: an entry is removed from
// one key, or put to another, or the one and then the other.
type edit[V any] struct {
	cfg      *config
	token    *Token
	width    int
	from, to way
	at       Vector
	value    V

	added bool   // put: the entry is new
	old   Vector // what stood there, when put replaced it or remove took it out
	ahead int    // what was read ahead: it is of no use
}

// way is a key and, if it is known, the child to go to on each level from the root
// on. No tree is so high.
type way struct {
	key   key
	known bool
	kids  [16]uint8
}

// child returns the child of an inner page that the key belongs to.
func (w *way) child(cfg *config, p *cells, level int) int {
	if w.known {
		return int(w.kids[level])
	}
	return p.child(cfg, &w.key)
}

// aim finds both ways side by side: each waits for memory most of the time.
func (e *edit[V]) aim(root *page[V]) {
	if root == nil {
		return
	}
	p, q := root, root
	for level := 0; p.kids != nil; level++ {
		if level == len(e.from.kids) {
			return
		}
		i, j := p.child(e.cfg, &e.from.key), q.child(e.cfg, &e.to.key)
		e.from.kids[level], e.to.kids[level] = uint8(i), uint8(j)
		p, q = p.kids[i], q.kids[j]
	}
	e.from.known, e.to.known = true, true
	e.ahead = p.readAhead() + q.readAhead()
}

// put sets the entry in or below a page. It returns the page that stands there now, and the right
// half of one that came to be over-full.
func (e *edit[V]) put(p *page[V], level int) (left, right *page[V]) {
	p = p.own(e.token)
	if p.kids == nil {
		return e.putLeaf(p)
	}
	i := e.to.child(e.cfg, &p.cells, level)
	kid, more := e.put(p.kids[i], level+1)
	if p.kids[i] != kid {
		p.kids[i] = kid
	}
	if more == nil {
		e.raise(p, i)
		return p, nil
	}
	p.sum(i, e.width)
	i++
	to := p
	if p.n == fan {
		right = p.split(e.cfg, cut(i), e.width)
		if i > p.n { // what comes right behind the left half stays there: a page's first separator is moved, never made
			to, i = right, i-p.n
		}
	}
	to.open(i)
	to.kids[i] = more
	to.separate(e.cfg, i, more)
	to.sum(i, e.width)
	return p, right
}

// cut is how many entries a full page keeps when one more comes at place i. Entries
// that come in order, as those of new nodes do, leave full pages behind them.
func cut(i int) int {
	if i == fan {
		return fan - 2
	}
	return fan / 2
}

func (e *edit[V]) putLeaf(p *page[V]) (left, right *page[V]) {
	i := p.place(e.cfg, &e.to.key)
	if i > 0 && p.inLeaf(e.cfg, i-1, &e.to.key) == 0 {
		e.old = p.vector(i-1, e.width)
		e.set(p, i-1)
		return p, nil
	}
	e.added = true
	to := p
	if p.n == fan {
		right = p.split(e.cfg, cut(i), e.width)
		if i > p.n {
			to, i = right, i-p.n
		}
	}
	to.open(i)
	e.set(to, i)
	return p, right
}

func (e *edit[V]) set(p *page[V], i int) {
	for d := range e.width {
		p.set(d*fan+i, e.at[d])
	}
	p.prefixes[i], p.ids[i], p.values[i] = e.to.key.prefix, e.to.key.id, e.value
}

// raise brings size and maxima of child i up to date, in which the entry was put.
func (e *edit[V]) raise(p *page[V], i int) {
	if e.added {
		p.set(sizes+i, p.at(sizes+i)+1)
	}
	for d := range e.width {
		at := maxima + d*fan + i
		switch most := p.at(at); {
		case e.at[d] > most:
			p.set(at, e.at[d])
		case e.at[d] == most:
		case !e.added && e.old[d] == most:
			p.set(at, p.kids[i].mostUpTo(d, most))
		}
	}
}

// remove takes the entry out of a page or what is below it. A page that came to
// be empty goes; one that came to be small is merged with a neighbour that has
// room. Nothing is copied when the entry is not there.
func (e *edit[V]) remove(p *page[V], level int) (*page[V], bool) {
	if p.kids == nil {
		i := p.place(e.cfg, &e.from.key) - 1
		if i < 0 || p.inLeaf(e.cfg, i, &e.from.key) != 0 {
			return p, false
		}
		e.old = p.vector(i, e.width)
		p = p.own(e.token)
		p.shut(i)
		return p, true
	}
	i := e.from.child(e.cfg, &p.cells, level)
	kid, found := e.remove(p.kids[i], level+1)
	if !found {
		return p, false
	}
	p = p.own(e.token)
	if p.kids[i] != kid {
		p.kids[i] = kid
	}
	if kid.n == 0 {
		e.to.known = false // pages go
		p.shut(i)
		return p, true
	}
	p.set(sizes+i, p.at(sizes+i)-1)
	for d := range e.width {
		at := maxima + d*fan + i
		if most := p.at(at); e.old[d] == most {
			p.set(at, kid.mostUpTo(d, most))
		}
	}
	if kid.n <= fan/4 && p.n > 1 {
		e.merge(p, max(0, i-1))
	}
	return p, true
}

// merge joins the children i and i+1 of an owned page when they leave room for more.
func (e *edit[V]) merge(p *page[V], i int) {
	a, b := p.kids[i], p.kids[i+1]
	if a.n+b.n > fan*3/4 {
		return
	}
	e.to.known = false
	a = a.own(e.token)
	joint := a.n
	a.move(b, 0, b.n)
	if a.kids != nil { // the first separator of b was not looked at: the one above it is true
		for j := range e.cfg.order {
			a.seps.set(e.cfg.innerKey[j]+joint, p.seps.at(e.cfg.innerKey[j]+i+1))
		}
		a.prefixes[joint], a.ids[joint] = p.prefixes[i+1], p.ids[i+1]
	}
	p.kids[i] = a
	p.set(sizes+i, p.at(sizes+i)+p.at(sizes+i+1))
	for d := range e.width {
		at := maxima + d*fan + i
		p.set(at, max(p.at(at), p.at(at+1)))
	}
	p.shut(i + 1)
}
