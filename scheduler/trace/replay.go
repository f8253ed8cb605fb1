package trace

import (
	"container/heap"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Config is one replay.
type Config struct {
	Nodes []*structs.Node
	// Rows come in the order of their arrival. An error ends the replay.
	Rows iter.Seq2[*Row, error]
	// Scheduler is the configuration; its policy is NodeOrder.
	Scheduler structs.SchedulerConfiguration
	Seed      uint64
	// Drop: nobody leaves or is taken from, and what does not fit when it arrives is dropped.
	Drop bool
	// Until ends the replay when the demand for GPUs that has arrived is so many times
	// what there is; 0: with the last row. Work that runs then is not waited for.
	Until float64
	// Chooser, not nil, names the node of each instance in the scheduler's stead. It is
	// there to compare the scheduler with published methods, and needs Drop.
	Chooser Chooser
	// PolicyName is the policy's name in the figures; "": the configuration's.
	PolicyName string
	// VirtualClusters are what tenants own, in the order of admission; Sharing is one of the Sharing constants, "": SharingCells. Both
	// are for the mode in which time goes on.
	VirtualClusters []*structs.VirtualCluster
	Sharing         string
	// Reservations is how workflows run, one of the Reservations constants. It must be stated if rows are of workflows; "": none are.
	Reservations string
	// Typical, not nil, sets what the scheduler knows to be typically requested before each
	// decision.
	Typical func(in *scheduler.Input, typical []Typical)
	// Placed, not nil, is called when all instances of a row have a place for the first time.
	Placed func(row *Row, at time.Duration)
	// Clock measures decisions: the time since any moment. nil: they are not measured.
	Clock func() time.Duration
	// Report is called now and then with how far the replay is. An error ends it.
	Report func(Progress) error
}

// Chooser finds a node for each job instead of the scheduler.
type Chooser interface {
	// Choose returns a machine of the ledger for one instance of a row; false: none fits.
	Choose(l *Ledger, row *Row) (int, bool)
}

// reportEvery is how many rows are between two reports.
const reportEvery = 1000

// replay is a Config on its way through Run.
type replay struct {
	c      *Config
	config structs.SchedulerConfiguration
	policy string
	world  *scheduler.World
	ledger *Ledger
	queue  queue
	ends   runHeap
	dues   dueHeap
	allocs map[string]instanceRef // instances that run or are suspended, by allocation ID
	dueSeq uint64
	now    int64

	number uint64 // of the last row
	ids    uint64 // minted
	counts Counts
	timing Timing
	known  *scheduler.Prepared
	usages int     // reservations that there are
	stirs  int64   // when something ran, began or came last
	starts int64   // as many as there were then
	lost   float64 // thousandths of GPUs times seconds that were to be done again
	// lostUntil is lost at the last arrival.
	lostUntil float64
	tenants   *tenants // nil: nobody owns anything
	flows     *flows   // nil: there are no workflows
	// lostCPU is as lost, of MHz.
	lostCPU, lostCPUUntil float64

	tally  *tally
	series *series
	curve  curve
	census *census
	frag   fragmentation
}

// instanceRef is one instance of a run.
type instanceRef struct {
	run *run
	at  int
}

// Run replays a trace. What it returns is the same for the same Config; the Timing is not.
func Run(c Config) (*Figures, *Timing, error) {
	r, err := newReplay(&c)
	if err == nil {
		err = r.run()
	}
	if err != nil {
		return nil, nil, err
	}
	return r.figures(), &r.timing, nil
}

// run is the story of a replay.
func (r *replay) run() error {
	for row, err := range r.c.Rows {
		if err != nil {
			return err
		}
		// 1. Time goes on to the row's arrival; what ends and is due on the way is done.
		at := epoch + int64(row.Arrival)
		if at < r.now {
			return fmt.Errorf("row %d arrives at %s, before the one above it (%s): rows must be sorted by their arrival",
				r.number+1, row.Arrival, time.Duration(r.now-epoch))
		}
		if at > r.now {
			if err := (workflowDriver{r}).submit(); err != nil {
				return err
			}
			if err := r.until(at); err != nil {
				return err
			}
		}
		// 2. It joins the queue; the pass comes when all of this moment have.
		if err := r.arrive(row); err != nil {
			return fmt.Errorf("row %d: %w", r.number, err)
		}
		if u := r.c.Until; u > 0 && float64(r.counts.Arrived) >= u*float64(r.ledger.Has.GPUMilli) {
			return r.pass()
		}
	}
	// 3. Work goes on until nothing is left to happen.
	if err := (workflowDriver{r}).submit(); err != nil {
		return err
	}
	return r.until(never)
}

func newReplay(c *Config) (*replay, error) {
	if c.Rows == nil || len(c.Nodes) == 0 {
		return nil, errors.New("replay: there are no nodes, or no rows")
	}
	if c.Chooser != nil && !c.Drop {
		return nil, errors.New("replay: a chooser is used in the mode drop only")
	}
	if err := c.Scheduler.Validate(); err != nil {
		return nil, fmt.Errorf("scheduler configuration: %w", err)
	}
	ledger, err := NewLedger(c.Nodes)
	if err != nil {
		return nil, err
	}
	r := &replay{
		c: c, config: c.Scheduler, policy: c.PolicyName, ledger: ledger, queue: newQueue(), allocs: map[string]instanceRef{}, now: epoch,
		tally: newTally(), series: newSeries(epoch), census: newCensus(),
		known: scheduler.NewPrepared(),
	}
	if r.policy == "" {
		r.policy = r.config.NodeOrder()
	}
	if c.Drop { // nobody waits for what is reserved or taken from others
		r.config.PreemptionConfig.BatchSchedulerEnabled, r.config.ReservationAfter = false, -1
	}
	if c.Sharing == SharingCounts && len(c.VirtualClusters) > 0 {
		shareByCounts(&r.config)
	}
	edit := scheduler.NewWorld().Edit()
	edit.Configure(&r.config)
	nodes := slices.Clone(c.Nodes)
	slices.SortFunc(nodes, func(a, b *structs.Node) int { return slices.Compare([]byte(a.ID), []byte(b.ID)) })
	for _, n := range nodes {
		edit.UpsertNode(n)
	}
	if r.tenants, err = newTenants(c, edit); err != nil {
		return nil, err
	}
	r.world = edit.World()
	r.flows, err = newFlows(c)
	r.queue.apart = r.flows != nil && r.flows.mode == ReservationsLend
	return r, err
}

// until lets time go on: moment by moment, ends are released and dues come, and a pass
// decides what may be placed then. At the last moment itself the pass is left to the
// caller's next step.
func (r *replay) until(at int64) error {
	for {
		if err := r.pass(); err != nil {
			return err
		}
		next := int64(never)
		if len(r.ends) > 0 {
			next = r.ends[0].end
		}
		if len(r.dues) > 0 && r.queue.jobs > 0 && r.mayChange() {
			next = min(next, max(r.now, r.dues[0].at)) // one that was not looked at while nothing waited is past
		}
		if next > at || next == never {
			break
		}
		r.tick(next)
		if err := r.moment(); err != nil {
			return err
		}
		if next == at {
			return nil
		}
	}
	if at != never {
		r.tick(at)
	}
	return nil
}

// mayChange reports whether what waits may find room without anything coming: something runs that
// will end, or others have reserved room. What they do not use in the time that a reservation
// lasts, they will not use.
func (r *replay) mayChange() bool {
	if len(r.ends) > 0 || r.starts != r.counts.Starts {
		r.stirs, r.starts = r.now, r.counts.Starts
		return true
	}
	after, _ := r.config.ReserveAfter()
	return r.usages > 0 && r.now-r.stirs <= int64(2*(after+r.config.ReserveTTL()))
}

// tick moves the time on.
func (r *replay) tick(at int64) {
	has := &r.ledger.Used
	if r.c.Drop {
		r.now = at
		return
	}
	loss := r.lose(at)
	cpu, gpu := workflowDriver{r}.loans()
	if r.flows != nil && at > r.now {
		r.flows.figures.cpu.add(cpu, at-r.now)
		r.flows.figures.gpu.add(gpu, at-r.now)
	}
	reserved := gpu
	if r.ledger.Has.GPUMilli == 0 {
		reserved = cpu
	}
	r.series.advance(at, levels{
		guaranteed: float64(r.tenants.guaranteed()), loss: float64(loss),
		gpu: float64(has.GPUMilli), cpu: float64(has.CPU), memory: float64(has.MemoryMB),
		reserved: reserved.Reserved, lent: reserved.Lent, idle: reserved.Idle,
		waiting: float64(r.queue.jobs), waitingGPU: float64(r.queue.milli),
	}, r.fragmentation)
	r.now = at
}

func (r *replay) fragmentation() float64 { return r.frag.measure(r.ledger, r.census) }

// moment releases what ends now, and lets be tried what is due.
func (r *replay) moment() error {
	var edit *scheduler.Edit
	start := r.clock()
	for len(r.ends) > 0 && r.ends[0].end <= r.now {
		if edit == nil {
			edit = r.world.Edit()
		}
		x := heap.Pop(&r.ends).(*run)
		if err := r.end(x, edit); err != nil {
			return err
		}
	}
	if edit != nil {
		r.world = edit.World()
		r.queue.released()
		r.timing.Releasing += r.clock() - start
	}
	for len(r.dues) > 0 && r.dues[0].at <= r.now {
		d := heap.Pop(&r.dues).(due)
		if d.requestKey.due != d.at {
			continue // an earlier one has come in its stead
		}
		if d.requestKey.due = 0; len(d.requestKey.requests) > 0 {
			r.queue.retry(d.requestKey)
		}
	}
	return nil
}

func (r *replay) clock() time.Duration {
	if r.c.Clock == nil {
		return 0
	}
	return r.c.Clock()
}

// arrive makes a job of a row. In the mode Drop it is placed or dropped at once.
func (r *replay) arrive(row *Row) error {
	r.number++
	if err := row.Validate(); err != nil {
		return err
	}
	r.census.add(row)
	r.counts.Jobs++
	r.counts.Instances += int64(row.Count)
	r.counts.Arrived += row.gpuMilli()
	r.series.arrived()
	r.tenants.arrived()
	r.lostUntil, r.lostCPUUntil = r.lost, r.lostCPU
	r.stirs = r.now
	if err := r.begins(row); err != nil {
		return err
	}
	if r.c.Drop {
		r.curve.add(row.gpuMilli(), r.ledger, r.fragmentation)
	}
	if r.c.Report != nil && r.number%reportEvery == 0 {
		return r.c.Report(Progress{Rows: r.counts.Jobs, Waiting: r.queue.jobs, At: time.Duration(r.now - epoch)})
	}
	return nil
}

// begins lets the job of a row wait, or the workflow of which it is.
func (r *replay) begins(row *Row) error {
	if row.Workflow != nil {
		return workflowDriver{r}.gather(row)
	}
	if err := (workflowDriver{r}).submit(); err != nil {
		return err
	}
	j := r.newJob(row, r.number, nil)
	r.queue.join(j)
	if r.c.Drop {
		return r.dropOrPlace(j)
	}
	return nil
}

// dropOrPlace decides a job at once. What of it does not fit is dropped.
func (r *replay) dropOrPlace(j *job) error {
	if r.c.Chooser != nil && !r.candidate(j) {
		r.drop(j)
		return nil
	}
	if err := r.pass(); err != nil {
		return err
	}
	if j.heapIndex >= 0 {
		r.drop(j)
	}
	return nil
}

func (r *replay) drop(j *job) {
	r.queue.leave(j)
	j.requestKey.jobs--
	r.queue.forget(j.requestKey)
	r.counts.Dropped++
	for _, w := range r.tally.of(j) {
		w.never++
	}
}

// candidate lets a job go nowhere but where the chooser decides.
func (r *replay) candidate(j *job) bool {
	at, fits := r.c.Chooser.Choose(r.ledger, j.row)
	if !fits {
		return false
	}
	group := *j.spec.TaskGroups[0]
	group.Candidates = []string{r.ledger.Machines[at].ID}
	j.spec.TaskGroups = []*structs.TaskGroup{&group}
	j.requestKey.tried = 0 // what found no room elsewhere may have it there
	r.queue.open = append(r.queue.open, j.requestKey)
	return true
}

// newID mints an ID: the same ones in each replay of a seed.
func (r *replay) newID() string {
	r.ids++
	return structs.DeriveID("replay "+strconv.FormatUint(r.c.Seed, 10), r.ids)
}
