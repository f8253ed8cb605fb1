package view

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/queueview"
	"github.com/nomadish/nomadish/structs"
)

// stated is forecasts as a test states them, the next of which comes when somebody waits for it.
type stated struct {
	noForecasts
	list []*structs.Forecast
}

func (s *stated) Last() (*structs.Forecast, string) { return s.list[0], "" }
func (s *stated) Await(_ context.Context, after uint64) {
	for len(s.list) > 1 && s.list[0].Index <= after {
		s.list = s.list[1:]
	}
}

// TestForecast: a forecast is read page by page, of a namespace, a job or all, no further than a horizon, and a blocking query gets the next one.
func TestForecast(t *testing.T) {
	t.Parallel()
	hour := int64(time.Hour)
	of := func(ns, job string, hours int64) *structs.RequestForecast {
		at := structs.StartForecast{First: hours * hour, All: hours * hour, WaitsFor: []structs.EndForecast{{Time: hours * hour, Name: "fill.g[0]"}}}
		return &structs.RequestForecast{Namespace: ns, JobID: job, Group: "g", Missing: 1, Latest: at, Expected: at}
	}
	flow := func(ns string, hours int64) *structs.WorkflowForecast {
		at := structs.WorkflowStartForecast{Start: hours * hour}
		return &structs.WorkflowForecast{Namespace: ns, ID: "flow", Run: 1, Latest: at, Expected: at}
	}
	s := newSite(t)
	e := New(Deps{Router: s.Router, Now: time.Now, Forecasts: &stated{list: []*structs.Forecast{
		{Index: 7, Requests: []*structs.RequestForecast{of("default", "a", 1), of("default", "b", 2), of("red", "c", 3)}, Workflows: []*structs.WorkflowForecast{flow("default", 2), flow("red", 2)}},
		{Index: 9, Requests: []*structs.RequestForecast{of("default", "b", 2)}},
	}}})
	read := func(args structs.ForecastRequest) *structs.ForecastReply {
		t.Helper()
		reply, err := e.forecast(t.Context(), &args)
		if err != nil || reply.Forecast == nil || reply.Index != reply.Forecast.Index {
			t.Fatalf("%+v: %v", reply, err)
		}
		return reply
	}
	names := func(r *structs.ForecastReply) string {
		var list []string
		for _, q := range r.Forecast.Requests {
			list = append(list, q.JobID)
		}
		for _, w := range r.Forecast.Workflows {
			list = append(list, w.ID+" of "+w.Namespace)
		}
		return strings.Join(list, ", ")
	}
	f := func(want string, args structs.ForecastRequest) *structs.ForecastReply {
		t.Helper()
		r := read(args)
		if got := names(r); got != want {
			t.Errorf("%+v: %s, not %s", args, got, want)
		}
		return r
	}
	all := structs.QueryOptions{Namespace: structs.AllNamespaces}
	f("a, b, flow of default", structs.ForecastRequest{})
	f("a, b, c, flow of default, flow of red", structs.ForecastRequest{QueryOptions: all})
	f("b", structs.ForecastRequest{JobID: "b"})
	page := all
	page.PerPage = 2
	first := f("a, b, flow of default, flow of red", structs.ForecastRequest{QueryOptions: page})
	if page.NextToken = first.NextToken; strings.ContainsFunc(page.NextToken, func(r rune) bool { return r <= ' ' || r > '~' }) {
		t.Errorf("%q cannot be a value of an HTTP header", page.NextToken)
	}
	if rest := f("c", structs.ForecastRequest{QueryOptions: page}); first.NextToken == "" || rest.NextToken != "" {
		t.Errorf("next are %q and %q", first.NextToken, rest.NextToken)
	}
	near := f("a, b, flow of default", structs.ForecastRequest{Horizon: 90 * time.Minute})
	a, b, w := near.Forecast.Requests[0].Latest, near.Forecast.Requests[1].Latest, near.Forecast.Workflows[0].Latest
	if a.All != hour || b.All != 0 || b.Unknown != "not within 1h30m0s" || len(b.WaitsFor) != 0 || w.Start != 0 || w.Unknown != b.Unknown {
		t.Errorf("%+v, %+v, %+v", a, b, w)
	}
	blocking := structs.ForecastRequest{QueryOptions: structs.QueryOptions{MinQueryIndex: 7}}
	if next := f("b", blocking); next.Index != 9 {
		t.Errorf("after index 7 comes %d", next.Index)
	}
	for want, args := range map[string]structs.ForecastRequest{
		"must be more than 0 and at most":      {Horizon: structs.DefaultForecastHorizon + 1},
		"horizon -1ns: must be more than 0":    {Horizon: -1},
		"a forecast of the newest state is of": {Fresh: true},
	} {
		if _, err := e.forecast(t.Context(), &args); structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
}

// TestForecastInQueue: a line of the queue states which forecast it is of, when that was made, and why a start is not known, be it the expected one alone.
func TestForecastInQueue(t *testing.T) {
	t.Parallel()
	job := &structs.Job{ID: "a", Namespace: "default"}
	line := &queueview.Line{Job: job, Group: &structs.TaskGroup{Name: "g"}}
	r := &structs.RequestForecast{Namespace: "default", JobID: "a", Group: "g", Latest: structs.StartForecast{All: 5}, Expected: structs.StartForecast{Unknown: "no time"}}
	f := &structs.Forecast{Index: 7, Time: 3, Requests: []*structs.RequestForecast{r}}
	if got := inQueue(f, line); got == nil || *got != (structs.QueueForecast{Index: 7, Time: 3, Latest: 5, Unknown: "no time"}) {
		t.Errorf("%+v", got)
	}
}

// TestForecastOfTwoLines: each line of a group in the queue has the forecast of its own instances, and page by page each comes once.
func TestForecastOfTwoLines(t *testing.T) {
	t.Parallel()
	of := func(entitled bool, missing int, first, all int64) *structs.RequestForecast {
		at := structs.StartForecast{First: first, All: all, WaitsFor: []structs.EndForecast{{Time: all, Name: "fill.g[0]"}}}
		return &structs.RequestForecast{Namespace: "default", JobID: "a", Group: "g", Entitled: entitled, Missing: missing, Latest: at, Expected: at}
	}
	forecast := &structs.Forecast{Index: 7, Requests: []*structs.RequestForecast{of(true, 2, 5, 6), of(false, 3, 6, 9)}}
	line := &queueview.Line{Rank: structs.Rank{Standing: structs.StandingRecognised}, Job: &structs.Job{ID: "a", Namespace: "default"}, Group: &structs.TaskGroup{Name: "g"}}
	if got := inQueue(forecast, line); got.Latest != 9 {
		t.Errorf("the others start at %d", got.Latest)
	}
	line.Rank = line.Rank.Entitled(structs.ClaimRankSlots)
	if got := inQueue(forecast, line); got.Latest != 6 {
		t.Errorf("those that are entitled start at %d", got.Latest)
	}
	g := forecast.Groups()
	if len(g) != 1 || g[0].Missing != 5 || g[0].Entitled || g[0].Expected.First != 5 || g[0].Latest.All != 9 || len(g[0].Latest.WaitsFor) != 2 {
		t.Errorf("together: %+v", g[0])
	}
	s := newSite(t)
	e := New(Deps{Router: s.Router, Now: time.Now, Forecasts: &stated{list: []*structs.Forecast{forecast}}})
	var got []bool
	args := structs.ForecastRequest{QueryOptions: structs.QueryOptions{PerPage: 1}}
	for range 2 {
		reply, err := e.forecast(t.Context(), &args)
		if err != nil {
			t.Fatal(err)
		}
		got, args.NextToken = append(got, reply.Forecast.Requests[0].Entitled), reply.NextToken
	}
	if !slices.Equal(got, []bool{true, false}) || args.NextToken != "" {
		t.Errorf("entitled are those of the pages: %v, and more at %q", got, args.NextToken)
	}
}

// TestForecastOfWhatWaitsAnew: what came to wait since a forecast began is not part of it, however long ago its job came.
func TestForecastOfWhatWaitsAnew(t *testing.T) {
	s := newSite(t, endpointtest.Node("n1"))
	s.Put(&structs.JobRegisterEntry{Job: endpointtest.Job("web", 1500)})
	ran := s.Index()
	s.Put(&structs.JobRegisterEntry{Job: endpointtest.Job("other", 1500)})
	at := func(d time.Duration) int64 { return time.Now().Add(d).UnixNano() }
	s.Requests("default", "web", 2)
	s.Forecasts = &stated{list: []*structs.Forecast{{Index: ran, Next: []structs.ForecastRenewal{
		{Index: ran + 1, End: at(time.Minute)}, {End: at(time.Hour), Latest: at(time.Hour)},
	}}}}
	reply, err := s.jobExplain(t.Context(), &structs.JobExplainRequest{ID: "web", NoRemedies: true})
	if err != nil {
		t.Fatal(err)
	}
	if why := reply.Explanation.Group("g").NoForecast; !strings.HasSuffix(why, "; one that it is part of is there in about 60 min") {
		t.Errorf("%q", why)
	}
}
