package plan

import (
	"github.com/nomadish/nomadish/structs"
)

// facts is what cutting a plan must know of the state that the plan is committed to.
type facts interface {
	// Of is the job of an allocation, and its node; false: there is no such allocation.
	Of(allocID string) (job structs.NamespacedID, node string, found bool)
	// RequestOf returns what is known of a group's request; nil: it never waited.
	RequestOf(ns, job, group string) *structs.PendingRequest
}

// cut splits a plan into parts of at most limit bytes, between what is independent of each
// other: see units.go for what is not. A unit that is larger has a part of its own. What the
// job frees for its own sake goes with the first parts, so that what is placed finds its
// room free, and before that the delayed evaluations that stops name. The plan's own
// evaluation and the blocked one go with the last part, so that they are over only when all
// of it is. Each part states what is missing of the plan's requests when it has been committed.
func cut(j *judged, limit int, known facts) []*structs.JudgedPlan {
	p := j.accepted
	requests := missingOf(j, known)
	c := &cutter{limit: limit, whole: p, base: sizePlan + sizeOfRequests(p.Requests) + sizeOfRequests(requests.before(nil))}
	c.next()
	first, units := unitsOf(p, known)
	for _, e := range first.evals {
		c.room(sizeOfEvals([]*structs.Evaluation{e}))
		c.part.Evals = append(c.part.Evals, e)
	}
	c.room(sizeOfIDs(first.unreserve)) // their room is for what is placed
	c.part.Unreserve = first.unreserve
	for _, s := range first.stops {
		c.room(sizeOfStop(s))
		c.part.Stop = append(c.part.Stop, s)
	}
	for _, u := range p.Update {
		c.room(sizeOfUpdate(u))
		c.part.Update = append(c.part.Update, u)
	}
	for _, u := range units {
		c.unit(u)
	}
	for _, r := range p.Reserve {
		c.room(sizeOfReservation(r))
		c.part.Reserve = append(c.part.Reserve, r)
	}
	c.part.Workflow = p.Workflow
	c.room(sizeOfEvals(first.last))
	c.part.Evals = append(c.part.Evals, first.last...)
	requests.distribute(c.parts, p.Requests)
	return c.parts
}

type cutter struct {
	limit int
	base  int // what every part takes
	whole *structs.JudgedPlan
	parts []*structs.JudgedPlan
	part  *structs.JudgedPlan
	size  int
	// pieces are the batches of the current part, by their place in the whole plan.
	pieces map[int]*piece
}

// piece is what of a batch goes into one part.
type piece struct {
	*structs.PlacementBatch
	nodes map[int]int // index in the whole batch → in the piece
}

func (c *cutter) next() {
	c.part = &structs.JudgedPlan{EvalID: c.whole.EvalID, Time: c.whole.Time, JudgedAt: c.whole.JudgedAt}
	c.parts = append(c.parts, c.part)
	c.size, c.pieces = c.base, map[int]*piece{}
}

// room makes sure that n bytes fit into the current part, or are the first of it.
func (c *cutter) room(n int) {
	if c.size+n > c.limit && c.size > c.base {
		c.next()
	}
	c.size += n
}

// unit puts a unit into one part.
func (c *cutter) unit(u *unit) {
	size := c.sizeOf(u)
	if c.size+size > c.limit && c.size > c.base {
		c.next()
		size = c.sizeOf(u)
	}
	c.size += size
	c.part.Stop = append(c.part.Stop, u.stops...)
	c.part.Unreserve = append(c.part.Unreserve, u.unreserve...)
	c.part.Evals = append(c.part.Evals, u.evals...)
	for _, at := range u.instances {
		c.instance(at)
	}
}

// sizeOf is what a unit takes of the current part.
func (c *cutter) sizeOf(u *unit) int {
	size := sizeOfIDs(u.unreserve) + sizeOfEvals(u.evals)
	for _, s := range u.stops {
		size += sizeOfStop(s)
	}
	met, nodes := map[int]bool{}, map[instanceRef]bool{}
	for _, at := range u.instances {
		b := c.whole.Place[at.batch]
		in := &b.Instances[at.instance]
		size += sizeOfInstance(in)
		p := c.pieces[at.batch]
		if p == nil && !met[at.batch] {
			met[at.batch] = true
			size += sizeOfBatch(b)
		}
		here := false
		if p != nil {
			_, here = p.nodes[in.Node]
		}
		if on := (instanceRef{at.batch, in.Node}); !here && !nodes[on] {
			nodes[on] = true
			size += sizeNode
		}
	}
	return size
}

// instance puts an instance into the current part. Ordinals, and so the IDs, stay.
func (c *cutter) instance(at instanceRef) {
	b := c.whole.Place[at.batch]
	p := c.pieces[at.batch]
	if p == nil {
		of := *b
		of.Nodes, of.Instances = nil, nil
		p = &piece{&of, map[int]int{}}
		c.pieces[at.batch] = p
		c.part.Place = append(c.part.Place, p.PlacementBatch)
	}
	in := b.Instances[at.instance]
	node, known := p.nodes[in.Node]
	if !known {
		node = len(p.Nodes)
		p.nodes[in.Node] = node
		p.Nodes = append(p.Nodes, b.Nodes[in.Node])
	}
	in.Node = node
	p.Instances = append(p.Instances, in)
}
