package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/e2e/harness"
)

// chrome is what every browser says of itself in some form, and a web page cannot leave out.
const chrome = "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"

// send sends a request byte by byte as it stands, so that headers can be what no HTTP library sends. It reads at most 64 KiB
// of the answer's body. headers has Host only where the request shall have one.
func send(a *harness.Agent, version, method, path, body string, headers ...string) (code int, text string) {
	a.T.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.HTTP, "http://"))
	if err != nil {
		a.T.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(harness.Scaled(20 * time.Second)))
	head := method + " " + path + " HTTP/" + version + "\r\nConnection: close\r\n"
	if body != "" {
		head += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	for _, h := range headers {
		head += h + "\r\n"
	}
	var wg sync.WaitGroup
	defer func() {
		_ = conn.Close()
		wg.Wait()
	}()
	wg.Go(func() { _, _ = io.WriteString(conn, head+"\r\n"+body) }) // the answer may come, and the connection end, before all is sent
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		a.T.Fatalf("%s %s %q: %v", method, path, headers, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	if resp.StatusCode == http.StatusOK && strings.HasPrefix(path, "/v1/event/stream") {
		return resp.StatusCode, "" // it has no end
	}
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return resp.StatusCode, string(raw)
}

// changes are requests that change state, as a web page would make them.
func changes(touched, schedulerConfig string) [][3]string {
	job := `{"Job":{"ID":"evil","Type":"batch","Datacenters":["*"],"TaskGroups":[{"Name":"g","Tasks":[{"Name":"t","Driver":"raw_exec",` +
		`"Config":{"command":"/usr/bin/touch","args":["` + touched + `"]},"Resources":{"CPU":20,"MemoryMB":16}}]}]}}`
	return [][3]string{
		{"POST", "/v1/jobs", job},
		{"PUT", "/v1/job/evil", job},
		{"POST", "/v1/jobs/parse", `{"JobHCL":"job \"x\" {}"}`},
		{"DELETE", "/v1/job/keep?purge=true", ""},
		{"POST", "/v1/operator/scheduler/configuration", schedulerConfig},
		{"POST", "/v1/agent/join?address=127.0.0.1:9", ""},
		{"POST", "/v1/agent/force-leave?node=e2e", ""},
		{"POST", "/v1/operator/snapshot", "not an archive"},
		{"POST", "/v1/agent/keyring/install", `{"Key":"YWFhYWFhYWFhYWFhYWFhYQ=="}`},
		{"PUT", "/v1/system/gc", ""},
		{"POST", "/v1/client/gc", ""},
		{"DELETE", "/v1/operator/raft/peer?id=x", ""},
		{"PATCH", "/v1/jobs", ""},
		{"POST", "/v1/nothing", ""},
		{"POST", "/debug/pprof/symbol", ""},
	}
}

// TestDoorWebPage: a web page that the user of this machine looks at neither changes nor reads anything, whether it calls the
// agent by its address or by a name of its own that it has resolve to the agent's address; everybody else is served as before.
func TestDoorWebPage(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "http_config {\n  allowed_hosts = [\"nomad.example.com\", \"*.apps.example.com\"]\n"+
		"  trusted_origins = [\"https://dash.example.org:8443\"]\n}\n")
	if _, _, err := a.Nomad.Jobs().Register(harness.OfficialJob("keep", "sleep 1000"), nil); err != nil {
		t.Fatal(err)
	}
	harness.WaitOfficialRunning(t, a.Nomad, "keep", 1)
	addr := strings.TrimPrefix(a.HTTP, "http://")
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	touched := filepath.Join(a.Dir, "touched")

	refused := func(what, method, path, body string, code int, says string, headers ...string) {
		t.Helper()
		got, text := send(a, "1.1", method, path, body, headers...)
		if got != code || method != "HEAD" && !strings.Contains(text, says) || len(text) > 1024 {
			t.Errorf("%s: %s %s: %d %.300q, want %d %q", what, method, path, got, text, code, says)
		}
	}
	for _, c := range changes(touched, `{"SchedulerAlgorithm":"spread"}`) {
		method, path, body := c[0], c[1], c[2]
		refused("a page's own name", method, path, body, 403, "evil.example",
			"Host: evil.example:"+port, "Origin: http://evil.example", "Content-Type: text/plain", chrome)
		refused("rebound, of its own origin", method, path, body, 403, "allowed_hosts",
			"Host: evil.example:"+port, "Origin: http://evil.example:"+port, "Sec-Fetch-Site: same-origin", chrome)
		refused("from another site", method, path, body, 403, "trusted_origins",
			"Host: "+addr, "Origin: http://evil.example", "Sec-Fetch-Site: cross-site", "Content-Type: text/plain", chrome)
		refused("from another site, without Sec-Fetch-Site", method, path, body, 403, "trusted_origins",
			"Host: "+addr, "Origin: http://evil.example", "Content-Type: text/plain", chrome)
		refused("from another port of this machine", method, path, body, 403, "trusted_origins",
			"Host: localhost:"+port, "Origin: http://localhost:3000", "Sec-Fetch-Site: same-site", chrome)
		refused("from a page without an origin", method, path, body, 403, "trusted_origins",
			"Host: "+addr, "Origin: null", "Content-Type: text/plain", chrome)
	}
	for _, path := range []string{
		"/v1/nodes", "/v1/jobs", "/v1/operator/snapshot", "/v1/agent/self", "/v1/agent/keyring/list", "/v1/event/stream", "/v1/metrics",
		"/debug/pprof/", "/debug/pprof/cmdline", "/v1/nothing", "/", "/v1/client/gc", "/v1/acl/policies", "/v1/job/%00",
	} {
		refused("rebound", "GET", path, "", 403, `"evil.example`, "Host: evil.example:"+port, chrome)
		refused("rebound", "HEAD", path, "", 403, "", "Host: evil.example:"+port, chrome)
		refused("by an absolute address", "GET", "http://evil.example"+path, "", 403, `"evil.example`, "Host: "+addr)
	}
	for _, host := range []string{
		"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil-localhost", "e2e.evil.example", "nomad.example.com.evil.example",
		"apps.example.com", "a.b.evilapps.example.com", "2130706433", "127.1", "0x7f000001", "1:2", "[::1", "[localhost]", "*", "", strings.Repeat("x", 8000),
	} {
		refused("Host "+host[:min(20, len(host))], "PUT", "/v1/system/gc", "", 403, "allowed_hosts", "Host: "+host)
	}
	// What the official client sends as GET is not to be had by an image, a link or a script of a page, in browsers without Sec-Fetch-Site too.
	for _, path := range []string{"/v1/client/gc", "/v1/client/allocation/11111111-2222-3333-4444-555555555555/gc"} {
		for _, browser := range [][]string{
			{chrome}, {"User-Agent: Opera/9.80"}, {"User-Agent: curl/8.0"}, {"User-Agent:"}, {},
			{"User-Agent: Go-http-client/1.1", "Sec-Fetch-Site: cross-site"}, {"User-Agent: Go-http-client/1.1", "Origin: http://evil.example"},
			{"User-Agent: Go-http-client/1.1", "Referer: http://evil.example/"}, {"User-Agent: Go-http-client/1.1", "Cookie: a=b"},
			{"User-Agent: Go-http-client/1.1", "Accept-Language: en"},
		} {
			refused("a GET", "GET", path, "", 405, "PUT", append(browser, "Host: "+addr)...)
		}
		refused("a HEAD", "HEAD", path, "", 405, "", "Host: "+addr, "User-Agent: Go-http-client/1.1")
	}
	for _, op := range []string{"install", "use", "remove"} {
		for _, method := range []string{"GET", "HEAD"} {
			refused("a keyring's change by "+method, method, "/v1/agent/keyring/"+op, `{"Key":"YWFhYWFhYWFhYWFhYWFhYQ=="}`, 405, "", "Host: "+addr)
		}
	}

	// Nothing of that was done.
	conf, _, err := a.Nomad.Operator().SchedulerGetConfiguration(nil)
	if err != nil || conf.SchedulerConfig.SchedulerAlgorithm != nomad.SchedulerAlgorithmBinpack {
		t.Errorf("the scheduler's configuration: %+v, %v", conf, err)
	}
	if jobs, _, err := a.Nomad.Jobs().List(nil); err != nil || len(jobs) != 1 || jobs[0].ID != "keep" {
		t.Errorf("jobs: %+v, %v", jobs, err)
	}
	if _, err := os.Stat(touched); err == nil {
		t.Error("the page's job ran")
	}
	doorServed(t, a, addr, port)
}

// doorServed: who is not a web page is served, also behind a proxy and by the names that the agent knows.
func doorServed(t *testing.T, a *harness.Agent, addr, port string) {
	t.Helper()
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for what, headers := range map[string][]string{
		"curl":                         {"Host: " + addr, "User-Agent: curl/8.5.0", "Accept: */*"},
		"no browser, nothing said":     {"Host: " + addr},
		"localhost":                    {"Host: localhost:" + port},
		"localhost, written otherwise": {"Host: LocalHost.:" + port},
		"localhost without a port":     {"Host: localhost"},
		"IPv6":                         {"Host: [::1]:" + port},
		"IPv6 without a port":          {"Host: [::1]"},
		"IPv6, written otherwise":      {"Host: [0:0:0:0:0:0:0:1]:" + port},
		"another IP address":           {"Host: 10.1.2.3:4646"},
		"the node's name":              {"Host: e2e:" + port},
		"the host's name":              {"Host: " + own + ":" + port},
		"a proxy":                      {"Host: nomad.example.com"},
		"a page behind a proxy":        {"Host: Nomad.Example.com", "Origin: https://nomad.example.com", "Sec-Fetch-Site: same-origin", chrome},
		"a page behind a proxy, without Sec-Fetch-Site": {"Host: nomad.example.com", "Origin: https://nomad.example.com", chrome},
		"a page behind a proxy that changes Host":       {"Host: " + addr, "Origin: https://nomad.example.com", chrome},
		"a name of a wildcard":                          {"Host: nomad.apps.example.com:443"},
		"a trusted page":                                {"Host: " + addr, "Origin: https://dash.example.org:8443", "Sec-Fetch-Site: cross-site", chrome},
		"the user by the address bar":                   {"Host: " + addr, "Sec-Fetch-Site: none", chrome},
	} {
		if code, text := send(a, "1.1", "PUT", "/v1/system/gc", "", headers...); code != 200 {
			t.Errorf("%s: PUT: %d %s", what, code, text)
		}
		if code, text := send(a, "1.1", "GET", "/v1/nodes", "", headers...); code != 200 {
			t.Errorf("%s: GET: %d %s", what, code, text)
		}
	}
	if code, text := send(a, "1.0", "GET", "/v1/agent/health", ""); code != 200 {
		t.Errorf("a health check of HTTP/1.0 without Host: %d %s", code, text)
	}
	if code, text := send(a, "1.0", "PUT", "/v1/system/gc", ""); code != 403 {
		t.Errorf("a change of HTTP/1.0 without Host: %d %s", code, text)
	}
	stub := harness.WaitOfficialRunning(t, a.Nomad, "keep", 1)[0]
	node := stub.NodeID
	if _, _, err := a.Nomad.Jobs().Deregister("keep", false, nil); err != nil {
		t.Fatal(err)
	}
	a.WaitInStatus("keep", "complete", 1, 20*time.Second)
	if err := a.Nomad.Allocations().GC(&nomad.Allocation{ID: stub.ID}, nil); err != nil {
		t.Errorf("the official client collects an allocation: %v", err)
	}
	if err := a.Nomad.Nodes().GC(node, nil); err != nil {
		t.Errorf("the official client collects on a node: %v", err)
	}

	// The command line, by names. The agent stands in for the proxy, so that a name need not resolve.
	for _, name := range []string{"nomad.example.com", "localhost", "e2e"} {
		if out, code := cliProxied(a, "http://"+name+":"+port, "node", "status"); code != 0 {
			t.Errorf("the command line by the name %s: %d %s", name, code, out)
		}
	}
	out, code := cliProxied(a, "http://agent7.lan:"+port, "node", "status")
	for _, says := range []string{"403", `"agent7.lan"`, "http_config", "allowed_hosts"} {
		if code == 0 || !strings.Contains(out, says) {
			t.Errorf("the command line by an unknown name: %d %s; want %q", code, out, says)
		}
	}
}

// cliProxied runs the command line against an address that it reaches by the agent as its proxy.
func cliProxied(a *harness.Agent, address string, args ...string) (out string, code int) {
	a.T.Helper()
	ctx, cancel := context.WithTimeout(a.T.Context(), harness.Scaled(10*time.Second))
	defer cancel()
	cmd := exec.CommandContext(ctx, harness.Bin, args...)
	cmd.Env = append(os.Environ(), "NOMADISH_ADDR="+address, "http_proxy="+a.HTTP, "HTTP_PROXY="+a.HTTP, "no_proxy=", "NO_PROXY=")
	raw, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		a.T.Fatal(err)
	}
	return string(raw), cmd.ProcessState.ExitCode()
}

// TestDoorSlowBody: a hundred requests whose bodies come a byte at a time are over soon after http_body_timeout, whatever they
// ask for, and their connections are closed. A request that only waits for a response is not ended.
func TestDoorSlowBody(t *testing.T) {
	t.Parallel()
	const limit = time.Second
	a := harness.StartDev(t, fmt.Sprintf("limits {\n  http_body_timeout = %q\n  http_max_conns_per_client = 500\n}\n", limit))
	addr := strings.TrimPrefix(a.HTTP, "http://")

	// A blocking query and an event stream, both with a whole body of their own, that outlive the limit.
	nodes, _, err := a.Nomad.Nodes().List(nil)
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan int, 1)
	go func() {
		code, _ := send(a, "1.1", "GET", "/v1/nodes?index=100000000&wait=2500ms", `{"no":"matter"}`, "Host: "+addr)
		waited <- code
	}()
	stream, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close() //nolint:errcheck // read only
	if _, err := fmt.Fprintf(stream, "GET /v1/event/stream HTTP/1.1\r\nHost: %s\r\nContent-Length: 2\r\n\r\n{}", addr); err != nil {
		t.Fatal(err)
	}

	kinds := []struct {
		request string // its head
		code    string // of the answer; empty: whatever it is
	}{
		{"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{", " 408 "},
		{"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", " 408 "},
		{"PUT /v1/operator/snapshot HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n", " 408 "},
		{"PUT /v1/operator/snapshot HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", " 408 "},
		{"GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", " 408 "},
		{"GET /v1/event/stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", " 408 "},
		{"PUT /v1/system/gc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", ""},
		{"PUT /v1/nothing HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", ""},
		{"PATCH /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", ""},
		{"PUT /v1/jobs HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000\r\n\r\n", ""},
	}
	var wg sync.WaitGroup
	begun := time.Now()
	for i := range 100 {
		kind := kinds[i%len(kinds)]
		wg.Go(func() {
			answer, err := trickle(addr, kind.request, harness.Scaled(10*time.Second))
			if err != nil || !strings.Contains(answer, kind.code) {
				t.Errorf("after %s: %v, answered %.200q: %.80q", time.Since(begun), err, answer, kind.request)
			}
		})
	}
	wg.Wait()
	t.Logf("all were ended after %s", time.Since(begun))

	if code := <-waited; code != 200 {
		t.Errorf("the blocking query: %d", code)
	}
	if _, err := a.Nomad.Nodes().ToggleEligibility(nodes[0].ID, false, nil); err != nil {
		t.Fatal(err)
	}
	_ = stream.SetReadDeadline(time.Now().Add(harness.Scaled(10 * time.Second)))
	lines := bufio.NewScanner(stream)
	for lines.Scan() && !strings.Contains(lines.Text(), "NodeEligibility") {
	}
	if err := lines.Err(); err != nil || !strings.Contains(lines.Text(), "NodeEligibility") {
		t.Errorf("the event stream, long after its request: %q, %v", lines.Text(), err)
	}
}

// TestDoorBigBody: a body that is too large, or nested too deeply, is refused with what is wrong, and the agent goes on.
func TestDoorBigBody(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "limits {\n  http_max_body_bytes = 2097152\n}\n")
	addr := strings.TrimPrefix(a.HTTP, "http://")
	deep := strings.Repeat("[", 1<<20)
	for what, row := range map[string]struct {
		body string
		code int
		says string
	}{
		"too large":        {`{"Job":"` + strings.Repeat("x", 3<<20) + `"}`, 413, "2097152"},
		"nested":           {deep[:100_000], 400, "at most 200"},
		"nested further":   {deep, 400, "objects and lists"},
		"nested in a job":  {`{"Job":{"ID":"x","Meta":` + deep + `}}`, 400, ""},
		"nested, unknown":  {`{"Job":{"ID":"x","Nothing":` + deep[:1<<19] + strings.Repeat("]", 1<<19) + `}}`, 400, ""},
		"large and nested": {strings.Repeat(`{"a":`, 1<<19), 413, "2097152"},
	} {
		code, text := send(a, "1.1", "PUT", "/v1/jobs", row.body, "Host: "+addr)
		if code != row.code || !strings.Contains(text, row.says) || len(text) > 1024 {
			t.Errorf("%s: %d %.200q, want %d %q", what, code, text, row.code, row.says)
		}
	}
	if _, _, err := a.Nomad.Nodes().List(nil); err != nil {
		t.Error(err)
	}
}

// trickle sends a request's head and then its body a byte at a time until the connection is closed, and returns what was answered
// before. It fails if the connection is not closed within limit.
func trickle(addr, head string, limit time.Duration) (answer string, err error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // it is to be closed by the other side
	_ = conn.SetDeadline(time.Now().Add(limit))
	if _, err := io.WriteString(conn, head); err != nil {
		return "", err
	}
	piece := " "
	if strings.Contains(head, "chunked") {
		piece = "1\r\n \r\n"
	}
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ended:
				return
			}
			if _, err := io.WriteString(conn, piece); err != nil {
				return
			}
		}
	})
	raw, err := io.ReadAll(conn) // to the end of the connection
	close(ended)
	wg.Wait()
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil // reset, as bytes were on their way
	}
	return string(raw), err
}
