package httpapi

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nomadish/nomadish/internal/wire"
)

// changingAgent counts what changes the agent.
type changingAgent struct {
	fakeAgent
	changes atomic.Int32
}

func (a *changingAgent) SetServers([]string) error { a.changes.Add(1); return nil }
func (a *changingAgent) Reload() error             { a.changes.Add(1); return nil }

// guarded is a server with all its routes, whose calls are recorded.
func guarded(t *testing.T) (*Server, *fake, *changingAgent) {
	t.Helper()
	fk := newFake()
	cfg := testConfig(fk)
	agent := &changingAgent{fakeAgent: *bothAgent()}
	cfg.Agent, cfg.Debug = agent, true
	cfg.Hosts = []string{"agent-1"}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s, fk, agent
}

// answer is what a server answers to a request with a body that suits many routes.
func answer(s *Server, method, path, host string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(`{"Key":"YWFhYWFhYWFhYWFhYWFhYQ==","JobID":"x","Text":"x"}`))
	r.Host = host
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// pathOf is a path that fits a route.
func pathOf(r *route) string {
	if r.path == "/v1/agent/keyring/*" {
		return "/v1/agent/keyring/use"
	}
	return strings.ReplaceAll(r.path, "*", "x")
}

// methods are those of a route, and what is also answered for it.
func methodsOf(r *route) []string {
	out := []string{http.MethodHead, http.MethodOptions, http.MethodPatch}
	for method := range r.actions {
		out = append(out, method)
	}
	return out
}

// TestEveryRouteIsGuarded walks the routes, so that no new one is without the guard.
func TestEveryRouteIsGuarded(t *testing.T) {
	t.Parallel()
	s, fk, agent := guarded(t)
	routes := append(s.table(), &route{path: "/"}, &route{path: "/v1/nothing"}, &route{path: "/v1/job/%ff"})
	if len(routes) < 100 {
		t.Fatalf("%d routes", len(routes))
	}
	for _, route := range routes {
		path := pathOf(route)
		for _, method := range methodsOf(route) {
			for _, host := range []string{"evil.example", "evil.example:4646", "localhost.evil.example", "agent-1.evil.example"} {
				w := answer(s, method, path, host, "User-Agent", "Go-http-client/1.1")
				if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "evil.example") || !strings.Contains(w.Body.String(), "allowed_hosts") {
					t.Errorf("%s %s for the host %s: %d %s", method, path, host, w.Code, w.Body)
				}
			}
			if isSafe(method) {
				continue
			}
			for _, headers := range [][]string{
				{"Origin", "http://evil.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
				{"Sec-Fetch-Site", "cross-site", "Origin", "http://agent-1"}, {"Origin", "https://agent-1:444"},
			} {
				w := answer(s, method, path, "agent-1", headers...)
				if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "trusted_origins") {
					t.Errorf("%s %s of another site %q: %d %s", method, path, headers, w.Code, w.Body)
				}
			}
		}
	}
	if len(fk.calls) > 0 || agent.changes.Load() > 0 {
		t.Errorf("refused requests reached the servers: %v", fk.calls)
	}
	if w := answer(s, "PUT", "/v1/system/gc", "agent-1"); w.Code != 200 {
		t.Errorf("a request of nobody's page: %d %s", w.Code, w.Body)
	}
}

// reads are the calls that change nothing: those that a GET may make.
var reads = []string{
	wire.MethodPing, wire.MethodLeader, wire.MethodPeers, wire.MethodRegions, wire.MethodSigningKeys, wire.MethodMembers, wire.MethodEventStream, wire.MethodHistoryList,
	wire.MethodSchedulerGet, wire.MethodCheck, wire.MethodSnapshotSave, wire.MethodRaftConfig, wire.MethodAutopilotGet, wire.MethodAutopilotHealth,
	wire.MethodJobList, wire.MethodJobGet, wire.MethodJobVersions, wire.MethodJobAllocs, wire.MethodJobEvals, wire.MethodJobSummary,
	wire.MethodJobScaleStatus, wire.MethodJobSubmission, wire.MethodJobExplain, wire.MethodAllocList, wire.MethodAllocGet, wire.MethodAllocExplain,
	wire.MethodEvalList, wire.MethodEvalCount, wire.MethodEvalGet, wire.MethodEvalAllocs, wire.MethodTopology, wire.MethodQueue, wire.MethodForecast, wire.MethodWhatIf,
	wire.MethodNamespaceList, wire.MethodNamespaceGet, wire.MethodVirtualClusterList, wire.MethodVirtualClusterGet, wire.MethodExchangeList,
	wire.MethodProjectList, wire.MethodProjectGet, wire.MethodProjectCalendar, wire.MethodProjectEdits, wire.MethodProjectReport, wire.MethodFlowList, wire.MethodFlowGet,
	wire.MethodWorkflowList, wire.MethodWorkflowGet,
	wire.MethodLicenseList, wire.MethodLicenseGet,
	wire.MethodNodePoolList, wire.MethodNodePoolGet, wire.MethodNodePoolNodes, wire.MethodNodePoolJobs,
	wire.MethodScalingList, wire.MethodScalingGet, wire.MethodClientMetaRead,
	wire.MethodNodeList, wire.MethodNodeGet, wire.MethodNodeAllocs, wire.MethodClientAllocStats, wire.MethodClientHostStats,
	wire.MethodClientFSList, wire.MethodClientFSStat, wire.MethodClientFSRead, wire.MethodAgentMonitor, wire.MethodAgentHost, wire.MethodAgentProfile,
}

// TestGetChangesNothing walks the routes: what is safe by its method makes no call that changes anything. A GET that Nomad's Go
// client sends for want of another is answered to that client only.
func TestGetChangesNothing(t *testing.T) {
	t.Parallel()
	s, fk, agent := guarded(t)
	official := map[string]string{"/v1/client/gc": wire.MethodClientGC, "/v1/client/allocation/x/gc": wire.MethodClientAllocGC}
	for _, route := range s.table() {
		path := pathOf(route)
		if strings.HasPrefix(path, "/debug/") {
			continue // net/http/pprof: it may measure for half a minute
		}
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
			for _, headers := range [][]string{
				{}, {"User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}, {"User-Agent", "curl/8.5.0"},
				{"User-Agent", "Go-http-client/1.1", "Origin", "http://evil.example"}, {"User-Agent", "Go-http-client/1.1", "Sec-Fetch-Site", "same-origin"},
				{"User-Agent", "Go-http-client/1.1", "Referer", "http://evil.example/"}, {"User-Agent", "Go-http-client/1.1", "Accept-Language", "de"},
				{"User-Agent", "Go-http-client/1.1"},
			} {
				fk.calls = nil
				w := answer(s, method, path+"?path=f&type=stdout&task=t&version=1&node_id=n&address=127.0.0.1:1&node=n&id=x", "localhost", headers...)
				for _, call := range fk.calls {
					if slices.Contains(reads, call) || method == http.MethodGet && len(headers) == 2 && headers[1] == "Go-http-client/1.1" && official[path] == call {
						continue
					}
					t.Errorf("%s %s with %q calls %s, which is not among the reads", method, path, headers, call)
				}
				if official[path] != "" && method != http.MethodOptions && len(fk.calls) == 0 && w.Code != http.StatusMethodNotAllowed {
					t.Errorf("%s %s with %q: %d %s", method, path, headers, w.Code, w.Body)
				}
			}
		}
		if agent.changes.Load() > 0 {
			t.Fatalf("%s changes the agent", path)
		}
	}
	for path, call := range official {
		fk.calls = nil
		if w := answer(s, "GET", path, "localhost", "User-Agent", "Go-http-client/1.1"); w.Code != 200 || !slices.Equal(fk.calls, []string{call}) {
			t.Errorf("the official client's GET %s: %d %s, %v", path, w.Code, w.Body, fk.calls)
		}
	}
}

// TestHosts: which hosts are an agent's.
func TestHosts(t *testing.T) {
	t.Parallel()
	cfg := testConfig(newFake())
	cfg.Hosts = []string{"Agent-1", "n1.lan.", "0.0.0.0", ""}
	cfg.AllowedHosts = []string{"nomad.example.com", "*.apps.example.com", ".dev.example.com"}
	cfg.TrustedOrigins = []string{"https://Dash.example.org:8443"}
	cfg.CertificateHost = func(host string) bool { return host == "server.global.nomad" }
	g, err := newGuard(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	allowed := func(host, proto, method string) bool {
		r := httptest.NewRequest(method, "/", nil)
		r.Host = host
		r.ProtoMajor, r.ProtoMinor = 1, int(proto[2]-'0')
		return g.allows(r)
	}
	for host, want := range map[string]bool{
		"localhost": true, "localhost:4646": true, "LOCALHOST.": true, "localhost.:80": true, "localhost:": true, "a.localhost": false,
		"127.0.0.1": true, "127.0.0.1:4646": true, "127.0.0.1.": true, "10.9.8.7": true, "127.1": false, "0x7f.1": false, "2130706433": false,
		"010.0.0.1": false, "127.0.0.1.evil.example": false,
		"[::1]": true, "[::1]:4646": true, "::1": false, "[fe80::1%eth0]:1": true, "[::ffff:127.0.0.1]": true, "[::1": false, "::1]": false,
		"[::1]x": false, "[127.0.0.1]": false, "[localhost]": false, "[localhost]:1": false, "[]": false, "1:2:3": false,
		"agent-1": true, "AGENT-1:1": true, "agent-1.": true, "agent-1..": false, "agent-2": false, "n1.lan": true, "n1": false,
		"localhost:x": false, "localhost:1:2": false, ":4646": false, ".": false, "": false, "*": false, "localhost@evil": false,
		"nomad.example.com": true, "x.nomad.example.com": false, "apps.example.com": false, "a.apps.example.com": true,
		"a.b.apps.example.com:9": true, ".apps.example.com": false, "xapps.example.com": false, "a.dev.example.com": true, "dev.example.com": false,
		"server.global.nomad": true, "server.other.nomad": false, "dash.example.org": false,
	} {
		if got := allowed(host, "1.1", "GET"); got != want {
			t.Errorf("%q: allowed %v, want %v", host, got, want)
		}
	}
	for _, c := range []struct {
		proto, method string
		want          bool
	}{{"1.0", "GET", true}, {"1.0", "OPTIONS", true}, {"1.0", "PUT", false}, {"1.1", "GET", false}, {"1.1", "PUT", false}} {
		if got := allowed("", c.proto, c.method); got != c.want {
			t.Errorf("no host, HTTP/%s %s: allowed %v", c.proto, c.method, got)
		}
	}
	origins := func(host, origin, site string) bool {
		r := httptest.NewRequest("PUT", "/", nil)
		r.Host = host
		r.Header.Set("Origin", origin)
		if site != "" {
			r.Header.Set("Sec-Fetch-Site", site)
		}
		return g.check(r) == nil
	}
	for _, c := range []struct {
		host, origin, site string
		want               bool
	}{
		{"nomad.example.com", "https://nomad.example.com", "", true}, {"NOMAD.example.com", "https://nomad.example.com", "", true},
		{"127.0.0.1:4646", "https://nomad.example.com", "", true}, {"127.0.0.1:4646", "https://x.apps.example.com", "", false},
		{"x.apps.example.com", "https://x.apps.example.com", "", true}, {"localhost:4646", "http://localhost:4646", "", true},
		{"localhost:4646", "http://localhost:4647", "", false}, {"127.0.0.1:1", "https://dash.example.org:8443", "cross-site", true},
		{"127.0.0.1:1", "https://dash.example.org", "cross-site", false}, {"127.0.0.1:1", "http://127.0.0.1:2", "same-site", false},
		{"evil.example", "https://dash.example.org:8443", "", false}, {"10.0.0.1", "http://10.0.0.2", "", false},
	} {
		if got := origins(c.host, c.origin, c.site); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	cfg.AllowedHosts = []string{"*"}
	if g, err = newGuard(&cfg); err != nil || !allowed("evil.example", "1.1", "GET") {
		t.Errorf("every host is allowed, and evil.example is not: %v", err)
	}
	if origins("evil.example", "http://other.example", "") {
		t.Error("where every host is allowed every origin is")
	}
	long := refusal(g, strings.Repeat("\x1b[31m", 1000))
	if len(long) > 1024 || strings.Contains(long, "\x1b") {
		t.Errorf("%d bytes: %q", len(long), long)
	}
	cfg.AllowedHosts = []string{"a b/c"}
	if _, err := newGuard(&cfg); err == nil {
		t.Error("a host that cannot be one")
	}
}

// refusal is what is said of a host.
func refusal(g *guard, host string) string {
	g.any = false
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = host
	err := g.check(r)
	if err == nil {
		return ""
	}
	return err.Error()
}
