package agent

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nomadish/nomadish/command/agent/config"
	"github.com/nomadish/nomadish/structs"
	"github.com/nomadish/nomadish/structs/wire"
)

// tlsOptions are those of a checked configuration.
func tlsOptions(c *config.Config) (wire.TLSOptions, error) {
	t := c.TLS
	o := wire.TLSOptions{
		CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile, Region: c.Region,
		VerifyRoles: t.VerifyServerHostname, Upgrade: t.RPCUpgradeMode,
	}
	if t.RPC {
		o.Role = structs.CertClient
		if c.Server.Enabled {
			o.Role = structs.CertServer
		}
	}
	var err error
	if o.MinVersion, err = wire.ParseTLSVersion(t.MinVersion); err != nil {
		return o, fmt.Errorf("tls.tls_min_version %w", err)
	}
	if o.CipherSuites, err = wire.ParseCipherSuites(t.CipherSuites); err != nil {
		return o, fmt.Errorf("tls.tls_cipher_suites %w", err)
	}
	return o, nil
}

// loadTLS reads the certificates, if any connection shall be guarded.
func (a *Agent) loadTLS() error {
	if !a.cfg.TLS.On() {
		return nil
	}
	o, err := tlsOptions(a.cfg)
	if err != nil {
		return err
	}
	if a.tls, err = wire.LoadTLS(o, a.logger.Named("tls")); err != nil {
		return err
	}
	a.askClients.Store(a.cfg.TLS.VerifyHTTPSClient)
	a.tellTLS()
	if a.cfg.TLS.RPC && !a.cfg.TLS.VerifyServerHostname {
		a.logger.Warn("tls.verify_server_hostname is off: whoever has any certificate of the CA may act as a server")
	}
	return nil
}

func (a *Agent) tellTLS() {
	file, expires := a.tls.Using()
	a.logger.Info("TLS certificate in use", "file", file, "expires", expires.Format(time.RFC3339))
	for _, w := range a.tls.Warnings() {
		a.logger.Warn(w)
	}
}

// rpcTLS guards RPC; nil: it is plain.
func (a *Agent) rpcTLS() *wire.TLS {
	if a.cfg.TLS.RPC {
		return a.tls
	}
	return nil
}

// reloadTLS takes over certificates and rules; what is wrong with them changes nothing.
// Whether there is TLS at all stays as it was.
func (a *Agent) reloadTLS(fresh *config.Config) error {
	was, now := a.cfg.TLS, fresh.TLS
	if was.HTTP != now.HTTP || was.RPC != now.RPC {
		a.logger.Warn("tls.http and tls.rpc are not changed by a reload: restart the agent for that",
			"http", was.HTTP, "rpc", was.RPC)
	}
	if a.tls == nil || !now.On() {
		return nil
	}
	merged := *a.cfg
	merged.TLS = now
	merged.TLS.HTTP, merged.TLS.RPC = was.HTTP, was.RPC
	if err := merged.Validate(); err != nil { // without what RPC needs, say
		return err
	}
	o, err := tlsOptions(&merged)
	if err != nil {
		return err
	}
	if err := a.tls.Reload(o); err != nil {
		return err
	}
	a.askClients.Store(now.VerifyHTTPSClient)
	a.tellTLS()
	return nil
}

// exposed lists the ports that other machines can reach, and that do not ask who they are.
func (a *Agent) exposed() []string {
	var out []string
	t := a.cfg.TLS
	add := func(port string, guarded, verified bool) {
		switch {
		case isLoopback(port[strings.LastIndex(port, " ")+1:]):
		case !guarded:
			out = append(out, port+" without TLS")
		case !verified:
			out = append(out, port+" without client certificates")
		}
	}
	for _, l := range a.listeners {
		add("HTTP "+l.Addr().String(), t.HTTP, t.VerifyHTTPSClient)
	}
	if a.server != nil {
		add("RPC "+a.server.bound, t.RPC, !t.RPCUpgradeMode)
		if !a.server.encrypted && a.server.serfBound != "" && !isLoopback(a.server.serfBound) {
			out = append(out, "gossip "+a.server.serfBound+" without a key")
		}
	}
	if bind, _, err := clientGossipAddrs(a.cfg); err == nil && !isLoopback(bind) &&
		(a.cfg.ServerGossips() && a.cfg.Server.ClientGossipEncrypt == "" || a.cfg.ClientGossips() && a.cfg.Client.GossipEncrypt == "") {
		out = append(out, "clients' gossip "+bind+" without a key")
	}
	return out
}

func (a *Agent) warnExposed(w io.Writer) {
	if open := a.exposed(); len(open) > 0 {
		text := "other machines can reach this agent (" + strings.Join(open, ", ") +
			") and there are no ACLs: whoever can connect may run anything; bind to loopback, set tls { … } with verify_https_client, or guard the network"
		_, _ = fmt.Fprintf(w, "==> WARNING: %s\n\n", text)
		a.logger.Warn(text)
	}
}
