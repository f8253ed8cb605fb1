package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// serve makes a client of a server that answers with body, and gives the last request.
func serve(t *testing.T, config Config, status int, body string) (*Client, *http.Request) {
	t.Helper()
	last := new(http.Request)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		*last = *r.Clone(context.Background())
		last.Body = io.NopCloser(strings.NewReader(string(sent)))
		w.Header().Set("X-Nomad-Index", "42")
		w.Header().Set("X-Nomad-KnownLeader", "true")
		w.Header().Set("X-Nomad-LastContact", "1500")
		w.Header().Set("X-Nomad-NextToken", "more")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	config.Address = s.URL
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c, last
}

func TestAddresses(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		c, err := New(Config{Address: in})
		switch {
		case want == "" && err == nil:
			t.Errorf("%q: no error", in)
		case want != "" && (err != nil || c.Address() != want):
			t.Errorf("%q: %v, error %v, want %q", in, c, err, want)
		}
	}
	f("", DefaultAddress)
	f("10.0.0.1:4646", "http://10.0.0.1:4646")
	f("https://x/", "https://x")
	f("http://x/prefix/", "http://x/prefix")
	f("ftp://x", "")
	f("http://", "")
	f("http://[::1", "")
}

func TestEnvironment(t *testing.T) {
	t.Setenv("NOMAD_ADDR", "theirs")
	t.Setenv("NOMADISH_ADDR", "ours")
	t.Setenv("NOMAD_REGION", "eu")
	t.Setenv("NOMADISH_REGION", "")
	t.Setenv("NOMADISH_TOKEN", "secret")
	t.Setenv("NOMAD_NAMESPACE", "")
	t.Setenv("NOMADISH_NAMESPACE", "")
	got := Config{Token: "flag"}.FromEnv()
	if want := (Config{Address: "ours", Region: "eu", Token: "flag"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Who wants to know how old answers are is told of those of the region that is asked, not of others that are asked beside it.
func TestAnswered(t *testing.T) {
	c, _ := serve(t, Config{}, http.StatusOK, "[]")
	var seen []Meta
	told := c.Answered(func(m Meta) { seen = append(seen, m) })
	for _, requested := range []*Client{told.Stale(), told.In("eu"), c} {
		if _, _, err := requested.Queue(t.Context(), "", nil); err != nil {
			t.Fatal(err)
		}
	}
	if want := (Meta{Index: 42, KnownLeader: true, LastContact: 1500 * time.Millisecond, NextToken: "more"}); len(seen) != 1 || seen[0] != want {
		t.Errorf("told of %+v, want one: %+v", seen, want)
	}
}

func TestQueryIsSent(t *testing.T) {
	f := func(q *Query, want string) {
		t.Helper()
		c, last := serve(t, Config{Region: "eu", Namespace: "lab", Token: "secret"}, http.StatusOK, "[]")
		_, meta, err := c.Jobs().List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		values, err := url.ParseQuery(want)
		if err != nil {
			t.Fatal(err)
		}
		if got := last.URL.Query(); !reflect.DeepEqual(got, values) {
			t.Errorf("asked %v, want %v", got, values)
		}
		if last.Header.Get("X-Nomad-Token") != "secret" {
			t.Error("the token was not sent")
		}
		if meta != (Meta{Index: 42, KnownLeader: true, LastContact: 1500 * time.Millisecond, NextToken: "more"}) {
			t.Errorf("meta %+v", meta)
		}
	}
	f(nil, "region=eu&namespace=lab")
	f(&Query{}, "region=eu&namespace=lab")
	f(&Query{Namespace: "*"}, "region=eu&namespace=*")
	f(&Query{Index: 5, Wait: time.Second, Stale: true, Prefix: "a b", Filter: `x == "y"`, PerPage: 3, NextToken: "t", Reverse: true, Params: map[string]string{"os": "true"}},
		`region=eu&namespace=lab&index=5&wait=1s&stale=&prefix=a+b&filter=x+%3D%3D+%22y%22&per_page=3&next_token=t&reverse=true&os=true`)
}

func TestWithLeavesTheQueryAlone(t *testing.T) {
	q := &Query{Params: map[string]string{"a": "1"}}
	both := q.with("b", "2")
	if len(q.Params) != 1 || both.Params["a"] != "1" || both.Params["b"] != "2" {
		t.Errorf("%v and %v", q.Params, both.Params)
	}
}

func TestIDsAreEscaped(t *testing.T) {
	c, last := serve(t, Config{}, http.StatusOK, `{"ID":"a/b?c"}`)
	job, _, err := c.Jobs().Info(t.Context(), "a/b?c", nil)
	if err != nil || job.ID != "a/b?c" {
		t.Fatalf("job %v, error %v", job, err)
	}
	if last.URL.EscapedPath() != "/v1/job/a%2Fb%3Fc" || last.URL.RawQuery != "" {
		t.Errorf("asked %s", last.URL)
	}
}

func TestErrors(t *testing.T) {
	c, _ := serve(t, Config{}, http.StatusNotFound, "job not found\n")
	_, _, err := c.Jobs().Info(t.Context(), "x", nil)
	var answered *Error
	if !errors.As(err, &answered) || answered.Status != 404 || answered.Msg != "job not found" || !IsNotFound(err) {
		t.Errorf("error %#v", err)
	}
	if IsNotFound(nil) || IsNotFound(&Error{Status: 500}) || IsNotFound(io.EOF) {
		t.Error("these are not 404")
	}
	for body, want := range map[string]string{"": "empty", "null": "empty", "{": "read the answer", "[]": "read the answer"} {
		c, _ = serve(t, Config{}, http.StatusOK, body)
		if _, _, err := c.Jobs().Info(t.Context(), "x", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("answer %q: error %v, want one with %q", body, err, want)
		}
	}
	c, _ = serve(t, Config{}, http.StatusOK, "")
	if err := c.System().GC(t.Context()); err != nil {
		t.Errorf("nothing to read: %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	c, err := New(Config{Address: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = c.Jobs().List(t.Context(), nil)
	var nobody *Unreachable
	if !errors.As(err, &nobody) || nobody.Address != s.URL || nobody.Unwrap() == nil {
		t.Errorf("error %#v", err)
	}
	if _, err := c.Send(t.Context(), http.MethodGet, "/", nil, nil); !errors.As(err, &nobody) { //nolint:bodyclose // there is none
		t.Errorf("error %#v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := c.Jobs().List(ended, nil); !errors.Is(err, context.Canceled) || errors.As(err, &nobody) && nobody.Err == nil {
		t.Errorf("error %#v", err)
	}
}

func TestWritesSendBodies(t *testing.T) {
	f := func(method, path, body string, call func(*Client) error) {
		t.Helper()
		c, last := serve(t, Config{}, http.StatusOK, "{}")
		if err := call(c); err != nil {
			t.Fatal(err)
		}
		sent, _ := io.ReadAll(last.Body)
		if last.Method != method || last.URL.RequestURI() != path || !strings.Contains(string(sent), body) {
			t.Errorf("sent %s %s %s, want %s %s with %s", last.Method, last.URL.RequestURI(), sent, method, path, body)
		}
		if (len(sent) > 0) != (last.Header.Get("Content-Type") == "application/json") {
			t.Errorf("content type %q of %q", last.Header.Get("Content-Type"), sent)
		}
	}
	ctx := t.Context()
	f("PUT", "/v1/jobs?namespace=lab", `"ID":"w"`, func(c *Client) error {
		_, err := c.Jobs().Register(ctx, &structs.JobRegisterRequest{Job: &structs.Job{ID: "w", Namespace: "lab"}})
		return err
	})
	f("DELETE", "/v1/job/w?purge=true", "", func(c *Client) error { _, err := c.Jobs().Deregister(ctx, "w", true, nil); return err })
	f("PUT", "/v1/job/w/scale", `"Count":3`, func(c *Client) error { _, err := c.Jobs().Scale(ctx, "w", "g", 3, "", nil); return err })
	f("PUT", "/v1/job/w/evaluate", `"ForceReschedule":true`, func(c *Client) error { _, err := c.Jobs().Evaluate(ctx, "w", true, nil); return err })
	f("PUT", "/v1/job/w/revert", `"JobVersion":2`, func(c *Client) error { _, err := c.Jobs().Revert(ctx, "w", 2, nil); return err })
	f("PUT", "/v1/allocation/a/stop?no_shutdown_delay=false", "", func(c *Client) error { _, err := c.Allocations().Stop(ctx, "a", false); return err })
	f("PUT", "/v1/client/allocation/a/signal", `"Signal":"SIGHUP"`, func(c *Client) error { return c.Allocations().Signal(ctx, "a", "t", "SIGHUP") })
	f("PUT", "/v1/node/n/eligibility", `"eligible"`, func(c *Client) error { _, err := c.Nodes().SetEligibility(ctx, "n", true); return err })
	f("PUT", "/v1/node/n/drain", `"Deadline":-1`, func(c *Client) error {
		_, err := c.Nodes().Drain(ctx, "n", &structs.DrainSpec{Deadline: -1}, false)
		return err
	})
	f("PUT", "/v1/node/n/purge", "", func(c *Client) error { _, err := c.Nodes().Purge(ctx, "n"); return err })
	f("PUT", "/v1/operator/scheduler/configuration?cas=7", `"spread"`, func(c *Client) error {
		_, err := c.Operator().SetSchedulerConfig(ctx, &structs.SchedulerConfiguration{SchedulerAlgorithm: "spread", ModifyIndex: 7}, true)
		return err
	})
	team := &structs.VirtualCluster{Name: "team", Cells: []*structs.CellQuota{{Level: "node", Count: 2}}}
	for params, edit := range map[string]VirtualClusterEdit{
		"": {}, "?when_free=true": {WhenFree: true}, "?cas=0": {CAS: true}, "?cas=7&when_free=true": {WhenFree: true, CAS: true, CheckIndex: 7},
	} {
		f("PUT", "/v1/virtual-cluster/team"+params, `"Count":2`, func(c *Client) error {
			_, err := c.VirtualClusters().Register(ctx, team, edit)
			return err
		})
	}
	f("DELETE", "/v1/virtual-cluster/team", "", func(c *Client) error { return c.VirtualClusters().Delete(ctx, "team") })
	f("PUT", "/v1/virtual-cluster/team/points", `"Points":-3`, func(c *Client) error { return c.VirtualClusters().AddPoints(ctx, "team", -3) })
	f("PUT", "/v1/virtual-cluster/team/shift", `"Level":"node"`, func(c *Client) error {
		return c.VirtualClusters().Shift(ctx, "team", &structs.CellShift{Cells: structs.CellQuota{Level: "node"}})
	})
	f("PUT", "/v1/exchange/offer", `"Owner":"team"`, func(c *Client) error {
		_, err := c.Exchanges().Offer(ctx, &structs.Exchange{Owner: "team"})
		return err
	})
	f("PUT", "/v1/exchange/bid", `"Points":3`, func(c *Client) error { _, err := c.Exchanges().Bid(ctx, &structs.Exchange{Points: 3}); return err })
	f("DELETE", "/v1/exchange/x", "", func(c *Client) error { return c.Exchanges().Withdraw(ctx, "x") })
	f("PUT", "/v1/search", `"Context":"jobs"`, func(c *Client) error { _, err := c.Search().Prefix(ctx, "w", "jobs"); return err })
	f("PUT", "/v1/search?namespace=lab", `"Prefix":"w"`, func(c *Client) error {
		_, err := c.Search().PrefixIn(ctx, "w", "all", &Query{Namespace: "lab"})
		return err
	})
	f("PUT", "/v1/search/fuzzy", `"Text":"eb"`, func(c *Client) error { _, err := c.Search().Fuzzy(ctx, "eb", "all", nil); return err })
	f("GET", "/v1/job/w/scale", "", func(c *Client) error { _, _, err := c.Jobs().ScaleStatus(ctx, "w", nil); return err })
	f("DELETE", "/v1/operator/raft/peer?id=x", "", func(c *Client) error { return c.Operator().RaftRemovePeer(ctx, "x", "") })
}

func TestSendIsAsGiven(t *testing.T) {
	c, last := serve(t, Config{Token: "secret"}, http.StatusTeapot, "short and stout")
	header := http.Header{"X-Mine": {"1"}}
	resp, err := c.Send(t.Context(), http.MethodPost, "/v1/x?y=1", header, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read below
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusTeapot || string(text) != "short and stout" {
		t.Errorf("answer %d %q", resp.StatusCode, text)
	}
	if last.Header.Get("X-Mine") != "1" || last.Header.Get("X-Nomad-Token") != "secret" || last.URL.RequestURI() != "/v1/x?y=1" {
		t.Errorf("sent %s %v", last.URL, last.Header)
	}
	if len(header) != 1 {
		t.Errorf("the caller's header was changed: %v", header)
	}
}

func TestFramesBecomeAFile(t *testing.T) {
	f := func(stream, want string, broken bool) {
		t.Helper()
		c, last := serve(t, Config{}, http.StatusOK, stream)
		var got strings.Builder
		err := c.AllocFS().Logs(t.Context(), "a", LogOptions{Task: "t", Type: "stderr", Origin: "end", Offset: 9}, &got)
		if got.String() != want || (err != nil) != broken {
			t.Errorf("%q: %q, error %v", stream, got.String(), err)
		}
		if q := last.URL.Query(); q.Get("task") != "t" || q.Get("type") != "stderr" || q.Get("origin") != "end" || q.Get("offset") != "9" {
			t.Errorf("asked %s", last.URL)
		}
	}
	f("", "", false)
	f("{}{}", "", false)
	f(`{"Data":"b25l","File":"x"}{}{"Data":"IHR3bw=="}`, "one two", false)
	f(`{"Data":"b25l"}{"Da`, "one", true)
	f(`{"Data":"%%"}`, "", true)
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestFramesEndWithTheirReader(t *testing.T) {
	c, _ := serve(t, Config{}, http.StatusOK, `{"Data":"b25l"}`)
	if err := c.AllocFS().Stream(t.Context(), "a", "x", "start", 0, false, full{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("error %v", err)
	}
}

func TestEventStream(t *testing.T) {
	c, last := serve(t, Config{}, http.StatusOK, `{}{"Index":5,"Events":[{"Topic":"Job"}]}{}{"Index":6}{"Ind`)
	var seen []uint64
	err := c.EventStream(t.Context(), []string{"Job:web", "Node"}, 4, func(e *structs.Events) error {
		seen = append(seen, e.Index)
		return nil
	})
	if err == nil || !reflect.DeepEqual(seen, []uint64{5, 6}) {
		t.Errorf("seen %v, error %v; a stream that breaks off is an error", seen, err)
	}
	if q := last.URL.Query(); !reflect.DeepEqual(q["topic"], []string{"Job:web", "Node"}) || q.Get("index") != "4" {
		t.Errorf("asked %s", last.URL)
	}
	c, _ = serve(t, Config{}, http.StatusOK, `{"Index":5}{"Index":6}`)
	enough := errors.New("enough")
	if err := c.EventStream(t.Context(), nil, 0, func(*structs.Events) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("error %v", err)
	}
	if err := c.EventStream(t.Context(), nil, 0, func(*structs.Events) error { return nil }); err != nil {
		t.Errorf("a stream that ends: %v", err)
	}
}

func TestWaitLeader(t *testing.T) {
	var requested atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requested.Add(1) < 3 {
			_, _ = io.WriteString(w, `""`)
			return
		}
		_, _ = io.WriteString(w, `"10.0.0.1:4647"`)
	}))
	defer s.Close()
	c, err := New(Config{Address: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Status().WaitLeader(t.Context()); err != nil || requested.Load() != 3 {
		t.Errorf("asked %d times, error %v", requested.Load(), err)
	}
	requested.Store(-1_000_000)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Status().WaitLeader(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestAgentSelf(t *testing.T) {
	c, _ := serve(t, Config{}, http.StatusOK, `{"config":{"a":1},"member":{"Name":"s1"},"stats":{"client":{"node_id":"n"}}}`)
	self, err := c.Agent().Self(t.Context())
	if err != nil || self.NodeID() != "n" || self.Member.Name != "s1" || self.Config["a"] != 1.0 {
		t.Errorf("%+v, error %v", self, err)
	}
	if id := (&AgentSelf{}).NodeID(); id != "" {
		t.Errorf("an agent without client has the node %q", id)
	}
}
