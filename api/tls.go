package api

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
)

// TLSConfig specifies how an agent that speaks HTTPS proves itself, and the caller to it. All
// are paths of PEM files. The zero value believes the authorities that this machine does.
type TLSConfig struct {
	CACert        string // the authorities of the agent's certificate
	CAPath        string // a directory of such files
	ClientCert    string // what the caller shows, with ClientKey
	ClientKey     string
	TLSServerName string // the name that the agent's certificate must have; empty: the address's host
	Insecure      bool   // whoever answers is believed
}

// config reads the files.
func (c *TLSConfig) config() (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.TLSServerName, InsecureSkipVerify: c.Insecure} // who requests it gets it
	if (c.ClientCert == "") != (c.ClientKey == "") {
		return nil, errors.New("a client certificate and its key go together: name both (-client-cert, -client-key)")
	}
	if c.ClientCert != "" {
		pair, err := tls.LoadX509KeyPair(c.ClientCert, c.ClientKey)
		if err != nil {
			return nil, fmt.Errorf("client certificate %s with key %s: %w", c.ClientCert, c.ClientKey, err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	var err error
	out.RootCAs, err = c.roots()
	return out, err
}

// roots are the authorities that are named; nil: none are.
func (c *TLSConfig) roots() (*x509.CertPool, error) {
	if c.CACert == "" && c.CAPath == "" {
		return nil, nil // nil is the machine's own
	}
	pool := x509.NewCertPool()
	if c.CACert != "" {
		text, err := os.ReadFile(c.CACert)
		if err != nil {
			return nil, fmt.Errorf("CA certificate: %w", err)
		}
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("CA certificate %s: holds no certificate in PEM", c.CACert)
		}
	}
	if c.CAPath == "" {
		return pool, nil
	}
	entries, err := os.ReadDir(c.CAPath)
	if err != nil {
		return nil, fmt.Errorf("directory of CA certificates: %w", err)
	}
	found := false
	for _, e := range entries {
		file := filepath.Join(c.CAPath, e.Name())
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() { // links are followed
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("directory of CA certificates: %w", err)
		}
		found = pool.AppendCertsFromPEM(text) || found
	}
	if !found {
		return nil, fmt.Errorf("directory of CA certificates %s: no file holds a certificate in PEM", c.CAPath)
	}
	return pool, nil
}

// TLSError is returned when an agent answers, but it and the caller do not believe each
// other.
type TLSError struct {
	Address string
	Err     error
	Hint    string // what to do
}

// Error returns what is wrong and what to do.
func (e *TLSError) Error() string {
	return fmt.Sprintf("no safe connection to the agent at %s: %v\n%s", e.Address, e.Err, e.Hint)
}

// Unwrap returns the cause.
func (e *TLSError) Unwrap() error { return e.Err }

// tlsHint returns what to do about an error of TLS; empty: it is none.
func (c *Client) tlsHint(err error) string {
	const call = "Show the agent a certificate of its CA with -client-cert and -client-key, or NOMADISH_CLIENT_CERT and NOMADISH_CLIENT_KEY."
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid *tls.CertificateVerificationError
	var alert *net.OpError
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return "The agent speaks plain HTTP: write its address as http://" + c.base.Host
	case errors.As(err, &unknown):
		return "Name the CA of the agent's certificate with -ca-cert or NOMADISH_CACERT."
	case errors.As(err, &name):
		return "If that agent is meant, say which name its certificate has: -tls-server-name or NOMADISH_TLS_SERVER_NAME, such as server.global.nomad."
	case errors.As(err, &invalid):
		return "The agent needs another certificate."
	case errors.As(err, &alert) && alert.Op == "remote error": // how crypto/tls marks alerts
		return "The agent refuses this caller. " + call
	case c.base.Scheme == "https" && c.config.TLS.ClientCert == "" && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)):
		return "The agent may require a certificate. " + call // its word was lost with the connection
	}
	return ""
}
