package agent

import (
	"fmt"
	"sync"
	"time"

	"github.com/nomadish/nomadish/command/agent/config"
	telemetryhub "github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// tlsOptions are those of a checked configuration.
func tlsOptions(c *config.Config) (wire.TLSOptions, error) {
	t := c.TLS
	o := wire.TLSOptions{
		CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile, Region: c.Region,
		VerifyRoles: t.VerifyServerHostname, ClientRequests: t.ClientRequests, Upgrade: t.RPCUpgradeMode,
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
	a.queryClients.Store(a.cfg.TLS.VerifyHTTPSClient)
	a.logTLS()
	if a.cfg.TLS.RPC && !a.cfg.TLS.VerifyServerHostname {
		a.logger.Warn("tls.verify_server_hostname is off: whoever has any certificate of the CA may act as a server")
	}
	return nil
}

func (a *Agent) logTLS() {
	file, expires := a.tls.Using()
	a.logger.Info("TLS certificate in use", "file", file, "expires", expires.Format(time.RFC3339))
	for _, w := range a.tls.Warnings() {
		a.logger.Warn(w)
	}
}

// expiryEvery is how often an agent that runs looks at the end of its certificate.
const expiryEvery = 24 * time.Hour

// followExpiry warns of the end of the certificate in use, and measures how far it is, until the agent ends.
func (a *Agent) followExpiry() {
	if a.tls == nil {
		return
	}
	a.telemetry.hub.Add(func(b *telemetryhub.Batch) {
		_, end := a.tls.Using()
		b.Add(expiryFamily, time.Until(end).Seconds(), nil)
	})
	ticker, ended := time.NewTicker(expiryEvery), make(chan struct{})
	var warning sync.WaitGroup
	warning.Go(func() { a.warnExpiry(ticker.C, ended) })
	a.stopFollowing = sync.OnceFunc(func() {
		ticker.Stop()
		close(ended)
		warning.Wait()
	})
}

var expiryFamily = telemetryhub.Named("tls.certificate.seconds_left")

// warnExpiry logs at each time that comes if the certificate in use ends soon, or has ended.
func (a *Agent) warnExpiry(times <-chan time.Time, ended <-chan struct{}) {
	for {
		select {
		case now := <-times:
			if text := a.tls.Expiring(now); text != "" {
				a.logger.Warn(text)
			}
		case <-ended:
			return
		}
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
	merged.Insecure = fresh.Insecure
	if err := merged.Validate(); err != nil { // for example, without what RPC needs
		return err
	}
	if err := checkExposed(&merged); err != nil { // the addresses stay, and so must what guards them
		return err
	}
	o, err := tlsOptions(&merged)
	if err != nil {
		return err
	}
	if err := a.tls.Reload(o); err != nil {
		return err
	}
	a.queryClients.Store(now.VerifyHTTPSClient)
	a.logTLS()
	return nil
}
