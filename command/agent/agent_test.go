package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/nomadish/nomadish/command/agent/config"
	httpapi "github.com/nomadish/nomadish/command/agent/http"
	"github.com/nomadish/nomadish/command/agent/inspect"
	"github.com/nomadish/nomadish/command/agent/jobparse"
	"github.com/nomadish/nomadish/internal/leaks"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// memberlist's probe of a member that has gone waits for its answer through the shutdown, up to its interval.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == jobparse.Command { // the test binary also parses job files
		os.Exit(jobparse.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	leaks.Main(m, goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"))
}

// world is a server and a client that only remember what was done to them.
type world struct {
	mu     sync.Mutex
	events []string
	fail   string // "server" or "client": does not start
	dirs   clientDirs
	to     []string // the servers that the client was told
}

func (w *world) did(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, what)
}

// Call implements httpapi.Backend.
func (w *world) Call(_ context.Context, method string, _, reply any) error {
	if s, ok := reply.(*structs.StringReply); ok && method == wire.MethodLeader {
		s.Value = "127.0.0.1:1"
	}
	return nil
}

// Stream implements httpapi.Backend.
func (w *world) Stream(context.Context, string, any) (wire.Receiver, error) {
	return nil, errors.New("no streams here")
}

func (w *world) parts() parts {
	return parts{
		server: func(*config.Config, *wire.TLS, *inspect.Inspector, hclog.Logger) (*serverPart, error) {
			if w.fail == "server" {
				return nil, errors.New("server: the disk is full")
			}
			w.did("start server")
			return &serverPart{
				Backend: w, addr: "127.0.0.1:1", bound: "127.0.0.1:1", clients: "127.0.0.1:2",
				stats: func() map[string]map[string]string { return map[string]map[string]string{"nomad": {"server": "true"}} },
				stop: func(_ context.Context, leave bool) error {
					w.did(map[bool]string{true: "leave", false: "stop"}[leave] + " server")
					return nil
				},
			}, nil
		},
		client: func(_ *config.Config, dirs clientDirs, servers []string, _ string, _ *wire.TLS, _ *inspect.Inspector, _ hclog.Logger) (*clientPart, error) {
			if w.fail == "client" {
				return nil, errors.New("client: no such device")
			}
			w.did("start client")
			w.dirs, w.to = dirs, servers
			return &clientPart{
				nodeID: "the-node", gossip: "127.0.0.1:3", servers: func() []string { return servers }, setServers: func([]string) error { return nil },
				stats: func() map[string]map[string]string { return map[string]map[string]string{"client": {}} },
				stop: func(_ context.Context, end bool) error {
					w.did(map[bool]string{true: "stop client and tasks", false: "stop client"}[end])
					return nil
				},
			}, nil
		},
		remote: func(func() []string, *wire.TLS, hclog.Logger) (httpapi.Backend, func()) {
			w.did("start remote")
			return w, func() { w.did("stop remote") }
		},
	}
}

// output collects what the agent says.
type output struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	more chan struct{} // closed when something is said
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func (o *output) next() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more == nil {
		o.more = make(chan struct{})
	}
	return o.buf.String(), o.more
}

// awaitText waits until the agent has said something.
func (o *output) awaitText(t *testing.T, want string) string {
	t.Helper()
	return o.awaitAfter(t, 0, want)
}

// awaitAfter waits until the agent has said something beyond its first bytes.
func (o *output) awaitAfter(t *testing.T, past int, want string) string {
	t.Helper()
	late := time.After(2 * time.Minute)
	for {
		text, more := o.next()
		if strings.Contains(text[past:], want) {
			return text
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("never said %q:\n%s", want, text)
		}
	}
}

// running is an agent under test.
type running struct {
	out, err *output
	signals  chan os.Signal
	code     chan int
	addr     string
}

func launch(t *testing.T, w *world, args ...string) *running {
	t.Helper()
	return launchParts(t, w.parts(), args...)
}

func launchParts(t *testing.T, p parts, args ...string) *running {
	t.Helper()
	r := &running{out: &output{}, err: &output{}, signals: make(chan os.Signal, 2), code: make(chan int, 1)}
	go func() { r.code <- run(t.Context(), args, r.out, r.err, p, r.signals) }()
	text := r.out.awaitText(t, "Log data will stream in below")
	found := regexp.MustCompile(`Advertise Addrs: HTTP: (\S+?)(;|\n)`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no address in\n%s", text)
	}
	r.addr = found[1]
	return r
}

func (r *running) get(t *testing.T, path string) (int, string) {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// A -dev agent serves, tells its bound address, and takes everything with it.
func TestDev(t *testing.T) {
	w := &world{}
	r := launch(t, w, "-dev", "-http-port=0", "-node=n1", "-dc=dc7", "-meta=a=b")
	if code, body := r.get(t, "/v1/status/leader"); code != 200 || body != `"127.0.0.1:1"` {
		t.Errorf("leader: %d %s", code, body)
	}
	_, body := r.get(t, "/v1/agent/self")
	var self struct {
		Config struct {
			Datacenter, Region, NodeName string
			AdvertiseAddrs               struct{ HTTP, RPC, ClientGossip string }
			NormalizedAddrs              struct{ HTTP []string }
		} `json:"config"`
		Stats map[string]any `json:"stats"`
	}
	if err := json.Unmarshal([]byte(body), &self); err != nil {
		t.Fatal(err)
	}
	c := self.Config
	if c.Datacenter != "dc7" || c.Region != "global" || c.NodeName != "n1" || c.AdvertiseAddrs.HTTP != r.addr || c.AdvertiseAddrs.ClientGossip != "127.0.0.1:2" || c.NormalizedAddrs.HTTP[0] != r.addr {
		t.Errorf("self: %s", body)
	}
	if self.Stats["client"] == nil || self.Stats["nomad"] == nil {
		t.Errorf("stats: %v", self.Stats)
	}
	for path, want := range map[string]string{
		"/v1/metrics": `"Gauges":[`, "/v1/metrics?format=prometheus": "go_goroutines", "/debug/pprof/": "profiles",
	} {
		if code, body := r.get(t, path); code != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s", path, code, body)
		}
	}
	dir := filepath.Dir(w.dirs.state)
	if _, err := os.Stat(dir); err != nil || filepath.Join(dir, "alloc") != w.dirs.alloc {
		t.Errorf("directories %+v: %v", w.dirs, err)
	}
	if len(w.to) != 1 || w.to[0] != "127.0.0.1:1" {
		t.Errorf("client's servers: %v", w.to)
	}
	r.signals <- syscall.SIGINT
	if code := <-r.code; code != 0 {
		t.Errorf("exit %d: %s", code, r.err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory stayed: %v", err)
	}
	if got := strings.Join(w.events, ", "); got != "start server, start client, stop client and tasks, stop server" {
		t.Error(got)
	}
	if out := r.out.String(); strings.Contains(out, "WARNING") || !strings.Contains(out, "Node Id: the-node") {
		t.Errorf("said:\n%s", out)
	}
}

// An agent with a client only answers through its servers.
func TestClientOnly(t *testing.T) {
	w := &world{}
	dir := t.TempDir()
	r := launch(t, w, "-client", "-servers=a:1, b:2", "-servers=c:3", "-bind=127.0.0.1", "-http-port=0", "-data-dir="+dir)
	if code, _ := r.get(t, "/v1/jobs"); code != 200 {
		t.Errorf("jobs: %d", code)
	}
	if got := strings.Join(w.to, " "); got != "a:1 b:2 c:3" || w.dirs.state != filepath.Join(dir, "client") {
		t.Errorf("%s %+v", got, w.dirs)
	}
	if text, _ := r.out.next(); !strings.Contains(text, "Advertise Addrs: HTTP: "+r.addr+"; Client gossip: 127.0.0.1:3\n") {
		t.Errorf("the clients' gossip is not named:\n%s", text)
	}
	r.signals <- syscall.SIGTERM
	if code := <-r.code; code != 0 {
		t.Errorf("exit %d", code)
	}
	if got := strings.Join(w.events, ", "); got != "start client, start remote, stop client, stop remote" {
		t.Error(got)
	}
}

// SIGHUP takes over the log level; a broken file leaves the old configuration.
func TestReload(t *testing.T) {
	w := &world{}
	file := filepath.Join(t.TempDir(), "a.hcl")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("leave_on_terminate = true\nlog_level = \"info\"\nlog_file = \"x\"")
	r := launch(t, w, "-config="+file, "-server", "-bind=127.0.0.1", "-http-port=0", "-data-dir="+t.TempDir())
	if out := r.out.String(); !strings.Contains(out, "WARNING: "+file+":3: log_file: accepted, but has no effect yet") || !strings.Contains(out, "Loaded configuration from "+file) {
		t.Errorf("said:\n%s", out)
	}
	r.get(t, "/v1/jobs")
	if strings.Contains(r.out.String(), "request complete") {
		t.Error("debug lines at level info")
	}
	secret := strings.Repeat("c2VjcmV0", 5) + "c2U=" // 32 bytes
	write("log_level = \"debug\"\nserver {\n num_schedulers = 7\n encrypt = \"" + secret + "\"\n server_join { retry_join = [\"127.0.0.2\"] }\n}\nclient {\n meta {\n a = \"b\"\n }\n}")
	r.signals <- syscall.SIGHUP
	r.out.awaitText(t, "configuration reloaded")
	r.out.awaitText(t, "client.meta, leave_on_terminate, server.encrypt, server.num_schedulers, server.server_join.retry_join")
	if strings.Contains(r.out.String(), secret) {
		t.Error("a key is in the log")
	}
	r.get(t, "/v1/jobs")
	r.out.awaitText(t, "request complete")
	write("log_lvel = \"debug\"")
	r.signals <- syscall.SIGHUP
	r.out.awaitText(t, "log_lvel: unknown; did you mean")
	r.signals <- syscall.SIGTERM
	if code := <-r.code; code != 0 {
		t.Errorf("exit %d", code)
	}
	if got := strings.Join(w.events, ", "); got != "start server, leave server" {
		t.Error(got)
	}
}

// An agent that others can reach says so at its start, and one that listens on loopback by default says that.
func TestExposed(t *testing.T) {
	const alone = "Only this machine can reach the agent"
	for flag, want := range map[string]bool{"-log-level=INFO": true, "-bind=127.0.0.1": false} {
		r := launch(t, &world{}, "-server", "-http-port=0", "-data-dir="+t.TempDir(), flag)
		if out := r.out.String(); strings.Contains(out, alone) != want || strings.Contains(out, "WARNING: other") {
			t.Errorf("%s: said:\n%s", flag, out)
		}
		r.signals <- syscall.SIGINT
		if code := <-r.code; code != 0 {
			t.Errorf("exit %d", code)
		}
	}
	r := launch(t, &world{}, "-dev", "-bind=0.0.0.0", "-insecure", "-http-port=0")
	if out := r.out.String(); !strings.Contains(out, "WARNING: other machines can reach this agent (HTTP ") {
		t.Errorf("said:\n%s", out)
	}
	r.signals <- syscall.SIGINT
	if code := <-r.code; code != 0 {
		t.Errorf("exit %d", code)
	}
}

// What cannot start says why, exits 1, and leaves nothing behind.
func TestNoStart(t *testing.T) {
	busy := launch(t, &world{}, "-dev", "-http-port=0")
	_, port, _ := strings.Cut(busy.addr, ":")
	f := func(w *world, want string, args ...string) {
		t.Helper()
		var stdout, stderr output
		if code := run(t.Context(), args, &stdout, &stderr, w.parts(), nil); code != 1 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%q: exit %d, %q; want %q", args, code, stderr.String(), want)
		}
	}
	f(&world{}, "neither is set")
	f(&world{}, "there is no flag -sevrer; did you mean -server? (", "-sevrer")
	f(&world{}, "takes no arguments", "-dev", "now")
	f(&world{}, "must be KEY=VALUE", "-dev", "-meta=x")
	f(&world{}, "must be a whole number", "-dev", "-http-port=x")
	f(&world{}, "flag -data-dir: data_dir \"x\": must be an absolute path", "-server", "-data-dir=x")
	f(&world{}, "configuration /nowhere.hcl: no such file", "-config=/nowhere.hcl")
	f(&world{}, "is another agent running?", "-dev", "-http-port="+port)
	f(&world{fail: "server"}, "Error starting agent: server: the disk is full", "-dev", "-http-port=0")
	f(&world{fail: "client"}, "Error starting agent: client: no such device", "-dev", "-http-port=0")
	failed := &world{fail: "client"}
	f(failed, "no such device", "-dev", "-http-port=0")
	if got := strings.Join(failed.events, ", "); got != "start server, stop server" {
		t.Error(got)
	}
	busy.signals <- syscall.SIGINT
	<-busy.code

	var stdout, stderr output
	if code := run(t.Context(), []string{"-h"}, &stdout, &stderr, (&world{}).parts(), nil); code != 0 || !strings.Contains(stdout.String(), "Usage: nomadish agent") {
		t.Errorf("help: %d %s", code, stdout.String())
	}
}

// Every flag is in the help, and every flag of the help is one.
func TestUsage(t *testing.T) {
	for _, found := range regexp.MustCompile(`(?m)^  -([a-z-]+)(=\S+)?`).FindAllStringSubmatch(Usage, -1) {
		value := map[string]string{"": "", "N": "=1", "PORT": "=1", "KEY=VALUE": "=a=b", "TIME": "=1s"}
		v, ok := value[strings.TrimPrefix(found[2], "=")]
		if !ok {
			v = "=x"
		}
		if _, err := parseFlags([]string{"-" + found[1] + v}); err != nil {
			t.Errorf("-%s: %v", found[1], err)
		}
	}
}

func TestAdvertised(t *testing.T) {
	f := func(stated, bound, want string) {
		t.Helper()
		if got, err := advertised(stated, bound); err != nil || got != want {
			t.Errorf("%q %q: %q %v, want %q", stated, bound, got, err, want)
		}
	}
	f("", "127.0.0.1:4646", "127.0.0.1:4646")
	f("10.0.0.1", "0.0.0.0:4646", "10.0.0.1:4646")
	f("10.0.0.1:80", "0.0.0.0:4646", "10.0.0.1:80")
	f("host", "[::1]:1", "host:1")
	f("[::1]", "127.0.0.1:1", "[::1]:1")
	got, err := advertised("", "0.0.0.0:4646")
	if err != nil || strings.HasPrefix(got, "0.0.0.0") || !strings.HasSuffix(got, ":4646") {
		t.Errorf("all: %q %v", got, err)
	}
}

// TestOwnHosts: every name and address that the configuration states is the agent's own.
func TestOwnHosts(t *testing.T) {
	c := config.Default()
	c.Name, c.BindAddr = "n1", "b.example.com"
	c.Addresses = config.Addresses{HTTP: "h1.example.com h2.example.com", RPC: "::1", Serf: "s"}
	c.Advertise = config.Addresses{HTTP: "adv.example.com:443", RPC: "[::1]:4647", SerfWAN: "wan.example.com", ClientGossip: "g"}
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"n1", "b.example.com", own, "h1.example.com", "h2.example.com", "::1", "s", "adv.example.com", "::1", "wan.example.com", "g"}
	if got := ownHosts(c); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A secret in plugin configuration or client options is not shown.
func TestShowConfig(t *testing.T) {
	c := config.Default()
	c.Client.Options = map[string]string{"docker.auth": "SECRET"}
	c.Plugins = map[string]*config.Plugin{"p": {Config: map[string]any{"token": "SECRET"}}}
	shown, err := showConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(shown)
	if err != nil || bytes.Contains(raw, []byte("SECRET")) || shown["Datacenter"] != "dc1" {
		t.Errorf("%s %v", raw, err)
	}
}

// The remote backend goes to another server when one cannot be reached.
func TestRemote(t *testing.T) {
	backend, stop := newRemote(func() []string { return nil }, nil, hclog.NewNullLogger())
	defer stop()
	err := backend.Call(t.Context(), wire.MethodPing, &structs.EmptyRequest{}, &structs.WriteReply{})
	if !errors.Is(err, structs.ErrNoLeader) {
		t.Errorf("no servers: %v", err)
	}
}

// TestDevWinsOverFiles: with -dev a file cannot turn the server or the client off, as in Nomad; a flag can.
func TestDevWinsOverFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "off")
	if err := os.WriteFile(file, []byte(`{"client": {"enabled": false}, "server": {"enabled": false}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		client bool
	}{{[]string{"-dev", "-config", file}, true}, {[]string{"-dev", "-config", file, "-client=false"}, false}} {
		f, err := parseFlags(c.args)
		if err != nil {
			t.Fatal(err)
		}
		cfg, _, err := f.load()
		if err != nil || !cfg.Server.Enabled || cfg.Client.Enabled != c.client {
			t.Errorf("%v: server %v, client %v: %v", c.args, cfg.Server.Enabled, cfg.Client.Enabled, err)
		}
	}
}
