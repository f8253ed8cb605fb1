package command

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/nomadish/nomadish/internal/certs"
)

// maxPEM bounds a certificate's file in bytes.
const maxPEM = 1 << 20

// checkCertPart refuses what cannot be a part of a DNS name, and so none of a file's name.
func checkCertPart(flagName, value string) error {
	for label := range strings.SplitSeq(value, ".") {
		if label == "" || len(label) > 63 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") || strings.ContainsFunc(label, notInLabel) {
			return fmt.Errorf("-%s %q: must be a DNS name: letters, digits and -, with dots between", flagName, value)
		}
	}
	return nil
}

func notInLabel(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

// writePair writes a certificate and its key, for their owner only. It writes over
// nothing, and leaves nothing behind if it fails.
func writePair(certFile, keyFile string, p *certs.Pair) error {
	if err := writeNew(keyFile, p.Key); err != nil {
		return err
	}
	if err := writeNew(certFile, p.Cert); err != nil {
		return errors.Join(err, os.Remove(keyFile))
	}
	return nil
}

func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already, and is not written over: move it away, or work in another directory", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(path))
	}
	return nil
}

func readPEM(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxPEM {
		return nil, fmt.Errorf("%s: is no file of at most %d bytes", path, maxPEM)
	}
	return os.ReadFile(path)
}

// readCert reads the first certificate of a file.
func readCert(path string) (*x509.Certificate, error) {
	text, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	cert, err := certs.ParseCert(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return cert, nil
}

// certInfo is what the info commands show of a certificate.
type certInfo struct {
	SerialNumber        string
	IssuerCN            string
	CommonName          string
	ExpiryDate          time.Time
	DNSNames            []string
	IPAddresses         []string
	PermittedDNSDomains []string
	CA                  bool
}

func infoOf(c *x509.Certificate) certInfo {
	info := certInfo{
		SerialNumber: c.SerialNumber.String(), IssuerCN: c.Issuer.CommonName, CommonName: c.Subject.String(),
		ExpiryDate: c.NotAfter, DNSNames: c.DNSNames, PermittedDNSDomains: c.PermittedDNSDomains, CA: c.IsCA,
	}
	for _, ip := range c.IPAddresses {
		info.IPAddresses = append(info.IPAddresses, ip.String())
	}
	return info
}

// rows are the lines that CAs and certificates share.
func (i certInfo) rows(now time.Time) [][]string {
	expiry := i.ExpiryDate.Format("2006-01-02 15:04:05 -0700 MST")
	if now.After(i.ExpiryDate) {
		expiry += " (expired)"
	}
	return [][]string{
		{"Serial Number", i.SerialNumber}, {"Issuer CN", i.IssuerCN}, {"Common Name", i.CommonName}, {"Expiry Date", expiry},
	}
}
