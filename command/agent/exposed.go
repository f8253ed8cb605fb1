package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/client"
	"github.com/nomadish/nomadish/command/agent/config"
	"github.com/nomadish/nomadish/nomadish"
)

// lookupTimeout bounds the resolution of the host names among the agent's addresses, all together.
const lookupTimeout = 5 * time.Second

// exposure is an address of the agent that other machines can reach and at which not all of them are authenticated.
type exposure struct {
	what string // what answers there
	addr string // host:port, or a host alone before its port is known
	lack string // why unauthenticated callers are accepted, for a warning
	set  string // what keeps them out; empty: the agent starts as it is
	via  bool   // the address is advertised and the service listens on loopback: somebody else forwards connections to it
}

// guard is what keeps unauthenticated callers out of a listener: lack and set as in exposure, both empty if nothing is missing.
type guard struct{ lack, set string }

// keyed is the guard of a gossip pool.
func keyed(hasKey bool, setting string) guard {
	if hasKey {
		return guard{}
	}
	return guard{"without a key", "set " + setting + " (`nomadish operator gossip keyring generate` prints a key)"}
}

func rpcGuard(t *config.TLS) guard {
	const all = "set rpc = true and verify_server_hostname = true in the block tls (docs/guides/tls.md)"
	switch {
	case !t.RPC:
		return guard{"without TLS", all}
	case t.RPCUpgradeMode:
		return guard{"with plain connections let in by rpc_upgrade_mode", "remove rpc_upgrade_mode from the block tls once every agent speaks TLS (docs/guides/tls.md)"}
	case !t.VerifyServerHostname:
		return guard{"without verify_server_hostname", "set verify_server_hostname = true in the block tls: without it every certificate of the CA may act as a server (docs/guides/tls.md)"}
	}
	return guard{}
}

func httpGuard(t *config.TLS) guard {
	switch {
	case !t.HTTP:
		return guard{"without TLS", "set http = true in the block tls, and verify_https_client = true (docs/guides/tls.md)"}
	case !t.VerifyHTTPSClient:
		return guard{"without client certificates", "set verify_https_client = true in the block tls: without it anybody may run jobs and read the gossip keys, as there are no ACLs (docs/guides/tls.md)"}
	}
	return guard{}
}

// lookup resolves the host names of one configuration.
type lookup struct{ ctx context.Context }

// local reports whether a host is this machine's loopback. A name that cannot be resolved is not known to be.
func (l lookup) local(host string) bool {
	ips := l.ips(host)
	return len(ips) > 0 && !slices.ContainsFunc(ips, func(ip net.IP) bool { return !ip.IsLoopback() })
}

// remote reports whether a host is known to be another than this machine's loopback.
func (l lookup) remote(host string) bool {
	return slices.ContainsFunc(l.ips(host), func(ip net.IP) bool { return !ip.IsLoopback() && !ip.IsUnspecified() })
}

func (l lookup) ips(host string) []net.IP {
	host = strings.Trim(host, "[]")
	if ip := net.ParseIP(host); ip != nil {
		return []net.IP{ip}
	}
	ips, err := net.DefaultResolver.LookupIP(l.ctx, "ip", host)
	if err != nil {
		return nil
	}
	return ips
}

func newLookup() (lookup, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	return lookup{ctx}, cancel
}

// hostOf returns the host of an address with or without a port.
func hostOf(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return addr
}

// exposures returns the addresses of an agent with configuration c that other machines can reach and that are not fully guarded.
// An advertised address counts too: others are sent there, so somebody forwards it to the listener. That of HTTP is not
// refused where the API listens on loopback: a proxy there can authenticate callers, while agents alone call the other services.
func exposures(c *config.Config) []exposure {
	names, cancel := newLookup()
	defer cancel()
	var out []exposure
	add := func(what string, port int, g guard, advertised string, hosts ...string) {
		if g == (guard{}) {
			return
		}
		addr := func(host string) string {
			if port == 0 {
				return host // with any free port
			}
			return joinHostPort(host, port)
		}
		via := true
		for i, host := range hosts {
			if slices.Index(hosts, host) != i || names.local(host) {
				continue
			}
			via = false
			out = append(out, exposure{what, addr(host), g.lack, g.set, false})
		}
		host := hostOf(advertised)
		if host == "" || slices.Contains(hosts, host) || names.local(host) {
			return
		}
		e := exposure{what, advertised, g.lack, g.set, via}
		if host == advertised { // without a port
			e.addr = addr(host)
		}
		if what == "HTTP" {
			e.set = ""
		}
		out = append(out, e)
	}
	servers, regions, clients := keptKeys(c)
	add("HTTP", c.Ports.HTTP, httpGuard(&c.TLS), c.Advertise.HTTP, httpHosts(c)...)
	if c.Server.Enabled {
		add("RPC", c.Ports.RPC, rpcGuard(&c.TLS), c.Advertise.RPC, hostOr(c.Addresses.RPC, c.BindAddr))
		serf := hostOr(c.Addresses.Serf, c.BindAddr)
		const setting = `server { encrypt = "KEY" }`
		add("servers' gossip", c.Ports.Serf, keyed(servers || c.Server.Encrypt != "", setting), c.Advertise.Serf, serf)
		if port := c.WANPort(); port >= 0 {
			add("servers' gossip with other regions", port, keyed(regions || c.Server.Encrypt != "", setting),
				hostOr(c.Advertise.SerfWAN, hostOf(c.Advertise.Serf)), hostOr(c.Addresses.SerfWAN, serf))
		}
	}
	if c.ServerGossips() || c.ClientGossips() {
		key, setting := c.Client.GossipEncrypt, `client { gossip_encrypt = "KEY" }, the servers' client_gossip_encrypt`
		if c.ServerGossips() {
			key, setting = c.Server.ClientGossipEncrypt, `server { client_gossip_encrypt = "KEY" }, another key than that of encrypt`
		}
		add("clients' gossip", c.Ports.ClientGossip, keyed(clients || key != "", setting), c.Advertise.ClientGossip,
			hostOr(c.Addresses.ClientGossip, c.BindAddr))
	}
	return out
}

// keptKeys reports which gossip pools have keys on this machine's disk, with which they are encrypted whatever the
// configuration states.
func keptKeys(c *config.Config) (servers, regions, clients bool) {
	if c.Server.Enabled && !c.Dev {
		servers, regions, clients = (&nomadish.Config{DataDir: hostOr(c.Server.DataDir, c.DataDir)}).KeptKeyrings()
	}
	if c.ClientGossips() {
		dir := c.Client.StateDir
		if dir == "" && c.DataDir != "" {
			dir = filepath.Join(c.DataDir, "client")
		}
		clients = client.KeepsGossipKeys(dir)
	}
	return servers, regions, clients
}

// exposedError lists all that is missing before an agent may listen off loopback.
type exposedError struct{ rows []exposure }

// Error implements error, with a line for each address.
func (e *exposedError) Error() string {
	var b strings.Builder
	listens := slices.ContainsFunc(e.rows, func(r exposure) bool { return !r.via })
	what := "other machines could reach the agent at advertised addresses"
	if listens {
		what = "the agent would listen off loopback"
	}
	fmt.Fprintf(&b, "%s without protection:\n", what)
	var via []string
	for _, r := range e.rows {
		fmt.Fprintf(&b, "  %s at %s: %s\n", r.what, r.addr, r.set)
		if r.via {
			via = append(via, r.addr)
		}
	}
	b.WriteString("or set insecure = true (-insecure) if the network is trusted: anybody who reaches these addresses can run programs on every node, as root where the agents run as root")
	if listens {
		b.WriteString("\n" + `or set bind_addr = "127.0.0.1" (-bind), as it is by default, if no other machine is to reach the agent`)
	}
	if len(via) > 0 {
		fmt.Fprintf(&b, "\nor remove %s from the block advertise, if no other machine is to reach the agent there", strings.Join(via, ", "))
	}
	return b.String()
}

// checkExposed refuses a configuration in which unauthenticated callers could reach the agent, unless it allows them.
func checkExposed(c *config.Config) error {
	if c.Insecure {
		return nil
	}
	missing := slices.DeleteFunc(exposures(c), func(e exposure) bool { return e.set == "" })
	if len(missing) == 0 {
		return nil
	}
	return &exposedError{missing}
}

// checkReachable refuses an agent that listens on loopback only and is to meet agents of other machines: these could not reach it,
// and gossip would take it for failed.
func checkReachable(c *config.Config) error {
	names, cancel := newLookup()
	defer cancel()
	apart := func(listens, advertised string, addrs []string) string {
		if advertised != "" || len(addrs) == 0 || !names.local(listens) {
			return ""
		}
		if i := slices.IndexFunc(addrs, func(a string) bool { return names.remote(hostOf(a)) }); i >= 0 {
			return addrs[i]
		}
		return ""
	}
	const fix = "set bind_addr (-bind) to an address of this machine that they reach, or advertise another"
	if c.Server.Enabled {
		start, retry := c.Server.Joins()
		j, serf := &c.Server.Join, hostOr(c.Addresses.Serf, c.BindAddr)
		all := slices.Concat(start, retry, j.StartJoinWAN, j.RetryJoinWAN)
		if other := apart(serf, c.Advertise.Serf, all); other != "" {
			return fmt.Errorf("this server listens on %s and is to join %s: other machines could not reach it; %s", serf, other, fix)
		}
	}
	if c.ClientGossips() {
		listens := hostOr(c.Addresses.ClientGossip, c.BindAddr)
		if other := apart(listens, c.Advertise.ClientGossip, slices.Concat(c.ServerAddrs(), c.GossipAddrs())); other != "" {
			return fmt.Errorf("this client gossips on %s and is to meet %s: other machines could not reach it; %s, or set client { gossip = false } to do without (docs/guides/clients.md)",
				listens, other, fix)
		}
	}
	return nil
}

// exposed returns the exposures of the running agent, with the ports that it got.
func (a *Agent) exposed() []exposure {
	c := *a.cfg
	port := func(to *int, addr string) {
		if _, text, err := net.SplitHostPort(addr); err == nil {
			if n, err := net.LookupPort("tcp", text); err == nil {
				*to = n
			}
		}
	}
	for _, l := range a.listeners {
		port(&c.Ports.HTTP, l.Addr().String())
	}
	if a.server != nil {
		port(&c.Ports.RPC, a.server.bound)
		port(&c.Ports.Serf, a.server.serfBound)
		if a.server.wan != "" {
			c.Ports.SerfWAN = new(int)
			port(c.Ports.SerfWAN, a.server.wan)
		}
	}
	port(&c.Ports.ClientGossip, a.clientGossip())
	return exposures(&c)
}

// warnExposed logs at each start who can reach the agent without showing who they are.
func (a *Agent) warnExposed(w io.Writer) {
	var rows []string
	callable := false
	for _, e := range a.exposed() {
		if e.via && e.what == "HTTP" {
			a.warn(w, "the agent advertises HTTP at "+e.addr+" and listens on loopback for it, "+e.lack+
				": there are no ACLs, so a proxy in front of it must admit only users who may run anything", true)
			continue
		}
		rows = append(rows, e.what+" "+e.addr+" "+e.lack)
		callable = callable || e.what == "HTTP" || e.what == "RPC"
	}
	if len(rows) > 0 {
		a.warn(w, "other machines can reach this agent ("+strings.Join(rows, ", ")+
			") and there are no ACLs: everyone who can connect may run anything; bind to loopback, set tls { … } with verify_https_client, or protect the network", callable)
	}
}

// warn prints and logs who can reach the agent. If they can call it, raw_exec is named where it is enabled.
func (a *Agent) warn(w io.Writer, text string, callable bool) {
	if callable && a.cfg.Client.Enabled && rawExecEnabled(a.cfg) && !a.cfg.SimulatedOnly() {
		as := "as the agent's user"
		if os.Geteuid() == 0 {
			as = "as root"
		}
		text += "; raw_exec is enabled here, which runs programs on this machine " + as
	}
	_, _ = fmt.Fprintf(w, "==> WARNING: %s\n\n", text)
	a.logger.Warn(text)
}
