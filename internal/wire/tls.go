package wire

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/structs"
)

// TLSOptions are the options of TLS on connections.
type TLSOptions struct {
	// CAFile has the authorities whose certificates are believed, CertFile and KeyFile
	// this agent's own, all in PEM. Without CAFile nobody can be verified: only HTTPS that
	// requests no client certificates works so.
	CAFile, CertFile, KeyFile string
	// Region is this agent's.
	Region string
	// Role is what this agent is on RPC, structs.CertServer or CertClient: with VerifyRoles
	// its own certificate must state it. Empty: TLS is for HTTP only, where any certificate
	// will do that callers believe.
	Role string
	// VerifyRoles lets only certificates of the name server.REGION.nomad act as servers.
	// Without it every certificate of the authorities may do anything.
	VerifyRoles bool
	// ClientRequests lets clients' certificates call what is for people, see the table of methods.
	ClientRequests bool
	// Upgrade lets plain connections in as well, and tries them where TLS is not spoken.
	Upgrade bool
	// MinVersion is the lowest version spoken; 0: TLS 1.2.
	MinVersion uint16
	// CipherSuites are those of TLS 1.2; nil: Go's choice.
	CipherSuites []uint16
}

// TLS guards connections. Its certificates and rules can be replaced while it is used. A
// nil *TLS stands for plain connections. It is safe for use by many goroutines.
type TLS struct {
	now         atomic.Pointer[tlsState]
	logger      hclog.Logger
	plainLogged LogLimiter // peers that plain connections were opened to
}

// tlsState is one set of options with what was read; it never changes.
type tlsState struct {
	TLSOptions
	roots    *x509.CertPool // nil: no CAFile
	cert     *tls.Certificate
	warnings []string
}

// LoadTLS reads and checks what o names. An error states which option is wrong, and why.
func LoadTLS(o TLSOptions, logger hclog.Logger) (*TLS, error) {
	t := &TLS{logger: logger}
	return t, t.Reload(o)
}

// Reload reads and checks anew. What it finds applies to connections made from then on;
// after an error the old stays.
func (t *TLS) Reload(o TLSOptions) error {
	s := &tlsState{TLSOptions: o}
	if err := s.read(time.Now()); err != nil {
		return err
	}
	t.now.Store(s)
	return nil
}

// Warnings are things that work, but that an operator should know of.
func (t *TLS) Warnings() []string { return t.now.Load().warnings }

// Expiring warns of the end of the own certificate in use, from seven days before it on; empty: it is not soon.
func (t *TLS) Expiring(now time.Time) string { return t.now.Load().expiring(now) }

// Using returns the file of the own certificate that is in use, and when it expires.
func (t *TLS) Using() (file string, expires time.Time) {
	s := t.now.Load()
	return s.CertFile, s.cert.Leaf.NotAfter
}

// ValidFor reports whether the own certificate in use is for a host name, as clients verify it.
func (t *TLS) ValidFor(host string) bool { return t.now.Load().cert.Leaf.VerifyHostname(host) == nil }

func (s *tlsState) read(now time.Time) error {
	if s.CAFile != "" {
		var err error
		if s.roots, err = readRoots(s.CAFile, now); err != nil {
			return fmt.Errorf("tls.ca_file %s: %w", s.CAFile, err)
		}
	}
	certText, err := os.ReadFile(s.CertFile)
	if err != nil {
		return fmt.Errorf("tls.cert_file: %w", err)
	}
	if _, err := parseChain(certText); err != nil {
		return fmt.Errorf("tls.cert_file %s: %w", s.CertFile, err)
	}
	keyText, err := os.ReadFile(s.KeyFile)
	if err != nil {
		return fmt.Errorf("tls.key_file: %w", err)
	}
	pair, err := tls.X509KeyPair(certText, keyText)
	if err != nil {
		return fmt.Errorf("tls.key_file %s: does not go with tls.cert_file %s: %w", s.KeyFile, s.CertFile, err)
	}
	s.cert = &pair
	if err := s.checkOwn(now); err != nil {
		return fmt.Errorf("tls.cert_file %s: %w", s.CertFile, err)
	}
	s.warn(now)
	return nil
}

// checkOwn refuses an own certificate that others would refuse.
func (s *tlsState) checkOwn(now time.Time) error {
	leaf := s.cert.Leaf
	if now.After(leaf.NotAfter) {
		return fmt.Errorf("expired on %s: put a new one in its place%s; an agent that runs reads it on SIGHUP", leaf.NotAfter.Format(time.RFC3339), s.howToMake())
	}
	if now.Before(leaf.NotBefore) {
		return fmt.Errorf("is valid from %s only; is this machine's clock right?", leaf.NotBefore.Format(time.RFC3339))
	}
	if s.roots == nil || s.Role == "" {
		return nil
	}
	chain, err := parseChain(slices.Concat(pemOf(s.cert.Certificate)...))
	if err != nil {
		return err
	}
	if err := s.verifyChain(chain, x509.ExtKeyUsageClientAuth, now); err != nil {
		return fmt.Errorf("would be refused by others that have tls.ca_file %s: %w", s.CAFile, err)
	}
	if s.Role == structs.CertServer {
		if err := s.verifyChain(chain, x509.ExtKeyUsageServerAuth, now); err != nil {
			return fmt.Errorf("cannot serve: %w", err)
		}
	}
	if !s.VerifyRoles {
		return nil
	}
	p := peerOf(leaf, true)
	if p.has(structs.CertServer, s.Region) || (s.Role == structs.CertClient && p.has(structs.CertClient, s.Region)) {
		return nil
	}
	return fmt.Errorf("names %v, but verify_server_hostname requires %s%s", leaf.DNSNames, structs.CertName(s.Role, s.Region), s.howToMake())
}

// howToMake says how a certificate of the agent's role is made; empty: it has none.
func (s *tlsState) howToMake() string {
	if s.Role == "" {
		return ""
	}
	return fmt.Sprintf(" (`nomadish tls cert create -%s -region %s` makes one)", s.Role, s.Region)
}

func pemOf(chain [][]byte) [][]byte {
	out := make([][]byte, 0, len(chain))
	for _, der := range chain {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	return out
}

// soon is how long before its end a certificate is warned of.
const soon = 7 * 24 * time.Hour

// expiring warns of the end of the own certificate; empty: it is not soon.
func (s *tlsState) expiring(now time.Time) string {
	end := s.cert.Leaf.NotAfter
	if !now.Add(soon).After(end) {
		return ""
	}
	verb := "expires"
	if now.After(end) {
		verb = "expired"
	}
	return fmt.Sprintf("tls.cert_file %s %s on %s: put a new one in its place%s and send SIGHUP", s.CertFile, verb, end.Format(time.RFC3339), s.howToMake())
}

func (s *tlsState) warn(now time.Time) {
	warn := func(format string, args ...any) { s.warnings = append(s.warnings, fmt.Sprintf(format, args...)) }
	if text := s.expiring(now); text != "" {
		warn("%s", text)
	}
	if info, err := os.Stat(s.KeyFile); err == nil && info.Mode().Perm()&0o077 != 0 {
		warn("tls.key_file %s can be read by others than its owner (mode %s): chmod 600", s.KeyFile, info.Mode().Perm())
	}
	if s.Upgrade {
		warn("rpc_upgrade_mode: plain connections are let in and opened as well, and nobody is verified on them; end it when all agents speak TLS")
	}
}

// readRoots reads the authorities that are believed.
func readRoots(file string, now time.Time) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all, err := parseChain(text)
	if err != nil {
		return nil, err
	}
	pool, valid := x509.NewCertPool(), 0
	for _, c := range all {
		if !c.IsCA {
			return nil, fmt.Errorf("the certificate of %q is no certificate authority", c.Subject.CommonName)
		}
		if !now.After(c.NotAfter) { // a bundle may contain an old one beside its successor
			valid++
			pool.AddCert(c)
		}
	}
	if valid == 0 {
		return nil, fmt.Errorf("the authority %q expired on %s", all[0].Subject.CommonName, all[0].NotAfter.Format(time.RFC3339))
	}
	return pool, nil
}

// parseChain reads all certificates of a PEM text, of which none may be broken.
func parseChain(text []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	rest := text
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(out)+1, err)
		}
		out = append(out, c)
	}
	if strings.Contains(string(rest), "-----BEGIN") {
		return nil, fmt.Errorf("certificate %d is cut off or broken", len(out)+1)
	}
	if len(out) == 0 {
		return nil, errors.New("holds no certificate in PEM (-----BEGIN CERTIFICATE-----)")
	}
	return out, nil
}

// verifyChain reports whether a leaf and what came with it lead to an authority of ours.
func (s *tlsState) verifyChain(chain []*x509.Certificate, use x509.ExtKeyUsage, now time.Time) error {
	o := x509.VerifyOptions{
		Roots: s.roots, Intermediates: x509.NewCertPool(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{use},
	}
	for _, c := range chain[1:] {
		o.Intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(o)
	return err
}

func (s *tlsState) config() *tls.Config {
	c := &tls.Config{
		MinVersion: s.MinVersion, CipherSuites: s.CipherSuites, Certificates: []tls.Certificate{*s.cert},
		SessionTicketsDisabled: true, // each connection is verified by the rules of its day
	}
	if c.MinVersion == 0 {
		c.MinVersion = tls.VersionTLS12
	}
	return c
}

// HTTPS is how the HTTP API is served, with the newest certificates on each connection.
// verifyClient reports whether clients must show a certificate of the authorities.
func (t *TLS) HTTPS(verifyClient func() bool) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		s := t.now.Load()
		c := s.config()
		c.NextProtos = []string{"http/1.1"}
		if verifyClient() {
			c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, s.roots
			if s.roots == nil {
				return nil, errors.New("verify_https_client without ca_file")
			}
		}
		return c, nil
	}}
}

// ParseTLSVersion reads tls_min_version: tls12 or tls13; 0 for the default, "".
func ParseTLSVersion(name string) (uint16, error) {
	switch strings.ToLower(name) {
	case "":
		return 0, nil
	case "tls12":
		return tls.VersionTLS12, nil
	case "tls13":
		return tls.VersionTLS13, nil
	case "tls10", "tls11":
		return 0, fmt.Errorf("%q: is broken, and not spoken; allowed are tls12 and tls13", name)
	}
	return 0, fmt.Errorf("%q: allowed are tls12 and tls13", name)
}

// ParseCipherSuites reads tls_cipher_suites: names of TLS 1.2's suites with commas between,
// nil for the default, "". TLS 1.3 has no choice of suites.
func ParseCipherSuites(names string) ([]uint16, error) {
	if strings.TrimSpace(names) == "" {
		return nil, nil
	}
	known, allowed := map[string]uint16{}, []string{}
	for _, suite := range tls.CipherSuites() {
		if slices.Contains(suite.SupportedVersions, tls.VersionTLS12) {
			known[suite.Name] = suite.ID
			allowed = append(allowed, suite.Name)
		}
	}
	slices.Sort(allowed)
	var out []uint16
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		id, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("%q: is no secure suite of TLS 1.2; allowed are %s", name, strings.Join(allowed, ", "))
		}
		out = append(out, id)
	}
	return out, nil
}
