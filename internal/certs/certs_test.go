package certs

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func newTestCA(t *testing.T, r CARequest) (*CA, *Pair) {
	t.Helper()
	if r.Days == 0 {
		r.Days = 30
	}
	r.Now = now
	p, err := NewCA(r)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := ParseCA(*p)
	if err != nil {
		t.Fatal(err)
	}
	return ca, p
}

func TestIssue(t *testing.T) {
	ca, _ := newTestCA(t, CARequest{})
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	f := func(r Request, names string, ips int, uses ...x509.ExtKeyUsage) {
		t.Helper()
		r.Days, r.Now = 3, now
		p, err := ca.Issue(r)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := ParseCert(p.Cert)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(cert.DNSNames, " "); got != names || len(cert.IPAddresses) != ips {
			t.Errorf("names %s, %d addresses; want %s, %d", got, len(cert.IPAddresses), names, ips)
		}
		if !slices.Equal(cert.ExtKeyUsage, uses) || cert.IsCA {
			t.Errorf("%s: uses %v, CA %v", names, cert.ExtKeyUsage, cert.IsCA)
		}
		if !cert.NotAfter.Equal(now.Add(3*Day)) || cert.NotBefore.After(now) {
			t.Errorf("%s: from %s to %s", names, cert.NotBefore, cert.NotAfter)
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: uses}); err != nil {
			t.Errorf("%s: %v", names, err)
		}
	}
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	f(Request{Role: "server", Region: "global"}, "server.global.nomad localhost", 1, both...)
	f(Request{Role: "client", Region: "eu"}, "client.eu.nomad localhost", 1, both...)
	f(Request{Role: "cli", Region: "eu"}, "cli.eu.nomad localhost", 0, x509.ExtKeyUsageClientAuth)
	f(Request{Role: "server", Region: "eu", Domain: "lab", DNSNames: []string{"s1.lab"}, IPs: []net.IP{net.IPv4(10, 0, 0, 1)}},
		"server.eu.nomad server.eu.lab s1.lab localhost", 2, both...)
}

func TestRefused(t *testing.T) {
	ca, pair := newTestCA(t, CARequest{Domains: []string{"nomad", "localhost"}})
	_, other := newTestCA(t, CARequest{Subject: pkix.Name{CommonName: "other"}})
	issued, err := ca.Issue(Request{Role: "client", Region: "global", Days: 1, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	issue := func(want string, change func(*Request)) {
		t.Helper()
		r := Request{Role: "client", Region: "global", Days: 1, Now: now}
		change(&r)
		if _, err := ca.Issue(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	issue("must be server, client or cli", func(r *Request) { r.Role = "admin" })
	issue("at least 1", func(r *Request) { r.Days = 0 })
	issue("expired on 2026-05-31", func(r *Request) { r.Now = now.Add(31 * Day) })
	issue("a certificate of the role server too", func(r *Request) { r.DNSNames = []string{"server.global.nomad"} })
	issue("a certificate of the role client too", func(r *Request) { r.DNSNames = []string{"client.eu.nomad"} })
	issue("does not allow this certificate", func(r *Request) { r.DNSNames = []string{"web.example"} })

	parse := func(want string, p Pair) {
		t.Helper()
		if _, err := ParseCA(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	parse("no whole certificate", Pair{nil, pair.Key})
	parse("no whole certificate", Pair{pair.Cert[:len(pair.Cert)/2], pair.Key})
	parse("no whole certificate", Pair{pair.Key, pair.Key})
	parse("no whole private key", Pair{pair.Cert, pair.Key[:40]})
	parse("no whole private key", Pair{pair.Cert, pair.Cert})
	parse("not a private key", Pair{pair.Cert, bytes.ReplaceAll(issued.Cert, []byte("CERTIFICATE"), []byte("EC PRIVATE KEY"))})
	parse("not a certificate", Pair{bytes.ReplaceAll(pair.Key, []byte("EC PRIVATE KEY"), []byte("CERTIFICATE")), pair.Key})
	parse("not that of the authority", Pair{pair.Cert, other.Key})
	parse("is no certificate authority", *issued)
	if _, err := NewCA(CARequest{Now: now}); err == nil || !strings.Contains(err.Error(), "at least 1") {
		t.Errorf("a CA of no days: %v", err)
	}
}

// A certificate that outlives its authority would be refused one day without a word before.
func TestLifeEndsWithTheAuthority(t *testing.T) {
	ca, _ := newTestCA(t, CARequest{Days: 10})
	p, err := ca.Issue(Request{Role: "client", Region: "global", Days: 365, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ParseCert(p.Cert)
	if err != nil || !cert.NotAfter.Equal(ca.Cert.NotAfter) {
		t.Errorf("until %v, want %v (%v)", cert.NotAfter, ca.Cert.NotAfter, err)
	}
}
