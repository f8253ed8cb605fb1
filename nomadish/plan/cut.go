package plan

import "github.com/nomadish/nomadish/structs"

// cut splits a plan into parts of at most limit bytes. What it stops goes with the
// first parts, so that what it places finds its room free; its evaluations go with
// the last, so that they are over only when all of it is.
func cut(p *structs.JudgedPlan, limit int) []*structs.JudgedPlan {
	c := &cutter{limit: limit, whole: p}
	c.next()
	c.room(sizeOfIDs(p.Unreserve)) // their room is for what is placed
	c.part.Unreserve = p.Unreserve
	for _, s := range p.Stop {
		c.room(sizeStop + len(s.DesiredDescription))
		c.part.Stop = append(c.part.Stop, s)
	}
	for _, u := range p.Update {
		c.room(sizeOfUpdate(u))
		c.part.Update = append(c.part.Update, u)
	}
	for _, b := range p.Place {
		c.batch(b)
	}
	for _, r := range p.Reserve {
		c.room(sizeOfReservation(r))
		c.part.Reserve = append(c.part.Reserve, r)
	}
	c.room(sizeOfAsks(p.Asks) + sizeOfEvals(p.Evals))
	c.part.Asks, c.part.Evals = p.Asks, p.Evals
	return c.parts
}

type cutter struct {
	limit int
	whole *structs.JudgedPlan
	parts []*structs.JudgedPlan
	part  *structs.JudgedPlan
	size  int
}

func (c *cutter) next() {
	c.part = &structs.JudgedPlan{EvalID: c.whole.EvalID, Time: c.whole.Time, JudgedAt: c.whole.JudgedAt}
	c.parts = append(c.parts, c.part)
	c.size = sizePlan
}

// room makes sure that n bytes fit into the current part.
func (c *cutter) room(n int) (fresh bool) {
	if c.size+n > c.limit && c.size > sizePlan {
		c.next()
		fresh = true
	}
	c.size += n
	return fresh
}

// batch spreads a batch over the parts. Ordinals, and so the IDs, stay.
func (c *cutter) batch(b *structs.PlacementBatch) {
	var piece *structs.PlacementBatch
	var nodes map[int]int // index in b → in piece
	head := sizeOfBatch(b)
	for i := range b.Instances {
		in := b.Instances[i]
		size := sizeOfInstance(&in)
		at, known := nodes[in.Node]
		if !known {
			size += sizeNode
		}
		if piece == nil {
			size += head
		}
		if fresh := c.room(size); fresh && piece != nil {
			piece, known = nil, false
			c.size += head + sizeNode // at most: its node may have been new anyway
		}
		if piece == nil {
			p := *b
			p.Nodes, p.Instances = nil, nil
			piece, nodes = &p, map[int]int{}
			c.part.Place = append(c.part.Place, piece)
		}
		if !known {
			at = len(piece.Nodes)
			nodes[in.Node] = at
			piece.Nodes = append(piece.Nodes, b.Nodes[in.Node])
		}
		in.Node = at
		piece.Instances = append(piece.Instances, in)
	}
}
