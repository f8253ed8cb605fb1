package api

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secure is a server that speaks HTTPS, and a file with its authority.
func secure(t *testing.T, change func(*tls.Config)) (server *httptest.Server, ca string) {
	t.Helper()
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`"a:1"`)) }))
	server.TLS = &tls.Config{} // a test
	change(server.TLS)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return server, ca
}

func TestTLS(t *testing.T) {
	t.Parallel()
	open, ca := secure(t, func(*tls.Config) {})
	closed, closedCA := secure(t, func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert })
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(plain.Close)
	f := func(address string, c TLSConfig, want string) {
		t.Helper()
		client, err := New(Config{Address: address, TLS: c})
		if err == nil {
			_, err = client.Status().Leader(t.Context())
			client.http.CloseIdleConnections()
		}
		if want == "" {
			if err != nil {
				t.Error(err)
			}
			return
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		var nobody *Unreachable
		if errors.As(err, &nobody) {
			t.Errorf("it says that nobody answers: %v", err)
		}
	}
	f(open.URL, TLSConfig{CACert: ca}, "")
	f(strings.TrimPrefix(open.URL, "https://"), TLSConfig{CACert: ca}, "") // TLS is meant
	f(open.URL, TLSConfig{CAPath: filepath.Dir(ca)}, "")
	f(open.URL, TLSConfig{Insecure: true}, "")
	f(open.URL, TLSConfig{CACert: ca, TLSServerName: "example.com"}, "")
	f(open.URL, TLSConfig{}, "-ca-cert or NOMADISH_CACERT")
	f(open.URL, TLSConfig{CACert: ca, TLSServerName: "other.org"}, "-tls-server-name or NOMADISH_TLS_SERVER_NAME")
	f(closed.URL, TLSConfig{CACert: closedCA}, "-client-cert and -client-key")
	f(strings.Replace(open.URL, "https://", "http://", 1), TLSConfig{}, "write its address as https://")
	f(strings.Replace(plain.URL, "http://", "https://", 1), TLSConfig{}, "write its address as http://")
	f(open.URL, TLSConfig{CACert: "/nowhere.pem"}, "CA certificate: open /nowhere.pem")
	f(open.URL, TLSConfig{CAPath: "/nowhere"}, "directory of CA certificates: open /nowhere")
	f(open.URL, TLSConfig{CAPath: t.TempDir()}, "no file holds a certificate")
	f(open.URL, TLSConfig{ClientCert: ca}, "go together: name both")
	f(open.URL, TLSConfig{ClientCert: ca, ClientKey: ca}, "client certificate "+ca+" with key "+ca)
}

func TestTLSFromEnv(t *testing.T) {
	t.Setenv("NOMAD_CACERT", "a")
	t.Setenv("NOMADISH_CACERT", "b")
	t.Setenv("NOMAD_CAPATH", "c")
	t.Setenv("NOMAD_CLIENT_CERT", "d")
	t.Setenv("NOMAD_CLIENT_KEY", "e")
	t.Setenv("NOMAD_TLS_SERVER_NAME", "f")
	t.Setenv("NOMAD_SKIP_VERIFY", "1")
	want := TLSConfig{CACert: "b", CAPath: "c", ClientCert: "d", ClientKey: "e", TLSServerName: "f", Insecure: true}
	if got := (Config{}).FromEnv().TLS; got != want {
		t.Errorf("%+v", got)
	}
	if got := (Config{TLS: TLSConfig{CACert: "mine"}}).FromEnv().TLS.CACert; got != "mine" {
		t.Errorf("the environment wins: %q", got)
	}
	t.Setenv("NOMADISH_SKIP_VERIFY", "maybe")
	if _, err := New((Config{}).FromEnv()); err == nil || !strings.Contains(err.Error(), `"maybe": must be true or false`) {
		t.Error(err)
	}
}
