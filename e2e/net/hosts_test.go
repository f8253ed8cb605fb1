//go:build netns

package net

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"
	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
)

// network is a switch with hosts on it: network namespaces, joined by veth pairs. All of it is the test's own and is removed
// with it; the machine's own network is not touched. Every network has the subnet 10.77.0.0/24 to itself, as no network
// sees another: tests may run beside each other.
type network struct {
	t     *testing.T
	hub   string // the namespace of the switch, where nobody lives
	hosts []*host
	made  atomic.Int32 // things that need a name of their own
}

// host stands for a machine.
type host struct {
	network *network
	ns      string // the network namespace
	port    string // the switch's end of its cable
	addr    string // its IP address
}

var networks atomic.Int32

// owned is how everything is named that a test process must not leave behind: by who made it, so that a later one knows what
// belongs to nobody any more. A process is known by its number and the time it started.
var owned = regexp.MustCompile(`^nd(\d+)\.(\d+)-`)

func ownedName(what string) string {
	return fmt.Sprintf("nd%d.%s-%s", os.Getpid(), startOf(os.Getpid()), what)
}

// startOf returns the time at which a process started, in the kernel's ticks; empty: there is no such process.
func startOf(pid int) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	return fields[19] // the 22nd of all
}

// orphaned reports whether a name is of a test process that is gone.
func orphaned(name string) bool {
	m := owned.FindStringSubmatch(name)
	if m == nil {
		return false
	}
	pid, err := strconv.Atoi(m[1])
	return err == nil && startOf(pid) != m[2]
}

// sweep removes what test processes that died have left: agents and tasks in their namespaces, the namespaces, small disks.
var sweep = sync.OnceFunc(sweepNow)

func sweepNow() {
	spaces, _ := os.ReadDir("/run/netns") // there is none before the first namespace
	for _, e := range spaces {
		if orphaned(e.Name()) {
			removeNamespace(e.Name())
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mounts") // it is always there
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 1 && orphaned(f[0]) {
			_ = unix.Unmount(f[1], unix.MNT_DETACH)
		}
	}
}

// removeNamespace ends all that lives in a namespace, and removes it.
func removeNamespace(name string) {
	out, _ := exec.Command("ip", "netns", "pids", name).Output() // none then
	for _, pid := range strings.Fields(string(out)) {
		if n, err := strconv.Atoi(pid); err == nil && n != os.Getpid() {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
	_ = exec.Command("ip", "netns", "del", name).Run()
}

// newNetwork makes n hosts on a switch. Host i has the address 10.77.0.i+1.
func newNetwork(t *testing.T, n int) *network {
	t.Helper()
	need(t, "ip", "iproute2")
	need(t, "nft", "nftables")
	sweep()
	w := &network{t: t}
	prefix := ownedName(strconv.Itoa(int(networks.Add(1))))
	w.hub = w.namespace(prefix + "-hub")
	ip(t, "-n", w.hub, "link", "add", "wire", "type", "bridge")
	ip(t, "-n", w.hub, "link", "set", "wire", "up")
	for i := range n {
		h := &host{network: w, port: fmt.Sprintf("port%d", i), addr: fmt.Sprintf("10.77.0.%d", i+1)}
		h.ns = w.namespace(fmt.Sprintf("%s-%d", prefix, i))
		ip(t, "-n", w.hub, "link", "add", h.port, "type", "veth", "peer", "name", "eth0", "netns", h.ns)
		ip(t, "-n", w.hub, "link", "set", h.port, "master", "wire", "up")
		ip(t, "-n", h.ns, "addr", "add", h.addr+"/24", "dev", "eth0")
		ip(t, "-n", h.ns, "link", "set", "eth0", "up")
		w.hosts = append(w.hosts, h)
	}
	return w
}

func (w *network) namespace(name string) string {
	w.t.Helper()
	ip(w.t, "netns", "add", name)
	w.t.Cleanup(func() { removeNamespace(name) })
	ip(w.t, "-n", name, "link", "set", "lo", "up")
	return name
}

// need ends a test with a word on what is missing: it must not pass as if it had seen something.
func need(t *testing.T, command, pkg string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this test makes network namespaces and needs root")
	}
	if _, err := exec.LookPath(command); err != nil {
		t.Fatalf("the command %s is missing: install the Debian package %s (.ci/install does)", command, pkg)
	}
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v %s(this test needs root and iproute2)", strings.Join(args, " "), err, out)
	}
}

// inside runs f with the network of a namespace; sockets, and processes, that f makes stay there.
func inside(ns string, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: a thread that has moved ends with its goroutine
		done <- func() error {
			fd, err := unix.Open(filepath.Join("/run/netns", ns), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return fmt.Errorf("network namespace %s: %w", ns, err)
			}
			defer unix.Close(fd) //nolint:errcheck // nothing was written
			if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("enter network namespace %s: %w", ns, err)
			}
			return f()
		}()
	}()
	return <-done
}

// dial connects from the host.
func (h *host) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = inside(h.ns, func() error {
		var inner error
		conn, inner = (&net.Dialer{}).DialContext(ctx, network, address)
		return inner
	})
	return conn, err
}

// agent prepares an agent on the host, with its ports at their defaults. config is HCL that is added. The test asks it from
// the host itself, so that it may whatever has become of the network.
func (h *host) agent(name, config string) *harness.Agent {
	h.network.t.Helper()
	a := harness.NewAgent(h.network.t, false, fmt.Sprintf("name = %q\nbind_addr = %q\ninsecure = true\nports {\n  http = 4646\n  rpc = 4647\n  serf = 4648\n  client_gossip = 4650\n}\n%s", name, h.addr, config))
	a.NetNS, a.HTTP, a.RPC, a.Serf, a.Gossip = h.ns, "http://"+h.addr+":4646", h.addr+":4647", h.addr+":4648", h.addr+":4650"
	transport := &http.Transport{DialContext: h.dial, MaxIdleConnsPerHost: 16}
	h.network.t.Cleanup(transport.CloseIdleConnections)
	var err error
	if a.API, err = api.New(api.Config{Address: a.HTTP, HTTP: &http.Client{Transport: transport}}); err != nil {
		h.network.t.Fatal(err)
	}
	conf := nomad.DefaultConfig()
	conf.Address, conf.HttpClient = a.HTTP, &http.Client{Transport: transport}
	if a.Nomad, err = nomad.NewClient(conf); err != nil {
		h.network.t.Fatal(err)
	}
	return a
}

// quickServer is the configuration of a lone server that declares a silent node lost after about two seconds.
const quickServer = "server {\n  enabled = true\n  bootstrap_expect = 1\n  min_heartbeat_ttl = \"1s\"\n  heartbeat_grace = \"1s\"\n}\n"

// plainServer is the configuration of a lone server with its defaults.
const plainServer = "server {\n  enabled = true\n  bootstrap_expect = 1\n}\n"

// serverAndClients starts a server on the first host and clients, node-1 and so on, on the others.
func (w *network) serverAndClients(config string) (server *harness.Agent, clients []*harness.Agent) {
	w.t.Helper()
	server = w.hosts[0].agent("server", config)
	server.Start()
	for i, h := range w.hosts[1:] {
		c := h.agent(fmt.Sprintf("node-%d", i+1), fmt.Sprintf("client {\n  enabled = true\n  servers = [%q]\n}\n", server.RPC))
		c.Start()
		clients = append(clients, c)
	}
	server.WaitReady(len(clients))
	return server, clients
}

// lines waits until a command prints n lines that hold all words.
func lines(t *testing.T, a *harness.Agent, limit time.Duration, n int, words []string, args ...string) {
	t.Helper()
	harness.Within(t, limit, fmt.Sprintf("%d lines with %v", n, words), func(context.Context) error {
		out, code := a.CLI(args...)
		found := 0
		for line := range strings.Lines(out) {
			has := true
			for _, w := range words {
				has = has && strings.Contains(line, w)
			}
			if has {
				found++
			}
		}
		if code != 0 || found != n {
			return fmt.Errorf("exit %d, %d lines\n%s", code, found, out)
		}
		return nil
	})
}

// long chooses how long a fault lasts: in every run, or in earnest.
func long(short, inEarnest time.Duration) time.Duration {
	if harness.FaultsLong {
		return inEarnest
	}
	return short
}
