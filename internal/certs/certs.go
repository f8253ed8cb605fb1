package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// skew is how much before its making a certificate is valid, for machines whose clocks
// are behind.
const skew = 5 * time.Minute

// Day is what lifetimes are counted in.
const Day = 24 * time.Hour

// Pair is a certificate and its key, as PEM.
type Pair struct{ Cert, Key []byte }

// CARequest describes the authority to make.
type CARequest struct {
	// Subject is its name. Without a common name it is called Nomadish Agent CA.
	Subject pkix.Name
	Days    int // of its life; at least 1
	// Domains, if there are any, are the only ones that its certificates may name.
	Domains []string
	Now     time.Time
}

// NewCA makes an authority that signs itself.
func NewCA(r CARequest) (*Pair, error) {
	if r.Days < 1 {
		return nil, fmt.Errorf("%d days: a certificate is valid for at least 1", r.Days)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	if r.Subject.CommonName == "" {
		r.Subject.CommonName = "Nomadish Agent CA " + serial.String() // distinguishes authorities
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: r.Subject,
		NotBefore: r.Now.Add(-skew), NotAfter: r.Now.Add(time.Duration(r.Days) * Day),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:            x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		PermittedDNSDomains: r.Domains, PermittedDNSDomainsCritical: len(r.Domains) > 0,
	}
	return sign(t, nil, nil)
}

// CA is an authority that can sign.
type CA struct {
	Cert *x509.Certificate
	key  crypto.Signer
}

// ParseCA reads an authority and its key. It refuses a certificate that is no authority
// and a key that is not its own. Keys may be ECDSA, RSA or Ed25519, in PKCS #8, PKCS #1
// or SEC 1.
func ParseCA(p Pair) (*CA, error) {
	cert, err := ParseCert(p.Cert)
	if err != nil {
		return nil, err
	}
	if !cert.IsCA {
		return nil, fmt.Errorf("the certificate of %q is no certificate authority", cert.Subject.CommonName)
	}
	if cert.KeyUsage != 0 && cert.KeyUsage&x509.KeyUsageCertSign == 0 {
		return nil, fmt.Errorf("the authority %q may not sign certificates", cert.Subject.CommonName)
	}
	key, err := parseKey(p.Key)
	if err != nil {
		return nil, err
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(cert.PublicKey) {
		return nil, fmt.Errorf("the key is not that of the authority %q", cert.Subject.CommonName)
	}
	return &CA{Cert: cert, key: key}, nil
}

// ParseCert reads the first certificate of a PEM text.
func ParseCert(text []byte) (*x509.Certificate, error) {
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("holds no whole certificate in PEM (-----BEGIN CERTIFICATE-----)")
		}
		if block.Type == "CERTIFICATE" {
			cert, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, fmt.Errorf("not a certificate: %w", err)
			}
			return cert, nil
		}
	}
}

func parseKey(text []byte) (crypto.Signer, error) {
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("holds no whole private key in PEM (-----BEGIN … PRIVATE KEY-----)")
		}
		var key any
		var err error
		switch block.Type {
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "ENCRYPTED PRIVATE KEY":
			return nil, errors.New("the key is encrypted; decrypt it first")
		default: // for example EC PARAMETERS
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("not a private key: %w", err)
		}
		signer, ok := key.(crypto.Signer)
		if !ok {
			return nil, fmt.Errorf("a key of type %T cannot sign", key)
		}
		return signer, nil
	}
}

// Request describes the certificate to make.
type Request struct {
	Role   string // structs.CertServer, CertClient or CertCLI
	Region string
	// Domain is the cluster's, if it is not structs.CertDomain: the role is stated under
	// both.
	Domain string
	Days   int // of its life, if the authority lives as long; at least 1
	// DNSNames and IPs are named besides the role's name, and localhost.
	DNSNames []string
	IPs      []net.IP
	Now      time.Time
}

func (r *Request) names() ([]string, error) {
	if r.Role != structs.CertServer && r.Role != structs.CertClient && r.Role != structs.CertCLI {
		return nil, fmt.Errorf("role %q: must be server, client or cli", r.Role)
	}
	own := structs.CertName(r.Role, r.Region)
	names := []string{own}
	if r.Domain != "" && r.Domain != structs.CertDomain {
		names = append(names, r.Role+"."+r.Region+"."+r.Domain)
	}
	for _, n := range r.DNSNames {
		if role, _, ok := structs.ParseCertName(n); ok {
			return nil, fmt.Errorf("the name %q would make it a certificate of the role %s too: make one for each role and region", n, role)
		}
		names = append(names, n)
	}
	return append(names, "localhost"), nil
}

// Issue makes a key and signs its certificate, whose life ends with the authority's at
// the latest.
func (c *CA) Issue(r Request) (*Pair, error) {
	names, err := r.names()
	if err != nil {
		return nil, err
	}
	if r.Days < 1 {
		return nil, fmt.Errorf("%d days: a certificate is valid for at least 1", r.Days)
	}
	if r.Now.After(c.Cert.NotAfter) {
		return nil, fmt.Errorf("the authority %q expired on %s; make a new one", c.Cert.Subject.CommonName, c.Cert.NotAfter.Format(time.RFC3339))
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, IPAddresses: r.IPs,
		NotBefore: r.Now.Add(-skew), NotAfter: r.Now.Add(time.Duration(r.Days) * Day),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if t.NotAfter.After(c.Cert.NotAfter) {
		t.NotAfter = c.Cert.NotAfter
	}
	if r.Role != structs.CertCLI { // agents serve as well: RPC, HTTP
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		t.IPAddresses = append([]net.IP{net.IPv4(127, 0, 0, 1)}, r.IPs...)
	}
	p, err := sign(t, c.Cert, c.key)
	if err != nil {
		return nil, err
	}
	return p, c.accepts(p, r.Now)
}

// accepts reports whether the authority's own limits allow the certificate.
func (c *CA) accepts(p *Pair, now time.Time) error {
	cert, err := ParseCert(p.Cert)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.Cert)
	_, err = cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if err != nil {
		return fmt.Errorf("the authority %q does not allow this certificate: %w", c.Cert.Subject.CommonName, err)
	}
	return nil
}

// sign makes a key and a certificate of the template; without a parent it signs itself.
func sign(t, parent *x509.Certificate, by crypto.Signer) (*Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	if parent == nil {
		parent, by = t, key
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, key.Public(), by)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate: %w", err)
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the key: %w", err)
	}
	return &Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}),
	}, nil
}

func newSerial() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)) // 20 bytes at most, and positive
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	return n.Add(n, big.NewInt(1)), nil
}
