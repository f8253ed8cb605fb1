package httpapi

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func TestAgentMonitor(t *testing.T) {
	fk := newFake()
	fk.stream = func(ctx context.Context, _ string) *fakeStream {
		return &fakeStream{ctx: ctx, items: []any{structs.StreamFrame{}, structs.StreamFrame{Data: []byte("one\n")}, structs.StreamFrame{Data: []byte("two\n")}}}
	}
	ts := newTestServer(t, testConfig(fk))
	resp, body := post(t, ts, "GET", "/v1/agent/monitor?log_level=debug&log_json=true&server_id=s1&log_include_location", "")
	if resp.StatusCode != 200 || body != `{}{"Data":"b25lCg=="}{"Data":"dHdvCg=="}` {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	args := fk.args[wire.MethodAgentMonitor].(*structs.AgentMonitorRequest)
	if args.LogLevel != "debug" || !args.LogJSON || !args.LogIncludeLocation || args.ServerID != "s1" || args.NodeID != "" || args.Region != "global" {
		t.Errorf("asked for %+v", args)
	}
	resp, body = post(t, ts, "GET", "/v1/agent/monitor?plain=true&node_id=n", "")
	if body != "one\ntwo\n" || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("plain: %v %q", resp.Header, body)
	}
	fk.answer[wire.MethodAgentMonitor] = structs.Errorf(structs.CodeNoServer, "unknown Nomad server x")
	if resp, body = post(t, ts, "GET", "/v1/agent/monitor?server_id=x", ""); resp.StatusCode != 500 || body != "unknown Nomad server x" {
		t.Errorf("an unknown server: %d %q", resp.StatusCode, body)
	}
	for _, query := range []string{"plain=maybe", "log_json=2", "log_include_location=x"} {
		if resp, body = post(t, ts, "GET", "/v1/agent/monitor?"+query, ""); resp.StatusCode != 400 {
			t.Errorf("%s: %d %q", query, resp.StatusCode, body)
		}
	}
}

func TestAgentHostAndProfile(t *testing.T) {
	fk := newFake()
	fk.answer[wire.MethodAgentHost] = structs.AgentHostReply{AgentID: "n", HostData: &structs.HostData{OS: "linux"}}
	fk.answer[wire.MethodAgentProfile] = structs.AgentProfileReply{Payload: []byte{0x1f, 0x8b, 0}}
	ts := newTestServer(t, testConfig(fk))
	if resp, body := post(t, ts, "GET", "/v1/agent/host?node_id=n", ""); resp.StatusCode != 200 || !strings.HasPrefix(body, `{"AgentID":"n","HostData":{"OS":"linux"`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	resp, body := post(t, ts, "GET", "/v1/agent/pprof/profile?seconds=7&debug=0&gc=1&node_id=&server_id=leader", "")
	if resp.StatusCode != 200 || body != "\x1f\x8b\x00" || resp.Header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("%d %v %q", resp.StatusCode, resp.Header, body)
	}
	args := fk.args[wire.MethodAgentProfile].(*structs.AgentProfileRequest)
	if args.Profile != "profile" || args.Seconds != 7 || !args.GC || args.ServerID != "leader" {
		t.Errorf("asked for %+v", args)
	}
	fk.answer[wire.MethodAgentProfile] = structs.AgentProfileReply{Payload: []byte("goroutine 1"), Text: true}
	if resp, _ := post(t, ts, "GET", "/v1/agent/pprof/goroutine?debug=2", ""); !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("a text is %s", resp.Header.Get("Content-Type"))
	}
	for _, query := range []string{"seconds=x", "debug=x", "gc=x"} {
		if resp, body := post(t, ts, "GET", "/v1/agent/pprof/heap?"+query, ""); resp.StatusCode != 400 {
			t.Errorf("%s: %d %q", query, resp.StatusCode, body)
		}
	}
}

// TestCostlyRoutesAreNotForPages: what costs the agent something is not done for a page of another site, though it is a GET.
func TestCostlyRoutesAreNotForPages(t *testing.T) {
	t.Parallel()
	s, fk, _ := guarded(t)
	s.cfg.Backend = fk
	const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	costly := 0
	for _, route := range s.table() {
		if !route.actions[http.MethodGet].costly {
			continue
		}
		costly++
		path := pathOf(route)
		for _, headers := range [][]string{
			{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "http://evil.example"}, {"Origin", "null"},
			{"User-Agent", browser}, {"Referer", "http://evil.example/"}, {"Cookie", "a=b"}, {"Accept-Language", "de"}, {"User-Agent", browser, "Referer", "http://evil.example/"},
		} {
			fk.calls = nil
			if w := answer(s, "GET", path, "agent-1", headers...); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "another site") || len(fk.calls) > 0 {
				t.Errorf("%s with %q: %d %s", path, headers, w.Code, w.Body)
			}
		}
		if strings.HasPrefix(path, "/debug/") {
			continue // it may measure for half a minute
		}
		for _, headers := range [][]string{
			{}, {"User-Agent", "curl/8.5.0"}, {"User-Agent", "Go-http-client/1.1"}, {"User-Agent", browser, "Sec-Fetch-Site", "none"},
			{"User-Agent", browser, "Sec-Fetch-Site", "same-origin"}, {"Origin", "http://agent-1"}, {"User-Agent", browser, "Referer", "http://agent-1/ui"},
		} {
			fk.calls = nil
			if w := answer(s, "GET", path, "agent-1", headers...); w.Code == http.StatusForbidden || len(fk.calls) != 1 {
				t.Errorf("%s with %q: %d %s, %v", path, headers, w.Code, w.Body, fk.calls)
			}
		}
	}
	if costly != 10 {
		t.Errorf("%d routes are costly", costly)
	}
}

// TestMetricsInJSONAreNotForPages: they are long and take time to encode, which those for Prometheus do not.
func TestMetricsInJSONAreNotForPages(t *testing.T) {
	t.Parallel()
	s, _, _ := guarded(t)
	written := 0
	s.cfg.Metrics = func(to io.Writer, pretty bool) error {
		written++
		_, err := fmt.Fprintf(to, `{"pretty":%v}`, pretty)
		return err
	}
	s.cfg.Prometheus = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "nomad_up 1\n") })
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "http://evil.example"}, {"User-Agent", "Mozilla/5.0 Firefox/140.0"}} {
		for _, path := range []string{"/v1/metrics", "/v1/metrics?format=json", "/v1/metrics?pretty"} {
			if w := answer(s, "GET", path, "agent-1", headers...); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "another site") || written > 0 {
				t.Errorf("%s with %q: %d %s", path, headers, w.Code, w.Body)
			}
		}
		if w := answer(s, "GET", "/v1/metrics?format=prometheus", "agent-1", headers...); w.Code != http.StatusOK {
			t.Errorf("for Prometheus with %q: %d %s", headers, w.Code, w.Body)
		}
	}
	for path, want := range map[string]string{"/v1/metrics": `{"pretty":false}`, "/v1/metrics?pretty": `{"pretty":true}`} {
		if w := answer(s, "GET", path, "agent-1", "User-Agent", "curl/8.5.0"); w.Code != http.StatusOK || w.Body.String() != want || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s %s", path, w.Code, w.Header(), w.Body)
		}
	}
}

func TestExec(t *testing.T) {
	fk := newFake()
	ts := newTestServer(t, testConfig(fk))
	const id = "8e231cf4-ca48-43ff-b694-5801e69e22fa"
	socket := func() (code int, reason string) {
		t.Helper()
		conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(t.Context(), "tcp", ts.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // a test
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		// The key and its answer are the example of RFC 6455.
		_, _ = fmt.Fprintf(conn, "GET /v1/client/allocation/%s/exec?task=t HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", id)
		in := bufio.NewReader(conn)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
			t.Errorf("%d %v", resp.StatusCode, resp.Header)
		}
		var head [4]byte
		if _, err := io.ReadFull(in, head[:]); err != nil || head[0] != 0x88 || head[1] > 125 {
			t.Fatalf("%v: % x", err, head)
		}
		rest := make([]byte, head[1]-2)
		if _, err := io.ReadFull(in, rest); err != nil {
			t.Fatal(err)
		}
		return int(binary.BigEndian.Uint16(head[2:])), string(rest)
	}
	fk.answer[wire.MethodAllocGet] = structs.Errorf(structs.CodeNotFound, "no such allocation")
	if resp, body := post(t, ts, "GET", "/v1/client/allocation/"+id+"/exec", ""); resp.StatusCode != 404 || body != `Unknown allocation "`+id+`"` {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
	if code, reason := socket(); code != 4404 || reason != `Unknown allocation "`+id+`"` {
		t.Errorf("%d %q", code, reason)
	}
	fk.answer[wire.MethodAllocGet] = structs.AllocReply{Alloc: &structs.Allocation{ID: id}}
	if resp, body := post(t, ts, "GET", "/v1/client/allocation/"+id+"/exec", ""); resp.StatusCode != 501 {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
	if code, reason := socket(); code != 4501 || !strings.Contains(reason, "not yet") && !strings.Contains(reason, "does not yet") {
		t.Errorf("%d %q", code, reason)
	}
}

func TestSetSchedulers(t *testing.T) {
	cfg := testConfig(newFake())
	var got []string
	count, refuse := -1, error(nil)
	cfg.SetSchedulers = func(n int, enabled []string) error {
		count, got = n, enabled
		return refuse
	}
	ts := newTestServer(t, cfg)
	const path = "/v1/agent/schedulers/config"
	resp, body := post(t, ts, "PUT", path, `{"num_schedulers":3,"enabled_schedulers":["_core","system","batch"]}`)
	if resp.StatusCode != 200 || body != `{"server_id":"a1.global","num_schedulers":3,"enabled_schedulers":["batch","system","_core"]}` {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if count != 3 || !slices.Equal(got, []string{"batch", "system"}) {
		t.Errorf("set to %d %v", count, got)
	}
	count = -1
	for _, bad := range []string{
		`{"num_schedulers":-1,"enabled_schedulers":["_core"]}`, `{"num_schedulers":1025,"enabled_schedulers":["_core"]}`,
		`{"num_schedulers":1,"enabled_schedulers":["batch"]}`, `{"num_schedulers":1,"enabled_schedulers":["_core","x"]}`, `{"num_schedulers":1}`,
	} {
		if resp, body := post(t, ts, "PUT", path, bad); resp.StatusCode != 400 || body != "Invalid request" || count != -1 {
			t.Errorf("%s: %d %s", bad, resp.StatusCode, body)
		}
	}
	refuse = structs.Errorf(structs.CodeUnsupported, "not now")
	if resp, body := post(t, ts, "PUT", path, `{"num_schedulers":1,"enabled_schedulers":["_core"]}`); resp.StatusCode != 501 || body != "not now" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}
