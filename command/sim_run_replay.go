package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/nomadish/nomadish/command/report"
	"github.com/nomadish/nomadish/command/tracefile"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/scheduler/trace"
)

// simReplay is one policy with one seed.
type simReplay struct {
	policy    string
	sharing   string // one of the Sharing constants; "": nobody owns anything
	workflows string // one of the Reservations constants; "": there are no workflows
	name      string // of all
	seed      uint64

	figures *trace.Figures
	timing  *trace.Timing
	took    time.Duration
	err     error
}

// replayGC lets garbage grow to three times what is in use: a replay makes much of it,
// and holds little.
const replayGC = 200

// run replays all, so many at a time, and writes what was found. Results stand in the
// order of policies and seeds, whichever ended first.
func (p *simPlan) run(ctx context.Context, e *env) int {
	defer debug.SetGCPercent(debug.SetGCPercent(replayGC))
	var replays []*simReplay
	for _, policy := range p.policies {
		for _, sharing := range p.sharings {
			for _, workflows := range p.reservations {
				for _, seed := range p.seeds {
					replays = append(replays, &simReplay{
						policy: policy, sharing: sharing, workflows: workflows, name: p.policyName(policy, sharing, workflows), seed: seed,
					})
				}
			}
		}
	}
	progress := newReplayProgress(&e.printer, len(replays), p.trace.Len())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := make(chan *simReplay)
	var wg sync.WaitGroup
	for range max(1, min(p.o.parallel, len(replays))) {
		wg.Go(func() {
			for x := range next {
				p.replay(ctx, x, progress)
				if x.err != nil {
					cancel() // the others are of no use
				}
				progress.done(x)
			}
		})
	}
	for _, x := range replays {
		select {
		case next <- x:
		case <-ctx.Done():
			x.err = ctx.Err()
		}
	}
	close(next)
	wg.Wait()
	progress.clear()
	return p.finish(e, replays)
}

// finish writes the files and prints the summary.
func (p *simPlan) finish(e *env, replays []*simReplay) int {
	var runs []*trace.Figures
	var failed error
	for _, x := range replays {
		if x.err != nil && (failed == nil || errors.Is(failed, context.Canceled)) {
			failed = x.err
		}
		runs = append(runs, x.figures)
	}
	if failed != nil {
		return e.fail(failed)
	}
	r := report.New(runs)
	r.Trace, r.Nodes, r.Format, r.Notes = filepath.Base(p.o.trace), filepath.Base(p.o.nodes), p.trace.Format, p.notes()
	if err := r.Write(p.o.out); err != nil {
		return e.fail(err)
	}
	if err := p.writeVirtualClusters(); err != nil {
		return e.fail(err)
	}
	if err := report.WriteTiming(p.o.out, timings(replays)); err != nil {
		return e.fail(err)
	}
	printPolicies(&e.printer, r)
	var decisions int64
	var deciding time.Duration
	for _, x := range replays {
		decisions, deciding = decisions+x.timing.Decisions, deciding+x.timing.Deciding
	}
	if decisions > 0 && deciding > 0 {
		e.printf("\n%d decisions, %.1f µs each, %.0f a second and core\n", decisions,
			float64(deciding.Nanoseconds())/float64(decisions)/1000, float64(decisions)/deciding.Seconds())
	}
	e.printf("Written: %s, %s, %s\n", filepath.Join(p.o.out, report.Page), report.FiguresJSON, report.FiguresCSV)
	return exitDone
}

// notes state what was chosen, for who reads the report.
func (p *simPlan) notes() (out []string) {
	if p.trace.Format == tracefile.FormatPhilly {
		most := tracefile.MostGPUs(p.nodes)
		out = append(out, "Philly names no machines: these were chosen. It states neither CPU nor memory, so only GPUs are requested.",
			fmt.Sprintf("A job of more than %d GPUs is a gang of equal members of at most %d GPUs each.", most, most))
	}
	if p.trace.Format == tracefile.FormatOpenB {
		out = append(out, "1000 thousandths of a core are 1000 MHz.")
	}
	if p.o.order != "" {
		out = append(out, "Rows arrive in the order of "+filepath.Base(p.o.order)+".")
	} else if p.o.drop {
		out = append(out, "Rows are drawn by the seed, all of them again and again.")
	}
	if p.until > 0 {
		out = append(out, "Ended when the demand for GPUs that arrived was "+strconv.FormatFloat(p.until*100, 'f', -1, 64)+" % of all.")
	}
	return append(append(out, p.sharingNotes()...), p.forecastNotes()...)
}

// replay runs one.
func (p *simPlan) replay(ctx context.Context, x *simReplay, progress *replayProgress) {
	start := time.Now()
	c := trace.Config{
		Nodes: p.nodes, Rows: p.rows(x.seed), Scheduler: p.config, Seed: x.seed, Drop: p.o.drop, Until: p.until, PolicyName: x.name,
		VirtualClusters: p.virtualClusters, Sharing: x.sharing, Reservations: x.workflows,
		Typical: trace.Learn(),
		Clock:   func() time.Duration { return time.Since(start) },
		Report: func(now trace.Progress) error {
			progress.at(x, now)
			return ctx.Err()
		},
	}
	if x.policy == policyBestFit {
		c.Chooser = &trace.BestFit{Rank: p.ranks[x.seed]}
	} else {
		c.Scheduler.SetNodeOrder(x.policy)
	}
	x.figures, x.timing, x.err = trace.Run(c)
	if x.err == nil && p.every > 0 {
		x.figures.Forecasts, x.err = p.forecast(ctx, x, &c)
	}
	if x.err != nil {
		x.err = fmt.Errorf("policy %s, seed %d: %w", x.name, x.seed, x.err)
	}
	x.took = time.Since(start)
}

// rows returns the rows as they arrive with a seed.
func (p *simPlan) rows(seed uint64) iter.Seq2[*trace.Row, error] {
	switch {
	case p.order != nil:
		return p.trace.InOrder(p.order[seed])
	case p.o.drop:
		return p.trace.Drawn(seed)
	}
	return p.trace.Rows()
}

// printPolicies prints the table of policies.
func printPolicies(to *printer, r *report.Report) {
	rows := [][]string{append([]string{"Policy", "Seeds"}, r.Columns()...)}
	for _, p := range r.Policies {
		rows = append(rows, append([]string{p.Policy, strconv.Itoa(p.Seeds)}, r.Cells(p)...))
	}
	ui.Table(to.out, rows)
	to.printf("\n")
	for _, line := range r.Meanings() {
		to.printf("  %s\n", line)
	}
	further := func(rows [][]string, meanings func() []string) {
		if rows == nil {
			return
		}
		to.printf("\n")
		ui.Table(to.out, rows)
		to.printf("\n")
		for _, line := range meanings() {
			to.printf("  %s\n", line)
		}
	}
	further(r.WorkflowRows(), r.WorkflowMeanings)
	further(r.ForecastRows(), r.ForecastMeanings)
}

// timingRow is how fast one replay was.
type timingRow struct {
	Policy             string
	Seed               uint64
	Seconds            float64
	Decisions          int64
	MicrosPerDecision  float64 // the mean
	MedianMicros       float64
	P99Micros          float64
	DecisionsPerSecond float64
	SlowestMicros      float64
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

func timings(replays []*simReplay) []timingRow {
	var out []timingRow
	for _, x := range replays {
		row := timingRow{
			Policy: x.name, Seed: x.seed, Seconds: x.took.Seconds(), Decisions: x.timing.Decisions,
			MicrosPerDecision: micros(x.timing.PerDecision()), SlowestMicros: micros(x.timing.Slowest),
			MedianMicros: micros(x.timing.Quantile(0.5)), P99Micros: micros(x.timing.Quantile(0.99)),
		}
		if x.timing.Deciding > 0 {
			row.DecisionsPerSecond = float64(x.timing.Decisions) / x.timing.Deciding.Seconds()
		}
		out = append(out, row)
	}
	return out
}

// replayProgress shows how far replays are: in place on a terminal, a line for each that
// ended elsewhere.
type replayProgress struct {
	mu    sync.Mutex
	out   io.Writer
	live  *ui.Live
	all   int
	rows  int // of the trace; -1: not known
	ended int
	drawn time.Time
	now   map[*simReplay]trace.Progress
	order []*simReplay
}

func newReplayProgress(p *printer, all, rows int) *replayProgress {
	return &replayProgress{out: p.out, live: ui.NewLive(p.out), all: all, rows: rows, now: map[*simReplay]trace.Progress{}}
}

// redrawEvery bounds how often the terminal is drawn.
const redrawEvery = 100 * time.Millisecond

func (p *replayProgress) at(x *simReplay, now trace.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.now[x]; !known {
		p.order = append(p.order, x)
	}
	p.now[x] = now
	if p.live.On() && time.Since(p.drawn) > redrawEvery {
		p.drawn = time.Now()
		p.draw()
	}
}

func (p *replayProgress) draw() {
	done, all := p.ended, p.all
	if p.rows > 0 { // of all rows of all replays, so that one replay moves too
		done, all = p.ended*p.rows, p.all*p.rows
		for _, x := range p.order {
			done += min(int(p.now[x].Rows), p.rows)
		}
	}
	lines := []string{fmt.Sprintf("%s %d of %d replays", ui.Bar(done, all, 30), p.ended, p.all)}
	for _, x := range p.order {
		now := p.now[x]
		lines = append(lines, fmt.Sprintf("  %s, seed %d: %d jobs, %d waiting, day %.2f", x.name, x.seed, now.Rows, now.Waiting, now.At.Hours()/24))
	}
	p.live.Draw(lines)
}

func (p *replayProgress) done(x *simReplay) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
	delete(p.now, x)
	for i := range p.order {
		if p.order[i] == x {
			p.order = append(p.order[:i], p.order[i+1:]...)
			break
		}
	}
	if x.err != nil {
		return
	}
	if p.live.On() {
		p.draw()
		return
	}
	_, _ = fmt.Fprintf(p.out, "%d of %d: policy %s, seed %d: %d jobs in %s\n", p.ended, p.all, x.name, x.seed, x.figures.Counts.Jobs,
		x.took.Round(time.Millisecond))
}

func (p *replayProgress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live.Clear()
}
