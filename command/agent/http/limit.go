package httpapi

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/wire"
)

// limitConns bounds the connections that one address may have open. What comes
// beyond is answered 429 and closed, without a goroutine for it.
func limitConns(l net.Listener, perClient int, logger hclog.Logger) net.Listener {
	return &limitedListener{Listener: l, max: perClient, logger: logger, open: map[string]int{}}
}

type limitedListener struct {
	net.Listener
	max    int
	logger hclog.Logger
	logged wire.LogLimiter // clients of which a refusal was logged

	mu   sync.Mutex
	open map[string]int // by address, without port
}

// tooManyConns is the answer where one address has max connections. It begins as Nomad's.
func tooManyConns(max int) []byte {
	text := fmt.Sprintf("Your IP is issuing too many concurrent connections, please rate limit your calls: "+
		"at most %d of one address may be open (limits { http_max_conns_per_client })\n", max)
	return fmt.Appendf(nil, "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
}

// Accept returns the next connection that is within its client's bound.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
		if err != nil {
			return conn, nil //nolint:nilerr // not TCP: a socket file's callers are not distinguished
		}
		if l.take(host) {
			return &limitedConn{Conn: conn, release: func() { l.release(host) }}, nil
		}
		if l.logged.Allow(host, time.Now()) {
			l.logger.Warn("refused a connection: http_max_conns_per_client is reached; more from there are not logged for an hour", "client", host, "limit", l.max)
		}
		// It fits the fresh socket's buffer, so that this does not wait.
		_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = conn.Write(tooManyConns(l.max))
		_ = conn.Close()
	}
}

func (l *limitedListener) take(host string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[host] >= l.max {
		return false
	}
	l.open[host]++
	return true
}

func (l *limitedListener) release(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[host]--; l.open[host] <= 0 {
		delete(l.open, host)
	}
}

type limitedConn struct {
	net.Conn
	once    sync.Once
	release func()
}

// Close closes the connection and frees its slot.
func (c *limitedConn) Close() error {
	c.once.Do(c.release)
	return c.Conn.Close()
}
