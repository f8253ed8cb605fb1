package httpapi

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	nomad "github.com/hashicorp/nomad/api"
	"github.com/hashicorp/nomad/api/contexts"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func readStatus(t *testing.T, conn net.Conn) int {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// What every route understands reaches the servers as it was asked.
func TestQueryOptions(t *testing.T) {
	fk := newFake()
	ts := newTestServer(t, testConfig(fk))
	f := func(query string, want structs.QueryOptions, header ...string) {
		t.Helper()
		if resp, body := post(t, ts, "GET", "/v1/nodes?"+query, "", header...); resp.StatusCode != 200 {
			t.Errorf("%s: %d %s", query, resp.StatusCode, body)
			return
		}
		if want.Region == "" {
			want.Region = "global"
		}
		if want.Namespace == "" {
			want.Namespace = "default"
		}
		if want.MaxQueryTime == 0 {
			want.MaxQueryTime = 5 * time.Minute
		}
		fk.mu.Lock()
		defer fk.mu.Unlock()
		if got := fk.args[wire.MethodNodeList].(*structs.ListRequest).QueryOptions; got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", query, got, want)
		}
	}
	f("", structs.QueryOptions{})
	f("region=global&namespace=team", structs.QueryOptions{Namespace: "team"})
	f("", structs.QueryOptions{Namespace: "team"}, "X-Nomad-Namespace", "team")
	f("namespace=a", structs.QueryOptions{Namespace: "a"}, "X-Nomad-Namespace", "b")
	f("namespace=*", structs.QueryOptions{Namespace: "*"})
	f("stale", structs.QueryOptions{AllowStale: true})
	f("stale=", structs.QueryOptions{AllowStale: true})
	f("stale=false", structs.QueryOptions{})
	f("consistent", structs.QueryOptions{})
	f("index=7", structs.QueryOptions{MinQueryIndex: 7, MaxQueryTime: 5*time.Minute + time.Second})
	f("index=7&wait=10s", structs.QueryOptions{MinQueryIndex: 7, MaxQueryTime: 11 * time.Second})
	f("index=7&wait=5h", structs.QueryOptions{MinQueryIndex: 7, MaxQueryTime: 10*time.Minute + time.Second})
	f("wait=10000ms", structs.QueryOptions{MaxQueryTime: 10 * time.Second})
	f("prefix=ab&filter=ID+%3D%3D+1&per_page=5&next_token=x&reverse=true",
		structs.QueryOptions{Prefix: "ab", Filter: "ID == 1", PerPage: 5, NextToken: "x", Reverse: true})
	f("", structs.QueryOptions{AuthToken: "secret"}, "X-Nomad-Token", "secret")
	f("", structs.QueryOptions{AuthToken: "secret"}, "Authorization", "Bearer  secret")
	f("", structs.QueryOptions{}, "Authorization", "Basic abc")
	f("unknown=1", structs.QueryOptions{})
}

func TestJobNamespace(t *testing.T) {
	fk := newFake()
	ts := newTestServer(t, testConfig(fk))
	f := func(query, body, want string) {
		t.Helper()
		if resp, text := post(t, ts, "PUT", "/v1/jobs?"+query, body); resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, text)
		}
		fk.mu.Lock()
		defer fk.mu.Unlock()
		args := fk.args[wire.MethodJobRegister].(*structs.JobRegisterRequest)
		if args.Namespace != want || args.Job.Namespace != want || args.Job.Region != "global" {
			t.Errorf("%s %s: request %q, job %q in %q; want %q", query, body, args.Namespace, args.Job.Namespace, args.Job.Region, want)
		}
	}
	f("", `{"Job":{"ID":"j"}}`, "default")
	f("", `{"Job":{"ID":"j","Namespace":"own"}}`, "own")
	f("", `{"Job":{"ID":"j","Namespace":"own"},"Namespace":"body"}`, "body")
	f("namespace=query", `{"Job":{"ID":"j","Namespace":"own"},"Namespace":"body"}`, "query")
}

// TestJobRegion: a job goes to the region of the request, to its own, or to the agent's.
func TestJobRegion(t *testing.T) {
	fk := newFake()
	cfg := testConfig(fk)
	cfg.Agent.(*fakeAgent).self.Region = "eu"
	ts := newTestServer(t, cfg)
	f := func(query, body, want string, header ...string) {
		t.Helper()
		if resp, text := post(t, ts, "PUT", "/v1/jobs?"+query, body, header...); resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, text)
		}
		fk.mu.Lock()
		defer fk.mu.Unlock()
		args := fk.args[wire.MethodJobRegister].(*structs.JobRegisterRequest)
		if args.Region != want || args.Job.Region != want {
			t.Errorf("%s %s: request for %q, job of %q; want %q", query, body, args.Region, args.Job.Region, want)
		}
	}
	fk.answer[wire.MethodRegions] = structs.StringsReply{Values: []string{"eu", "us"}}
	f("", `{"Job":{"ID":"j"}}`, "eu")
	f("", `{"Job":{"ID":"j","Region":"us"}}`, "us")
	f("region=us", `{"Job":{"ID":"j"}}`, "us")
	f("region=us", `{"Job":{"ID":"j","Region":"us"}}`, "us")
	f("", `{"Job":{"ID":"j"},"Region":"us"}`, "us")
	f("", `{"Job":{"ID":"j"}}`, "us", "X-Nomad-Region", "us")
	f("region=us", `{"Job":{"ID":"j","Region":"global"}}`, "us") // clients of Nomad's fill it in
	f("", `{"Job":{"ID":"j","Region":"global"}}`, "eu")
	fk.answer[wire.MethodRegions] = structs.StringsReply{Values: []string{"eu", "global"}}
	f("", `{"Job":{"ID":"j","Region":"global"}}`, "global")
	f("", `{"Job":{"ID":"j"}}`, "eu")
	resp, body := post(t, ts, "GET", "/v1/nodes?region=us", "")
	fk.mu.Lock()
	if resp.StatusCode != 200 || fk.args[wire.MethodNodeList].(*structs.ListRequest).Region != "us" {
		t.Errorf("nodes: %d %s", resp.StatusCode, body)
	}
	fk.mu.Unlock()
	fk.answer[wire.MethodPing] = structs.Errorf(structs.CodeNoRegion, "No path to region %q", "mars")
	for _, path := range []string{"/v1/deployments", "/v1/job/j/deployment"} {
		if resp, _ := post(t, ts, "GET", path, ""); resp.StatusCode != 200 {
			t.Errorf("%s here: %d", path, resp.StatusCode)
		}
		if resp, body := post(t, ts, "GET", path+"?region=mars", ""); resp.StatusCode != 500 || !strings.Contains(body, "No path to region") {
			t.Errorf("%s in an unknown region: %d %s", path, resp.StatusCode, body)
		}
	}
}

// A client that answers knows nothing of leaders, and a server of an earlier version does not say: no header may say that there is none.
func TestAnswersThatReportNothingOfLeaders(t *testing.T) {
	fk := newFake()
	fk.answer[wire.MethodClientAllocStats] = structs.ClientStatsReply{Stats: &structs.AllocResourceUsage{}}
	fk.answer[wire.MethodClientHostStats] = structs.ClientHostStatsReply{Stats: &structs.HostStats{}}
	fk.answer[wire.MethodClientFSStat] = structs.FSStatReply{Info: &structs.AllocFileInfo{}}
	fk.answer[wire.MethodRaftConfig] = structs.RaftConfigurationReply{Index: 3}
	ts := newTestServer(t, testConfig(fk))
	for _, path := range []string{"/v1/operator/raft/configuration?stale", "/v1/client/allocation/a/stats", "/v1/client/stats", "/v1/client/fs/ls/a?path=/", "/v1/client/fs/stat/a?path=f"} {
		resp, body := post(t, ts, "GET", path, "")
		if _, reported := resp.Header["X-Nomad-Knownleader"]; reported || resp.StatusCode != 200 {
			t.Errorf("%s: %d %s, headers %v", path, resp.StatusCode, body, resp.Header)
		}
	}
}

func TestAnswerHeaders(t *testing.T) {
	fk := newFake()
	fk.answer[wire.MethodJobList] = structs.JobListReply{
		Jobs:      []*structs.JobListStub{{ID: "<j>"}},
		QueryMeta: structs.QueryMeta{Index: 42, KnownLeader: true, LastContact: 1500 * time.Millisecond, NextToken: "next"},
	}
	cfg := testConfig(fk)
	cfg.ResponseHeaders = map[string]string{"X-Frame-Options": "deny"}
	ts := newTestServer(t, cfg)
	resp, body := post(t, ts, "GET", "/v1/jobs", "")
	for name, want := range map[string]string{
		"X-Nomad-Index": "42", "X-Nomad-KnownLeader": "true", "X-Nomad-LastContact": "1500", "X-Nomad-NextToken": "next",
		"X-Frame-Options": "deny", "Content-Type": "application/json",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if !strings.HasPrefix(body, `[{"ID":"<j>",`) || strings.Contains(body, "\n") {
		t.Errorf("body: %s", body)
	}
	if _, body = post(t, ts, "GET", "/v1/jobs?pretty", ""); !strings.HasPrefix(body, "[\n    {\n        \"ID\": \"<j>\",\n") {
		t.Errorf("pretty: %s", body)
	}
	resp, _ = post(t, ts, "PUT", "/v1/jobs/parse", `{"JobHCL":"x"}`)
	if got := resp.Header.Get("X-Nomad-Warning"); got != `two\nlines` {
		t.Errorf("warning: %q", got)
	}
}

func TestGzip(t *testing.T) {
	fk := newFake()
	var jobs structs.JobListReply
	for i := range 100 {
		jobs.Jobs = append(jobs.Jobs, &structs.JobListStub{ID: fmt.Sprint("job-", i)})
	}
	fk.answer[wire.MethodJobList] = jobs
	ts := newTestServer(t, testConfig(fk))
	resp, body := post(t, ts, "GET", "/v1/jobs", "", "Accept-Encoding", "gzip")
	if resp.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("headers: %v", resp.Header)
	}
	zr, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var got []*structs.JobListStub
	if err := json.NewDecoder(zr).Decode(&got); err != nil || len(got) != 100 {
		t.Errorf("%d jobs, %v", len(got), err)
	}
	if resp, _ = post(t, ts, "GET", "/v1/client/fs/logs/a?task=t&type=stdout", "", "Accept-Encoding", "gzip"); resp.Header.Get("Content-Encoding") != "" {
		t.Error("a stream was compressed")
	}
}

// A blocking query ends when its caller goes away, and when the server ends.
func TestBlockingEnds(t *testing.T) {
	fk := newFake()
	fk.block[wire.MethodJobList] = true
	s, err := New(testConfig(fk))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	requested := func(n int) {
		for tick := time.Tick(time.Millisecond); ; <-tick {
			fk.mu.Lock()
			now := len(fk.calls)
			fk.mu.Unlock()
			if now >= n {
				return
			}
		}
	}
	go func() {
		requested(1)
		cancel()
	}()
	req, _ := http.NewRequestWithContext(ctx, "GET", "http://"+l.Addr().String()+"/v1/jobs?index=1", nil)
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	if resp, err := tr.RoundTrip(req); err == nil {
		_ = resp.Body.Close()
		t.Error("the query came back before its caller went away")
	}
	code := make(chan int, 1)
	go func() {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+l.Addr().String()+"/v1/jobs?index=1", nil)
		resp, err := tr.RoundTrip(req)
		if err != nil {
			code <- 0
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		code <- resp.StatusCode
	}()
	requested(2)
	stop, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	if err := s.Shutdown(stop); err != nil {
		t.Error(err)
	}
	if got := <-code; got != 503 {
		t.Errorf("at the end of the server: %d, want 503", got)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// chunks is an http.ResponseWriter that keeps what was written at each flush.
type chunks struct {
	header http.Header
	code   int
	buf    strings.Builder
	out    chan string
}

func (c *chunks) Header() http.Header         { return c.header }
func (c *chunks) WriteHeader(code int)        { c.code = code }
func (c *chunks) Write(b []byte) (int, error) { return c.buf.Write(b) }
func (c *chunks) Flush() {
	c.out <- c.buf.String()
	c.buf.Reset()
}

// Frames are JSON values with {} between them while nothing comes: at first
// early, so that the caller learns that it is connected, then at the interval.
func TestFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fk := newFake()
		fk.stream = func(ctx context.Context, _ string) *fakeStream {
			return &fakeStream{ctx: ctx, block: true, items: []any{
				structs.StreamFrame{Offset: 5, Data: []byte("hello"), File: "f"}, structs.StreamFrame{FileEvent: "file deleted"},
			}}
		}
		s, err := New(testConfig(fk))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		w := &chunks{header: http.Header{}, out: make(chan string)}
		ended := make(chan any, 1)
		go func() {
			defer func() { ended <- recover() }()
			req := (&http.Request{Method: "GET", URL: mustURL("/v1/client/fs/logs/a?task=t&type=stdout&follow=true&origin=end&offset=3")}).WithContext(ctx)
			s.Handler().ServeHTTP(w, req)
		}()
		start := time.Now()
		f := func(want string, after time.Duration) {
			t.Helper()
			if got := <-w.out; got != want || time.Since(start) != after {
				t.Errorf("%q after %v, want %q after %v", got, time.Since(start), want, after)
			}
		}
		f(`{"Offset":5,"Data":"aGVsbG8=","File":"f"}`, 0)
		f(`{"FileEvent":"file deleted"}`, 0)
		f(`{}`, time.Second)
		f(`{}`, 2*time.Second)
		cancel()
		if err, ok := (<-ended).(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("ended with %v", err)
		}
		args := fk.args[wire.MethodClientFSRead].(*structs.FSRequest)
		if !args.Follow || args.Origin != "end" || args.Offset != 3 || args.Task != "t" || args.LogType != "stdout" {
			t.Errorf("asked %+v", args)
		}
	})
}

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

// An event stream writes a line per index and {} every ten seconds.
func TestEventStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fk := newFake()
		fk.stream = func(ctx context.Context, _ string) *fakeStream {
			return &fakeStream{ctx: ctx, block: true, items: []any{structs.Events{Index: 7, Events: []structs.Event{{Topic: "Job", Key: "j"}}}}}
		}
		s, err := New(testConfig(fk))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		w := &chunks{header: http.Header{}, out: make(chan string)}
		ended := make(chan any, 1)
		go func() {
			defer func() { ended <- recover() }()
			req := (&http.Request{Method: "GET", URL: mustURL("/v1/event/stream?topic=Job:j&topic=Job:k&topic=Node&index=6&namespace=*")}).WithContext(ctx)
			s.Handler().ServeHTTP(w, req)
		}()
		start := time.Now()
		if got := <-w.out; !strings.HasPrefix(got, `{"Index":7,"Events":[{"Topic":"Job",`) || !strings.HasSuffix(got, "}\n") {
			t.Errorf("line %q", got)
		}
		for i := range 2 {
			if got := <-w.out; got != "{}\n" || time.Since(start) != time.Duration(i+1)*10*time.Second {
				t.Errorf("heartbeat %q after %v", got, time.Since(start))
			}
		}
		cancel()
		<-ended
		want := &structs.EventStreamRequest{Index: 6, Namespace: "*", Region: "global", Topics: map[string][]string{"Job": {"j", "k"}, "Node": {"*"}}}
		if got := fk.args[wire.MethodEventStream]; !reflect.DeepEqual(got, want) {
			t.Errorf("asked %+v", got)
		}
	})
}

// A stream that fails at once has a status; one that fails later is broken off,
// and never looks whole.
func TestStreamErrors(t *testing.T) {
	fk := newFake()
	ts := newTestServer(t, testConfig(fk))
	gone := structs.Errorf(structs.CodeNotFound, "no such file")
	fk.stream = func(ctx context.Context, _ string) *fakeStream { return &fakeStream{ctx: ctx, err: gone} }
	for _, path := range []string{"cat/a?path=f", "stream/a?path=f", "logs/a?task=t&type=stderr", "logs/a?task=t&type=stderr&plain=true"} {
		if resp, body := post(t, ts, "GET", "/v1/client/fs/"+path, ""); resp.StatusCode != 404 || body != "no such file" {
			t.Errorf("%s: %d %q", path, resp.StatusCode, body)
		}
	}
	fk.stream = func(ctx context.Context, _ string) *fakeStream {
		return &fakeStream{ctx: ctx, err: gone, items: []any{structs.StreamFrame{Data: []byte("part")}}}
	}
	req, _ := http.NewRequestWithContext(t.Context(), "GET", ts.URL+"/v1/client/fs/cat/a?path=f", nil)
	resp, err := ts.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err == nil || !strings.HasPrefix(string(body), "part") {
		t.Errorf("read %q, %v; want an error", body, err)
	}
	fk.stream = func(ctx context.Context, _ string) *fakeStream {
		return &fakeStream{ctx: ctx, items: []any{structs.StreamFrame{Data: []byte("one ")}, structs.StreamFrame{Data: []byte("two")}}}
	}
	if resp, body := post(t, ts, "GET", "/v1/client/fs/cat/a?path=f", ""); body != "one two" || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("cat: %q %v", body, resp.Header)
	}
}

// Nomad's own client understands the answers.
func TestOfficialClient(t *testing.T) {
	fk := newFake()
	meta := structs.QueryMeta{Index: 9, KnownLeader: true}
	fk.answer[wire.MethodRaftConfig] = structs.RaftConfigurationReply{Index: 3, Servers: []*structs.RaftServer{
		{ID: "s1", Node: "a1", Address: "10.0.0.1:4647", Leader: true, Voter: true, RaftProtocol: "3"},
	}}
	fk.answer[wire.MethodMembers] = structs.MembersReply{ServerName: "a1", ServerRegion: "global", ServerDC: "dc1", Members: []structs.ServerMember{
		{Name: "a1.global", Addr: "10.0.0.1", Port: 4648, Status: "alive", Tags: map[string]string{"role": "nomad"}},
	}}
	fk.answer[wire.MethodJoin] = structs.CountReply{Count: 2}
	fk.answer[wire.MethodAutopilotGet] = structs.AutopilotConfigReply{Config: structs.DefaultAutopilotConfiguration(), QueryMeta: meta}
	fk.answer[wire.MethodAutopilotSet] = structs.AutopilotSetReply{Updated: true}
	fk.answer[wire.MethodAutopilotHealth] = structs.AutopilotHealthReply{QueryMeta: meta, Health: structs.AutopilotHealth{
		Healthy: true, FailureTolerance: 1, Voters: []string{"s1"}, Servers: []structs.ServerHealth{{ID: "s1", LastContact: structs.Duration(time.Second)}},
	}}
	fk.answer[wire.MethodKeyring] = structs.KeyringReply{Keys: map[string]int{"a2V5": 3}, Messages: map[string]string{"a2.global": "gone"}, NumNodes: 3}
	fk.answer[wire.MethodNodeGet] = structs.NodeReply{QueryMeta: meta, Node: &structs.Node{ID: "n", SecretID: "SECRET", DrainStrategy: &structs.DrainStrategy{}}}
	fk.answer[wire.MethodNamespaceList] = structs.NamespaceListReply{QueryMeta: meta, Namespaces: []*structs.Namespace{{
		Name: "default", Capabilities: &structs.NamespaceCapabilities{DisabledTaskDrivers: []string{"raw_exec"}},
	}}}
	fk.answer[wire.MethodNodePoolList] = structs.NodePoolListReply{QueryMeta: meta, NodePools: []*structs.NodePool{{Name: "gpu", NodeIdentityTTL: time.Hour}}}
	fk.answer[wire.MethodNodeDrain] = structs.NodeUpdateReply{NodeModifyIndex: 5, EvalIDs: []string{"e"}, WriteMeta: structs.WriteMeta{Index: 5}}
	fk.answer[wire.MethodSearch] = structs.SearchReply{QueryMeta: meta, Matches: map[string][]string{"jobs": {"j"}},
		Fuzzy: map[string][]structs.FuzzyMatch{"jobs": {{ID: "j", Scope: []string{"default"}}}}, Truncations: map[string]bool{"jobs": true}}
	fk.answer[wire.MethodJobRegister] = structs.JobRegisterReply{EvalID: "e1", Warnings: "w", QueryMeta: meta}
	fk.answer[wire.MethodAllocStop] = structs.AllocStopReply{EvalID: "e2"}
	fk.answer[wire.MethodLeader] = structs.StringReply{Value: "10.0.0.1:4647"}
	fk.answer[wire.MethodSchedulerGet] = structs.SchedulerConfigReply{SchedulerConfig: &structs.SchedulerConfiguration{SchedulerAlgorithm: "spread"}, QueryMeta: meta}
	ts := newTestServer(t, testConfig(fk))
	c, err := nomad.NewClient(&nomad.Config{Address: ts.URL, HttpClient: ts.Client()})
	if err != nil {
		t.Fatal(err)
	}
	ok := func(what string, good bool, err error) {
		t.Helper()
		if err != nil || !good {
			t.Errorf("%s: %v %v", what, good, err)
		}
	}
	self, err := c.Agent().Self()
	ok("self", err == nil && self.Member.Name == "a1.global" && self.Member.Port == 4648 && self.Config["Region"] == "global", err)
	region, err := c.Agent().Region()
	ok("region", region == "global", err)
	members, err := c.Agent().Members()
	ok("members", err == nil && members.Members[0].Tags["role"] == "nomad" && members.Members[0].Addr == "10.0.0.1", err)
	n, err := c.Agent().Join("10.0.0.2", "10.0.0.3")
	ok("join", n == 2, err)
	ok("force leave", true, c.Agent().ForceLeave("a2.global"))
	pilot, _, err := c.Operator().AutopilotGetConfiguration(nil)
	ok("autopilot", err == nil && pilot.LastContactThreshold == 200*time.Millisecond && pilot.CleanupDeadServers, err)
	set, _, err := c.Operator().AutopilotCASConfiguration(pilot, nil)
	ok("autopilot set", set, err)
	keys, err := c.Agent().ListKeys()
	ok("list keys", err == nil && keys.Keys["a2V5"] == 3 && keys.NumNodes == 3 && keys.Messages["a2.global"] == "gone", err)
	for what, do := range map[string]func(string) (*nomad.KeyringResponse, error){
		structs.KeyInstall: c.Agent().InstallKey, structs.KeyUse: c.Agent().UseKey, structs.KeyRemove: c.Agent().RemoveKey,
	} {
		keys, err := do("a2V5")
		ok(what+" a key", err == nil && keys.NumNodes == 3 && *fk.args[wire.MethodKeyring].(*structs.KeyringRequest) == structs.KeyringRequest{Op: what, Key: "a2V5"}, err)
	}
	well, _, err := c.Operator().AutopilotServerHealth(nil)
	ok("autopilot health", err == nil && well.Healthy && well.FailureTolerance == 1 && well.Servers[0].LastContact == time.Second, err)
	health, err := c.Agent().Health()
	ok("health", err == nil && health.Server.Ok && health.Client.Ok, err)
	node, qm, err := c.Nodes().Info("n", nil)
	ok("node", err == nil && node.Drain && qm.LastIndex == 9, err)
	_, body := post(t, ts, "GET", "/v1/node/n", "")
	ok("no secret", !strings.Contains(body, "SECRET") && strings.Contains(body, `"SecretID":""`), nil)
	drained, err := c.Nodes().UpdateDrain("n", &nomad.DrainSpec{Deadline: time.Minute}, false, nil)
	ok("drain", err == nil && drained.NodeModifyIndex == 5 && drained.LastIndex == 5, err)
	found, _, err := c.Search().PrefixSearch("j", contexts.Jobs, nil)
	ok("search", err == nil && found.Matches[contexts.Jobs][0] == "j" && found.Truncations[contexts.Jobs], err)
	fuzzy, _, err := c.Search().FuzzySearch("j", contexts.All, nil)
	ok("fuzzy", err == nil && fuzzy.Matches[contexts.Jobs][0].Scope[0] == "default", err)
	job := nomad.NewBatchJob("j", "j", "global", 50)
	reg, wm, err := c.Jobs().Register(job, nil)
	ok("register", err == nil && reg.EvalID == "e1" && reg.Warnings == "w" && wm.LastIndex == 9, err)
	plan, _, err := c.Jobs().Plan(job, true, nil)
	ok("plan", err == nil && plan != nil, err)
	_, _, err = c.Jobs().Validate(job, nil)
	ok("validate", true, err)
	stopped, err := c.Allocations().Stop(&nomad.Allocation{ID: "a"}, nil)
	ok("stop", err == nil && stopped.EvalID == "e2", err)
	ok("restart", true, c.Allocations().Restart(&nomad.Allocation{ID: "a"}, "t", nil))
	ok("signal", true, c.Allocations().Signal(&nomad.Allocation{ID: "a"}, nil, "t", "SIGHUP"))
	ok("alloc gc", true, c.Allocations().GC(&nomad.Allocation{ID: "a"}, nil))
	ok("gc", true, c.System().GarbageCollect())
	ok("reconcile", true, c.System().ReconcileSummaries())
	conf, _, err := c.Operator().SchedulerGetConfiguration(nil)
	ok("scheduler", err == nil && conf.SchedulerConfig.SchedulerAlgorithm == "spread", err)
	_, _, err = c.Operator().SchedulerSetConfiguration(conf.SchedulerConfig, nil)
	ok("set scheduler", true, err)
	raft, err := c.Operator().RaftGetConfiguration(nil)
	ok("raft", err == nil && raft.Servers[0].Leader, err)
	deployments, _, err := c.Jobs().Deployments("j", true, nil)
	ok("deployments", len(deployments) == 0, err)
	latest, _, err := c.Jobs().LatestDeployment("j", nil)
	ok("deployment", latest == nil, err)
	spaces, _, err := c.Namespaces().List(nil)
	ok("namespaces", err == nil && spaces[0].Name == "default" && spaces[0].Capabilities.DisabledTaskDrivers[0] == "raw_exec", err)
	pools, _, err := c.NodePools().List(nil)
	ok("pools", err == nil && len(pools) == 1 && pools[0].Name == "gpu" && pools[0].NodeIdentityTTL == time.Hour, err)
	_, err = c.Jobs().ParseHCL("job", true)
	ok("parse", true, err)

	fk.mu.Lock()
	fk.stream = func(ctx context.Context, method string) *fakeStream {
		if method == wire.MethodEventStream {
			return &fakeStream{ctx: ctx, block: true, items: []any{structs.Events{Index: 7, Events: []structs.Event{{Topic: "Job", Type: "JobRegistered", Payload: map[string]any{"Job": map[string]any{"ID": "j"}}}}}}}
		}
		return &fakeStream{ctx: ctx, items: []any{structs.StreamFrame{Data: []byte("line\n"), File: "t.stdout.0"}}}
	}
	fk.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	events, err := c.EventStream().Stream(ctx, map[nomad.Topic][]string{nomad.TopicJob: {"*"}}, 0, &nomad.QueryOptions{})
	ok("events", true, err)
	e := <-events
	got, err := e.Events[0].Job()
	ok("event", err == nil && *got.ID == "j" && e.Index == 7, err)
	cancel()
	for range events { // until it ends
	}
	frames, _ := c.AllocFS().Logs(&nomad.Allocation{ID: "a"}, false, "t", "stdout", "start", 0, nil, nil)
	frame := <-frames
	ok("logs", frame != nil && string(frame.Data) == "line\n", nil)
	for range frames { // until it ends
	}
}

func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"index=1&wait=10s", "stale&consistent", "per_page=5&next_token=a&reverse", "prefix=%zz", "namespace=*", "filter=ID==1", "wait=-1s",
		"index=18446744073709551616", "pretty=1;x", "",
	} {
		f.Add(seed, "Bearer x")
	}
	f.Fuzz(func(t *testing.T, raw, auth string) {
		query, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		o, err := parseOptions(query, http.Header{"Authorization": {auth}}, 5*time.Minute, 10*time.Minute)
		if err != nil {
			if structs.CodeOf(err) != structs.CodeBadRequest {
				t.Errorf("%q: %v", raw, err)
			}
			return
		}
		if o.MaxQueryTime <= 0 || o.MaxQueryTime > 10*time.Minute || o.PerPage < 0 || o.Namespace == "" {
			t.Errorf("%q: %+v", raw, o)
		}
		if _, err := parseTopics(query["topic"]); err != nil && structs.CodeOf(err) != structs.CodeBadRequest {
			t.Errorf("%q: %v", raw, err)
		}
	})
}

// No body makes the decoder panic, and what it takes is one JSON value.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{`{"Job":{"ID":"a"}}`, `{`, `null`, `[1,2`, `{"Job":{"TaskGroups":[{"Count":1e400}]}}`, "\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var args structs.JobRegisterRequest
		if err := decodeJSON(body, &args); err == nil {
			if !json.Valid(body) {
				t.Errorf("took %q", body)
			}
		} else if structs.CodeOf(err) != structs.CodeBadRequest {
			t.Errorf("%q: %v", body, err)
		}
	})
}
