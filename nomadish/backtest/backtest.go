package backtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/nomadish/nomadish/nomadish/forecast"
	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/gc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler/trace"
	"github.com/nomadish/nomadish/structs"
)

// Config is how a trace is replayed.
type Config struct {
	Nodes []*structs.Node
	// Rows come in the order of their arrival. An error ends the replay.
	Rows iter.Seq2[*trace.Row, error]
	// Scheduler is the configuration; its policy is NodeOrder.
	Scheduler structs.SchedulerConfiguration
	Seed      uint64
	// Every is the time between two forecasts, Horizon how far they look (structs.DefaultForecastHorizon).
	Every, Horizon time.Duration
	// From and Until are when the first and the last forecasts may be made, since the trace's start; Until 0: as long as somebody waits. What comes before is
	// replayed too; after Until the replay ends when all have started of whom something was forecast.
	From, Until time.Duration
	// Report, not nil, is called after each forecast with how far the replay is. An error ends it.
	Report func(trace.Progress) error
}

// epoch is when traces start: a time of 0 would mean "not known".
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// backtest is a Config on its way through Run.
type backtest struct {
	c      *Config
	future *forecast.Future
	gc     *gc.Collector

	number  uint64 // of the last row
	jobs    map[structs.NamespacedID]*job
	waiting int // jobs of which an instance has not started
	open    int // those of them of which something was forecast
	tenants []string
	// shares are those of tenants when nothing was left to be done last; sharesAt is the index of the allocations that they are of.
	shares   map[string]int
	sharesAt uint64
	on       map[string]map[string]*placed // what runs, by node and name
	running  int

	figures *figures
	failed  error
}

// job is a row that has arrived and not ended.
type job struct {
	row     *trace.Row
	id      structs.NamespacedID
	arrived time.Time
	rank    structs.Rank // without shares
	missing int          // instances that have not started
	runs    int          // instances that have started and not ended
	stated  []statement
}

// placed is an instance that runs.
type placed struct {
	job    *job
	from   time.Time
	shares map[string]int // before it was placed
}

// Run replays a trace with forecasts.
func Run(ctx context.Context, c Config) (*trace.ForecastFigures, error) {
	b, err := start(ctx, &c)
	if err != nil {
		return nil, err
	}
	defer b.future.Close()
	if err := b.run(ctx); err != nil {
		return nil, err
	}
	return b.figures.result(b), nil
}

// start returns a backtest with the nodes and the configuration registered. Its future must be closed.
func start(ctx context.Context, c *Config) (*backtest, error) {
	if c.Every <= 0 {
		return nil, errors.New("the time between forecasts must be more than 0")
	}
	if c.Horizon == 0 {
		c.Horizon = structs.DefaultForecastHorizon
	}
	b := &backtest{
		c: c, jobs: map[structs.NamespacedID]*job{}, shares: map[string]int{}, on: map[string]map[string]*placed{}, figures: newFigures(),
	}
	b.future = forecast.NewFuture(fsm.Empty(), forecast.FutureOptions{
		Now: epoch, Entries: math.MaxInt, Lasting: b.lasting, See: b, IDs: "backtest " + strconv.FormatUint(c.Seed, 10),
	})
	b.gc = gc.New(gc.Options{Clock: b.future}, b.future.Store(), b.future)
	if err := b.begin(ctx); err != nil {
		b.future.Close()
		return nil, err
	}
	return b, nil
}

// begin registers the nodes and the configuration.
func (b *backtest) begin(ctx context.Context) error {
	config := b.c.Scheduler
	if _, err := b.future.Apply(ctx, structs.LogSchedulerConfig, &structs.SchedulerConfigEntry{Config: config, Time: epoch.UnixNano()}); err != nil {
		return err
	}
	for _, n := range b.c.Nodes {
		b.on[n.ID] = map[string]*placed{}
		if _, err := b.future.Apply(ctx, structs.LogNodeRegister, &structs.NodeRegisterEntry{Node: n, Time: epoch.UnixNano()}); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}

// run is the story of a replay.
func (b *backtest) run(ctx context.Context) error {
	next := epoch.Add(b.c.Every) // forecast
	for row, err := range b.c.Rows {
		if err != nil {
			return err
		}
		at := epoch.Add(row.Arrival)
		for ; next.Before(at) && !b.over(next); next = next.Add(b.c.Every) {
			if err := b.tick(ctx, next); err != nil {
				return err
			}
		}
		if b.over(at) {
			return nil
		}
		if err := b.until(ctx, at); err != nil {
			return err
		}
		if err := b.arrive(ctx, row); err != nil {
			return fmt.Errorf("row %d: %w", b.number, err)
		}
	}
	idle := 0 // forecasts since which nothing runs
	for ; b.waiting > 0 && idle < 2 && !b.over(next); next = next.Add(b.c.Every) {
		if err := b.tick(ctx, next); err != nil {
			return err
		}
		if idle++; b.running > 0 {
			idle = 0
		}
	}
	return nil
}

// over reports whether nothing is left to be compared at a time.
func (b *backtest) over(at time.Time) bool {
	return b.c.Until > 0 && at.Sub(epoch) > b.c.Until && b.open == 0
}

// tick lets time go on until a forecast may be due, forgets what is over, and makes the forecast if it is.
func (b *backtest) tick(ctx context.Context, at time.Time) error {
	if err := b.until(ctx, at); err != nil {
		return err
	}
	if err := b.gc.Force(ctx); err != nil {
		return err
	}
	if since := at.Sub(epoch); since >= b.c.From && (b.c.Until == 0 || since <= b.c.Until) {
		if err := b.forecast(ctx, at); err != nil {
			return err
		}
	}
	if b.c.Report != nil {
		return b.c.Report(trace.Progress{Rows: int64(b.number), Waiting: b.waiting, At: at.Sub(epoch)}) // not negative
	}
	return nil
}

// until lets time go on.
func (b *backtest) until(ctx context.Context, at time.Time) error {
	if !at.After(b.future.Now()) {
		return nil
	}
	err := b.future.Run(ctx, at, func() error { return b.failed }, func() bool { b.settled(); return false })
	if err == nil && b.future.Ended() != "" {
		err = errors.Join(ctx.Err(), errors.New("the replay: "+b.future.Ended()))
	}
	return err
}

// settled notes the shares of tenants, when nothing is left to be done at the time that it is.
func (b *backtest) settled() {
	snap := b.future.Store().Snapshot()
	at := snap.TableIndex(state.TableAllocs)
	if at == b.sharesAt && len(b.shares) == len(b.tenants) {
		return
	}
	b.sharesAt = at
	shares := make(map[string]int, len(b.tenants)) // those of before are kept by what was placed then
	for _, name := range b.tenants {
		shares[name] = snap.World().Share(structs.DefaultNodePool, name)
	}
	b.shares = shares
}

// arrive registers the job of a row.
func (b *backtest) arrive(ctx context.Context, row *trace.Row) error {
	b.number++
	if err := row.Validate(); err != nil {
		return err
	}
	if row.Workflow != nil {
		return errors.New("is of a workflow, which cannot be replayed with forecasts")
	}
	now := b.future.Now()
	spec := b.spec(row, now)
	j := &job{row: row, id: spec.NamespacedID(), arrived: now, missing: row.Count}
	b.jobs[j.id] = j
	b.waiting++
	b.figures.jobs++
	if !slices.Contains(b.tenants, j.id.Namespace) {
		b.tenants = append(b.tenants, j.id.Namespace)
		if row.Tenant != "" {
			e := &structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: row.Tenant}, Time: now.UnixNano()}
			if _, err := b.future.Apply(ctx, structs.LogNamespaceUpsert, e); err != nil {
				return err
			}
		}
	}
	eval := structs.NewEval(b.future.NewID(), spec, structs.EvalTriggerJobRegister, now.UnixNano())
	if _, err := b.future.Apply(ctx, structs.LogJobRegister, &structs.JobRegisterEntry{Job: spec, Eval: eval, Time: now.UnixNano()}); err != nil {
		return err
	}
	registered := b.future.Store().Snapshot().Job(nil, j.id.Namespace, j.id.ID)
	j.rank = b.c.Scheduler.Rank(registered, nil, now.UnixNano())
	return nil
}

// spec returns the job of a row as a server registers it, but that it requests no more than the row does.
func (b *backtest) spec(row *trace.Row, now time.Time) *structs.Job {
	spec := row.Job(b.number)
	if row.Tenant != "" { // whose earlier runs show how long the next takes
		spec.Submitter = &structs.Submitter{User: row.Tenant}
	}
	spec.Canonicalize()
	spec.SubmitTime = now.UnixNano()
	for _, g := range spec.TaskGroups {
		g.EphemeralDisk.SizeMB = 0
		for _, t := range g.Tasks {
			t.KillTimeout, t.Resources.CPU, t.Resources.MemoryMB = 0, row.CPU, row.MemoryMB
		}
	}
	return spec
}

// lasting returns how long an instance of a job runs.
func (b *backtest) lasting(spec *structs.Job, _ string) time.Duration {
	if j := b.jobs[spec.NamespacedID()]; j != nil {
		return min(j.row.Duration, trace.MaxTime)
	}
	return 0
}

// Started implements forecast.Observer.
func (b *backtest) Started(in forecast.Instance) {
	j := b.jobs[in.Job]
	if j == nil {
		return
	}
	now := b.future.Now()
	b.on[in.Node][in.Job.Namespace+"/"+in.Name] = &placed{j, now, b.shares}
	b.running++
	j.runs++
	if j.missing == 0 {
		return // it was taken back, and runs again
	}
	if j.missing--; j.missing == 0 {
		b.waiting--
		if len(j.stated) > 0 {
			b.open--
		}
		b.figures.started(j, now)
		j.stated = nil
	}
}

// Left implements forecast.Observer.
func (b *backtest) Left(in forecast.Instance) {
	name := in.Job.Namespace + "/" + in.Name
	p := b.on[in.Node][name]
	if p == nil {
		return
	}
	delete(b.on[in.Node], name)
	b.running--
	if p.job.runs--; p.job.runs == 0 && p.job.missing == 0 && !b.c.Scheduler.Preempts(structs.JobTypeBatch) {
		delete(b.jobs, in.Job)
	}
}
