package forecasts

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/forecast"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// site is a service on the state of a server, in virtual time.
type site struct {
	*testcluster.Log
	*Service
	t    *testing.T
	made atomic.Int64  // forecasts
	took time.Duration // that each takes of work
	step time.Duration // between two times that it may rest
	// result makes what a forecast states.
	result func(now time.Time) []*structs.RequestForecast
	busy   time.Duration // in all
}

func newSite(t *testing.T, o Options) *site {
	s := &site{Log: testcluster.New(0, state.Options{EventBuffer: 16}), t: t, step: 10 * time.Millisecond, result: func(time.Time) []*structs.RequestForecast { return nil }}
	s.commit()
	o.On = true
	o.Make = func(ctx context.Context, store *state.Store, o forecast.Options) (*structs.Forecast, error) {
		s.made.Add(1)
		for left := s.took; left > 0 && ctx.Err() == nil; left -= s.step {
			begun := time.Now()
			select {
			case <-time.After(s.step):
			case <-ctx.Done():
			}
			s.busy += time.Since(begun) * 4 / 3 // with the garbage collector
			o.Pace(ctx)
		}
		return &structs.Forecast{Index: store.LatestIndex(), Time: o.Now.UnixNano(), Until: o.Now.Add(o.Horizon).UnixNano(), Requests: s.result(o.Now)}, nil
	}
	s.Service = New(o, s.Store)
	return s
}

// commit moves the state on.
func (s *site) commit() {
	s.t.Helper()
	s.Put(s.t, &structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: "other", Description: fmt.Sprint(s.Index())}})
}

// run runs the service until the test ends, leading or not.
func (s *site) run(leads bool) {
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	go s.Run(ctx)
	if leads {
		go s.Lead(ctx)
	}
	synctest.Wait()
}

// expect checks how many forecasts were made.
func (s *site) expect(made int64, when string) {
	s.t.Helper()
	synctest.Wait()
	if got := s.made.Load(); got != made {
		s.t.Fatalf("%s: %d forecasts were made, not %d", when, got, made)
	}
}

// TestShareOfACore: however often the state moves, forecasts take the configured share of a core at most, and are not rarer than it allows.
func TestShareOfACore(t *testing.T) {
	for _, percent := range []float64{0, 20} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, Options{CPUPercent: percent})
			s.took = 2 * time.Second
			s.run(true)
			begun := time.Now()
			for range 3600 {
				time.Sleep(time.Second)
				s.commit()
			}
			if percent == 0 {
				percent = structs.DefaultForecastCPUPercent
			}
			synctest.Wait()
			share := 100 * s.busy.Seconds() / time.Since(begun).Seconds()
			if share > percent*1.02 || share < percent*0.75 { // the last is not through, and has not rested for it yet
				t.Errorf("forecasts took %.2f %% of a core, of %g that they may", share, percent)
			}
		})
	}
}

// TestPace: a forecast that takes long takes twice its share of a core at most while it is made, one that does not is made at once, and none works for longer
// than it may.
func TestPace(t *testing.T) {
	for took, want := range map[time.Duration][2]time.Duration{
		150 * time.Millisecond: {150 * time.Millisecond, 150 * time.Millisecond},
		10 * time.Second:       {126 * time.Second, 130 * time.Second},
		time.Hour:              {392 * time.Second, 396 * time.Second}, // 30 s of work
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, Options{})
			s.took = took
			begun := time.Now()
			s.run(false)
			s.Await(t.Context(), 0)
			if lasted := time.Since(begun); lasted < want[0] || lasted > want[1] {
				t.Errorf("a forecast that takes %s of work was made in %s, not %s to %s", took, lasted, want[0], want[1])
			}
		})
	}
}

// TestOnlyWhatIsWanted: a server that does not lead makes forecasts after a question alone, for a while; none is made where nothing has changed.
func TestOnlyWhatIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Options{})
		s.run(false)
		time.Sleep(time.Hour)
		s.expect(0, "nobody wants one")
		if f, why := s.Last(); f != nil || why != "no forecast has been made yet; the first one is there in about 9 min at most" {
			t.Errorf("%v, %q", f, why)
		}
		s.Await(t.Context(), 0)
		s.expect(1, "one is wanted")
		time.Sleep(time.Minute)
		s.expect(1, "nothing has changed")
		s.commit()
		time.Sleep(time.Minute)
		s.expect(2, "the state has moved")
		if f, _ := s.Last(); f.Index != s.Index() {
			t.Errorf("it is of index %d, the state has %d", f.Index, s.Index())
		}
		time.Sleep(wantedFor + 2*longest)
		s.commit()
		time.Sleep(time.Hour)
		s.expect(2, "nobody has wanted one for long")
	})
}

// TestOverdue: where a start that a forecast states passes and nothing happens, there is another one.
func TestOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Options{})
		s.result = func(now time.Time) []*structs.RequestForecast {
			at := now.Add(7 * time.Minute).UnixNano()
			return []*structs.RequestForecast{{JobID: "j", Group: "g", Expected: structs.StartForecast{First: at, All: at}}}
		}
		s.run(true)
		time.Sleep(6*time.Minute + 59*time.Second)
		s.expect(1, "it has not passed")
		time.Sleep(2 * time.Second)
		s.expect(2, "it has passed")
	})
}

// TestEndsWithServer: a forecast that is being made ends with the server, and counts for nothing.
func TestEndsWithServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Options{})
		s.took = 25 * time.Second
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			s.Run(ctx)
			close(ended)
		}()
		go s.Lead(ctx)
		time.Sleep(time.Second)
		s.expect(1, "it is being made")
		cancel()
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Error("the service goes on when its server has ended")
		}
		if f, _ := s.Last(); f != nil {
			t.Errorf("half a forecast was kept: %+v", f)
		}
	})
}

// TestMoved: readers see latest starts that have moved by more than a tenth of the wait and a minute, of small moves their sum; and when one is not
// known any more.
func TestMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Options{})
		base := time.Now().Add(100 * time.Minute)
		latest := base
		s.result = func(time.Time) []*structs.RequestForecast {
			r := &structs.RequestForecast{Namespace: "default", JobID: "j", Group: "g"}
			if !latest.IsZero() {
				r.Latest.All = latest.UnixNano()
			}
			return []*structs.RequestForecast{r}
		}
		s.run(true)
		var seen []string
		go func() {
			for index := uint64(0); ; {
				moves, next, err := s.Moved(t.Context(), index)
				if err != nil {
					return
				}
				index = next
				for _, m := range moves {
					seen = append(seen, fmt.Sprint(m.Forecast.JobID, " ", m.Was > 0, " ", m.Forecast.Latest.All > 0))
				}
			}
		}()
		synctest.Wait()
		for _, at := range []time.Time{base.Add(6 * time.Minute), base.Add(12 * time.Minute), base.Add(15 * time.Minute), {}, {}, base} {
			latest = at
			s.commit()
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if got := strings.Join(seen, ", "); got != "j true true, j true false, j false true" {
			t.Errorf("moves: %s", got)
		}
	})
}

// TestMovedAsNothingHappens: a start that passes and moves on as nothing has happened is seen each time, though all these forecasts are of one state.
func TestMovedAsNothingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Options{})
		s.result = func(now time.Time) []*structs.RequestForecast {
			at := now.Add(5 * time.Minute).UnixNano()
			return []*structs.RequestForecast{{JobID: "j", Group: "g", Latest: structs.StartForecast{First: at, All: at}}}
		}
		s.run(true)
		seen := 0
		go func() {
			for after := uint64(0); ; {
				moves, next, err := s.Moved(t.Context(), after)
				if err != nil {
					return
				}
				after, seen = next, seen+len(moves)
			}
		}()
		time.Sleep(16 * time.Minute)
		s.expect(4, "its start has passed three times")
		if seen != 3 {
			t.Errorf("%d moves were seen", seen)
		}
	})
}

// TestMetricsEnd: a server that makes forecasts no more, as another one leads, states no figures of the last.
func TestMetricsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.Run(t.Context())
		go s.Lead(ctx)
		series := func() int {
			synctest.Wait()
			b, n := telemetry.NewBatch(100), 0
			s.Metrics(b)
			b.Each(func(*telemetry.Family, []telemetry.Value) { n++ })
			return n
		}
		if series() == 0 {
			t.Error("the leader has no figures")
		}
		cancel()
		if n := series(); n != 0 {
			t.Errorf("%d figures of a forecast that is renewed no more", n)
		}
		s.Last()
		time.Sleep(time.Second)
		if series() == 0 {
			t.Error("no figures while somebody wants forecasts")
		}
		time.Sleep(11 * time.Minute)
		if n := series(); n != 0 {
			t.Errorf("%d figures once nobody wants them", n)
		}
	})
}

// TestIfRegistered: the forecast of a job that is not registered, on the real parts: nothing of it is written, counted or timed.
func TestIfRegistered(t *testing.T) {
	log := testcluster.New(0, state.Options{EventBuffer: 16})
	node := testcluster.Node("n", 1000)
	log.Put(t, &structs.NodeRegisterEntry{Node: node, Time: 1})
	s := New(Options{On: true}, log.Store)
	job := testcluster.Job("new", structs.JobTypeBatch, 1)
	job.Priority, job.TaskGroups[0].Count, job.TaskGroups[0].MaxRunDuration = 50, 15, time.Hour // 10 have room
	before, now := counted(t), time.Now()
	f, err := s.IfRegistered(t.Context(), &structs.JobRegisterEntry{Job: job, Time: now.UnixNano(), Eval: testcluster.Eval("e", job, structs.EvalStatusPending)})
	if err != nil || len(f.Requests) != 1 {
		t.Fatalf("%+v, %v", f, err)
	}
	r := f.Requests[0]
	if first, all := time.Unix(0, r.Latest.First).Sub(now), time.Unix(0, r.Latest.All).Sub(now); r.Missing != 15 || first > time.Minute || all < time.Hour || all > time.Hour+time.Minute {
		t.Errorf("%d start after %s to %s: %s", r.Missing, first, all, r.Latest.Unknown)
	}
	if f.Index != log.Index() || log.Store.LatestIndex() != log.Index() || log.Store.Snapshot().Job(nil, job.Namespace, job.ID) != nil {
		t.Errorf("the forecast is of index %d, the log has %d", f.Index, log.Index())
	}
	if after := counted(t); after != before {
		t.Errorf("the forecast counts as work of the server:\n%s\nbefore:\n%s", after, before)
	}
}

// TestIfRun: the forecast of a workflow that is not run, until its last stage has ended: nothing of it is written.
func TestIfRun(t *testing.T) {
	log := testcluster.New(0, state.Options{EventBuffer: 16})
	node := testcluster.Node("n", 1000)
	node.NodePool = structs.NodePoolDefault
	log.Put(t, &structs.NodeRegisterEntry{Node: node, Time: 1})
	s := New(Options{On: true}, log.Store)
	w := &structs.Workflow{Namespace: structs.DefaultNamespace, ID: "chip"}
	for i := range 2 {
		job := testcluster.Job(fmt.Sprint("j", i), structs.JobTypeBatch, 1)
		job.TaskGroups[0].MaxRunDuration = time.Hour
		w.Stages = append(w.Stages, &structs.WorkflowStage{Name: fmt.Sprint("s", i), Jobs: []*structs.WorkflowJob{{Name: job.ID, Job: job}}})
	}
	w.Canonicalize()
	now := time.Now()
	f, err := s.IfRun(t.Context(), &structs.WorkflowRunEntry{Workflow: w, Time: now.UnixNano()})
	if err != nil {
		t.Fatal(err)
	}
	if after := time.Unix(0, f.Latest.Stages[1].End).Sub(now); after < 2*time.Hour || after > 2*time.Hour+time.Minute || f.Latest.Unknown != "" {
		t.Errorf("it ends after %s: %+v", after, f.Latest)
	}
	if snap := log.Store.Snapshot(); f.Index != log.Index() || snap.Index() != log.Index() || snap.Workflows(nil).Get(structs.DefaultNamespace, "chip") != nil {
		t.Errorf("the forecast is of index %d, the log has %d", f.Index, log.Index())
	}
	log.Put(t, &structs.WorkflowRunEntry{Workflow: w, Time: now.UnixNano()})
	if _, err := s.IfRun(t.Context(), &structs.WorkflowRunEntry{Workflow: w, Time: now.UnixNano()}); structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("while a run has not ended: %v", err)
	}
}

// counted returns what the parts of a leader have counted and timed.
func counted(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	if err := telemetry.NewHub(telemetry.Options{MaxSeries: 10}).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, line := range strings.Split(b.String(), "\n") {
		for _, part := range []string{"nomad_broker", "nomad_plan", "nomad_worker", "nomad_queue", "nomad_drain"} {
			if strings.Contains(line, part) && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
	}
	return strings.Join(lines, "\n")
}

// TestSwitchedOff: without forecasts there is a reason.
func TestSwitchedOff(t *testing.T) {
	s := New(Options{}, testcluster.New(0, state.Options{}).Store)
	s.Run(t.Context())
	s.Await(t.Context(), 7)
	if f, why := s.Last(); f != nil || !strings.Contains(why, "server.forecast.enabled") {
		t.Errorf("%v, %q", f, why)
	}
	if _, err := s.Job(t.Context(), structs.NamespacedID{}); structs.CodeOf(err) != structs.CodeUnsupported {
		t.Error(err)
	}
}

// TestOutOfTime: what a forecast of one job does not know as there was no time is stated with where it ended, and what holds room is stated still. What does not
// start within the horizon is known not to.
func TestOutOfTime(t *testing.T) {
	f := func(was, want string) {
		t.Helper()
		x := &structs.Forecast{
			Requests:  []*structs.RequestForecast{{Latest: structs.StartForecast{Unknown: was}}},
			Workflows: []*structs.WorkflowForecast{{Expected: structs.WorkflowStartForecast{Start: 1, Unknown: was}}},
		}
		outOfTime(x, "")
		if got := x.Requests[0].Latest.Unknown; got != want || x.Workflows[0].Expected.Unknown != want || x.Requests[0].Expected.Unknown != "" {
			t.Errorf("%q, not %q", got, want)
		}
	}
	ended := "not known within 2s of computing (the forecast ended at 2026-03-01T00:00:00Z)"
	f(forecast.RanOutOfTime+"2026-03-01T00:00:00Z", ended)
	f(forecast.RanOutOfTime+"2026-03-01T00:00:00Z; web.g[0] may hold their room", ended+"; web.g[0] may hold their room")
	f("not within 168h0m0s", "not within 168h0m0s")
	f("", "")
	x := &structs.Forecast{Requests: []*structs.RequestForecast{{Latest: structs.StartForecast{Unknown: forecast.RanOutOfTime + "2026-03-01T00:00:00Z"}}}}
	outOfTime(x, "in about 40 s")
	if got, want := x.Requests[0].Latest.Unknown, ended+"; a forecast with more time is there in about 40 s"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}
