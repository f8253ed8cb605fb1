package httpapi

import (
	"bytes"
	"log"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestFaultsAreToldOnce(t *testing.T) {
	var out bytes.Buffer
	l := log.New(&faults{logger: hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Debug})}, "", 0)
	f := func(line, level string) {
		t.Helper()
		out.Reset()
		l.Print(line)
		if got := out.String(); !strings.Contains(got, level) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: %q", line, got)
		}
	}
	f("http: TLS handshake error from 10.0.0.1:5: tls: client didn't provide a certificate", "[WARN]")
	f("http: TLS handshake error from 10.0.0.1:6: tls: client didn't provide a certificate", "[DEBUG]")
	f("http: TLS handshake error from [::1]:6: tls: client didn't provide a certificate", "[WARN]")
	f("http: TLS handshake error from 10.0.0.1:7: tls: bad certificate", "[WARN]")
	const expired = "tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-22T03:00:0"
	f("http: TLS handshake error from 10.0.0.1:7: "+expired+"1Z is after 2026-11-20T03:00:00Z", "[WARN]")
	f("http: TLS handshake error from 10.0.0.1:7: "+expired+"2Z is after 2026-11-20T03:00:00Z", "[DEBUG]")
	f("http: TLS handshake error from 10.0.0.1:7: tls: client offered only unsupported versions: [301]", "[WARN]")
	f("http: TLS handshake error from 10.0.0.1:7: tls: client offered only unsupported versions: [301 300]", "[DEBUG]")
	f("http: TLS handshake error from 10.0.0.1:8: EOF", "[DEBUG]")
	f("http: TLS handshake error from 10.0.0.1:8: read tcp: i/o timeout", "[DEBUG]")
	f("http: TLS handshake error from", "[DEBUG]")
	f("http: superfluous response.WriteHeader call", "[DEBUG]")
}
