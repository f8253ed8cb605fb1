package httpapi

import (
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// Each wrong request gets its code and a message that says what is wrong, and
// the server goes on.
func TestWrongRequests(t *testing.T) {
	fk := newFake()
	fk.answer[wire.MethodAllocStop] = structs.Errorf(structs.CodeNotFound, "alloc %q not found", "zz")
	fk.answer[wire.MethodJobRevert] = structs.Errorf(structs.CodeConflict, "version 3 is not the newest")
	fk.answer[wire.MethodJobScale] = structs.Errorf(structs.CodeForbidden, "not allowed")
	fk.answer[wire.MethodEvalList] = structs.Errorf(structs.CodeBadRequest, "filter: bad").WithHint("see the documentation")
	fk.answer[wire.MethodPeers] = structs.Errorf(structs.CodeNoLeader, "No cluster leader")
	fk.answer[wire.MethodClientGC] = structs.Errorf(structs.CodeNoNode, "node n cannot be reached")
	fk.answer[wire.MethodSystemGC] = structs.Errorf(structs.CodeLimited, "too many at once")
	fk.answer[wire.MethodRegions] = errors.New("some fault")
	fk.answer[wire.MethodHistoryList] = func() { panic("boom") }
	ts := newTestServer(t, testConfig(fk))

	f := func(method, path, body string, code int, want string, header ...string) {
		t.Helper()
		resp, text := post(t, ts, method, path, body, header...)
		if resp.StatusCode != code || !strings.Contains(text, want) || strings.TrimSpace(text) == "" {
			t.Errorf("%s %s: %d %q, want %d %q", method, path, resp.StatusCode, text, code, want)
		}
		if ct := resp.Header.Get("Content-Type"); resp.StatusCode != 200 && ct != "text/plain; charset=utf-8" {
			t.Errorf("%s %s: Content-Type %q", method, path, ct)
		}
	}
	// Paths and methods.
	f("GET", "/v1/nothing", "", 404, "no such path: /v1/nothing")
	f("GET", "/v2/jobs", "", 404, "no such path")
	f("GET", "/", "", 404, "no such path")
	f("GET", "/v1/job/", "", 404, "no such path")
	f("GET", "/v1/jobs/", "", 404, "no such path")
	f("DELETE", "/v1/jobs", "", 405, "allowed: GET, POST, PUT")
	f("PATCH", "/v1/job/a", "", 405, "allowed: DELETE, GET, POST, PUT")
	f("GET", "/v1/jobs/parse", "", 405, "allowed: POST, PUT")
	f("POST", "/v1/system/gc", "", 405, "allowed: PUT")
	f("GET", "/v1/operator/raft/peer", "", 405, "allowed: DELETE")
	f("PUT", "/v1/event/stream", "", 405, "allowed: GET")
	f("PUT", "/v1/agent/keyring/list", "", 405, "read (GET)")
	f("PUT", "/v1/agent/keyring/use", `{"Key":7}`, 400, "Key")
	f("GET", "/v1/agent/keyring/use", "", 405, "written (PUT)")
	f("PUT", "/v1/agent/keyring/burn", "{}", 404, "install, use, remove and list")
	f("GET", "/v1/agent/keyring/list?pool=sea", "", 400, "servers or clients")
	f("PUT", "/v1/agent/keyring/use", "{}", 400, "Key: missing")
	f("PUT", "/v1/agent/keyring/use", "{", 400, "JSON")
	f("BREW", "/v1/nodes", "", 405, "allowed: GET")
	f("GET", "/v1/job/a%00b", "", 400, "zero bytes")
	f("GET", "/v1/job/%ff", "", 400, "UTF-8")
	f("GET", "/v1/job/"+strings.Repeat("x", maxID+1), "", 400, "at most 1024")
	// Parameters.
	f("GET", "/v1/jobs?index=-1", "", 400, `index "-1": must be a whole number`)
	f("GET", "/v1/jobs?index=abc", "", 400, `index "abc"`)
	f("GET", "/v1/jobs?index=18446744073709551616", "", 400, "index")
	f("GET", "/v1/jobs?index=1.5", "", 400, "index")
	f("GET", "/v1/jobs?wait=soon", "", 400, `wait "soon": must be a duration`)
	f("GET", "/v1/jobs?wait=-5s", "", 400, "not negative")
	f("GET", "/v1/jobs?wait=5", "", 400, "such as 30s")
	f("GET", "/v1/jobs?per_page=-1", "", 400, `per_page "-1"`)
	f("GET", "/v1/jobs?per_page=many", "", 400, "per_page")
	f("GET", "/v1/jobs?per_page=99999999999", "", 400, "per_page")
	f("GET", "/v1/jobs?stale=perhaps", "", 400, "stale")
	f("GET", "/v1/jobs?reverse=2", "", 400, "reverse")
	f("GET", "/v1/jobs?pretty=very", "", 400, "pretty")
	f("GET", "/v1/jobs?stale&consistent", "", 400, "exclude each other")
	f("GET", "/v1/jobs?meta=x", "", 400, "meta")
	f("GET", "/v1/jobs?prefix=%zz", "", 400, "query")
	f("GET", "/v1/jobs?filter="+strings.Repeat("x", maxQuery), "", 400, "at most")
	f("GET", "/v1/job/j/submission", "", 400, "version: missing")
	f("GET", "/v1/job/j/submission?version=x", "", 400, `version "x"`)
	f("DELETE", "/v1/job/j?purge=maybe", "", 400, "purge")
	f("DELETE", "/v1/job/j?eval_priority=200", "", 400, "eval_priority 200")
	f("GET", "/v1/job/j/versions?diff_tag=x", "", 501, "diff_tag")
	f("GET", "/v1/metrics?format=xml", "", 400, "json or prometheus")
	f("GET", "/v1/agent/health?type=pet", "", 400, "server or client")
	f("PUT", "/v1/agent/servers", "", 400, "address: missing")
	f("DELETE", "/v1/operator/raft/peer", "", 400, "name the server")
	f("DELETE", "/v1/operator/raft/peer?id=a&address=b", "", 400, "cannot both")
	f("GET", "/v1/event/stream?topic=Jbo", "", 400, "did you mean Job?")
	f("GET", "/v1/event/stream?topic=:x", "", 400, "Topic:key")
	f("GET", "/v1/event/stream?index=x", "", 400, "index")
	// Files and logs.
	f("GET", "/v1/client/fs/cat/a", "", 400, "path: missing")
	f("GET", "/v1/client/fs/readat/a?path=f&offset=-1", "", 400, "offset -1")
	f("GET", "/v1/client/fs/readat/a?path=f&offset=x", "", 400, `offset "x"`)
	f("GET", "/v1/client/fs/logs/a?type=stdout", "", 400, "task: missing")
	f("GET", "/v1/client/fs/logs/a?task=t&type=stdin", "", 400, "stdout or stderr")
	f("GET", "/v1/client/fs/logs/a?task=t&type=stdout&origin=middle", "", 400, "start or end")
	f("GET", "/v1/client/fs/logs/a?task=t&type=stdout&follow=x", "", 400, "follow")
	// Bodies.
	f("PUT", "/v1/jobs", "", 400, "empty")
	f("PUT", "/v1/jobs", "   \n", 400, "empty")
	f("PUT", "/v1/jobs", "{", 400, "ends too early, after 1 bytes")
	f("PUT", "/v1/jobs", `{"Job":{"ID":"a"},}`, 400, "bad JSON at byte")
	f("PUT", "/v1/jobs", `not json`, 400, "bad JSON at byte 2")
	f("PUT", "/v1/jobs", `[]`, 400, "a JSON array does not fit")
	f("PUT", "/v1/jobs", `"job"`, 400, "a JSON string does not fit")
	f("PUT", "/v1/jobs", `{}`, 400, "Job: missing")
	f("PUT", "/v1/jobs", `null`, 400, "Job: missing")
	f("PUT", "/v1/jobs", `{"Job":null}`, 400, "Job: missing")
	f("PUT", "/v1/jobs", `{"Job":{}}`, 400, "Job.ID: missing")
	f("PUT", "/v1/jobs", `{"Job":"x"}`, 400, "want an object")
	f("PUT", "/v1/jobs", `{"Job":{"ID":"a","Priority":"high"}}`, 400, "Priority")
	f("PUT", "/v1/jobs", `{"Job":{"ID":"a","TaskGroups":[{"Count":"x"}]}}`, 400, "TaskGroups[0].Count")
	f("PUT", "/v1/jobs", `{"Job":{"ID":"a"},"EnforceIndex":"yes"}`, 400, "EnforceIndex")
	f("PUT", "/v1/jobs", `{"Job":{"ID":"a"},"JobModifyIndex":-1}`, 400, "JobModifyIndex")
	f("PUT", "/v1/jobs", `{"Job":{"ID":"a"}} {"Job":{"ID":"b"}}`, 400, "something follows the JSON value that ends at byte 18")
	f("PUT", "/v1/jobs", `{"Job":{"ID":"a"}}garbage`, 400, "something follows")
	f("PUT", "/v1/jobs", `{"Job":{"ID":"a","Namespace":"*"}}`, 400, "one namespace")
	f("PUT", "/v1/jobs?namespace=*", `{"Job":{"ID":"a"}}`, 400, "one namespace")
	f("PUT", "/v1/jobs", `{"Job":{"ID":"a","Region":"venus"},"Region":"mars"}`, 400, `Job.Region "venus": the request is for region "mars"`)
	f("PUT", "/v1/jobs?region=mars", `{"Job":{"ID":"a","Region":"venus"}}`, 400, `Job.Region "venus": the request is for region "mars"`)
	f("PUT", "/v1/jobs", `{"Job":{"ID":"`+strings.Repeat("a", 5000)+`"}}`, 413, "larger than the 4096 bytes")
	f("PUT", "/v1/jobs", `{}`, 415, "Content-Encoding", "Content-Encoding", "gzip")
	f("PUT", "/v1/jobs?opportunistic=yes", `{"Job":{"ID":"a"}}`, 400, `opportunistic "yes": must be true or false`)
	f("PUT", "/v1/job/b", `{"Job":{"ID":"a"}}`, 400, `does not match "b"`)
	f("PUT", "/v1/job/b/plan", `{"Job":{"ID":"a"}}`, 400, "does not match")
	f("PUT", "/v1/job/b/evaluate", `{"JobID":"a"}`, 400, "does not match")
	f("PUT", "/v1/job/b/revert", `{"JobVersion":1,"JobID":"a"}`, 400, "does not match")
	f("PUT", "/v1/job/b/revert", `{}`, 400, "JobVersion: missing")
	f("PUT", "/v1/job/b/scale", `{"Count":1}`, 400, "Group")
	f("PUT", "/v1/job/b/scale", `{"Count":-1,"Target":{"Group":"g"}}`, 400, "must not be negative")
	f("PUT", "/v1/job/b/scale", `{"Count":1.5,"Target":{"Group":"g"}}`, 400, "Count")
	f("PUT", "/v1/job/b/scale", `{"Count":1,"Error":true,"Target":{"Group":"g"}}`, 400, "report of an error")
	f("PUT", "/v1/jobs/parse", `{}`, 400, "JobHCL: missing")
	f("PUT", "/v1/jobs/parse", `{"JobHCL":"wrong"}`, 400, "job.hcl:1: wrong is not allowed here")
	f("PUT", "/v1/node/n/eligibility", `{"Eligibility":"sure"}`, 400, `"eligible" or "ineligible"`)
	f("PUT", "/v1/node/n/drain", `{"NodeID":"m"}`, 400, "does not match")
	f("PUT", "/v1/node/n/drain", `{"DrainSpec":{"Deadline":"x"}}`, 400, "Deadline")
	f("PUT", "/v1/node/n/drain", ``, 400, "empty")
	f("PUT", "/v1/client/allocation/a/signal", `{}`, 400, "Signal: missing")
	f("PUT", "/v1/client/allocation/a/restart", `{"TaskName":"t","AllTasks":true}`, 400, "cannot both")
	f("PUT", "/v1/search", `{"Prefix":7}`, 400, "Prefix")
	f("PUT", "/v1/search/fuzzy", `{}`, 400, "Text: missing")
	f("PUT", "/v1/operator/scheduler/configuration", `{"SchedulerAlgorithm":"best"}`, 400, "binpack")
	f("PUT", "/v1/operator/scheduler/configuration?cas=x", `{}`, 400, "cas")
	// What is not there.
	f("GET", "/v1/job/j", "", 404, "job not found")
	f("GET", "/v1/allocation/a", "", 404, "alloc not found")
	f("GET", "/v1/evaluation/e", "", 404, "eval not found")
	f("GET", "/v1/node/n", "", 404, "node not found")
	f("GET", "/v1/node/pool/x", "", 404, "node pool not found")
	f("GET", "/v1/namespace/x", "", 404, "namespace not found")
	f("GET", "/v1/virtual-cluster/x", "", 404, "virtual cluster not found")
	f("PUT", "/v1/virtual-cluster/x", `{"Name":"y"}`, 400, `Name "y": does not match "x" in the path`)
	f("PUT", "/v1/virtual-cluster/x", ``, 400, "empty")
	f("PUT", "/v1/virtual-cluster/x?when_free=perhaps", `{}`, 400, `when_free "perhaps": must be true or false`)
	f("PUT", "/v1/virtual-cluster/x?cas=-1", `{}`, 400, `cas "-1": must be a whole number`)
	f("PUT", "/v1/virtual-cluster/x", `{"Windows":[{"From":"tomorrow"}]}`, 400, "tomorrow")
	f("PUT", "/v1/virtual-cluster/x/points", `{}`, 400, "Points: missing")
	f("PUT", "/v1/virtual-cluster/x/points", `{"Points":1.5}`, 400, "Points")
	f("PUT", "/v1/virtual-cluster/x/shift", `{"From":"soon"}`, 400, "soon")
	f("PUT", "/v1/exchange/bid", ``, 400, "empty")
	f("PUT", "/v1/exchange/x", `{}`, 405, "")
	f("GET", "/v1/deployment/x", "", 404, "deployment not found")
	f("PUT", "/v1/namespace/x", `{"Name":"y"}`, 400, `Name "y": does not match "x" in the path`)
	f("GET", "/v1/workflow/x", "", 404, "workflow not found")
	f("PUT", "/v1/workflow/x", `{"ID":"y"}`, 400, `ID "y": does not match "x" in the path`)
	f("PUT", "/v1/workflow/x?namespace=a", `{"Namespace":"b"}`, 400, `Namespace "b": does not match "a" in the query`)
	f("PUT", "/v1/workflow/x", `{"Resreve":{"Rule":"max"}}`, 400, `unknown key "Resreve" (did you mean "Reserve"?)`)
	f("PUT", "/v1/workflow/x/plan", `{"Stages":[{"Jobs":[{"Retryes":1,"Job":{"Unheard":1}}]}]}`, 400, `unknown key "Stages[0].Jobs[0].Retryes" (did you mean "Retries"?)`)
	f("PUT", "/v1/workflow/x?cas=a", `{}`, 400, `cas "a": must be a whole number`)
	f("PUT", "/v1/workflow/x", `{"Stages":[{"Jobs":[{"Job":{"TaskGroups":[{"MaxRunDuration":"soon"}]}}]}]}`, 400, "soon")
	f("PUT", "/v1/what-if", "", 400, "request body: empty")
	f("PUT", "/v1/what-if", `{"Changes":[{"Scheduler":{"Bands":[{"Low":9,"High":3}]}}]}`, 400, "Bands")
	f("PUT", "/v1/what-if", `{"Changes":"lose"}`, 400, "Changes")
	f("GET", "/v1/license/x", "", 404, "license not found")
	f("PUT", "/v1/license/x", `{"Name":"y"}`, 400, `Name "y": does not match "x" in the path`)
	f("PUT", "/v1/license/x", `{"Count":"many"}`, 400, "Count")
	f("PUT", "/v1/license/x?cas=a", `{}`, 400, `cas "a": must be a whole number`)
	f("DELETE", "/v1/license/x?cas=a", "", 400, `cas "a": must be a whole number`)
	f("PUT", "/v1/project/x", `{"Name":"y"}`, 400, `Name "y": does not match "x" in the path`)
	f("PUT", "/v1/project/x", `{"Throughput":{"Per":"soon"}}`, 400, "soon")
	f("PUT", "/v1/project/x?cas=a", `{}`, 400, `cas "a": must be a whole number`)
	f("PUT", "/v1/project/x/calendar", `{"Rows":[]}`, 400, "week is missing")
	f("PUT", "/v1/project/x/calendar?week=2026-W48", `{"Rows":[{"Count":"many"}]}`, 400, "Count")
	f("PUT", "/v1/project/x/calendar?week=2026-W48&cas=-1", `{"Rows":[]}`, 400, `cas "-1": must be a whole number`)
	f("PUT", "/v1/flow/x", `{"Name":"y"}`, 400, `Name "y": does not match "x" in the path`)
	f("DELETE", "/v1/evaluations", "", 400, "empty")
	f("POST", "/v1/client/metadata", `{"Meta":{}}`, 400, "Meta: missing")
	f("POST", "/v1/client/metadata?node_id=a", `{"NodeID":"b","Meta":{"a":"b"}}`, 400, "does not match")
	f("POST", "/v1/client/metadata", `{"Meta":{"a/b":"c"}}`, 400, "a name has letters")
	f("POST", "/v1/client/metadata", `{"Meta":{"a":1}}`, 400, "does not fit")
	f("PUT", "/v1/agent/servers?address=a%20b", "", 400, "host or host:port")
	f("PUT", "/v1/agent/servers?address=a:b", "", 400, "host or host:port")
	f("PUT", "/v1/agent/servers?address=:1", "", 400, "host or host:port")
	f("GET", "/v1/scaling/policy/", "", 404, "")
	f("GET", "/v1/scaling/policy/x", "", 404, "policy not found")
	// What the servers answer.
	f("PUT", "/v1/allocation/zz/stop", "", 404, `alloc "zz" not found`)
	f("PUT", "/v1/job/j/revert", `{"JobVersion":1}`, 409, "version 3")
	f("PUT", "/v1/job/j/scale", `{"Count":1,"Target":{"Group":"g"}}`, 403, "not allowed")
	f("GET", "/v1/evaluations?filter=x", "", 400, "see the documentation")
	f("GET", "/v1/status/peers", "", 500, "No cluster leader")
	f("GET", "/v1/client/gc", "", 502, "cannot be reached")
	f("PUT", "/v1/system/gc", "", 429, "too many")
	f("GET", "/v1/regions", "", 500, "some fault")
	f("GET", "/v1/history", "", 500, "see the agent's log")
	f("GET", "/v1/jobs", "", 200, "[]")
}

func TestMethodHeaders(t *testing.T) {
	ts := newTestServer(t, testConfig(newFake()))
	resp, _ := post(t, ts, "DELETE", "/v1/jobs", "")
	if got := resp.Header.Get("Allow"); got != "GET, POST, PUT" {
		t.Errorf("Allow %q", got)
	}
	if resp, _ = post(t, ts, "OPTIONS", "/v1/jobs", ""); resp.StatusCode != 204 || resp.Header.Get("Allow") == "" {
		t.Errorf("OPTIONS: %d %v", resp.StatusCode, resp.Header)
	}
	if resp, body := post(t, ts, "HEAD", "/v1/jobs", ""); resp.StatusCode != 200 || body != "" {
		t.Errorf("HEAD: %d %q", resp.StatusCode, body)
	}
}

// An agent without a client says which nodes it cannot mean.
func TestNoClient(t *testing.T) {
	cfg := testConfig(newFake())
	cfg.Agent = &fakeAgent{Self{Name: "s", Region: "global", Server: true}}
	cfg.ParseJob, cfg.Metrics, cfg.Prometheus = nil, nil, nil
	ts := newTestServer(t, cfg)
	f := func(method, path, body string, code int) {
		t.Helper()
		if resp, text := post(t, ts, method, path, body); resp.StatusCode != code {
			t.Errorf("%s %s: %d %q, want %d", method, path, resp.StatusCode, text, code)
		}
	}
	f("GET", "/v1/client/stats", "", 400)
	f("GET", "/v1/client/gc", "", 400)
	f("GET", "/v1/agent/servers", "", 501)
	f("GET", "/v1/agent/health?type=client", "", 500)
	f("GET", "/v1/metrics", "", 501)
	f("GET", "/v1/metrics?format=prometheus", "", 415)
	f("PUT", "/v1/jobs/parse", `{"JobHCL":"x"}`, 501)
	f("GET", "/debug/pprof/", "", 404)
}

// More connections than one client may have are answered 429, and a place that
// comes free can be used again.
func TestMaxConns(t *testing.T) {
	cfg := testConfig(newFake())
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewUnstartedServer(s.Handler())
	ts.Listener = limitConns(ts.Listener, 2, s.cfg.Logger)
	ts.Start()
	defer ts.Close()
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", ts.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	request := func(conn net.Conn) int {
		t.Helper()
		_, _ = conn.Write([]byte("GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n")) // the refused one may be closed already
		return readStatus(t, conn)
	}
	a, b := dial(), dial()
	if x, y := request(a), request(b); x != 200 || y != 200 {
		t.Fatalf("first two: %d %d", x, y)
	}
	c := dial()
	got, err := io.ReadAll(c)
	if text := string(got); !strings.HasPrefix(text, "HTTP/1.1 429 ") || !strings.Contains(text, "at most 2 of one address may be open (limits { http_max_conns_per_client })") {
		t.Fatalf("third: %s, %v", text, err)
	}
	_ = c.Close()
	_ = a.Close()
	for { // the server sees the close when it reads
		d := dial()
		code := request(d)
		_ = d.Close()
		if code == 200 {
			break
		}
	}
	_ = b.Close()
}

// Health is told by the status too, as Nomad does.
func TestUnhealthyServers(t *testing.T) {
	fk := newFake()
	ts := newTestServer(t, testConfig(fk))
	for healthy, code := range map[bool]int{true: 200, false: 429} {
		fk.answer[wire.MethodAutopilotHealth] = structs.AutopilotHealthReply{
			QueryMeta: structs.QueryMeta{Index: 1, KnownLeader: true}, Health: structs.AutopilotHealth{Healthy: healthy},
		}
		resp, body := post(t, ts, "GET", "/v1/operator/autopilot/health", "")
		if resp.StatusCode != code || !strings.Contains(body, `"Servers":[]`) || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
			t.Errorf("healthy %v: %d %s, %s", healthy, resp.StatusCode, body, resp.Header.Get("Content-Type"))
		}
	}
}
