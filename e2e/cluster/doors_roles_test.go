package cluster

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// issuePlain makes a certificate of the directory's CA that states no role, as a site makes them for people, and
// returns the first part of its files' names.
func (d *certDir) issuePlain(name string) string {
	d.t.Helper()
	read := func(file string) []byte {
		text, err := os.ReadFile(d.path(file))
		if err != nil {
			d.t.Fatal(err)
		}
		block, _ := pem.Decode(text)
		return block.Bytes
	}
	ca, err := x509.ParseCertificate(read("nomad-agent-ca.pem"))
	if err != nil {
		d.t.Fatal(err)
	}
	caKey, err := x509.ParsePKCS8PrivateKey(read("nomad-agent-ca-key.pem"))
	if err != nil {
		if caKey, err = x509.ParseECPrivateKey(read("nomad-agent-ca-key.pem")); err != nil {
			d.t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		d.t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca, key.Public(), caKey.(crypto.Signer))
	if err != nil {
		d.t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		d.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		name + "-nomad.pem": {Type: "CERTIFICATE", Bytes: der}, name + "-nomad-key.pem": {Type: "EC PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(d.path(file), pem.EncodeToMemory(block), 0o600); err != nil {
			d.t.Fatal(err)
		}
	}
	return name
}

// caller makes requests over HTTPS with a certificate of the directory.
func (d *certDir) caller(name string) func(a *harness.Agent, method, path string) (int, string) {
	d.t.Helper()
	pair, err := tls.LoadX509KeyPair(d.path(name+"-nomad.pem"), d.path(name+"-nomad-key.pem"))
	if err != nil {
		d.t.Fatal(err)
	}
	text, err := os.ReadFile(d.path("nomad-agent-ca.pem"))
	if err != nil {
		d.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}}
	d.t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport, Timeout: harness.Scaled(10 * time.Second)}
	return func(a *harness.Agent, method, path string) (int, string) {
		d.t.Helper()
		req, err := http.NewRequestWithContext(d.t.Context(), method, a.HTTP+path, http.NoBody)
		if err != nil {
			d.t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			d.t.Fatalf("%s %s as %s: %v", method, path, name, err)
		}
		defer resp.Body.Close() //nolint:errcheck // a test
		body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		if err != nil {
			d.t.Fatalf("%s %s as %s: %v", method, path, name, err)
		}
		return resp.StatusCode, string(body)
	}
}

// operatorRoutes are what only a server's or an operator's certificate may call. As they are called here, none
// changes anything.
var operatorRoutes = []string{
	"GET /v1/operator/snapshot",
	"PUT /v1/operator/snapshot",
	"GET /v1/operator/check",
	"GET /v1/operator/raft/configuration",
	"DELETE /v1/operator/raft/peer?id=nobody",
	"PUT /v1/operator/raft/transfer-leadership?id=nobody",
	"GET /v1/operator/scheduler/configuration",
	"PUT /v1/operator/scheduler/configuration",
	"GET /v1/operator/autopilot/configuration",
	"PUT /v1/operator/autopilot/configuration",
	"GET /v1/operator/autopilot/health",
	"GET /v1/operator/license",
	"GET /v1/agent/keyring/list",
	"GET /v1/agent/keyring/list?pool=clients",
	"PUT /v1/agent/keyring/install",
	"PUT /v1/agent/keyring/use",
	"PUT /v1/agent/keyring/remove",
	"PUT /v1/agent/join?address=",
	"PUT /v1/agent/force-leave?node=nobody",
	"PUT /v1/agent/servers?address=127.0.0.1:1",
	"PUT /v1/agent/reload",
	"GET /v1/agent/host",
	"GET /v1/agent/monitor?log_level=none",
	"GET /v1/agent/pprof/goroutine",
	"PUT /v1/system/gc",
	"PUT /v1/system/reconcile/summaries",
	"GET /debug/pprof/",
	"GET /debug/pprof/heap",
	"GET /debug/pprof/cmdline",
	"GET /debug/pprof/symbol",
}

// TestDoorRoles: a certificate may call what its role is for, over HTTPS and, through a client's agent, over RPC.
func TestDoorRoles(t *testing.T) {
	t.Parallel()
	const gossipKey = "cm9sZXMtb2YtY2VydGlmaWNhdGVzLTMyLWJ5dGVzLi4="
	d := newCertDir(t)
	for _, role := range []string{"-server", "-client", "-cli"} {
		d.tls("cert", "create", role)
	}
	d.tls("cert", "create", "-cli", "-region", "eu")
	s := harness.NewAgent(t, false, "name = \"roles-server\"\nenable_debug = true\nserver {\n  enabled = true\n  bootstrap_expect = 1\n"+
		"  encrypt = \""+gossipKey+"\"\n}\nclient {\n  enabled = true\n}\n"+d.block("global-server", strictTLS))
	c := harness.NewAgent(t, false, fmt.Sprintf("name = \"roles-client\"\nenable_debug = true\nclient {\n  enabled = true\n  servers = [%q]\n}\n", s.RPC)+
		d.block("global-client", strictTLS))
	d.open(s)
	d.open(c)
	s.Start()
	c.Start()
	s.WaitReady(2)
	asServer, asClient, asOperator := d.caller("global-server"), d.caller("global-client"), d.caller("global-cli")
	asPerson, asForeign := d.caller(d.issuePlain("ann.example.org")), d.caller("eu-cli")

	// refused wants a 403 that says whose certificate it was, and more.
	refused := func(call func(*harness.Agent, string, string) (int, string), a *harness.Agent, route string, says ...string) {
		t.Helper()
		method, path, _ := strings.Cut(route, " ")
		code, body := call(a, method, path)
		for _, want := range append([]string{"certificate of ["}, says...) {
			if code != http.StatusForbidden || !strings.Contains(body, want) {
				t.Errorf("%s: %d %.200q, want 403 and %q", route, code, body, want)
				return
			}
		}
	}
	allowed := func(call func(*harness.Agent, string, string) (int, string), a *harness.Agent, route string) {
		t.Helper()
		method, path, _ := strings.Cut(route, " ")
		if code, body := call(a, method, path); code == http.StatusForbidden {
			t.Errorf("%s: %d %.200q", route, code, body)
		}
	}
	for _, route := range operatorRoutes {
		refused(asClient, s, route, "client.global.nomad", "cli.global.nomad", "tls cert create -cli")
		refused(asClient, c, route, "client.global.nomad", "cli.global.nomad", "tls cert create -cli")
		refused(asPerson, s, route, "ann.example.org", "cli.global.nomad", "tls cert create -cli")
		refused(asForeign, s, route, "cli.eu.nomad", "cli.global.nomad")
		allowed(asOperator, s, route)
		allowed(asServer, s, route)
	}
	if code, body := asOperator(s, "GET", "/v1/agent/keyring/list"); code != http.StatusOK || !strings.Contains(body, gossipKey) {
		t.Errorf("an operator sees no gossip key: %d %q", code, body)
	}
	for _, route := range []string{"GET /v1/jobs", "PUT /v1/jobs", "GET /v1/nodes", "GET /v1/allocations", "PUT /v1/jobs/parse", "GET /v1/event/stream?index=1"} {
		refused(asClient, s, route, "client.global.nomad", "client_requests")
		refused(asClient, c, route, "client.global.nomad", "client_requests")
	}
	for _, route := range []string{"GET /v1/jobs", "GET /v1/nodes", "GET /v1/allocations", "GET /v1/agent/self", "GET /v1/queue"} {
		for _, call := range []func(*harness.Agent, string, string) (int, string){asPerson, asOperator, asServer, asForeign} {
			allowed(call, s, route)
		}
	}
	for _, route := range []string{"GET /v1/status/leader", "GET /v1/agent/health", "GET /v1/agent/members", "GET /v1/metrics"} {
		allowed(asClient, s, route)
		allowed(asClient, c, route)
	}

	t.Run("passed on", func(t *testing.T) { rolesPassedOn(t, d, s, c, refused) })
}

// rolesPassedOn is what a client's agent passes on to the servers for those who call it, with its own certificate.
func rolesPassedOn(t *testing.T, d *certDir, s, c *harness.Agent, refused func(func(*harness.Agent, string, string) (int, string), *harness.Agent, string, ...string)) {
	asOperator, asClient := d.caller("global-cli"), d.caller("global-client")
	allocs := map[string]string{}
	for _, node := range []string{"roles-server", "roles-client"} {
		file := s.JobFile(node, fmt.Sprintf("job %q {\n  type = \"batch\"\n  constraint {\n    attribute = \"${node.unique.name}\"\n    value = %q\n  }\n"+
			"  group \"g\" {\n    task \"t\" {\n      driver = \"raw_exec\"\n      config {\n        command = \"/bin/echo\"\n        args = [\"here\"]\n      }\n    }\n  }\n}\n", node, node))
		cert := []string{"NOMAD_CACERT=" + d.path("nomad-agent-ca.pem"), "NOMAD_CLIENT_CERT=" + d.path("global-cli-nomad.pem"), "NOMAD_CLIENT_KEY=" + d.path("global-cli-nomad-key.pem")}
		if out, code := d.cli(s, cert, "job", "run", "-detach", file); code != 0 {
			t.Fatalf("job run: %d\n%s", code, out)
		}
	}
	for _, node := range []string{"roles-server", "roles-client"} {
		allocs[node] = s.WaitInStatus(node, structs.AllocClientComplete, 1, 10*time.Second)[0].ID
	}
	logs := func(node string) string {
		return "GET /v1/client/fs/logs/" + allocs[node] + "?task=t&type=stdout&plain=true"
	}
	people := []string{"GET /v1/jobs", "GET /v1/node/" + allocs["roles-client"], "GET /v1/evaluations", "GET /v1/queue", "GET /v1/topology", logs("roles-server")}
	for _, route := range people {
		refused(asOperator, c, route, "client.global.nomad", "-address", "client_requests = true")
	}
	refused(asOperator, c, "GET /v1/operator/snapshot", "client.global.nomad", "-address")
	refused(asOperator, c, "PUT /v1/system/gc", "client.global.nomad", "-address")
	method, path, _ := strings.Cut(logs("roles-client"), " ")
	if code, body := asOperator(c, method, path); code != http.StatusOK || body != "here\n" {
		t.Errorf("a client's agent says of its own node's logs: %d %q", code, body)
	}
	if code, body := asOperator(c, "GET", "/v1/client/stats"); code != http.StatusOK {
		t.Errorf("a client's agent says of its own node: %d %q", code, body)
	}
	refused(asClient, c, logs("roles-client"), "client.global.nomad")
	rolesOfAgents(t, asOperator, s, c, refused)

	// The servers may be told to believe what clients pass on.
	file := filepath.Join(s.Dir, "more.hcl")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte("tls {"), []byte("tls {\n  client_requests = true"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	const done = "configuration reloaded"
	before := s.LogCount(done)
	if err := s.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	harness.Within(t, 20*time.Second, done, func(context.Context) error {
		if s.LogCount(done) == before {
			return errors.New("it is not in the log")
		}
		return nil
	})
	for _, route := range []string{"GET /v1/jobs", logs("roles-server")} {
		method, path, _ := strings.Cut(route, " ")
		if code, body := asOperator(c, method, path); code != http.StatusOK {
			t.Errorf("%s, with client_requests: %d %q", route, code, body)
		}
		if code, body := asClient(s, method, path); code != http.StatusOK {
			t.Errorf("%s of a server, with client_requests: %d %q", route, code, body)
		}
	}
	refused(asOperator, c, "GET /v1/operator/snapshot", "client.global.nomad", "-address")
	refused(asClient, s, "PUT /v1/system/gc", "client.global.nomad", "cli.global.nomad")
}

// rolesOfAgents is what is asked about agents: servers pass it on to servers and nodes, and a client's agent answers for itself alone.
func rolesOfAgents(t *testing.T, asOperator func(*harness.Agent, string, string) (int, string), s, c *harness.Agent, refused func(func(*harness.Agent, string, string) (int, string), *harness.Agent, string, ...string)) {
	t.Helper()
	code, body := asOperator(c, "GET", "/v1/agent/host")
	var own struct{ AgentID string }
	if err := json.Unmarshal([]byte(body), &own); err != nil || code != http.StatusOK || own.AgentID == "" {
		t.Fatalf("a client's agent says of its own machine: %d %.200q, %v", code, body, err)
	}
	for _, path := range []string{"/v1/agent/host?node_id=" + own.AgentID, "/v1/agent/pprof/goroutine?debug=1&node_id=" + own.AgentID, "/v1/agent/host?server_id=leader"} {
		if code, body := asOperator(s, "GET", path); code != http.StatusOK {
			t.Errorf("%s of a server: %d %.200q", path, code, body)
		}
	}
	refused(asOperator, c, "GET /v1/agent/host?server_id=roles-server", "client.global.nomad", "-address")
	refused(asOperator, c, "GET /v1/agent/monitor?server_id=roles-server", "client.global.nomad", "-address")
}
