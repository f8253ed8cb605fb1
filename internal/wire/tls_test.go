package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/certs"
)

// pki is an authority with a directory for its files.
type pki struct {
	t   *testing.T
	dir string
	ca  *certs.CA
}

func newPKI(t *testing.T) *pki {
	t.Helper()
	p := &pki{t: t, dir: t.TempDir()}
	pair, err := certs.NewCA(certs.CARequest{Days: 10, Now: time.Now().Add(-5 * certs.Day)})
	if err != nil {
		t.Fatal(err)
	}
	if p.ca, err = certs.ParseCA(*pair); err != nil {
		t.Fatal(err)
	}
	p.write("ca.pem", pair.Cert)
	return p
}

func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

func (p *pki) write(name string, text []byte) {
	p.t.Helper()
	if err := os.WriteFile(p.path(name), text, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pki) read(name string) []byte {
	p.t.Helper()
	text, err := os.ReadFile(p.path(name))
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

// issue writes name.pem and name-key.pem.
func (p *pki) issue(name, role, region string, age time.Duration) {
	p.t.Helper()
	pair, err := p.ca.Issue(certs.Request{Role: role, Region: region, Days: 1, Now: time.Now().Add(-age)})
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(name+".pem", pair.Cert)
	p.write(name+"-key.pem", pair.Key)
}

// options are those of an agent whose certificate is name's.
func (p *pki) options(name, role string) TLSOptions {
	return TLSOptions{
		CAFile: p.path("ca.pem"), CertFile: p.path(name + ".pem"), KeyFile: p.path(name + "-key.pem"),
		Region: "global", Role: role, VerifyRoles: true,
	}
}

func load(t *testing.T, o TLSOptions) *TLS {
	t.Helper()
	s, err := LoadTLS(o, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every file that cannot work is refused before it is used, with the option named.
func TestRefusedTLSFiles(t *testing.T) {
	p, other := newPKI(t), newPKI(t)
	p.issue("server", "server", "global", 0)
	p.issue("client", "client", "global", 0)
	p.issue("cli", "cli", "global", 0)
	p.issue("eu", "server", "eu", 0)
	old, err := certs.NewCA(certs.CARequest{Days: 1, Now: time.Now().Add(-48 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	p.write("oldca.pem", old.Cert)
	p.issue("late", "server", "global", -48*time.Hour+2*time.Hour)
	server := p.read("server.pem")
	p.write("cut.pem", server[:len(server)-40])
	p.write("cutchain.pem", append(bytes.Clone(server), server[:len(server)/2]...))
	p.write("cutkey.pem", p.read("server-key.pem")[:60])
	p.write("empty.pem", nil)
	p.write("junk.pem", bytes.Replace(server, []byte("\nMII"), []byte("\nAAA"), 1))

	f := func(want string, change func(*TLSOptions)) {
		t.Helper()
		o := p.options("server", "server")
		change(&o)
		if _, err := LoadTLS(o, hclog.NewNullLogger()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	if _, err := LoadTLS(p.options("server", "server"), hclog.NewNullLogger()); err != nil {
		t.Fatal(err)
	}
	f("tls.ca_file "+p.path("none.pem"), func(o *TLSOptions) { o.CAFile = p.path("none.pem") })
	f("tls.cert_file: open "+p.path("none.pem"), func(o *TLSOptions) { o.CertFile = p.path("none.pem") })
	f("tls.key_file: open "+p.path("none.pem"), func(o *TLSOptions) { o.KeyFile = p.path("none.pem") })
	f("tls.cert_file: read", func(o *TLSOptions) { o.CertFile = p.dir })
	f("is no certificate authority", func(o *TLSOptions) { o.CAFile = p.path("server.pem") })
	f("expired on", func(o *TLSOptions) { o.CAFile = p.path("oldca.pem") })
	f("holds no certificate", func(o *TLSOptions) { o.CAFile = p.path("empty.pem") })
	f("holds no certificate", func(o *TLSOptions) { o.CAFile = p.path("server-key.pem") })
	f("certificate 1 is cut off or broken", func(o *TLSOptions) { o.CertFile = p.path("cut.pem") })
	f("certificate 2 is cut off or broken", func(o *TLSOptions) { o.CertFile = p.path("cutchain.pem") })
	f("tls.cert_file "+p.path("junk.pem")+": certificate 1", func(o *TLSOptions) { o.CertFile = p.path("junk.pem") })
	f("does not go with tls.cert_file", func(o *TLSOptions) { o.KeyFile = p.path("client-key.pem") })
	f("does not go with tls.cert_file", func(o *TLSOptions) { o.KeyFile = p.path("cutkey.pem") })
	f("does not go with tls.cert_file", func(o *TLSOptions) { o.KeyFile = p.path("server.pem") })
	f("is valid from", func(o *TLSOptions) { o.CertFile, o.KeyFile = p.path("late.pem"), p.path("late-key.pem") })
	f("would be refused by others that have tls.ca_file", func(o *TLSOptions) { o.CAFile = other.path("ca.pem") })
	f("requires server.global.nomad (`nomadish tls cert create -server -region global` makes one)",
		func(o *TLSOptions) { o.CertFile, o.KeyFile = p.path("client.pem"), p.path("client-key.pem") })
	f("requires server.global.nomad", func(o *TLSOptions) { o.CertFile, o.KeyFile = p.path("eu.pem"), p.path("eu-key.pem") })
	f("cannot serve", func(o *TLSOptions) { o.CertFile, o.KeyFile = p.path("cli.pem"), p.path("cli-key.pem") })
	f("requires client.global.nomad", func(o *TLSOptions) {
		*o = p.options("eu", "client")
	})
	// A server's certificate is good for a client; roles that are not verified are not required.
	load(t, p.options("server", "client"))
	o := p.options("client", "server")
	o.VerifyRoles = false
	load(t, o)
}

func TestExpired(t *testing.T) {
	p := newPKI(t)
	p.issue("old", "server", "global", 3*certs.Day)
	if _, err := LoadTLS(p.options("old", "server"), hclog.NewNullLogger()); err == nil || !strings.Contains(err.Error(), "expired on") ||
		!strings.Contains(err.Error(), "put a new one in its place (`nomadish tls cert create -server -region global` makes one)") {
		t.Errorf("expired: %v", err)
	}
	p.issue("soon", "server", "global", 0)
	if err := os.Chmod(p.path("soon-key.pem"), 0o644); err != nil { // on purpose
		t.Fatal(err)
	}
	o := p.options("soon", "server")
	o.Upgrade = true
	warnings := strings.Join(load(t, o).Warnings(), "\n")
	for _, want := range []string{"expires on", "can be read by others", "rpc_upgrade_mode"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("%s is missing in %s", want, warnings)
		}
	}
}

// A certificate that expired while its agent ran is refused by the others, on either side.
func TestExpiredPeers(t *testing.T) {
	p := newPKI(t)
	p.issue("server", "server", "global", 0)
	p.issue("client", "client", "global", 0)
	p.issue("old-server", "server", "global", 3*certs.Day)
	p.issue("old-client", "client", "global", 3*certs.Day)
	expired := func(name, role string) *TLS {
		s := load(t, p.options(role, role))
		pair, err := tls.LoadX509KeyPair(p.path(name+".pem"), p.path(name+"-key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		s.now.Load().cert = &pair
		return s
	}
	f := func(server, client *TLS, want string) {
		t.Helper()
		d := openDoor(t, server, 10*time.Second)
		if conn, err := client.Dial(t.Context(), "", d.addr, ProtoRPC); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v %v, want %s", conn, err, want)
		}
		if _, ok := (<-d.came).(error); !ok {
			t.Error("it was let in")
		}
	}
	f(load(t, p.options("server", "server")), expired("old-client", "client"), "expired")
	f(expired("old-server", "server"), load(t, p.options("client", "client")), "expired")
}

// door accepts connections as a server does, and reports what became of each.
type door struct {
	addr string
	came chan any // *Conn or error
}

func openDoor(t *testing.T, s *TLS, limit time.Duration) *door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{addr: l.Addr().String(), came: make(chan any, 16)}
	var wg sync.WaitGroup
	var open sync.Map
	wg.Go(func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			open.Store(raw, true)
			wg.Go(func() {
				conn, err := s.Accept(context.Background(), raw, limit)
				if err != nil {
					d.came <- err // before it is closed, upon which the other side may come again
					_ = raw.Close()
					return
				}
				d.came <- conn
				_, _ = io.Copy(conn, conn) // an echo, until either side closes
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		open.Range(func(raw, _ any) bool { _ = raw.(net.Conn).Close(); return true })
		wg.Wait()
	})
	return d
}

// Who may open what: by the role and the region of the certificate, and by whether roles count.
func TestWhoMayConnect(t *testing.T) {
	p, other := newPKI(t), newPKI(t)
	p.issue("server", "server", "global", 0)
	p.issue("server2", "server", "global", 0)
	p.issue("client", "client", "global", 0)
	p.issue("cli", "cli", "global", 0)
	p.issue("eu-server", "server", "eu", 0)
	p.issue("eu-client", "client", "eu", 0)
	other.issue("server", "server", "global", 0)
	strict := openDoor(t, load(t, p.options("server", "server")), 10*time.Second)
	o := p.options("server", "server")
	o.VerifyRoles = false
	loose := openDoor(t, load(t, o), 10*time.Second)

	// dialler has the certificate but checks nothing of its own.
	dialler := func(from *pki, name string) *TLS {
		o := from.options(name, "client")
		o.VerifyRoles = false
		s := load(t, o)
		s.now.Load().roots.AddCert(p.ca.Cert)
		return s
	}
	f := func(d *door, from *pki, name string, proto byte, want, logged string) {
		t.Helper()
		conn, err := dialler(from, name).Dial(t.Context(), "", d.addr, proto)
		came := <-d.came
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			defer conn.Close() //nolint:errcheck // a test
			in, ok := came.(*Conn)
			if !ok || in.Proto != proto {
				t.Errorf("%s: came as %v", name, came)
			}
			if _, err := conn.Write([]byte("through")); err != nil {
				t.Error(err)
			}
			back := make([]byte, 7)
			if _, err := io.ReadFull(conn, back); err != nil || string(back) != "through" {
				t.Errorf("%s: %q %v", name, back, err)
			}
			return
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
		var why *Refused
		if e, ok := came.(error); !ok || !errors.As(e, &why) || why.Gone || !strings.Contains(why.Reason, logged) {
			t.Errorf("%s: it says %v, want %s", name, came, logged)
		}
	}
	f(strict, p, "server2", ProtoRaft, "", "")
	f(strict, p, "server2", ProtoRPC, "", "")
	f(strict, p, "client", ProtoRPC, "", "")
	f(strict, p, "eu-server", ProtoRPC, "", "")
	const raftOnly = "may not take part in Raft, which is for server.global.nomad"
	f(strict, p, "client", ProtoRaft, raftOnly, "[client.global.nomad localhost] may not take part in Raft")
	f(strict, p, "eu-server", ProtoRaft, raftOnly, "[server.eu.nomad localhost] may not take part in Raft")
	f(strict, p, "cli", ProtoRaft, raftOnly, raftOnly)
	const rpcOnly = "may not use RPC, which is for client.global.nomad and server.global.nomad"
	f(strict, p, "cli", ProtoRPC, rpcOnly, rpcOnly)
	f(strict, p, "eu-client", ProtoRPC, rpcOnly, rpcOnly)
	f(strict, p, "server2", 'x', "neither RPC nor Raft", "neither RPC nor Raft")
	f(strict, other, "server", ProtoRPC, "refused our certificate", "its TLS handshake failed")
	f(strict, other, "server", ProtoRaft, "refused our certificate", "its TLS handshake failed")
	f(loose, p, "client", ProtoRaft, "", "")
	f(loose, p, "cli", ProtoRPC, "", "")
	f(loose, other, "server", ProtoRPC, "refused our certificate", "its TLS handshake failed")
}

// Who dials makes sure of the server before it says anything.
func TestServerMustProveItself(t *testing.T) {
	p, other := newPKI(t), newPKI(t)
	for _, n := range [][2]string{{"server", "global"}, {"client", "global"}} {
		p.issue(n[0], n[0], n[1], 0)
	}
	p.issue("eu", "server", "eu", 0)
	other.issue("server", "server", "global", 0)
	serve := func(from *pki, name, region string) *door {
		o := from.options(name, "server")
		o.VerifyRoles, o.Region = false, region
		return openDoor(t, load(t, o), 10*time.Second)
	}
	mine := load(t, p.options("client", "client"))
	f := func(d *door, region, want string) {
		t.Helper()
		conn, err := mine.Dial(t.Context(), region, d.addr, ProtoRPC)
		<-d.came
		if err == nil {
			_ = conn.Close()
		}
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("region %q: got %v, want %s", region, err, want)
		}
	}
	good, euro := serve(p, "server", "global"), serve(p, "eu", "eu")
	f(good, "", "")
	f(good, "global", "")
	f(good, "eu", "but a server's names server.eu.nomad")
	f(euro, "", "a certificate of [server.eu.nomad localhost], but a server's names server.global.nomad")
	f(euro, "eu", "")
	f(serve(p, "client", "global"), "", "but a server's names server.global.nomad")
	f(serve(other, "server", "global"), "", "not verified by tls.ca_file")
}

func TestPlainAndTLS(t *testing.T) {
	p := newPKI(t)
	p.issue("server", "server", "global", 0)
	p.issue("client", "client", "global", 0)
	upgrading := func(name, role string) *TLS {
		o := p.options(name, role)
		o.Upgrade = true
		return load(t, o)
	}
	f := func(server, client *TLS, want, logged string, isTLS bool) {
		t.Helper()
		d := openDoor(t, server, 10*time.Second)
		conn, err := client.Dial(t.Context(), "", d.addr, ProtoRPC)
		if err == nil {
			defer conn.Close() //nolint:errcheck // a test
			_, _ = conn.Write([]byte("x"))
			if _, err = io.ReadFull(conn, make([]byte, 1)); err == nil {
				if _, ok := conn.(*tls.Conn); ok != isTLS {
					t.Errorf("TLS %v", ok)
				}
			}
		}
		came := <-d.came
		if (err == nil) != (want == "") || (err != nil && want != "any" && !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %s", err, want)
		}
		if e, ok := came.(error); ok != (logged != "") || (ok && !strings.Contains(e.Error(), logged)) {
			t.Errorf("it says %v, want %s", came, logged)
		}
	}
	server, client := load(t, p.options("server", "server")), load(t, p.options("client", "client"))
	f(server, client, "", "", true)
	f(nil, nil, "", "", false)
	f(server, nil, "any", "it does not speak TLS, which is needed here", false)
	f(nil, client, "does it speak TLS?", "it speaks TLS, which this agent does not", false)
	f(upgrading("server", "server"), nil, "", "", false)
	f(upgrading("server", "server"), client, "", "", true)
	f(server, upgrading("client", "client"), "", "", true)
	f(nil, upgrading("client", "client"), "", "it speaks TLS, which this agent does not", false)
}

// TestNoPortForRPC: who calls, in the clear, a port at which something else answers, or TLS is wanted, gets a hint to check that; not
// who loses a server that has answered.
func TestNoPortForRPC(t *testing.T) {
	p := newPKI(t)
	p.issue("server", "server", "global", 0)
	wantsTLS := openDoor(t, load(t, p.options("server", "server")), 10*time.Second)
	speaks := func(text string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if conn, err := l.Accept(); err == nil {
				_, _ = conn.Read(make([]byte, 100))
				_, _ = io.WriteString(conn, text)
				_ = conn.Close()
			}
		})
		t.Cleanup(func() { _ = l.Close(); wg.Wait() })
		return l.Addr().String()
	}
	for _, c := range []struct {
		what, addr string
		requests   bool
	}{
		{"TLS is wanted", wantsTLS.addr, true},
		{"nothing is said", speaks(""), true},
		{"HTTP", speaks("HTTP/1.1 400 Bad Request\r\n\r\n"), true},
		{"a yamux frame, and then the end", speaks("\x00\x02\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01"), false}, // a ping
	} {
		s, err := Dial(t.Context(), "", c.addr, Config{})
		if err == nil {
			err = s.Call(t.Context(), "Node.Register", &struct{}{}, &struct{}{})
			_ = s.Close()
		}
		if !errors.Is(err, ErrSessionClosed) || strings.Contains(err.Error(), "its RPC port (4647 by default), and does it want TLS") != c.requests {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// In the middle of an upgrade no certificate is worth less than none: a wrong one is not
// answered by talking in the clear.
func TestUpgradeDoesNotForgive(t *testing.T) {
	p, other := newPKI(t), newPKI(t)
	p.issue("client", "client", "global", 0)
	other.issue("server", "server", "global", 0)
	o := p.options("client", "client")
	o.Upgrade = true
	d := openDoor(t, load(t, other.options("server", "server")), 10*time.Second)
	if conn, err := load(t, o).Dial(t.Context(), "", d.addr, ProtoRPC); err == nil || !strings.Contains(err.Error(), "not verified by tls.ca_file") {
		t.Errorf("%v %v", conn, err)
	}
	<-d.came
	select {
	case again := <-d.came:
		t.Errorf("it came again: %v", again)
	default:
	}
}

// Connections that say nothing, or stop in the middle, end with their time.
func TestSilentConnections(t *testing.T) {
	p := newPKI(t)
	p.issue("server", "server", "global", 0)
	p.issue("client", "client", "global", 0)
	d := openDoor(t, load(t, p.options("server", "server")), 50*time.Millisecond)
	silent := func(first ...byte) {
		t.Helper()
		conn, err := net.Dial("tcp", d.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // a test
		if _, err := conn.Write(first); err != nil {
			t.Fatal(err)
		}
		var why *Refused
		if err, ok := (<-d.came).(error); !ok || !errors.As(err, &why) || !why.Gone {
			t.Errorf("% x: %v", first, err)
		}
	}
	silent()
	silent(protoTLS)
	silent(protoTLS, 3, 1, 2, 0, 1)
	// A handshake that is whole, and then nothing. It must be done within the door's limit, which a busy machine may need more
	// of than another.
	c := load(t, p.options("client", "client")).now.Load().config()
	c.InsecureSkipVerify = true
	for limit := 100 * time.Millisecond; ; limit *= 2 {
		d := openDoor(t, load(t, p.options("server", "server")), limit)
		raw, err := net.Dial("tcp", d.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close() //nolint:errcheck // a test
		err = tls.Client(raw, c).HandshakeContext(t.Context())
		var why *Refused
		if err, ok := (<-d.came).(error); !ok || !errors.As(err, &why) || !why.Gone {
			t.Errorf("after the handshake: %v", err)
		}
		if err == nil {
			return
		}
		if limit > time.Minute {
			t.Fatal(err)
		}
	}
}

// New certificates apply to new connections; a broken one changes nothing.
func TestReload(t *testing.T) {
	p := newPKI(t)
	p.issue("server", "server", "global", 0)
	p.issue("client", "client", "global", 0)
	server, client := load(t, p.options("server", "server")), load(t, p.options("client", "client"))
	d := openDoor(t, server, 10*time.Second)
	serial := func() string {
		t.Helper()
		conn, err := client.Dial(t.Context(), "", d.addr, ProtoRPC)
		if err != nil {
			t.Fatal(err)
		}
		<-d.came
		defer conn.Close() //nolint:errcheck // a test
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	first := serial()
	if serial() != first {
		t.Error("the certificate changed by itself")
	}
	old := p.read("server.pem")
	p.write("server.pem", old[:100])
	if err := server.Reload(p.options("server", "server")); err == nil {
		t.Error("a broken certificate was taken")
	}
	if serial() != first {
		t.Error("a refused certificate is used")
	}
	p.issue("server", "server", "global", 0)
	if err := server.Reload(p.options("server", "server")); err != nil {
		t.Fatal(err)
	}
	if serial() == first {
		t.Error("the new certificate is not used")
	}
	// Rules as well: a client's certificate may do anything only while roles do not count.
	raft := func() error {
		conn, err := client.Dial(t.Context(), "", d.addr, ProtoRaft)
		<-d.came
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	if err := raft(); err == nil {
		t.Error("Raft with a client's certificate")
	}
	o := p.options("server", "server")
	o.VerifyRoles = false
	if err := server.Reload(o); err != nil {
		t.Fatal(err)
	}
	if err := raft(); err != nil {
		t.Error(err)
	}
}

func TestTLSSettings(t *testing.T) {
	version := func(name string, want uint16, refusal string) {
		t.Helper()
		got, err := ParseTLSVersion(name)
		if got != want || (err == nil) != (refusal == "") || (err != nil && !strings.Contains(err.Error(), refusal)) {
			t.Errorf("%q: %#x %v", name, got, err)
		}
	}
	version("", 0, "")
	version("tls12", tls.VersionTLS12, "")
	version("TLS13", tls.VersionTLS13, "")
	version("tls11", 0, "is broken")
	version("1.2", 0, "allowed are tls12 and tls13")
	suites := func(names string, want int, refusal string) {
		t.Helper()
		got, err := ParseCipherSuites(names)
		if len(got) != want || (err == nil) != (refusal == "") || (err != nil && !strings.Contains(err.Error(), refusal)) {
			t.Errorf("%q: %v %v", names, got, err)
		}
	}
	suites("", 0, "")
	suites("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", 2, "")
	suites("TLS_RSA_WITH_RC4_128_SHA", 0, "is no secure suite of TLS 1.2; allowed are TLS_ECDHE")
	suites("TLS_AES_128_GCM_SHA256", 0, "is no secure suite of TLS 1.2")
	suites("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,", 0, `"": is no secure suite`)
}
