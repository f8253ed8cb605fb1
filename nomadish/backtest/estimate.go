package backtest

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/queueview"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/trace"
	"github.com/nomadish/nomadish/structs"
)

// alone estimates starts by what runs alone, as an explanation does where there is no forecast: when the room that a job needs comes free by time limits,
// if nobody takes it before. Jobs that need the same have the same estimate: it knows no queue.
type alone struct {
	snap  *state.Snapshot
	now   time.Time
	known map[rowKey]int64
}

// rowKey is what a row needs.
type rowKey struct {
	count, cpu, memory, gpus, share int
	models                          string
	gang                            bool
}

func keyOf(r *trace.Row) rowKey {
	return rowKey{r.Count, r.CPU, r.MemoryMB, r.GPUs, r.Share, strings.Join(r.Models, "|"), r.Gang}
}

func newAlone(snap *state.Snapshot, now time.Time) *alone {
	return &alone{snap: snap, now: now, known: map[rowKey]int64{}}
}

// start returns when a job starts, in Unix nanoseconds; 0: it is not known.
func (a *alone) start(j *job) (int64, error) {
	key := keyOf(j.row)
	if at, known := a.known[key]; known {
		return at, nil
	}
	spec := a.snap.Job(nil, j.id.Namespace, j.id.ID)
	ids := uint64(0)
	x, err := scheduler.Explain(a.snap.World(), scheduler.ExplainInput{
		Input: a.snap.Input(spec, a.snap.AllocsByJob(nil, j.id.Namespace, j.id.ID, false), &state.InputOptions{
			Now: a.now, Seed: a.snap.Index(), NewID: func() string { ids++; return structs.DeriveID("backtest "+j.id.ID, ids) },
		}),
		NoRemedies: true,
	})
	if err != nil {
		return 0, err
	}
	at := int64(0)
	switch g := x.Groups[0]; {
	case g.Expected != nil:
		at = g.Expected.All
	case g.PlacedNow == g.Missing:
		at = a.now.UnixNano()
	}
	a.known[key] = at
	return at, nil
}

// amounts are what nodes have or instances take: MHz, MiB, thousandths of GPUs.
type amounts [3]int64

func (a *amounts) add(o amounts, times int64) {
	for i := range a {
		a[i] += times * o[i]
	}
}

// times returns how many times an amount is within this one.
func (a *amounts) times(o amounts) int64 {
	n := int64(trace.MaxCount)
	for i := range a {
		if o[i] > 0 {
			n = min(n, max(0, a[i]/o[i]))
		}
	}
	return n
}

func amountsOf(r *trace.Row) amounts {
	gpu := int64(r.GPUs) * structs.DeviceShareWhole
	if r.Share > 0 && r.Share < structs.DeviceShareWhole {
		gpu = int64(r.Share)
	}
	return amounts{int64(r.CPU), int64(r.MemoryMB), gpu}
}

// never is the end of what has none.
const never = int64(1) << 62

// release is that an amount comes free.
type release struct {
	at int64
	of amounts
}

// span is from one time to another.
type span struct{ from, to int64 }

// planNode is a node of a plan.
type planNode struct {
	free  amounts // now
	ends  []release
	keeps []span // for jobs that the plan starts later, which have the whole node
}

// freeAt returns what is free of a node at a time until another, as far as that is known; false: it is kept for somebody.
func (n *planNode) freeAt(from, to int64) (amounts, bool) {
	for _, k := range n.keeps {
		if k.from < to && from < k.to {
			return amounts{}, false
		}
	}
	free := n.free
	for _, e := range n.ends {
		if e.at > from {
			break
		}
		free.add(e.of, 1)
	}
	return free, true
}

// plan is a plan that keeps whole nodes, as Slurm's backfill makes one: in the order of the queue, each job starts at the first time at which enough of
// its nodes have the room, as far as what runs ends by its time limit, and no job before it keeps these nodes then; it keeps its nodes whole for as long as
// it may run. Who starts at once takes its room alone.
type plan struct {
	now   int64
	until int64
	nodes []*planNode
	times []int64 // at which something comes free, in order
	// from is the first time that is looked at for rows that need the same, by how long they may run: who came before them with no longer a limit
	// found nothing earlier.
	from map[rowKey]map[time.Duration]int64
}

// wholeNodes returns when jobs start by a plan that keeps whole nodes; those that are not in it do not start within the horizon, or it is not known.
func (b *backtest) wholeNodes(lines []*queueview.Line, now time.Time) map[structs.NamespacedID]int64 {
	p := &plan{now: now.UnixNano(), until: now.Add(b.c.Horizon).UnixNano(), from: map[rowKey]map[time.Duration]int64{}}
	for _, n := range b.c.Nodes {
		p.nodes = append(p.nodes, b.planNode(n, p))
	}
	slices.Sort(p.times)
	p.times = slices.Compact(p.times)
	out := map[structs.NamespacedID]int64{}
	for _, l := range lines {
		id := l.Job.NamespacedID()
		if j := b.jobs[id]; j != nil && j.missing > 0 {
			if at := p.start(j); at > 0 {
				out[id] = at
			}
		}
	}
	return out
}

// planNode returns a node with what runs there.
func (b *backtest) planNode(n *structs.Node, p *plan) *planNode {
	x := &planNode{free: amounts{n.NodeResources.Cpu.CpuShares, n.NodeResources.Memory.MemoryMB}}
	for _, d := range n.NodeResources.Devices {
		if d.Type == "gpu" {
			x.free[2] += int64(len(d.Instances)) * structs.DeviceShareWhole
		}
	}
	for _, r := range b.on[n.ID] { // sorted below
		x.free.add(amountsOf(r.job.row), -1)
		if limit := r.job.row.MaxRun; limit > 0 {
			end := max(p.now, r.from.Add(limit).UnixNano())
			x.ends = append(x.ends, release{end, amountsOf(r.job.row)})
			p.times = append(p.times, end)
		}
	}
	slices.SortFunc(x.ends, func(a, b release) int { return cmp.Compare(a.at, b.at) })
	return x
}

// start returns when a job starts, and keeps its nodes for it; 0: it is not known.
func (p *plan) start(j *job) int64 {
	from, key := p.now, keyOf(j.row)
	for limit, at := range p.from[key] { // a maximum: the order cannot show
		if limit == j.row.MaxRun || j.row.MaxRun == 0 || limit > 0 && limit < j.row.MaxRun {
			from = max(from, at)
		}
	}
	if p.from[key] == nil {
		p.from[key] = map[time.Duration]int64{}
	}
	i, _ := slices.BinarySearch(p.times, from)
	for at := from; ; at = p.times[i] {
		if p.place(j, at) {
			p.from[key][j.row.MaxRun] = at
			return at
		}
		for i < len(p.times) && p.times[i] <= at {
			i++
		}
		if i == len(p.times) || p.times[i] > p.until {
			break
		}
	}
	p.from[key][j.row.MaxRun] = p.until + 1
	return 0
}

// place has a job start at a time, if it can.
func (p *plan) place(j *job, at int64) bool {
	to, takes := never, amountsOf(j.row)
	if j.row.MaxRun > 0 {
		to = at + int64(j.row.MaxRun)
	}
	type found struct {
		n    *planNode
		many int64
		left int64
	}
	var list []found
	left := int64(j.missing)
	for _, n := range p.nodes {
		free, open := n.freeAt(at, to)
		if many := free.times(takes); open && many > 0 {
			list = append(list, found{n, many, free[2]})
			left -= many
		}
	}
	if left > 0 {
		return false
	}
	slices.SortStableFunc(list, func(a, b found) int { return cmp.Compare(a.left, b.left) }) // the fullest first
	left = int64(j.missing)
	for _, f := range list {
		many := min(left, f.many)
		if at == p.now {
			f.n.free.add(takes, -many)
			if to < never {
				i, _ := slices.BinarySearchFunc(f.n.ends, to, func(e release, at int64) int { return cmp.Compare(e.at, at) })
				taken := amounts{}
				taken.add(takes, many)
				f.n.ends = slices.Insert(f.n.ends, i, release{to, taken})
			}
		} else {
			f.n.keeps = append(f.n.keeps, span{at, to})
		}
		if left -= many; left == 0 {
			break
		}
	}
	if to < never {
		if i, known := slices.BinarySearch(p.times, to); !known {
			p.times = slices.Insert(p.times, i, to)
		}
	}
	return true
}
