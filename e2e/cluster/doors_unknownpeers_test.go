package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
)

// outcome starts an agent and waits until it runs or has ended. It returns what the agent printed until then and its exit code; -1:
// it runs.
func outcome(a *harness.Agent) (out string, code int) {
	a.T.Helper()
	a.Start()
	code = -1
	harness.Within(a.T, 20*time.Second, "the agent's start or end", func(context.Context) error {
		select {
		case err := <-a.Exited:
			a.Exited <- err // for cleanup
			code = a.Cmd.ProcessState.ExitCode()
			return nil
		default:
		}
		if a.LogCount("Nomadish agent started!") == 0 {
			return errors.New("neither yet")
		}
		return nil
	})
	return a.Log.Tail(200), code
}

// What the agent is to print for each listener that nobody guards.
const (
	openRPC     = ": set rpc = true and verify_server_hostname = true in the block tls"
	openHTTP    = ": set http = true in the block tls"
	openGossip  = "servers' gossip at "
	openClients = "clients' gossip at "
	openAll     = "or set insecure = true (-insecure)"
)

// TestDoorUnknownPeers: an agent that other machines can reach starts only if unauthenticated callers cannot use it, or if the operator says that
// they may.
func TestDoorUnknownPeers(t *testing.T) {
	t.Parallel()
	d := newCertDir(t)
	d.tls("cert", "create", "-server")
	d.tls("cert", "create", "-client")
	const (
		anywhere = "bind_addr = \"0.0.0.0\"\n"
		wan      = "ports {\n  serf_wan = 0\n}\n"
		key      = "MDEyMzQ1Njc4OWFiY2RlZg=="
		other    = "ZmVkY2JhOTg3NjU0MzIxMA=="
		strict   = "http = true\n  rpc = true\n  verify_server_hostname = true\n  verify_https_client = true"
	)
	with := func(keys string) string {
		return anywhere + strings.Replace(harness.ServerAndClient, "server {\n", "server {\n"+keys, 1)
	}
	serversKey, clientsKey := fmt.Sprintf("  encrypt = %q\n", key), fmt.Sprintf("  client_gossip_encrypt = %q\n", other)
	both, keyed := with(""), with(serversKey+clientsKey)
	tls := func(settings string) string { return d.block("global-server", settings) }
	client := func(more string) string {
		return anywhere + fmt.Sprintf("client {\n  enabled = true\n  servers = [\"127.0.0.1:%d\"]\n%s}\n", harness.FreePort(t), more)
	}
	for name, c := range map[string]struct {
		dev    bool
		config string
		args   []string
		ends   bool     // with exit code 1
		says   []string // in what it prints
		not    []string // not in what it prints
	}{
		"nothing": {config: both + wan, ends: true, says: []string{"listen off loopback without protection", "RPC at 0.0.0.0:", openRPC, "HTTP at 0.0.0.0:",
			openHTTP, openGossip + "0.0.0.0:", "servers' gossip with other regions at 0.0.0.0:", "set server { encrypt = ", openClients + "0.0.0.0:",
			"set server { client_gossip_encrypt = ", "nomadish operator gossip keyring generate", openAll, "can run programs on every node, as root"}},
		"insecure = true": {config: both + "insecure = true\n", says: []string{"WARNING: other machines can reach this agent", "without TLS", "without a key", "raw_exec"}},
		"-insecure":       {config: both, args: []string{"-insecure"}, says: []string{"WARNING: other machines can reach this agent", "without TLS", "raw_exec"}},
		"guarded":         {config: keyed + wan + tls(strict), not: []string{"WARNING: other machines"}},
		"all but client certificates": {config: keyed + tls("http = true\n  rpc = true\n  verify_server_hostname = true"), ends: true,
			says: []string{"HTTP at 0.0.0.0:", ": set verify_https_client = true", openAll}, not: []string{openHTTP, openRPC, openGossip, openClients}},
		"insecure, all but client certificates": {config: keyed + tls("http = true\n  rpc = true\n  verify_server_hostname = true") + "insecure = true\n",
			says: []string{"WARNING: other machines can reach this agent", "without client certificates", "raw_exec"}, not: []string{"without TLS", "without a key"}},
		"all but RPC": {config: keyed + tls("http = true\n  verify_https_client = true"), ends: true,
			says: []string{openRPC, openAll}, not: []string{openHTTP, openGossip, openClients}},
		"all but roles": {config: keyed + tls("http = true\n  rpc = true\n  verify_https_client = true"), ends: true,
			says: []string{"RPC at", "verify_server_hostname = true", openAll}, not: []string{openHTTP, openGossip, openClients}},
		"all but the end of an upgrade": {config: keyed + tls(strict+"\n  rpc_upgrade_mode = true"), ends: true,
			says: []string{"RPC at", "rpc_upgrade_mode", openAll}, not: []string{openHTTP, openGossip, openClients}},
		"an upgrade": {config: keyed + tls(strict+"\n  rpc_upgrade_mode = true") + "insecure = true\n",
			says: []string{"WARNING: other machines can reach this agent", "RPC 0.0.0.0:"}, not: []string{"without a key"}},
		"all but HTTPS": {config: keyed + tls("rpc = true\n  verify_server_hostname = true"), ends: true,
			says: []string{openHTTP, openAll}, not: []string{openRPC, openGossip, openClients}},
		"all but the servers' key": {config: with(clientsKey) + tls(strict), ends: true,
			says: []string{openGossip, openAll}, not: []string{openRPC, openHTTP, openClients}},
		"all but the clients' key": {config: with(serversKey) + tls(strict), ends: true,
			says: []string{openClients, openAll}, not: []string{openRPC, openHTTP, openGossip}},
		"one address of several": {config: harness.ServerAndClient + "addresses {\n  http = \"127.0.0.1 0.0.0.0\"\n}\n", ends: true,
			says: []string{"HTTP at 0.0.0.0:"}, not: []string{"127.0.0.1:", openRPC, openGossip, openClients}},
		"a forwarded port": {config: harness.ServerAndClient + "advertise {\n  rpc = \"10.9.8.7\"\n}\n", ends: true,
			says: []string{"RPC at 10.9.8.7:", openRPC}, not: []string{openHTTP, openGossip}},
		"a forwarded port, stated": {config: harness.ServerAndClient + "advertise {\n  rpc = \"10.9.8.7:99\"\n}\n", ends: true,
			says: []string{"RPC at 10.9.8.7:99" + openRPC, "from the block advertise"}, not: []string{openHTTP, openGossip, "or set bind_addr"}},
		"a proxy of HTTP": {config: harness.ServerAndClient + "advertise {\n  http = \"192.0.2.2:443\"\n}\n",
			says: []string{"WARNING: the agent advertises HTTP at 192.0.2.2:443", "raw_exec"}, not: []string{"WARNING: other machines", openAll}},
		"a client":          {config: client(""), ends: true, says: []string{"HTTP at", openClients, "set client { gossip_encrypt = "}, not: []string{"RPC at", openGossip}},
		"a client, guarded": {config: client(fmt.Sprintf("  gossip_encrypt = %q\n", other)) + d.block("global-client", strict), not: []string{"WARNING: other machines"}},
		"-dev":              {dev: true, config: anywhere, ends: true, says: []string{"RPC at", "HTTP at", openGossip, openAll}, not: []string{openClients}},
		"-dev -insecure": {dev: true, config: anywhere, args: []string{"-insecure"},
			says: []string{"WARNING: other machines can reach this agent", "raw_exec"}},
		"loopback": {config: harness.ServerAndClient, not: []string{"WARNING: other machines"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := harness.NewAgent(t, c.dev, c.config)
			if strings.Contains(c.config, "http = true") {
				a.HTTP = strings.Replace(a.HTTP, "http://", "https://", 1)
			}
			a.Args = append(a.Args, c.args...)
			out, code := outcome(a)
			if want := map[bool]int{true: 1, false: -1}[c.ends]; code != want {
				t.Errorf("exit code %d, not %d (-1: it runs):\n%s", code, want, out)
			}
			for _, s := range c.says {
				if !strings.Contains(out, s) {
					t.Errorf("%q is not in:\n%s", s, out)
				}
			}
			for _, s := range c.not {
				if strings.Contains(out, s) {
					t.Errorf("%q is in:\n%s", s, out)
				}
			}
		})
	}
}

// listening returns the addresses at which a process takes TCP connections and gets datagrams, without ports, each once.
func listening(t *testing.T, pid int) []string {
	t.Helper()
	own := map[string]bool{} // the inodes of its sockets
	fds := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(fds)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(fds, e.Name())); err == nil { // some close meanwhile
			own[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
		}
	}
	var found []string
	for file, state := range map[string]string{"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, file))
		if err != nil {
			continue // a machine without IPv6
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line) // sl, local_address, rem_address, st, and the inode as the tenth
			if len(f) < 10 || f[3] != state || !own[f[9]] {
				continue
			}
			found = append(found, hexAddr(t, strings.Split(f[1], ":")[0]))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// hexAddr returns an address of /proc/net/tcp, words of four bytes in this machine's order, as text.
func hexAddr(t *testing.T, text string) string {
	t.Helper()
	ip := make(net.IP, len(text)/2)
	if _, err := fmt.Sscanf(text, "%x", (*[]byte)(&ip)); err != nil {
		t.Fatal(err)
	}
	for i := 0; i+4 <= len(ip); i += 4 {
		slices.Reverse(ip[i : i+4])
	}
	return ip.String()
}

// TestDoorDefaultAddress: an agent that is not told where to listen can be reached from its own machine only.
func TestDoorDefaultAddress(t *testing.T) {
	t.Parallel()
	for name, dev := range map[string]bool{"-dev": true, "a server and client": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := harness.NewAgent(t, dev, harness.ServerAndClient+"ports {\n  serf_wan = 0\n}\n")
			file := filepath.Join(a.Dir, "agent.hcl")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, text2, _ := strings.Cut(string(text), "bind_addr = \"127.0.0.1\"\n")
			if err := os.WriteFile(file, []byte(text2), 0o600); err != nil {
				t.Fatal(err)
			}
			a.Start()
			a.WaitReady(1)
			if got := listening(t, a.Cmd.Process.Pid); !slices.Equal(got, []string{"127.0.0.1"}) {
				t.Errorf("it listens at %v", got)
			}
			self, err := a.Nomad.Agent().Self()
			if err != nil {
				t.Fatal(err)
			}
			for what, addrs := range map[string]any{"bound": self.Config["NormalizedAddrs"], "advertised": self.Config["AdvertiseAddrs"]} {
				if text := fmt.Sprint(addrs); strings.Count(text, "127.0.0.1:") < 3 || strings.Contains(text, "0.0.0.0") {
					t.Errorf("%s: %s", what, text)
				}
			}
		})
	}
}
