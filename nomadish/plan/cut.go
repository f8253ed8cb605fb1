package plan

import "github.com/nomadish/nomadish/structs"

// Sizes in bytes of what a log entry holds, as msgpack encodes it, on the high side.
const (
	sizePlan     = 256
	sizeBatch    = 768
	sizeNode     = 72
	sizeInstance = 40
	sizePort     = 72
	sizeTracker  = 160
	sizeStop     = 320
	sizeUpdate   = 160
	sizeEval     = 1024
)

func sizeOf(p *structs.JudgedPlan) int {
	size := sizePlan + len(p.Stop)*sizeStop + len(p.Update)*sizeUpdate + len(p.Evals)*sizeEval
	for _, b := range p.Place {
		size += sizeBatch + len(b.Nodes)*sizeNode
		for i := range b.Instances {
			size += sizeOfInstance(&b.Instances[i])
		}
	}
	return size
}

func sizeOfInstance(in *structs.Instance) int {
	size := sizeInstance + len(in.Ports)*sizePort + len(in.Networks)*4*sizePort + len(in.PreviousAllocation)
	for _, cores := range in.Cores { // order does not matter: a sum
		size += 48 + 3*len(cores)
	}
	for _, devices := range in.Devices { // order does not matter: a sum
		for _, d := range devices {
			size += 64 + 48*len(d.DeviceIDs)
		}
	}
	if in.RescheduleTracker != nil {
		size += sizeTracker * (1 + len(in.RescheduleTracker.Events))
	}
	return size
}

// cut splits a plan into parts of at most limit bytes. What it stops goes with the
// first parts, so that what it places finds its room free; its evaluations go with
// the last, so that they are over only when all of it is.
func cut(p *structs.JudgedPlan, limit int) []*structs.JudgedPlan {
	c := &cutter{limit: limit, whole: p}
	c.next()
	for _, s := range p.Stop {
		c.room(sizeStop)
		c.part.Stop = append(c.part.Stop, s)
	}
	for _, u := range p.Update {
		c.room(sizeUpdate)
		c.part.Update = append(c.part.Update, u)
	}
	for _, b := range p.Place {
		c.batch(b)
	}
	c.room(len(p.Evals) * sizeEval)
	c.part.Evals = p.Evals
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
	c.part = &structs.JudgedPlan{EvalID: c.whole.EvalID, Time: c.whole.Time}
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
	for i := range b.Instances {
		in := b.Instances[i]
		fresh := c.room(sizeOfInstance(&in) + sizeNode)
		if piece == nil || fresh {
			p := *b
			p.Nodes, p.Instances = nil, nil
			piece, nodes = &p, map[int]int{}
			c.part.Place = append(c.part.Place, piece)
			c.size += sizeBatch
		}
		at, ok := nodes[in.Node]
		if !ok {
			at = len(piece.Nodes)
			nodes[in.Node] = at
			piece.Nodes = append(piece.Nodes, b.Nodes[in.Node])
		}
		in.Node = at
		piece.Instances = append(piece.Instances, in)
	}
}
