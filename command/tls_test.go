package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/internal/certs"
)

// tlsOK runs a tls command that must succeed and gives its output.
func tlsOK(t *testing.T, args ...string) string {
	t.Helper()
	got := line(t, append([]string{"tls"}, args...)...)
	if got.code != exitDone || got.err != "" {
		t.Fatalf("tls %q: exit code %d, stderr %q", args, got.code, got.err)
	}
	return got.out
}

func TestTLSFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	if got, want := tlsOK(t, "ca", "create"),
		"==> CA certificate saved to: nomad-agent-ca.pem\n==> CA certificate key saved to: nomad-agent-ca-key.pem\n"; got != want {
		t.Errorf("ca create says %q", got)
	}
	wants(t, tlsOK(t, "cert", "create", "-server"), "==> WARNING: A server certificate", "==> Using CA file nomad-agent-ca.pem and CA key nomad-agent-ca-key.pem",
		"==> Server Certificate saved to global-server-nomad.pem", "==> Server Certificate key saved to global-server-nomad-key.pem")
	wants(t, tlsOK(t, "cert", "create", "-client", "-region", "eu", "-additional-dnsname", "c1.lab", "-additional-ipaddress", "10.0.0.9"),
		"==> Client Certificate saved to eu-client-nomad.pem\n")
	wants(t, tlsOK(t, "cert", "create", "-cli"), "==> Cli Certificate saved to global-cli-nomad.pem\n")
	wants(t, tlsOK(t, "cert", "info", "global-server-nomad.pem"), "Serial Number  ", "Issuer CN      Nomadish Agent CA ",
		"Common Name    CN=server.global.nomad", "Expiry Date    20", "DNS Names      [server.global.nomad localhost]", "IP Addresses   [127.0.0.1]")
	wants(t, tlsOK(t, "cert", "info", "eu-client-nomad.pem"), "[client.eu.nomad c1.lab localhost]", "[127.0.0.1 10.0.0.9]")
	wants(t, tlsOK(t, "cert", "info", "global-cli-nomad.pem"), "[cli.global.nomad localhost]", "IP Addresses   []")
	wants(t, tlsOK(t, "ca", "info"), "Permitted DNS Domains  []")
	var info certInfo
	if err := json.Unmarshal([]byte(tlsOK(t, "ca", "info", "-json", "nomad-agent-ca.pem")), &info); err != nil || !info.CA || info.SerialNumber == "" {
		t.Errorf("as JSON: %+v %v", info, err)
	}
	files, err := filepath.Glob("*.pem")
	if err != nil || len(files) != 8 {
		t.Errorf("files %v %v", files, err)
	}
	for _, f := range files {
		if st, err := os.Stat(f); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", f, st.Mode(), err)
		}
	}
}

func TestTLSDomains(t *testing.T) {
	t.Chdir(t.TempDir())
	wants(t, tlsOK(t, "ca", "create", "-domain", "lab.example", "-name-constraint", "-additional-domain", "ui.example", "-organization", "Lab", "-common-name", "Ours"),
		"saved to: lab.example-agent-ca.pem\n")
	wants(t, tlsOK(t, "ca", "info", "lab.example-agent-ca.pem"), "CN=Ours,O=Lab", "[lab.example nomad localhost ui.example]")
	wants(t, tlsOK(t, "cert", "create", "-server", "-domain", "lab.example", "-additional-dnsname", "web.ui.example"), "saved to global-server-lab.example.pem")
	wants(t, tlsOK(t, "cert", "info", "global-server-lab.example.pem"), "[server.global.nomad server.global.lab.example web.ui.example localhost]")
	got := line(t, "tls", "cert", "create", "-client", "-domain", "lab.example", "-additional-dnsname", "elsewhere.org")
	if got.code != exitFailed || !strings.Contains(got.err, "does not allow this certificate") {
		t.Errorf("a name beyond the CA's: exit code %d, %q", got.code, got.err)
	}
}

// What exists stays as it is, and what fails leaves nothing.
func TestTLSWritesOverNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"nomad-agent-ca.pem", "nomad-agent-ca-key.pem"} {
		if err := os.WriteFile(name, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		got := line(t, "tls", "ca", "create")
		if got.code != exitFailed || !strings.Contains(got.err, name+" exists already") {
			t.Errorf("%s: exit code %d, %q", name, got.code, got.err)
		}
		entries, err := os.ReadDir(".")
		if err != nil || len(entries) != 1 {
			t.Errorf("%s: left behind %v %v", name, entries, err)
		}
		if text, err := os.ReadFile(name); err != nil || string(text) != "mine" {
			t.Errorf("%s: %q %v", name, text, err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTLSShortCA(t *testing.T) {
	t.Chdir(t.TempDir())
	tlsOK(t, "ca", "create", "-days", "10")
	wants(t, tlsOK(t, "cert", "create", "-client"), "==> WARNING: It is valid until ")
}

func TestTLSRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	f := func(want string, args ...string) {
		t.Helper()
		before, _ := filepath.Glob("*")
		got := line(t, append([]string{"tls"}, args...)...)
		if got.code != exitFailed || !strings.Contains(got.err, want) {
			t.Errorf("%q: exit code %d, %q; want %s", args, got.code, got.err, want)
		}
		if after, _ := filepath.Glob("*"); !slices.Equal(before, after) {
			t.Errorf("%q: left %v", args, after)
		}
	}
	f("`nomadish tls ca create` makes one", "cert", "create", "-server")
	f("no such file", "ca", "info")
	tlsOK(t, "ca", "create")
	tlsOK(t, "ca", "create", "-domain", "other")
	tlsOK(t, "cert", "create", "-cli")
	key, err := os.ReadFile("nomad-agent-ca-key.pem")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"cut.pem": key[:len(key)/2], "huge.pem": make([]byte, maxPEM+1), "empty.pem": nil} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f("one of -server, -client and -cli", "cert", "create")
	f("one of -server, -client and -cli", "cert", "create", "-server", "-client")
	f("no arguments are taken", "cert", "create", "-server", "x")
	f("no arguments are taken", "ca", "create", "x")
	f(`-days 0: must be at least 1`, "cert", "create", "-client", "-days", "0")
	f(`-days -1: must be at least 1`, "ca", "create", "-days", "-1")
	f(`-region "a/b": must be a DNS name`, "cert", "create", "-client", "-region", "a/b")
	f(`-domain "..": must be a DNS name`, "cert", "create", "-client", "-domain", "..")
	f(`-domain "../x": must be a DNS name`, "ca", "create", "-domain", "../x")
	f(`-additional-dnsname "a b"`, "cert", "create", "-client", "-additional-dnsname", "a b")
	f(`-additional-ipaddress "10.0.0": must be an IP`, "cert", "create", "-client", "-additional-ipaddress", "10.0.0")
	f("of the role server too", "cert", "create", "-client", "-additional-dnsname", "server.global.nomad")
	f("has no effect without -name-constraint", "ca", "create", "-additional-domain", "x.org")
	f(`-additional-domain "x/y"`, "ca", "create", "-name-constraint", "-additional-domain", "x/y")
	f("not that of the authority", "cert", "create", "-server", "-key", "other-agent-ca-key.pem")
	f("no certificate authority", "cert", "create", "-server", "-ca", "global-cli-nomad.pem", "-key", "global-cli-nomad-key.pem")
	f("no whole private key", "cert", "create", "-server", "-key", "cut.pem")
	f("no whole certificate", "cert", "create", "-server", "-ca", "cut.pem")
	f("no whole certificate", "cert", "info", "empty.pem")
	f("huge.pem: is no file of at most", "cert", "info", "huge.pem")
	f(".: is no file of at most", "cert", "info", ".")
	f("one certificate file is needed", "cert", "info")
	f("one CA file is taken", "ca", "info", "a", "b")
	f("`nomadish tls cert info global-cli-nomad.pem` shows it", "ca", "info", "global-cli-nomad.pem")
	f("global-cli-nomad-key.pem exists already", "cert", "create", "-cli")
	f("Subcommands:", "ca")
}

// An expired CA or certificate is shown as such.
func TestTLSInfoOfTheExpired(t *testing.T) {
	pair, err := certs.NewCA(certs.CARequest{Days: 1})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pair.Cert, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := line(t, "tls", "ca", "info", file); got.code != exitDone || !strings.Contains(got.out, "0001-01-02 00:00:00 +0000 UTC (expired)") {
		t.Errorf("%d %q %q", got.code, got.out, got.err)
	}
}
