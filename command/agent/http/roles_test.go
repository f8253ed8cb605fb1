package httpapi

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/certs"
	"github.com/nomadish/nomadish/internal/wire"
)

// standsFor checks that a route stands for a row of the table that is no wider than the one of the method that it
// called.
func standsFor(t *testing.T, s *Server, method, path, called string) {
	t.Helper()
	path, _, _ = strings.Cut(path, "?")
	m := s.routes.match(path)
	row, ok := wire.MethodNamed(m.route.actions[method].standsFor)
	if !ok {
		t.Errorf("%s %s stands for %q, which is not in the table", method, path, m.route.actions[method].standsFor)
	}
	if below, ok := wire.MethodNamed(called); called != "" && (!ok || row.Callers&^below.Callers != 0) {
		t.Errorf("%s %s may be called by some who may not call %s", method, path, called)
	}
}

// strictTLS is how an agent of the region global verifies its callers.
func strictTLS(t *testing.T) *wire.TLS {
	t.Helper()
	pair, err := certs.NewCA(certs.CARequest{Days: 10, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	ca, err := certs.ParseCA(*pair)
	if err != nil {
		t.Fatal(err)
	}
	own, err := ca.Issue(certs.Request{Role: "server", Region: "global", Days: 1, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	rules, err := wire.LoadTLS(wire.TLSOptions{
		CAFile: write("ca.pem", pair.Cert), CertFile: write("cert.pem", own.Cert), KeyFile: write("key.pem", own.Key), Region: "global",
	}, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestRouteRoles is every route there is with a certificate of every kind.
func TestRouteRoles(t *testing.T) {
	cfg := testConfig(newFake())
	cfg.Debug, cfg.Peer = true, strictTLS(t).OnHTTPS
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(method, path string, names ...string) bool {
		t.Helper()
		leaf := &x509.Certificate{DNSNames: names}
		r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
		r.Host = "localhost"
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf}}}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code == http.StatusForbidden && !strings.Contains(w.Body.String(), "may not call it; it needs one for cli.global.nomad") {
			t.Errorf("%s %s as %v: %s", method, path, names, w.Body)
		}
		return w.Code == http.StatusForbidden
	}
	anyone := []string{"/.well-known/jwks.json", "/v1/agent/health", "/v1/agent/members", "/v1/metrics", "/v1/regions", "/v1/status/leader", "/v1/status/peers"}
	routes := 0
	for _, r := range s.table() {
		for method, do := range r.actions {
			routes++
			if _, ok := wire.MethodNamed(do.standsFor); !ok {
				t.Errorf("%s %s stands for %q, which is not in the table", method, r.path, do.standsFor)
			}
			if do.standsFor == wire.AgentDebug && strings.HasPrefix(r.path, "/debug/pprof/") && r.path != "/debug/pprof/cmdline" {
				continue // it profiles for a while; the others are refused below
			}
			path := strings.ReplaceAll(r.path, "*", "x")
			operators := slices.ContainsFunc([]string{
				"/v1/operator/", "/v1/system/", "/v1/agent/keyring/", "/v1/agent/join", "/v1/agent/force-leave", "/v1/agent/reload",
				"/v1/agent/schedulers", "/v1/agent/host", "/v1/agent/monitor", "/v1/agent/pprof/", "/debug/",
			}, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) || path == "/v1/agent/servers" && method != http.MethodGet ||
				path == "/v1/evaluations" && method == http.MethodDelete
			missing := r.later || do.standsFor == wire.AgentMissing
			if got, want := refused(method, path, "client.global.nomad", "localhost"), operators || !missing && !slices.Contains(anyone, path); got != want {
				t.Errorf("%s %s as a client: refused %v", method, path, got)
			}
			for _, name := range []string{"ann.example.org", "cli.eu.nomad", "server.eu.nomad"} {
				if got := refused(method, path, name); got != operators {
					t.Errorf("%s %s as %s: refused %v", method, path, name, got)
				}
			}
			for _, name := range []string{"server.global.nomad", "cli.global.nomad"} {
				if refused(method, path, name) {
					t.Errorf("%s %s as %s: refused", method, path, name)
				}
			}
		}
	}
	if routes < 300 {
		t.Errorf("there are %d routes", routes)
	}
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile", "/debug/pprof/trace", "/debug/pprof/symbol"} {
		if !refused("GET", path, "client.global.nomad") || !refused("GET", path, "ann.example.org") {
			t.Errorf("%s is not refused", path)
		}
	}
	if !refused("HEAD", "/v1/operator/raft/configuration", "client.global.nomad") {
		t.Error("HEAD is not refused")
	}
}
