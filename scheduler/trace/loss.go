package trace

import (
	"container/heap"
	"slices"

	"github.com/nomadish/nomadish/structs"
)

// Sharing loss: a tenant's job waits although what its tenant owns would hold it beside the tenant's own work. Who owns cells never
// loses so; who owns a number of GPUs does, when the nodes that are left are in pieces.

// lossCount counts the losses of a tenant.
type lossCount struct {
	now      []*job // those that lose
	milli    int64  // what they wait for
	jobs     int64
	milliSec float64
}

// is states who loses now.
func (l *lossCount) is(list []*job) {
	l.now, l.milli = list, 0
	for _, j := range list {
		l.milli += j.missingMilli()
	}
}

// until counts what is lost in some nanoseconds; counted is a mark of a job that has been.
func (l *lossCount) until(nanoseconds int64, counted func(*job) *bool) {
	for _, j := range l.now {
		if c := counted(j); !*c {
			*c = true
			l.jobs++
		}
	}
	l.milliSec += float64(l.milli) * float64(nanoseconds) / 1e9
}

// losing looks again at the tenants of which something has changed. It comes when a pass is over.
func (r *replay) losing() {
	if r.tenants == nil {
		return
	}
	var waiting map[*tenant][]*requestKey
	for _, t := range r.tenants.list {
		if !t.changed {
			continue
		}
		t.changed = false
		if t.gpus == 0 {
			continue
		}
		if waiting == nil {
			waiting = r.queue.byTenant()
		}
		keys := waiting[t]
		if len(keys) == 0 {
			t.losses.is(nil)
			t.aloneLosses.is(nil)
			continue
		}
		own := t.alone
		if r.tenants.sharing == SharingCells {
			t.aloneLosses.is(fitting(keys, t.alone.free()))
			own = t.tree
		}
		t.losses.is(fitting(keys, own.free()))
	}
}

// lose counts what tenants use and lose until a time, and returns what waits so, in thousandths of GPUs.
func (r *replay) lose(until int64) (milli int64) {
	if r.tenants == nil || until <= r.now {
		return 0
	}
	for _, t := range r.tenants.list {
		t.advance(until - r.now)
		t.losses.until(until-r.now, func(j *job) *bool { return &j.lost })
		t.aloneLosses.until(until-r.now, func(j *job) *bool { return &j.lostAlone })
		milli += t.losses.milli
	}
	return milli
}

// byTenant returns the request keys of which jobs wait.
func (q *queue) byTenant() map[*tenant][]*requestKey {
	all := map[*tenant][]*requestKey{}
	for _, s := range q.waiting { // sorted by ranks where they are read
		t := s.requests[0].tenant
		all[t] = append(all[t], s)
	}
	return all
}

// fitting returns the waiting jobs that free cells hold, the best rank first, each beside those before it.
func fitting(keys []*requestKey, free *freeCells) (list []*job) {
	if free.most() == 0 {
		return nil
	}
	var next byRank
	for _, s := range keys {
		if s.row.wholeGPUs() {
			next = append(next, waitingAt{s, 0})
		}
	}
	heap.Init(&next)
	for len(next) > 0 && free.most() > 0 {
		at := heap.Pop(&next).(waitingAt)
		j := at.job()
		n := 1
		if j.row.Gang {
			n = j.request.Missing
		}
		if !free.take(j.row, n) {
			continue // nor do those behind it in its key, which are as large or, of a gang, alike
		}
		list = append(list, j)
		for child := 2*at.index + 1; child <= 2*at.index+2 && child < len(at.key.requests); child++ {
			heap.Push(&next, waitingAt{at.key, child})
		}
	}
	return list
}

// waitingAt is a job in the heap of its request key.
type waitingAt struct {
	key   *requestKey
	index int
}

func (a *waitingAt) job() *job { return a.key.requests[a.index] }

// byRank is a heap of jobs of several request keys, by rank.
type byRank []waitingAt

func (h byRank) Len() int           { return len(h) }
func (h byRank) Less(i, j int) bool { return h[i].job().rank.Compare(&h[j].job().rank) < 0 }
func (h byRank) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byRank) Push(x any)        { *h = append(*h, x.(waitingAt)) }
func (h *byRank) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	*h = (*h)[:last]
	return a
}

// TenantFigures is what became of a tenant's work, and of what it owns.
type TenantFigures struct {
	Of   string
	GPUs int // that it owns
	// GuaranteedGPUHours and OpportunisticGPUHours are what its work used by right and beyond it, what had to be done again among it.
	GuaranteedGPUHours    float64
	OpportunisticGPUHours float64
	// Used is what its work used of all kinds until the last arrival, in parts of what it owns; above 1 if it borrowed more than it lent.
	Used float64
	// LossJobs waited although what the tenant owns would have held them beside its own work, LossGPUHours is what they waited for,
	// times how long. Who owns cells is measured by the cells as its work lies in them, others as in LossAloneJobs.
	LossJobs     int64
	LossGPUHours float64
	// LossAloneJobs and LossAloneGPUHours are the same by a cluster of the tenant's own, of the same cells: with its work in it that has
	// room there, placed by itself.
	LossAloneJobs     int64
	LossAloneGPUHours float64
	// Requeued is how many of its instances were taken back and began again.
	Requeued int64
}

// tenantFigures returns the figures of all tenants, those who own the most first, and their sum.
func (r *replay) tenantFigures() (list []TenantFigures, sum *TenantFigures) {
	if r.tenants == nil {
		return nil, nil
	}
	loaded := float64(r.series.last-epoch) / 1e9
	sum = &TenantFigures{Of: "all"}
	const perHour = 1000 * 3600
	used := 0.0
	for _, t := range r.tenants.list {
		losses := [2]*lossCount{&t.losses, &t.aloneLosses}
		if r.tenants.sharing != SharingCells {
			losses[1] = losses[0]
		}
		f := TenantFigures{
			Of: t.name, GPUs: t.gpus, Requeued: t.requeued,
			OpportunisticGPUHours: round((t.used-t.byRight)/perHour, 6), GuaranteedGPUHours: round(t.byRight/perHour, 6),
			LossJobs: losses[0].jobs, LossGPUHours: round(losses[0].milliSec/perHour, 6),
			LossAloneJobs: losses[1].jobs, LossAloneGPUHours: round(losses[1].milliSec/perHour, 6),
		}
		used += t.untilLast
		if has := float64(t.gpus) * structs.DeviceShareWhole * loaded; has > 0 {
			f.Used = round(t.untilLast/has, 6)
		}
		list = append(list, f)
		sum.add(&f)
	}
	if has := float64(sum.GPUs) * structs.DeviceShareWhole * loaded; has > 0 {
		sum.Used = round(used/has, 6)
	}
	slices.SortStableFunc(list, func(a, b TenantFigures) int { return b.GPUs - a.GPUs })
	return list, sum
}

func (f *TenantFigures) add(o *TenantFigures) {
	f.GPUs += o.GPUs
	f.Requeued += o.Requeued
	f.GuaranteedGPUHours = round(f.GuaranteedGPUHours+o.GuaranteedGPUHours, 6)
	f.OpportunisticGPUHours = round(f.OpportunisticGPUHours+o.OpportunisticGPUHours, 6)
	f.LossJobs += o.LossJobs
	f.LossGPUHours = round(f.LossGPUHours+o.LossGPUHours, 6)
	f.LossAloneJobs += o.LossAloneJobs
	f.LossAloneGPUHours = round(f.LossAloneGPUHours+o.LossAloneGPUHours, 6)
}
