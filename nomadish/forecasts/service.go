package forecasts

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/nomadish/forecast"
	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

var runTime = telemetry.NewTimer("nomad.forecast.run")

const (
	// maxTime bounds the work of a forecast: what is not known by then is unknown.
	maxTime = 30 * time.Second
	// maxGroups is how many groups may wait for a forecast to be made: its work and its memory grow with them.
	maxGroups = 50_000
	// leastRest is the least time between two forecasts.
	leastRest = 250 * time.Millisecond
	// wantedFor is for how long after a question a server that does not lead goes on with forecasts.
	wantedFor = 10 * time.Minute
	// longest is how long the service waits at most before it looks again: a machine's clock may be set meanwhile, and a state restored.
	longest = time.Minute
)

// Options are how a server makes forecasts.
type Options struct {
	On bool // false: it makes none
	// Horizon is how far they look (structs.DefaultForecastHorizon).
	Horizon time.Duration
	// CPUPercent is the greatest share of a core that they take in the background (structs.DefaultForecastCPUPercent).
	CPUPercent float64
	Queue      queue.Options // those of the server's own queue
	Clock      clock.Clock   // (the machine's)
	Logger     hclog.Logger
	// Make makes a forecast (forecast.Run).
	Make func(ctx context.Context, store *state.Store, o forecast.Options) (*structs.Forecast, error)
}

// Service keeps the forecast of a server. It is safe for use by many goroutines.
type Service struct {
	opts  Options
	store *state.Store
	// single has a slot for the one caller whose job gets a forecast of its own.
	single chan struct{}

	mu      sync.Mutex
	last    *structs.Forecast // nil: none has been made
	why     string            // why the newest state has none; "": nothing keeps it from being made
	waits   []BandWait
	moves   *moves
	wanting int       // those who want forecasts all the time: the leader's parts, and readers of events
	wanted  time.Time // when one was wanted last
	rested  time.Time // none is made before
	began   start     // the one that is being made; zero: none is
	cost    cost      // what the last one took
	changed chan struct{}
	poke    chan struct{}
}

// New returns the service of a server's state; Run runs it.
func New(o Options, store *state.Store) *Service {
	if o.Horizon <= 0 {
		o.Horizon = structs.DefaultForecastHorizon
	}
	if o.CPUPercent <= 0 {
		o.CPUPercent = structs.DefaultForecastCPUPercent
	}
	o.Clock = clock.Or(o.Clock)
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Make == nil {
		o.Make = forecast.Run
	}
	return &Service{opts: o, store: store, single: make(chan struct{}, 1), moves: newMoves(), changed: make(chan struct{}), poke: make(chan struct{}, 1)}
}

// Horizon returns how far the forecasts look.
func (s *Service) Horizon() time.Duration { return s.opts.Horizon }

// Run makes forecasts until ctx ends.
func (s *Service) Run(ctx context.Context) {
	if !s.opts.On {
		return
	}
	for s.await(ctx) {
		s.renew(ctx)
	}
}

// Lead has forecasts made while ctx lasts, whether somebody wants them or not: of the leader's are the metrics. The leader runs it.
func (s *Service) Lead(ctx context.Context) {
	defer s.want()()
	<-ctx.Done()
}

// want has forecasts made until the function that it returns is called.
func (s *Service) want() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanting++
	s.awake()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wanting--
	}
}

// awake has the service look whether a forecast is to be made. The lock is held.
func (s *Service) awake() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// await waits until a forecast is to be made; false: ctx has ended.
func (s *Service) await(ctx context.Context) bool {
	for ctx.Err() == nil {
		wait, of := s.due()
		if wait <= 0 {
			return true
		}
		s.pause(ctx, wait, of)
	}
	return false
}

// making reports whether forecasts are made: somebody wants them all the time, or one was wanted not long ago. The lock is held.
func (s *Service) making() bool {
	return s.wanting > 0 || !s.wanted.IsZero() && s.opts.Clock.Now().Sub(s.wanted) <= wantedFor
}

// due returns how long to wait before a forecast is to be made, or before it is to be looked again whether one is: until the state has the index of.
func (s *Service) due() (wait time.Duration, of uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Clock.Now()
	if !s.making() {
		return longest, 0
	}
	if rest := s.rested.Sub(now); rest > 0 {
		return rest, 0
	}
	if s.last == nil || s.last.Index != s.store.LatestIndex() {
		return 0, 0
	}
	if next := nextStart(s.last); next > 0 {
		return min(longest, max(0, time.Unix(0, next+1).Sub(now))), s.last.Index + 1
	}
	return longest, s.last.Index + 1
}

// nextStart returns the first time that a forecast states: once that has passed and nothing has happened, it was wrong. 0: there is none.
func nextStart(f *structs.Forecast) (next int64) {
	for _, r := range f.Requests {
		for _, t := range [...]int64{r.Expected.First, r.Expected.All, r.Latest.First, r.Latest.All} {
			next = sooner(next, t, f.Time)
		}
	}
	for _, w := range f.Workflows {
		next = sooner(sooner(next, w.Expected.Start, f.Time), w.Latest.Start, f.Time)
	}
	return next
}

// sooner returns the earlier one of two times, of which the first may be unknown (0) and the second counts only after a time.
func sooner(a, b, after int64) int64 {
	if b > after && (a == 0 || b < a) {
		return b
	}
	return a
}

// pause waits for a time, until the state has an index (0: whatever it does), until it is woken, or until ctx ends.
func (s *Service) pause(ctx context.Context, wait time.Duration, of uint64) {
	ctx, cancel := context.WithCancel(ctx)
	timer := s.opts.Clock.AfterFunc(wait, cancel)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer timer.Stop()
	defer cancel()
	if of > 0 {
		wg.Go(func() {
			if _, err := s.store.WaitIndex(ctx, of); err == nil {
				cancel()
			}
		})
	}
	select {
	case <-ctx.Done():
	case <-s.poke:
	}
}

// renew makes a forecast of the newest state and keeps it.
func (s *Service) renew(ctx context.Context) {
	base := fsm.NewFork(s.store, 1).Store // the state that it is of, whatever is committed meanwhile
	begun := s.opts.Clock.Now()
	began := start{index: base.LatestIndex(), at: begun, groups: waiting(base.Snapshot())}
	s.mu.Lock()
	s.began = began
	s.mu.Unlock()
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	work := newPacer(s.opts.Clock, s.opts.CPUPercent, cancel)
	f, err := s.opts.Make(limited, base, forecast.Options{Now: begun, Horizon: s.opts.Horizon, Groups: maxGroups, Queue: s.opts.Queue, Pace: work.pace})
	if ctx.Err() != nil {
		return // it may be of half of what there is
	}
	ended := s.opts.Clock.Now()
	runTime.If(clock.IsMachine(s.opts.Clock)).Since(begun)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began, s.cost = start{}, cost{work.work(), began.groups}
	s.rested = ended.Add(max(leastRest, s.share(s.cost.work)-ended.Sub(begun)))
	if err != nil {
		if s.why == "" {
			s.opts.Logger.Warn("a forecast of the queue could not be made", "index", base.LatestIndex(), "error", err)
		}
		s.why = err.Error()
		if s.last == nil {
			return
		}
		s.last = &structs.Forecast{Index: base.LatestIndex(), Time: begun.UnixNano(), Until: begun.UnixNano()}
		s.waits = nil
	} else {
		s.why = ""
		s.moves.add(s.last, f)
		s.last, s.waits = f, waitsOf(base.Snapshot(), f)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// Last returns the last forecast, which must not be changed, and why the newest state has none; nil: none has been made, or can be. A server that
// does not lead begins to make them with the first question.
func (s *Service) Last() (f *structs.Forecast, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.opts.On {
		return nil, "this server makes no forecasts (server.forecast.enabled)"
	}
	s.note()
	if s.why != "" {
		return nil, s.why
	}
	next := s.next()
	if s.last == nil {
		return nil, "no forecast has been made yet; the first one is there " + structs.RenewalText(next, 0, s.opts.Clock.Now())
	}
	f = new(*s.last)
	f.Next = next
	return f, ""
}

// note takes note that a forecast is wanted. The lock is held.
func (s *Service) note() {
	s.wanted = s.opts.Clock.Now()
	s.awake()
}

// Await waits until there is a forecast of a state after an index, or none can be made, or ctx ends.
func (s *Service) Await(ctx context.Context, after uint64) {
	for {
		s.mu.Lock()
		there := !s.opts.On || s.why != "" || s.last != nil && s.last.Index > after
		changed := s.changed
		s.note()
		s.mu.Unlock()
		if there {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
