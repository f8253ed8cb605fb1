package agent

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/command/agent/config"
	httpapi "github.com/nomadish/nomadish/command/agent/http"
	"github.com/nomadish/nomadish/command/agent/inspect"
	telemetryhub "github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// Version is what the agent reports as its version. The command sets it before Run.
var Version = "dev"

// serverPart is a running server, as far as the agent needs one.
type serverPart struct {
	httpapi.Backend
	addr  string // RPC, as others reach it
	bound string // RPC, as it listens
	stats func() map[string]map[string]string
	// metrics derives its series; nil: it has none.
	metrics telemetryhub.Source
	serf    string // gossip, as others reach it
	// serfBound is where gossip listens, encrypted whether it is.
	serfBound string
	encrypted bool
	wan       string       // gossip with other regions, as others reach it; empty: it is off
	clients   string       // its part of the clients' gossip, as they reach it; empty: it has none
	failed    <-chan error // it cannot go on
	// setSchedulers changes how many workers it has, and the types of jobs that they take.
	setSchedulers func(n int, enabled []string) error
	// stop ends it; leave: it takes itself out of the cluster.
	stop func(ctx context.Context, leave bool) error
}

// clientPart is a running client, as far as the agent needs one.
type clientPart struct {
	nodeID     string
	gossip     string // as others reach it; empty: it does not gossip
	stats      func() map[string]map[string]string
	servers    func() []string
	setServers func([]string) error
	local      localNode           // nil: servers answer everything
	metrics    telemetryhub.Source // derives its series; nil: it has none
	// stop ends it. Its tasks go on, unless they shall end with it.
	stop func(ctx context.Context, endTasks bool) error
}

// parts make what an agent consists of; wiring.go has the real ones.
type parts struct {
	// secure guards RPC; nil: it is plain. own answers requests about the agent.
	server func(cfg *config.Config, secure *wire.TLS, own *inspect.Inspector, logger hclog.Logger) (*serverPart, error)
	// client is passed where the agent's own files lie and how its HTTP is reached.
	client func(cfg *config.Config, dirs clientDirs, servers []string, httpAddr string, secure *wire.TLS, own *inspect.Inspector, logger hclog.Logger) (*clientPart, error)
	// remote answers calls by passing them on to servers; stop ends its connections.
	remote func(servers func() []string, secure *wire.TLS, logger hclog.Logger) (backend httpapi.Backend, stop func())
}

// clientDirs are a client's directories.
type clientDirs struct{ state, alloc string }

// Agent is a running agent.
type Agent struct {
	cfg    *config.Config
	logger hclog.Logger
	reload func() (*config.Config, config.Problems, error)

	telemetry     *telemetry
	server        *serverPart
	client        *clientPart
	stopRemote    func()
	http          *httpapi.Server
	listeners     []net.Listener
	serving       sync.WaitGroup
	tempDir       string      // removed at the end
	tls           *wire.TLS   // nil: nothing is guarded
	queryClients  atomic.Bool // HTTPS requires certificates of callers
	stopFollowing func()      // what looks at the end of the certificate; nil: nothing does

	rpcAddr, httpAddr string // as others reach them
	self              atomic.Pointer[httpapi.Self]
	changing          sync.Mutex // held by who changes self
}

// start makes an agent of a checked configuration. reload reads it again, for
// Reload; it may be nil.
func start(cfg *config.Config, p parts, logger hclog.Logger, reload func() (*config.Config, config.Problems, error)) (*Agent, error) {
	a := &Agent{cfg: cfg, logger: logger, reload: reload}
	if err := a.start(p); err != nil {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		return nil, errors.Join(err, a.Shutdown(ctx, false))
	}
	return a, nil
}

// start brings the parts up: the HTTP port first, which shows soonest that another
// agent runs, then the server, the client, and last what answers.
func (a *Agent) start(p parts) error {
	if a.cfg.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("find the host's name: %w (name the agent with -node)", err)
		}
		a.cfg.Name = host
	}
	var err error
	if a.telemetry, err = startTelemetry(a.cfg, a.logger); err != nil {
		return err
	}
	if err := a.loadTLS(); err != nil {
		return err
	}
	a.followExpiry()
	if err := a.listen(); err != nil {
		return err
	}
	if err := makeDataDir(a.cfg); err != nil {
		return err
	}
	own := a.newInspector()
	var backend httpapi.Backend
	servers := a.cfg.ServerAddrs()
	if a.cfg.Server.Enabled {
		if a.server, err = p.server(a.cfg, a.rpcTLS(), own, a.logger); err != nil {
			return err
		}
		if a.server.metrics != nil {
			a.telemetry.hub.Add(a.server.metrics)
		}
		backend, a.rpcAddr = a.server, a.server.addr
		servers = append([]string{localAddr(a.server.bound)}, servers...)
	}
	if a.cfg.Client.Enabled {
		dirs, err := a.clientDirs()
		if err != nil {
			return err
		}
		if a.client, err = p.client(a.cfg, dirs, servers, a.httpAddr, a.rpcTLS(), own, a.logger); err != nil {
			return err
		}
		if a.client.metrics != nil {
			a.telemetry.hub.Add(a.client.metrics)
		}
		if backend == nil {
			backend, a.stopRemote = p.remote(a.client.servers, a.rpcTLS(), a.logger)
			if a.client.local != nil {
				backend = ownNode{backend, a.client.local}
			}
		}
	}
	nodeID := ""
	if a.client != nil {
		nodeID = a.client.nodeID
	}
	return a.serve(newInspected(backend, own, nodeID, a.cfg.Region, a.logger.Named("http")))
}

func (a *Agent) listen() error {
	for _, host := range httpHosts(a.cfg) {
		addr := joinHostPort(host, a.cfg.Ports.HTTP)
		network := "tcp"
		if ip := net.ParseIP(host); ip != nil && ip.To4() != nil {
			network = "tcp4" // 0.0.0.0 means IPv4, not everything
		}
		l, err := net.Listen(network, addr)
		if err != nil {
			return fmt.Errorf("listen for HTTP on %s: %w (is another agent running? choose another port with -http-port or ports { http = … })", addr, err)
		}
		a.listeners = append(a.listeners, l)
	}
	var err error
	a.httpAddr, err = advertised(a.cfg.Advertise.HTTP, a.listeners[0].Addr().String())
	return err
}

// taskDirMode is the mode of directories that hold those of tasks: every user may pass, and see nothing.
const taskDirMode = 0o711

// makeDataDir makes a client's data_dir, if it is missing, so that the users of tasks can reach their directories
// below. What else is below is closed to them by itself. A directory that is there is left as it is.
func makeDataDir(cfg *config.Config) error {
	dir := cfg.DataDir
	if dir == "" || !cfg.Client.Enabled {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { // as the rest of the way there
		return fmt.Errorf("make data_dir: %w", err)
	}
	err := os.Mkdir(dir, taskDirMode)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err == nil {
		err = os.Chmod(dir, taskDirMode) // whatever the umask is
	}
	if err != nil {
		return fmt.Errorf("make data_dir: %w", err)
	}
	return nil
}

// clientDirs makes the client's directories known: under data_dir, or in a
// directory of -dev's own that goes with the agent.
func (a *Agent) clientDirs() (clientDirs, error) {
	base := a.cfg.DataDir
	if base == "" && a.cfg.Dev {
		dir, err := os.MkdirTemp("", "nomadish-dev-")
		if err != nil {
			return clientDirs{}, fmt.Errorf("make a directory for -dev: %w", err)
		}
		a.tempDir, base = dir, dir
		if err := os.Chmod(dir, taskDirMode); err != nil {
			return clientDirs{}, fmt.Errorf("make a directory for -dev: %w", err)
		}
	}
	d := clientDirs{state: a.cfg.Client.StateDir, alloc: a.cfg.Client.AllocDir}
	if d.state == "" && base != "" {
		d.state = filepath.Join(base, "client")
	}
	if d.alloc == "" && base != "" {
		d.alloc = filepath.Join(base, "alloc")
	}
	return d, nil
}

func (a *Agent) serve(backend httpapi.Backend) error {
	shown, err := showConfig(a.cfg)
	if err != nil {
		return err
	}
	a.describe(shown)
	var secure *tls.Config
	var certified func(host string) bool
	if a.cfg.TLS.HTTP {
		secure, certified = a.tls.HTTPS(a.queryClients.Load), a.tls.ValidFor
	}
	if a.cfg.HTTP.AllowsAnyHost() {
		a.logger.Warn("http_config.allowed_hosts has \"*\": a web page can read and change everything by the browser of a reader who reaches this agent")
	}
	a.http, err = httpapi.New(httpapi.Config{
		TLS: secure, Peer: a.tls.OnHTTPS, CertificateHost: certified, Hosts: ownHosts(a.cfg), AllowedHosts: a.cfg.HTTP.AllowedHosts, TrustedOrigins: a.cfg.HTTP.TrustedOrigins,
		Backend: backend, Agent: self{a}, ParseJob: newParser(a.cfg.Limits), Logger: a.logger.Named("http"),
		Metrics: a.telemetry.writeJSON, Prometheus: a.telemetry.prometheus(a.logger),
		MaxBodyBytes: a.cfg.Limits.HTTPMaxBody, MaxConnsPerClient: a.cfg.Limits.HTTPMaxConns,
		HandshakeTimeout: a.cfg.Limits.HTTPSHandshakeTimeout, BodyTimeout: a.cfg.Limits.HTTPBodyTimeout,
		ResponseHeaders: a.cfg.ResponseHeaders, Debug: a.cfg.EnableDebug, SetSchedulers: a.setSchedulers,
	})
	if err != nil {
		return err
	}
	for _, l := range a.listeners {
		a.serving.Go(func() {
			if err := a.http.Serve(l); err != nil {
				a.logger.Error("HTTP ended", "addr", l.Addr(), "error", err)
			}
		})
	}
	return nil
}

// describe sets what /v1/agent/self shows.
func (a *Agent) describe(shown map[string]any) {
	s := httpapi.Self{
		Name: a.cfg.Name, Region: a.cfg.Region, Datacenter: a.cfg.Datacenter, Version: Version,
		Server: a.server != nil, Client: a.client != nil, Config: shown,
	}
	if a.client != nil {
		s.NodeID = a.client.nodeID
	}
	if a.server != nil {
		s.NumSchedulers, s.EnabledSchedulers = a.cfg.Server.Schedulers()
	}
	bound := make([]string, 0, len(a.listeners))
	for _, l := range a.listeners {
		bound = append(bound, l.Addr().String())
	}
	// As Nomad shows them: what is bound, and what others are sent.
	shown["NodeName"] = a.cfg.Name
	normalized, advertise := map[string]any{"HTTP": bound}, map[string]any{"HTTP": a.httpAddr}
	if addr := a.clientGossip(); addr != "" {
		advertise["ClientGossip"] = addr
	}
	if a.server != nil {
		normalized["RPC"], normalized["Serf"] = a.server.bound, a.server.serfBound
		advertise["RPC"], advertise["Serf"] = a.rpcAddr, a.server.serf
		if a.server.wan != "" {
			advertise["SerfWAN"] = a.server.wan
		}
	}
	shown["NormalizedAddrs"], shown["AdvertiseAddrs"] = normalized, advertise
	shown["Version"] = map[string]any{"Version": Version}
	a.self.Store(&s)
}

// showConfig is the configuration as JSON shows it, without what may be secret.
func showConfig(cfg *config.Config) (map[string]any, error) {
	open := *cfg
	open.Client.Options = nil
	open.Plugins = nil
	open.Server.Encrypt, open.Server.ClientGossipEncrypt, open.Client.GossipEncrypt = "", "", ""
	raw, err := json.Marshal(&open)
	if err != nil {
		return nil, fmt.Errorf("show the configuration: %w", err)
	}
	var shown map[string]any
	if err := json.Unmarshal(raw, &shown); err != nil {
		return nil, fmt.Errorf("show the configuration: %w", err)
	}
	return shown, nil
}

// HTTPAddr is the address of the HTTP API, as others reach it.
func (a *Agent) HTTPAddr() string { return a.httpAddr }

// Reload reads the configuration again and takes over what can be: the log level and the
// certificates, or nothing if either is wrong.
func (a *Agent) Reload() error {
	if a.reload == nil {
		return structs.Errorf(structs.CodeUnsupported, "reload: this agent was not started from files")
	}
	fresh, warnings, err := a.reload()
	for _, w := range warnings {
		a.logger.Warn("configuration", "warning", w.String())
	}
	if err == nil {
		err = a.reloadTLS(fresh)
	}
	if err != nil {
		a.logger.Error("the configuration was not reloaded; the old one stays", "error", err.Error())
		return structs.Errorf(structs.CodeBadRequest, "reload: the old configuration stays: %w", err)
	}
	a.logger.SetLevel(hclog.LevelFromString(fresh.Logging.LogLevel))
	a.logger.Info("configuration reloaded: the log level and the certificates are taken over", "log_level", fresh.Logging.LogLevel)
	if left := a.needRestart(fresh); len(left) > 0 {
		a.logger.Warn("settings have changed that need a restart of the agent; until then the old ones stay", "settings", strings.Join(left, ", "))
	}
	return nil
}

// needRestart names the settings that have changed and that a reload does not take over.
func (a *Agent) needRestart(fresh *config.Config) []string {
	now := *fresh
	if now.Name == "" {
		now.Name = a.cfg.Name // the host's
	}
	return slices.DeleteFunc(config.Changed(a.cfg, &now), func(name string) bool {
		return name == "log_level" || name == "insecure" || a.tls != nil && strings.HasPrefix(name, "tls.") // tls.http and tls.rpc are logged by themselves
	})
}

// Shutdown ends the agent: first what answers, then the client, then the
// server, each bounded by ctx. Tasks go on, except in -dev. leave: leadership is
// handed over first.
func (a *Agent) Shutdown(ctx context.Context, leave bool) error {
	var errs []error
	if a.http != nil {
		errs = append(errs, a.http.Shutdown(ctx))
	}
	for _, l := range a.listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	a.serving.Wait()
	if a.client != nil {
		errs = append(errs, a.client.stop(ctx, a.cfg.Dev))
	}
	if a.stopRemote != nil {
		a.stopRemote()
	}
	if a.server != nil {
		errs = append(errs, a.server.stop(ctx, leave))
	}
	if a.stopFollowing != nil {
		a.stopFollowing()
	}
	if a.telemetry != nil {
		a.telemetry.stop()
	}
	if a.tempDir != "" {
		if err := os.RemoveAll(a.tempDir); err != nil {
			errs = append(errs, fmt.Errorf("remove -dev's directory: %w", err))
		}
	}
	return errors.Join(errs...)
}

// self is the agent as the HTTP API sees it.
type self struct{ a *Agent }

func (s self) Self() httpapi.Self { return *s.a.self.Load() }

func (s self) Stats() map[string]map[string]string {
	out := map[string]map[string]string{}
	if s.a.server != nil {
		for section, values := range s.a.server.stats() {
			out[section] = values
		}
	}
	if s.a.client != nil {
		for section, values := range s.a.client.stats() {
			out[section] = values
		}
	}
	return out
}

func (s self) Servers() []string {
	if s.a.client != nil {
		return s.a.client.servers()
	}
	if s.a.rpcAddr != "" {
		return []string{s.a.rpcAddr}
	}
	return nil
}

func (s self) SetServers(addrs []string) error {
	if s.a.client == nil {
		return structs.Errorf(structs.CodeUnsupported, "this agent runs no client, which alone has servers to set")
	}
	return s.a.client.setServers(addrs)
}

func (s self) Reload() error { return s.a.Reload() }

// clientGossip is where others reach the agent's part of the clients' gossip, its server's where it is both; empty: it has none.
func (a *Agent) clientGossip() string {
	if a.server != nil && a.server.clients != "" {
		return a.server.clients
	}
	if a.client != nil {
		return a.client.gossip
	}
	return ""
}

// banner prints what was started.
func (a *Agent) banner(w io.Writer) {
	var bound []string
	for _, l := range a.listeners {
		bound = append(bound, l.Addr().String())
	}
	advertise, bind := "HTTP: "+a.httpAddr, "HTTP: ["+strings.Join(bound, " ")+"]"
	if a.server != nil {
		advertise += "; RPC: " + a.rpcAddr + "; Serf: " + a.server.serf
		bind += "; RPC: " + a.server.bound + "; Serf: " + a.server.serfBound
		if a.server.wan != "" {
			advertise += "; Serf WAN: " + a.server.wan
		}
	}
	if addr := a.clientGossip(); addr != "" {
		advertise += "; Client gossip: " + addr
	}
	lines := [][2]string{
		{"Advertise Addrs", advertise}, {"Bind Addrs", bind}, {"Client", fmt.Sprint(a.client != nil)},
		{"Log Level", strings.ToUpper(a.cfg.Logging.LogLevel)},
	}
	if a.client != nil {
		lines = append(lines, [2]string{"Node Id", a.client.nodeID})
	}
	lines = append(lines, [2]string{"Region", fmt.Sprintf("%s (DC: %s)", a.cfg.Region, a.cfg.Datacenter)},
		[2]string{"Server", fmt.Sprint(a.server != nil)}, [2]string{"Version", Version})
	_, _ = fmt.Fprintf(w, "==> Nomadish agent configuration:\n\n")
	for _, l := range lines {
		_, _ = fmt.Fprintf(w, "%22s: %s\n", l[0], l[1])
	}
	_, _ = fmt.Fprintln(w)
}
