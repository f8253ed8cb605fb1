package httpapi

import (
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// limitHandshakes makes l speak TLS, and closes connections that have not sent what TLS needs within limit.
func limitHandshakes(l net.Listener, config *tls.Config, limit time.Duration) net.Listener {
	if limit <= 0 {
		return tls.NewListener(l, config)
	}
	timed := config.Clone()
	timed.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		c := config
		if config.GetConfigForClient != nil {
			chosen, err := config.GetConfigForClient(hello)
			if err != nil {
				return nil, err
			}
			if chosen != nil {
				c = chosen
			}
		}
		c = c.Clone()
		verify := c.VerifyConnection
		c.VerifyConnection = func(s tls.ConnectionState) error {
			if h, ok := hello.Conn.(*shaking); ok && !h.late.Stop() {
				return net.ErrClosed
			}
			if verify != nil {
				return verify(s)
			}
			return nil
		}
		return c, nil
	}
	return tls.NewListener(&shakingListener{l, limit}, timed)
}

type shakingListener struct {
	net.Listener
	limit time.Duration
}

// Accept returns the next connection, which is closed if it is still in its handshake when the time is over.
func (l *shakingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	h := &shaking{Conn: conn}
	h.close = sync.OnceValue(conn.Close)
	h.late = time.AfterFunc(l.limit, func() { _ = h.close() })
	return h, nil
}

// shaking is a connection in its handshake.
type shaking struct {
	net.Conn
	late  *time.Timer
	close func() error
}

// Close closes the connection, once.
func (h *shaking) Close() error {
	h.late.Stop()
	return h.close()
}
