package cluster

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/e2e/harness"
)

// get asks an agent and returns the status and the beginning of the body.
func get(t *testing.T, url string, headers ...string) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Scaled(30*time.Second))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// logLine makes an agent log something, again and again, until a monitor's line of it has come.
func logLine(t *testing.T, a *harness.Agent, came func() bool) {
	t.Helper()
	harness.Within(t, 20*time.Second, "a line of the log", func(context.Context) error {
		if code, body := get(t, a.HTTP+"/v1/status/leader"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		if !came() {
			return errors.New("it has not come")
		}
		return nil
	})
}

// TestHabitsAgentMonitor: the log of an agent, of a node's by way of a server, and of a server's by way of a client's agent.
func TestHabitsAgentMonitor(t *testing.T) {
	t.Parallel()
	s := harness.NewAgent(t, false, "name = \"srv\"\nlog_level = \"WARN\"\nserver {\n  enabled = true\n  bootstrap_expect = 1\n}\n")
	c := harness.NewAgent(t, false, fmt.Sprintf("name = \"cl\"\nlog_level = \"ERROR\"\nclient {\n  enabled = true\n  servers = [%q]\n}\nlimits {\n  log_monitor_max_streams = 8\n}\n", s.RPC))
	s.Start()
	c.Start()
	s.WaitReady(1)
	nodes, _, err := s.Nomad.Nodes().List(nil)
	if err != nil || len(nodes) != 1 {
		t.Fatalf("%v, %v", nodes, err)
	}
	node := nodes[0].ID
	for _, row := range []struct {
		through, of *harness.Agent
		params      map[string]string
	}{
		{s, s, map[string]string{}}, {s, s, map[string]string{"server_id": "leader"}}, {s, c, map[string]string{"node_id": node}},
		{c, c, map[string]string{}}, {c, c, map[string]string{"node_id": node}}, {c, s, map[string]string{"server_id": "srv"}},
		{c, s, map[string]string{"server_id": "srv.global"}},
	} {
		row.params["log_level"] = "debug"
		stop := make(chan struct{})
		frames, failed := row.through.Nomad.Agent().Monitor(stop, &nomad.QueryOptions{Params: row.params})
		logLine(t, row.of, func() bool {
			select {
			case f := <-frames:
				return f != nil && strings.Contains(string(f.Data), "[DEBUG] agent.http: request complete: method=GET path=/v1/status/leader")
			case err := <-failed:
				t.Fatalf("%v: %v", row.params, err)
			default:
			}
			return false
		})
		close(stop)
	}

	// The command follows a node until Ctrl-C. Beside it there is room for some, and no more.
	ctx, cancel := context.WithTimeout(t.Context(), harness.Scaled(time.Minute))
	defer cancel()
	cmd := s.Command(ctx, "monitor", "-log-level", "debug", "-node-id", node[:8], "-address", s.HTTP)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			select {
			case lines <- in.Text():
			default:
			}
		}
	}()
	logLine(t, c, func() bool {
		select {
		case line := <-lines:
			return strings.Contains(line, "[DEBUG] agent.http: request complete")
		default:
			return false
		}
	})
	refused := false
	for range 8 {
		status, _ := s.Get(ctx, "/v1/agent/monitor?plain=true&node_id="+node)
		refused = refused || status == http.StatusTooManyRequests
	}
	if !refused {
		t.Error("more monitors run than are allowed")
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for range lines { // until it ends
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("monitor ended with %v after Ctrl-C", err)
	}

	// Neither has enable_debug.
	for _, url := range []string{s.HTTP + "/v1/agent/host", s.HTTP + "/v1/agent/host?node_id=" + node, c.HTTP + "/v1/agent/host?server_id=srv", s.HTTP + "/v1/agent/pprof/heap"} {
		if code, body := get(t, url); code != http.StatusForbidden || !strings.Contains(body, "enable_debug") {
			t.Errorf("%s: %d %s", url, code, body)
		}
	}
	for url, want := range map[string]string{
		"/v1/agent/monitor?server_id=unknown.global": "500 unknown Nomad server unknown.global", "/v1/agent/monitor?log_level=loud": "400 Unknown log level",
		"/v1/agent/host?node_id=8e231cf4-ca48-43ff-b694-5801e69e22fa": "404 ", "/v1/agent/monitor?server_id=srv&node_id=" + node: "400 ",
	} {
		if code, body := get(t, s.HTTP+url); !strings.HasPrefix(fmt.Sprintf("%d %s", code, body), want) {
			t.Errorf("%s: %d %s, want %s", url, code, body, want)
		}
	}
}

// TestHabitsAgentDebug: the host, profiles and the schedulers of an agent, and what `operator debug` gathers of it.
func TestHabitsAgentDebug(t *testing.T) {
	t.Parallel()
	a := harness.NewAgent(t, true, "")
	a.Env = []string{"THE_TOKEN_OF_THE_BANK=hunter2"}
	a.Start()
	a.WaitReady(1)
	host, err := a.Nomad.Agent().Host("", "", nil)
	if err != nil || host.HostData == nil || host.HostData.OS == "" || host.HostData.Environment["PATH"] == "" {
		t.Fatalf("%+v, %v", host, err)
	}
	if got := host.HostData.Environment["THE_TOKEN_OF_THE_BANK"]; got != "<redacted>" {
		t.Errorf("a variable that nobody knows is shown as %q", got)
	}
	if raw, err := a.Nomad.Agent().CPUProfile(nomad.PprofOptions{Seconds: 1}, nil); err != nil || !bytes.HasPrefix(raw, []byte{0x1f, 0x8b}) {
		t.Errorf("profile: %v, %d bytes", err, len(raw))
	}
	if _, err := a.Nomad.Agent().CPUProfile(nomad.PprofOptions{Seconds: 1, ServerID: "unknown.global"}, nil); err == nil || !strings.Contains(err.Error(), "500 (unknown Nomad server unknown.global)") {
		t.Errorf("profile of an unknown server: %v", err)
	}
	if _, err := a.Nomad.Agent().Lookup("invalid", nomad.PprofOptions{}, nil); err == nil || !strings.Contains(err.Error(), "Unexpected response code: 404") {
		t.Errorf("an unknown profile: %v", err)
	}
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "http://evil.example"}, {"User-Agent", "Mozilla/5.0", "Referer", "http://evil.example/"}} {
		for _, path := range []string{"/v1/agent/pprof/profile?seconds=300", "/v1/agent/monitor", "/v1/agent/host", "/debug/pprof/profile"} {
			if code, body := get(t, a.HTTP+path, headers...); code != http.StatusForbidden {
				t.Errorf("%s for a page, %q: %d %.100s", path, headers, code, body)
			}
		}
	}
	debugSchedulers(t, a)

	dir := t.TempDir()
	file := a.JobFile("secret", "job \"secret\" {\n  group \"g\" {\n    task \"t\" {\n      driver = \"raw_exec\"\n      env {\n        PASSWORD = \"hunter2\"\n      }\n"+
		"      config {\n        command = \"/bin/sleep\"\n        args = [\"1000\"]\n      }\n    }\n  }\n}\n")
	if out, code := a.CLI("job", "run", "-detach", file); code != 0 {
		t.Fatalf("job run: %d %s", code, out)
	}
	a.WaitRunning("secret", 1, 20*time.Second)
	out, code := a.CLI("operator", "debug", "-duration", "2s", "-interval", "2s", "-event-topic", "*", "-output", dir)
	if code != 0 || strings.Contains(out, "Not gathered") {
		t.Fatalf("operator debug: exit code %d\n%s", code, out)
	}
	made, err := filepath.Glob(filepath.Join(dir, "nomadish-debug-*"))
	if err != nil || len(made) != 1 {
		t.Fatalf("%v, %v", made, err)
	}
	for name, want := range map[string]string{
		"nomad/0000/jobs.json": `"secret"`, "nomad/0000/allocations.json": "secret.g[0]", "cluster/agent-self.json": "dc1", "cluster/members.json": "e2e.global",
		"server/e2e.global/monitor.log": "[DEBUG]", "client/*/monitor.log": "[DEBUG]", "client/*/agent-host.json": "<redacted>", "server/*/profile_0000.prof": "\x1f\x8b",
		"server/*/goroutine_0000.txt": "goroutine ", "cluster/eventstream.json": `"JobRegistered"`, "cluster/raft-configuration.json": "Servers",
	} {
		paths, err := filepath.Glob(filepath.Join(made[0], name))
		if err != nil || len(paths) != 1 {
			t.Errorf("%s: %v, %v", name, paths, err)
			continue
		}
		if raw, err := os.ReadFile(paths[0]); err != nil || !bytes.Contains(raw, []byte(want)) {
			t.Errorf("%s lacks %q: %v, %.200q", name, want, err, raw)
		}
	}
	if err := filepath.WalkDir(made[0], func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte("hunter2")) {
			t.Errorf("%s has a secret", path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	debugInterrupted(t, a)
}

// debugSchedulers stops and starts the workers of a running server.
func debugSchedulers(t *testing.T, a *harness.Agent) {
	t.Helper()
	set := func(n int, types ...string) {
		t.Helper()
		want := nomad.SchedulerWorkerPoolArgs{NumSchedulers: n, EnabledSchedulers: append(types, "_core")}
		got, err := a.Nomad.Agent().SetSchedulerWorkerConfig(want, nil)
		if err != nil || got.NumSchedulers != n {
			t.Fatalf("%+v, %v", got, err)
		}
		info, err := a.Nomad.Agent().GetSchedulerWorkersInfo(nil)
		if err != nil || len(info.Schedulers) != n {
			t.Errorf("%d workers are shown, %v", len(info.Schedulers), err)
		}
	}
	set(0, "service", "batch")
	if _, _, err := a.Nomad.Jobs().Register(harness.OfficialJob("later", "sleep 1000"), nil); err != nil {
		t.Fatal(err)
	}
	set(3, "batch", "system")
	evals, _, err := a.Nomad.Evaluations().List(nil)
	if err != nil || len(evals) != 1 || evals[0].Status != "pending" {
		t.Errorf("with no worker for it an evaluation is %+v, %v", evals, err)
	}
	set(2, "service", "batch", "system", "sysbatch")
	harness.WaitOfficialRunning(t, a.Nomad, "later", 1)
}

// debugInterrupted ends `operator debug` early: what was gathered is an archive all the same.
func debugInterrupted(t *testing.T, a *harness.Agent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Scaled(time.Minute))
	defer cancel()
	cmd := a.Command(ctx, "operator", "debug", "-duration", "1h", "-address", a.HTTP)
	cmd.Dir = t.TempDir()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	made := ""
	for in := bufio.NewScanner(out); in.Scan(); {
		if strings.HasPrefix(in.Text(), "Snapshot 0000") {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
		if rest, ok := strings.CutPrefix(in.Text(), "Saved "); ok {
			made, _, _ = strings.Cut(rest, " ")
		}
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d after Ctrl-C", code)
	}
	file, err := os.Open(filepath.Join(cmd.Dir, made))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // a test
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for from := tar.NewReader(zip); ; files++ {
		if _, err := from.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if files < 5 {
		t.Errorf("%d files in the archive", files)
	}
}
