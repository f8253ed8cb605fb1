package httpapi

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/certs"
	"github.com/nomadish/nomadish/internal/wire"
)

// A connection that does not go on with its TLS handshake is closed in time; one that has finished it stays.
func TestHandshakeTimeout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pair, err := certs.NewCA(certs.CARequest{Days: 1, Now: time.Now()})
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
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secure, err := wire.LoadTLS(wire.TLSOptions{
		CAFile: file("ca.pem", pair.Cert), CertFile: file("cert.pem", own.Cert), KeyFile: file("key.pem", own.Key), Region: "global", Role: "server",
	}, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const limit = 5 * time.Second // much more than a handshake takes
	l := limitHandshakes(tcp, secure.HTTPS(func() bool { return false }), limit)
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			})
		}
	})
	good, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true}) // a test
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close() //nolint:errcheck // a test
	// Those that come later and are closed for their silence show that the time of the good one is over as well.
	for _, first := range [][]byte{nil, {0x16, 3, 1, 2, 0, 1}} {
		silent, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close() //nolint:errcheck // a test
		_, _ = silent.Write(first)
		_ = silent.SetReadDeadline(time.Now().Add(20 * limit))
		var late net.Error
		if _, err := silent.Read(make([]byte, 1)); errors.As(err, &late) && late.Timeout() {
			t.Errorf("a connection that said % x stays open", first)
		}
	}
	_ = good.SetDeadline(time.Now().Add(20 * limit))
	if _, err := good.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(good, make([]byte, 1)); err != nil {
		t.Errorf("the one that has shaken hands was closed: %v", err)
	}
}
