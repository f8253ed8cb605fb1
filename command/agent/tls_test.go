package agent

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nomadish/nomadish/command/agent/config"
	"github.com/nomadish/nomadish/internal/certs"
)

// certFiles makes ca.pem, and for a role and its region ROLE.pem and ROLE-key.pem.
type certFiles struct {
	t   *testing.T
	dir string
	ca  *certs.CA
}

func newCertFiles(t *testing.T) *certFiles {
	t.Helper()
	f := &certFiles{t: t, dir: t.TempDir()}
	pair, err := certs.NewCA(certs.CARequest{Days: 40, Now: time.Now().Add(-10 * certs.Day)})
	if err != nil {
		t.Fatal(err)
	}
	if f.ca, err = certs.ParseCA(*pair); err != nil {
		t.Fatal(err)
	}
	f.write("ca.pem", pair.Cert)
	return f
}

func (f *certFiles) write(name string, text []byte) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), text, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *certFiles) issue(role string) {
	f.t.Helper()
	f.issueAs(role, certs.Request{Role: role, Region: "global", Days: 20, Now: time.Now()})
}

// issueAs makes NAME.pem and NAME-key.pem.
func (f *certFiles) issueAs(name string, r certs.Request) {
	f.t.Helper()
	p, err := f.ca.Issue(r)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(name+".pem", p.Cert)
	f.write(name+"-key.pem", p.Key)
}

// block is a tls block that names them.
func (f *certFiles) block(role, more string) string {
	return fmt.Sprintf("tls {\n ca_file = %q\n cert_file = %q\n key_file = %q\n%s\n}\n",
		filepath.Join(f.dir, "ca.pem"), filepath.Join(f.dir, role+".pem"), filepath.Join(f.dir, role+"-key.pem"), more)
}

// get asks an agent by HTTPS, with a role's certificate or none, and gives the serial
// number of the agent's.
func (f *certFiles) get(addr, role string) (serial string, err error) {
	f.t.Helper()
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	c.RootCAs.AddCert(f.ca.Cert)
	if role != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(f.dir, role+".pem"), filepath.Join(f.dir, role+"-key.pem"))
		if err != nil {
			f.t.Fatal(err)
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil } // asked for or not
	}
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, "https://"+addr+"/v1/status/leader", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true, TLSClientConfig: c}).RoundTrip(req)
	if err != nil {
		return "", err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d", resp.StatusCode)
	}
	return resp.TLS.PeerCertificates[0].SerialNumber.String(), nil
}

// Callers whose certificate has expired, is of another authority, or missing, are refused, each fault is logged once, and the
// others are served.
func TestUnknownOverHTTPS(t *testing.T) {
	files, others := newCertFiles(t), newCertFiles(t)
	files.issue("server")
	files.issue("cli")
	files.issueAs("old", certs.Request{Role: "cli", Region: "global", Days: 1, Now: time.Now().Add(-3 * certs.Day)})
	others.dir = files.dir
	others.issueAs("other", certs.Request{Role: "cli", Region: "global", Days: 20, Now: time.Now()})
	files.write("agent.hcl", []byte(files.block("server", "http = true\nrpc = true\nverify_https_client = true")))
	r := launch(t, &world{}, "-dev", "-http-port=0", "-config="+filepath.Join(files.dir, "agent.hcl"))
	reported := map[string]string{"old": "has expired", "other": "unknown authority", "": "didn't provide a certificate"}
	for name := range reported {
		for range 3 {
			if _, err := files.get(r.addr, name); err == nil {
				t.Errorf("a caller with the certificate %q was answered", name)
			}
		}
		if _, err := files.get(r.addr, "cli"); err != nil {
			t.Errorf("a caller with a good certificate: %v", err)
		}
	}
	for name, text := range reported {
		r.out.awaitText(t, text)
		told := 0
		for line := range strings.Lines(r.out.String()) {
			if strings.Contains(line, "[WARN]") && strings.Contains(line, text) {
				told++
			}
		}
		if told != 1 {
			t.Errorf("the certificate %q is logged %d times:\n%s", name, told, r.out.String())
		}
	}
	r.signals <- syscall.SIGINT
	if code := <-r.code; code != 0 {
		t.Errorf("exit %d: %s", code, r.err)
	}
}

// TestCheckConfigTLS: a configuration whose certificates an agent refuses at its start is not valid, for the same reason.
func TestCheckConfigTLS(t *testing.T) {
	files := newCertFiles(t)
	files.issue("server")
	files.issue("client")
	files.issueAs("old", certs.Request{Role: "server", Region: "global", Days: 1, Now: time.Now().Add(-3 * certs.Day)})
	files.issueAs("soon", certs.Request{Role: "server", Region: "global", Days: 3, Now: time.Now()})
	config := filepath.Join(files.dir, "agent.hcl")
	check := func(cert, warns, refused string) {
		t.Helper()
		files.write("agent.hcl", []byte("data_dir = \"/var/lib/nomadish\"\nserver {\n  enabled = true\n  bootstrap_expect = 1\n}\n"+
			files.block(cert, "http = true\nrpc = true\nverify_server_hostname = true")))
		warnings, err := CheckConfig(config)
		if (err != nil) != (refused != "") || err != nil && !strings.Contains(err.Error(), refused) || !strings.Contains(warnings.Error(), warns) {
			t.Errorf("%s: %v, warnings %v; want an error with %q and a warning with %q", cert, err, warnings, refused, warns)
		}
	}
	check("server", "", "")
	check("soon", "expires on", "")
	check("old", "", "expired on")
	check("client", "", "names [client.global.nomad")
	check("none", "", "none.pem: no such file")
}

// TestExpiry: an agent that runs warns each day of the end of its certificate, from seven days before it on, and after it, and measures
// how far it is.
func TestExpiry(t *testing.T) {
	files := newCertFiles(t)
	files.issue("server") // for 20 days
	files.write("agent.hcl", []byte(files.block("server", "rpc = true\nverify_server_hostname = true")))
	r := launch(t, &world{}, "-dev", "-http-port=0", "-config="+filepath.Join(files.dir, "agent.hcl"))
	_, metrics := r.get(t, "/v1/metrics?format=prometheus")
	found := regexp.MustCompile(`(?m)^nomad_tls_certificate_seconds_left(?:{.*})? (\S+)$`).FindStringSubmatch(metrics)
	if found == nil {
		t.Fatal("the metric is missing")
	}
	if left, err := strconv.ParseFloat(found[1], 64); err != nil || left < 19.9*86_400 || left > 20*86_400 {
		t.Errorf("%s s are left, %v; want 20 days", found[1], err)
	}
	r.signals <- syscall.SIGINT
	if code := <-r.code; code != 0 {
		t.Errorf("exit %d: %s", code, r.err)
	}

	out := &output{}
	cfg := config.Default()
	cfg.TLS = config.TLS{RPC: true, VerifyServerHostname: true, CAFile: filepath.Join(files.dir, "ca.pem")}
	cfg.Server.Enabled = true
	cfg.TLS.CertFile, cfg.TLS.KeyFile = filepath.Join(files.dir, "server.pem"), filepath.Join(files.dir, "server-key.pem")
	a := &Agent{cfg: cfg, logger: newLogger(cfg, out)}
	if err := a.loadTLS(); err != nil {
		t.Fatal(err)
	}
	days, ended, done := make(chan time.Time), make(chan struct{}), make(chan struct{})
	go func() {
		a.warnExpiry(days, ended)
		close(done)
	}()
	for _, day := range []int{1, 12, 14, 15, 21} {
		days <- time.Now().Add(time.Duration(day) * 24 * time.Hour)
	}
	close(ended)
	<-done
	logged := out.String()
	if strings.Count(logged, "server.pem expires on") != 2 || strings.Count(logged, "server.pem expired on") != 1 ||
		!strings.Contains(logged, "`nomadish tls cert create -server -region global` makes one") {
		t.Errorf("want warnings of two days, and one after the end, with what to do:\n%s", logged)
	}
}

// HTTPS asks callers for certificates if it shall. SIGHUP takes new certificates, and
// refuses broken ones.
func TestHTTPS(t *testing.T) {
	files := newCertFiles(t)
	files.issue("server")
	files.issue("cli")
	config := filepath.Join(files.dir, "agent.hcl")
	configure := func(text string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure(files.block("server", "http = true\nrpc = true\nverify_https_client = true"))
	r := launch(t, &world{}, "-dev", "-http-port=0", "-config="+config)
	r.out.awaitText(t, "verify_server_hostname is off")
	first, err := files.get(r.addr, "cli")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.get(r.addr, ""); err == nil {
		t.Error("a caller without a certificate was answered")
	}
	if code, body := r.get(t, "/v1/status/leader"); code != http.StatusBadRequest || !strings.Contains(body, "HTTPS server") {
		t.Errorf("plain HTTP: %d %s", code, body)
	}

	old, err := os.ReadFile(filepath.Join(files.dir, "server.pem"))
	if err != nil {
		t.Fatal(err)
	}
	files.write("server.pem", old[:len(old)/2])
	r.signals <- syscall.SIGHUP
	r.out.awaitText(t, "the old one stays")
	if serial, err := files.get(r.addr, "cli"); err != nil || serial != first {
		t.Errorf("after a broken file: %s %v, want %s", serial, err, first)
	}
	files.issue("server")
	configure("log_level = \"INFO\"\n" + files.block("server", "http = true"))
	r.signals <- syscall.SIGHUP
	r.out.awaitText(t, "configuration reloaded")
	if !strings.Contains(r.out.String(), "tls.http and tls.rpc are not changed by a reload") {
		t.Error("it does not say that RPC stays as it was")
	}
	if serial, err := files.get(r.addr, ""); err != nil || serial == first {
		t.Errorf("after a reload without verify_https_client: %s %v", serial, err)
	}
	r.signals <- syscall.SIGINT
	if code := <-r.code; code != 0 {
		t.Errorf("exit %d: %s", code, r.err)
	}
}

// TestHTTPSHosts: an agent is addressed by the names of the certificate that is in use, and by its own.
func TestHTTPSHosts(t *testing.T) {
	files := newCertFiles(t)
	issue := func(names ...string) {
		files.issueAs("server", certs.Request{Role: "server", Region: "global", Days: 20, Now: time.Now(), DNSNames: names})
	}
	issue("*.nodes.example.com", "api.example.com")
	files.write("agent.hcl", []byte("name = \"agent-7\"\nadvertise {\n  http = \"adv.example.com:443\"\n}\nhttp_config {\n  allowed_hosts = [\"proxy.example.com\"]\n}\n"+
		files.block("server", "http = true\nrpc = true")))
	r := launch(t, &world{}, "-dev", "-http-port=0", "-config="+filepath.Join(files.dir, "agent.hcl"))
	_, bound, _ := strings.Cut(r.out.String(), "Bind Addrs: HTTP: [") // others reach it at what it advertises
	addr, _, _ := strings.Cut(bound, "]")
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	c.RootCAs.AddCert(files.ca.Cert)
	wants := func(hosts map[string]int) {
		t.Helper()
		for host, want := range hosts {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr+"/v1/agent/self", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			resp, err := (&http.Transport{DisableKeepAlives: true, TLSClientConfig: c}).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("host %s: %d, want %d", host, resp.StatusCode, want)
			}
		}
	}
	wants(map[string]int{
		"server.global.nomad": 200, "api.example.com:4646": 200, "n1.nodes.example.com": 200, "N1.Nodes.example.com.": 200, "a.n1.nodes.example.com": 403,
		"nodes.example.com": 403, "server.eu.nomad": 403, "agent-7": 200, "adv.example.com": 200, "proxy.example.com": 200, "evil.example": 403, "10.0.0.1": 200,
	})
	issue("new.example.com")
	r.signals <- syscall.SIGHUP
	r.out.awaitText(t, "configuration reloaded")
	wants(map[string]int{"new.example.com": 200, "api.example.com": 403, "server.global.nomad": 200})
	r.signals <- syscall.SIGINT
	if code := <-r.code; code != 0 {
		t.Errorf("exit %d: %s", code, r.err)
	}
}

// Certificates that cannot work keep the agent from starting, and say why.
func TestBadCertificates(t *testing.T) {
	files, other := newCertFiles(t), newCertFiles(t)
	files.issue("server")
	files.issue("client")
	other.issue("server")
	config := filepath.Join(files.dir, "agent.hcl")
	f := func(want, text string, args ...string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr output
		w := &world{}
		code := run(t.Context(), append(args, "-http-port=0", "-config="+config), &stdout, &stderr, w.parts(), nil)
		if code != 1 || !strings.Contains(stderr.String(), want) || len(w.events) > 0 {
			t.Errorf("exit %d, %q, %v; want %q", code, stderr.String(), w.events, want)
		}
	}
	strict := "rpc = true\nverify_server_hostname = true"
	f("requires server.global.nomad", files.block("client", strict), "-dev")
	f("requires server.eu.nomad", files.block("server", strict), "-dev", "-region=eu")
	f("Error starting agent: tls.cert_file: open ", files.block("none", strict), "-dev")
	f("would be refused by others", strings.Replace(files.block("server", strict), files.dir+"/ca.pem", other.dir+"/ca.pem", 1), "-dev")
	f("does not go with tls.cert_file", strings.Replace(files.block("server", strict), "server-key", "client-key", 1), "-dev")
	f("tls.tls_min_version", files.block("server", "http = true\ntls_min_version = \"ssl3\""), "-dev")
}

// Which ports are open to all is said exactly. A reload that would open one is refused.
func TestExposedWithTLS(t *testing.T) {
	files := newCertFiles(t)
	files.issue("server")
	config := filepath.Join(files.dir, "agent.hcl")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(config, []byte("server { encrypt = \"MDEyMzQ1Njc4OWFiY2RlZg==\" }\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const rpc, https = "rpc = true\nverify_server_hostname = true\n", "http = true\nverify_https_client = true\n"
	f := func(more, want string) {
		t.Helper()
		write("insecure = true\n" + files.block("server", more))
		r := launch(t, &world{}, "-dev", "-bind=0.0.0.0", "-http-port=0", "-config="+config)
		out := r.out.String()
		if reported := strings.Contains(out, "WARNING: other machines can reach"); reported != (want != "") || !strings.Contains(out, want) {
			t.Errorf("%s: want %q in\n%s", more, want, out)
		}
		r.signals <- syscall.SIGINT
		if code := <-r.code; code != 0 {
			t.Errorf("exit %d", code)
		}
	}
	f(rpc+https, "")
	f(rpc+"http = true\n", " without client certificates)")
	f(rpc, " without TLS)")
	f(https, "(RPC 0.0.0.0:1 without TLS)")
	f(https+"rpc = true\n", " without verify_server_hostname)")
	f(https+rpc+"rpc_upgrade_mode = true\n", " with plain connections let in by rpc_upgrade_mode)")

	write(files.block("server", rpc+https))
	r := launch(t, &world{}, "-dev", "-bind=0.0.0.0", "-http-port=0", "-config="+config)
	for _, text := range []string{
		files.block("server", https+"rpc = true\n"), files.block("server", https+rpc+"rpc_upgrade_mode = true\n"),
		files.block("server", "http = true\n"+rpc), "tls {}\n",
	} {
		past := len(r.out.String())
		write(text)
		r.signals <- syscall.SIGHUP
		r.out.awaitAfter(t, past, "the old one stays")
	}
	// Not even with other addresses, which only a restart takes over: it listens where it did.
	past := len(r.out.String())
	write("addresses {\n http = \"127.0.0.1\"\n rpc = \"127.0.0.1\"\n serf = \"127.0.0.1\"\n}\n" + files.block("server", https+"rpc = true\n"))
	r.signals <- syscall.SIGHUP
	if text := r.out.awaitAfter(t, past, "the old one stays"); !strings.Contains(text[past:], "verify_server_hostname = true in the block tls") {
		t.Errorf("said:\n%s", text[past:])
	}
	past = len(r.out.String())
	write("insecure = true\n" + files.block("server", https+"rpc = true\n"))
	r.signals <- syscall.SIGHUP
	r.out.awaitAfter(t, past, "configuration reloaded")
	r.signals <- syscall.SIGINT
	if code := <-r.code; code != 0 {
		t.Errorf("exit %d", code)
	}
}
