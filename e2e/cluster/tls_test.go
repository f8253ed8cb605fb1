package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// certDir is a directory with certificates that the command line made.
type certDir struct {
	t   *testing.T
	dir string
}

func newCertDir(t *testing.T) *certDir {
	t.Helper()
	d := &certDir{t, t.TempDir()}
	d.tls("ca", "create")
	return d
}

func (d *certDir) tls(args ...string) {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), harness.Bin, append([]string{"tls"}, args...)...)
	cmd.Dir = d.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("tls %q: %v\n%s", args, err, out)
	}
}

func (d *certDir) path(name string) string { return filepath.Join(d.dir, name) }

// block is a tls block for the agent whose files begin with name, such as global-server.
func (d *certDir) block(name, more string) string {
	return fmt.Sprintf("tls {\n  ca_file = %q\n  cert_file = %q\n  key_file = %q\n  %s\n}\n",
		d.path("nomad-agent-ca.pem"), d.path(name+"-nomad.pem"), d.path(name+"-nomad-key.pem"), more)
}

// open makes the agent's clients speak HTTPS with the certificates of a command line.
func (d *certDir) open(a *harness.Agent) {
	d.t.Helper()
	a.HTTP = strings.Replace(a.HTTP, "http://", "https://", 1)
	ca, cert, key := d.path("nomad-agent-ca.pem"), d.path("global-cli-nomad.pem"), d.path("global-cli-nomad-key.pem")
	var err error
	if a.API, err = api.New(api.Config{Address: a.HTTP, TLS: api.TLSConfig{CACert: ca, ClientCert: cert, ClientKey: key}}); err != nil {
		d.t.Fatal(err)
	}
	conf := nomad.DefaultConfig()
	conf.Address = a.HTTP
	conf.TLSConfig = &nomad.TLSConfig{CACert: ca, ClientCert: cert, ClientKey: key}
	if a.Nomad, err = nomad.NewClient(conf); err != nil {
		d.t.Fatal(err)
	}
}

// cli runs the command line with an environment of its own.
func (d *certDir) cli(a *harness.Agent, env []string, args ...string) (string, int) {
	d.t.Helper()
	cmd := a.Command(d.t.Context(), args...)
	cmd.Env = append(append(os.Environ(), "NOMADISH_ADDR="+a.HTTP), env...)
	raw, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		d.t.Fatal(err)
	}
	return string(raw), cmd.ProcessState.ExitCode()
}

const strictTLS = "http = true\n  rpc = true\n  verify_server_hostname = true\n  verify_https_client = true"

func logged(a *harness.Agent, text string) {
	a.T.Helper()
	harness.Within(a.T, 20*time.Second, fmt.Sprintf("%q in the log", text), func(context.Context) error {
		if a.LogCount(text) == 0 {
			return errors.New("it is not there")
		}
		return nil
	})
}

// A server and a client apart, with TLS on everything, run a job; who has no certificate, or
// one of another role, gets nowhere; certificates are rotated while they run.
func TestTLS(t *testing.T) {
	t.Parallel()
	d := newCertDir(t)
	d.tls("cert", "create", "-server")
	d.tls("cert", "create", "-client")
	d.tls("cert", "create", "-cli")
	d.tls("cert", "create", "-client", "-region", "eu")
	s := harness.NewAgent(t, false, "name = \"tls-server\"\nserver {\n  enabled = true\n  bootstrap_expect = 1\n}\n"+d.block("global-server", strictTLS+"\n  client_requests = true"))
	d.open(s)
	s.Start()
	s.WaitReady(0)
	c := harness.NewAgent(t, false, fmt.Sprintf("name = \"tls-client\"\nclient {\n  enabled = true\n  servers = [%q]\n}\n", s.RPC)+d.block("global-client", strictTLS))
	d.open(c)
	c.Start()
	s.WaitReady(1)

	t.Run("job", func(t *testing.T) { jobOverTLS(t, d, s, c) })
	t.Run("cli", func(t *testing.T) { cliOverTLS(t, d, s) })
	t.Run("raft", func(t *testing.T) { raftByClient(t, d, s) })
	t.Run("wrong clients", func(t *testing.T) { wrongClients(t, d, s) })
	t.Run("simulated nodes", func(t *testing.T) { simNodesOverTLS(t, d, s) })
	t.Run("rotation", func(t *testing.T) { rotation(t, d, s, c) })
}

// jobOverTLS sees a job through both clients, and its output through the session by which
// the server calls the client.
func jobOverTLS(t *testing.T, d *certDir, s, c *harness.Agent) {
	file := s.JobFile("tls", `job "tls" {
  type = "batch"
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/echo"
        args    = ["said over TLS"]
      }
    }
  }
}
`)
	cert := []string{"NOMAD_CACERT=" + d.path("nomad-agent-ca.pem"), "NOMAD_CLIENT_CERT=" + d.path("global-cli-nomad.pem"), "NOMAD_CLIENT_KEY=" + d.path("global-cli-nomad-key.pem")}
	if out, code := d.cli(c, cert, "job", "run", "-detach", file); code != 0 {
		t.Fatalf("job run through the client: %d\n%s", code, out)
	}
	s.WaitInStatus("tls", structs.AllocClientComplete, 1, 10*time.Second)
	if out, code := d.cli(s, cert, "alloc", "logs", "-job", "tls"); code != 0 || out != "said over TLS\n" {
		t.Errorf("alloc logs: %d %q", code, out)
	}
	jobs, _, err := c.Nomad.Jobs().List(nil)
	if err != nil || len(jobs) != 1 {
		t.Errorf("the official client: %v %v", jobs, err)
	}
	node, _, err := s.Nomad.Nodes().List(nil)
	if err != nil || len(node) != 1 {
		t.Fatalf("nodes: %v %v", node, err)
	}
	if info, _, err := s.Nomad.Nodes().Info(node[0].ID, nil); err != nil || !info.TLSEnabled {
		t.Errorf("the node says nothing of TLS: %+v %v", info, err)
	}
}

func cliOverTLS(t *testing.T, d *certDir, s *harness.Agent) {
	ca := "-ca-cert=" + d.path("nomad-agent-ca.pem")
	own := []string{"-client-cert=" + d.path("global-cli-nomad.pem"), "-client-key=" + d.path("global-cli-nomad-key.pem")}
	f := func(code int, want string, env []string, flags ...string) {
		t.Helper()
		out, got := d.cli(s, env, append([]string{"node", "status"}, flags...)...)
		if got != code || !strings.Contains(out, want) {
			t.Errorf("%v %v: exit code %d, want %d and %q:\n%s", env, flags, got, code, want, out)
		}
	}
	all := append([]string{ca}, own...)
	f(0, "tls-client", nil, all...)
	f(0, "tls-client", []string{"NOMADISH_CAPATH=" + d.dir, "NOMADISH_SKIP_VERIFY=false"}, own...)
	f(0, "tls-client", nil, append([]string{"-tls-skip-verify"}, own...)...)
	f(0, "tls-client", nil, append([]string{"-tls-server-name=server.global.nomad"}, all...)...)
	f(1, "-ca-cert or NOMADISH_CACERT", nil)
	f(1, "-client-cert and -client-key", nil, ca)
	f(1, "-tls-server-name or NOMADISH_TLS_SERVER_NAME", nil, append([]string{"-tls-server-name=server.eu.nomad"}, all...)...)
	f(1, "go together: name both", nil, append([]string{"-client-key="}, all[:2]...)...)
	f(1, "holds no certificate in PEM", nil, "-ca-cert="+d.path("global-cli-nomad-key.pem"))
	f(1, "no such file", nil, "-ca-cert=/nowhere.pem")
	f(1, "must be true or false", []string{"NOMAD_SKIP_VERIFY=maybe"})
	plain := strings.Replace(s.HTTP, "https://", "http://", 1)
	f(1, "write its address as https://", nil, "-address="+plain)
}

// raftByClient is a client's certificate that tries to speak Raft, by hand.
func raftByClient(t *testing.T, d *certDir, s *harness.Agent) {
	text, err := os.ReadFile(d.path("nomad-agent-ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	f := func(name, want string) {
		t.Helper()
		pair, err := tls.LoadX509KeyPair(d.path(name+"-nomad.pem"), d.path(name+"-nomad-key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		conn, err := tls.Dial("tcp", s.RPC, &tls.Config{RootCAs: roots, ServerName: "server.global.nomad", Certificates: []tls.Certificate{pair}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // a test
		_ = conn.SetDeadline(time.Now().Add(harness.Scaled(10 * time.Second)))
		if _, err := conn.Write([]byte{0x72}); err != nil { // Raft
			t.Fatal(err)
		}
		got := make([]byte, 1)
		if want == "" {
			if _, err := io.ReadFull(conn, got); err != nil || got[0] != 0 {
				t.Errorf("%s: %v %v", name, got, err)
			}
			return
		}
		all, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(all), want) {
			t.Errorf("%s: %q %v", name, all, err)
		}
	}
	f("global-client", "[client.global.nomad localhost] may not take part in Raft")
	f("eu-client", "[client.eu.nomad localhost] may not take part in Raft")
	f("global-server", "")
	logged(s, "may not take part in Raft")
}

// wrongClients try again and again; the server refuses each, and says so once.
func wrongClients(t *testing.T, d *certDir, s *harness.Agent) {
	client := func(name, tlsBlock string) *harness.Agent {
		a := harness.NewAgent(t, false, fmt.Sprintf("name = %q\nclient {\n  enabled = true\n  servers = [%q]\n}\n", name, s.RPC)+tlsBlock)
		a.Start()
		return a
	}
	euro := client("euro", d.block("eu-client", "rpc = true"))
	plain := client("plain", "")
	logged(euro, "may not use RPC, which is for client.global.nomad")
	logged(s, "may not use RPC, which is for client.global.nomad")
	logged(s, "it does not speak TLS, which is needed here")
	again := plain.LogCount("register") // it goes on trying
	harness.Within(t, 30*time.Second, "further tries", func(context.Context) error {
		if plain.LogCount("register") <= again {
			return errors.New("none yet")
		}
		return nil
	})
	if n := s.LogCount("it does not speak TLS, which is needed here"); n != 1 {
		t.Errorf("the server says %d times that a peer does not speak TLS", n)
	}
	nodes, _, err := s.API.Nodes().List(t.Context(), nil)
	if err != nil || len(nodes) != 1 {
		t.Errorf("%d nodes %v", len(nodes), err)
	}
}

func simNodesOverTLS(t *testing.T, d *certDir, s *harness.Agent) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := s.Command(ctx, "sim", "nodes", "-count=2", "-address="+s.HTTP, "-ca-cert="+d.path("nomad-agent-ca.pem"),
		"-client-cert="+d.path("global-client-nomad.pem"), "-client-key="+d.path("global-client-nomad-key.pem"))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var out harness.LogBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.WaitReady(3)
	cancel()
	if err := cmd.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("sim nodes: %v\n%s", err, out.Tail(10))
	}
}

// rotation puts a new certificate in place of the server's, after a broken one.
func rotation(t *testing.T, d *certDir, s, c *harness.Agent) {
	serial := func() string {
		t.Helper()
		host := strings.TrimPrefix(s.HTTP, "https://")
		pair, err := tls.LoadX509KeyPair(d.path("global-cli-nomad.pem"), d.path("global-cli-nomad-key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", host,
			&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}) // only its number is read
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // a test
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	hup := func(want string) {
		t.Helper()
		before := s.LogCount(want)
		if err := s.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		harness.Within(t, 20*time.Second, want, func(context.Context) error {
			if s.LogCount(want) == before {
				return errors.New("it is not said")
			}
			return nil
		})
	}
	first := serial()
	certFile, keyFile := d.path("global-server-nomad.pem"), d.path("global-server-nomad-key.pem")
	oldKey, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{certFile, keyFile} {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	d.tls("cert", "create", "-server")
	newKey, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(keyFile, oldKey, 0o600); err != nil { // half a rotation
		t.Fatal(err)
	}
	hup("the old one stays")
	if got := serial(); got != first {
		t.Errorf("a certificate without its key is used: %s", got)
	}
	if err := os.WriteFile(keyFile, newKey, 0o600); err != nil {
		t.Fatal(err)
	}
	hup("configuration reloaded")
	if got := serial(); got == first {
		t.Error("the new certificate is not used")
	}
	// Clients that come now are served by it, and the one that was there has lost nothing.
	c.Kill()
	c.Start()
	s.WaitReady(1)
	if _, _, err := s.API.Nodes().List(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// Server and client in one process speak TLS with each other too.
func TestTLSDev(t *testing.T) {
	t.Parallel()
	d := newCertDir(t)
	d.tls("cert", "create", "-server")
	d.tls("cert", "create", "-cli")
	a := harness.NewAgent(t, true, d.block("global-server", strictTLS))
	d.open(a)
	a.Start()
	a.WaitReady(1)
	if n := a.LogCount("refused a connection"); n > 0 {
		t.Errorf("%d connections of its own are refused", n)
	}
}

// A cluster is moved to TLS one agent at a time, while it runs.
func TestTLSUpgrade(t *testing.T) {
	t.Parallel()
	d := newCertDir(t)
	d.tls("cert", "create", "-server")
	d.tls("cert", "create", "-client")
	upgrading := "rpc = true\n  verify_server_hostname = true\n  rpc_upgrade_mode = true"
	s := harness.NewAgent(t, false, "name = \"up-server\"\nserver {\n  enabled = true\n  bootstrap_expect = 1\n}\n")
	s.Start()
	s.WaitReady(0)
	client := func(name, block string) {
		a := harness.NewAgent(t, false, fmt.Sprintf("name = %q\nclient {\n  enabled = true\n  servers = [%q]\n}\n", name, s.RPC)+block)
		a.Start()
	}
	client("with", d.block("global-client", upgrading)) // before its server is
	s.WaitReady(1)
	if err := s.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	more, err := os.OpenFile(filepath.Join(s.Dir, "more.hcl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := more.WriteString(d.block("global-server", upgrading)); err != nil {
		t.Fatal(err)
	}
	if err := more.Close(); err != nil {
		t.Fatal(err)
	}
	s.Start()
	client("without", "")
	s.WaitReady(2)
}
