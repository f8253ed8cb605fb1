// Package portmux is the one port that Raft and RPC share: who may connect (TLS), how many connections one address may have, and
// by the first byte which of the two a connection carries.
package portmux

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/internal/wire"
)

var (
	acceptConnCount  = telemetry.NewCount("nomad.rpc.accept_conn")
	raftHandoffCount = telemetry.NewCount("nomad.rpc.raft_handoff")
	refusedConnCount = telemetry.NewCount("nomad.rpc.refused_conn")
)

// Options are where a server listens and whom it serves.
type Options struct {
	Addr      string // host:port to listen on; port 0: any free one
	Advertise string // host:port that others reach us at; empty: Addr
	// TLS guards the port and connections to other servers; nil: they are plain.
	TLS *wire.TLS
	// HandshakeTimeout is the time for a connection to state who it is and what it carries; it must be positive.
	HandshakeTimeout time.Duration
	// MaxConnsPerClient is how many connections one address may have at once; 0: no limit.
	MaxConnsPerClient int

	// OnRPC is called with each RPC connection in a goroutine of its own, and owns it until it returns.
	OnRPC func(ctx context.Context, conn net.Conn)
	// TakesRaft reports whether this server may take part in Raft. It is called after Run.
	TakesRaft func() bool

	Logger hclog.Logger
}

// Listener is the one port that Raft and RPC share.
type Listener struct {
	tcp       net.Listener
	advertise net.Addr
	raftConns chan net.Conn
	o         Options
	logger    hclog.Logger
	logged    wire.LogLimiter // peers whose refusal was logged

	mu    sync.Mutex
	conns map[net.Conn]string // open connections and their peers' addresses
	peers map[string]int

	wg     sync.WaitGroup
	cancel context.CancelFunc
	done   <-chan struct{}
}

// Listen opens the port. Run serves it.
func Listen(o Options) (*Listener, error) {
	tcp, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen for RPC on %s: %w (is another agent running? set ports { rpc = … })", o.Addr, err)
	}
	advertise := tcp.Addr()
	if o.Advertise != "" {
		a, err := net.ResolveTCPAddr("tcp", o.Advertise)
		if err != nil {
			_ = tcp.Close()
			return nil, fmt.Errorf("advertise { rpc = %q }: %w", o.Advertise, err)
		}
		if a.Port == 0 {
			a.Port = tcp.Addr().(*net.TCPAddr).Port
		}
		advertise = a
	}
	if ip := advertise.(*net.TCPAddr).IP; ip == nil || ip.IsUnspecified() {
		_ = tcp.Close()
		return nil, fmt.Errorf("advertise %s: other machines cannot reach an unspecified address; set advertise { rpc = \"ADDRESS\" }", advertise)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Listener{
		tcp: tcp, advertise: advertise, raftConns: make(chan net.Conn), o: o, logger: o.Logger.Named("listener"),
		conns: map[net.Conn]string{}, peers: map[string]int{}, cancel: cancel, done: ctx.Done(),
	}
	return l, nil
}

// Run accepts connections in the background until Close.
func (l *Listener) Run() {
	ctx, cancel := context.WithCancel(context.Background())
	l.wg.Go(func() { <-l.done; cancel() })
	l.wg.Go(func() {
		for {
			conn, err := l.tcp.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // for example, out of file handles: wait for some to come free
				l.logger.Error("accept a connection", "error", err)
				select {
				case <-time.After(100 * time.Millisecond):
					continue
				case <-l.done:
					return
				}
			}
			if !l.admit(conn) {
				l.full(conn)
				_ = conn.Close()
				continue
			}
			acceptConnCount.Add(1)
			l.wg.Go(func() { l.serve(ctx, conn) })
		}
	})
}

func (l *Listener) admit(conn net.Conn) bool {
	peer, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns == nil || (l.o.MaxConnsPerClient > 0 && l.peers[peer] >= l.o.MaxConnsPerClient) {
		return false
	}
	l.conns[conn] = peer
	l.peers[peer]++
	return true
}

// full counts a connection that is over its peer's number; the first is logged.
func (l *Listener) full(conn net.Conn) {
	refusedConnCount.Add(1)
	peer, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
	if l.logged.AllowOf("full", peer, time.Now()) {
		l.logger.Warn("refused a connection: rpc_max_conns_per_client is reached; more from there are not logged for an hour", "client", peer, "limit", l.o.MaxConnsPerClient)
	}
}

func (l *Listener) release(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if peer, ok := l.conns[conn]; ok {
		delete(l.conns, conn)
		if l.peers[peer]--; l.peers[peer] == 0 {
			delete(l.peers, peer)
		}
	}
}

func (l *Listener) serve(ctx context.Context, raw net.Conn) {
	conn, err := l.o.TLS.Accept(ctx, raw, l.o.HandshakeTimeout)
	if err != nil {
		l.refuse(raw, err)
		l.release(raw)
		_ = raw.Close()
		return
	}
	if conn.Proto == wire.ProtoRPC {
		l.o.OnRPC(ctx, conn)
		l.release(raw)
		_ = conn.Close()
		return
	}
	if !l.o.TakesRaft() {
		l.refuse(raw, &wire.Refused{Kind: "raft", Reason: "this server belongs to no cluster yet and has voted for none: it takes no part in Raft"})
		l.release(raw)
		_ = conn.Close()
		return
	}
	raftHandoffCount.Add(1)
	select {
	case l.raftConns <- &tracked{Conn: conn, release: sync.OnceFunc(func() { l.release(raw) })}:
	case <-l.done:
		_ = conn.Close()
	}
}

// refuse logs why a connection was not taken: once for each peer and reason.
func (l *Listener) refuse(raw net.Conn, err error) {
	refusedConnCount.Add(1)
	var why *wire.Refused
	if !errors.As(err, &why) || why.Gone {
		l.logger.Debug("a connection ended before it stated its protocol", "from", raw.RemoteAddr(), "error", err)
		return
	}
	peer, _, _ := net.SplitHostPort(raw.RemoteAddr().String())
	if l.logged.AllowOf(why.Kind, peer, time.Now()) {
		l.logger.Warn("refused a connection; more of this kind from there are not logged for an hour", "from", raw.RemoteAddr(), "error", err)
	}
}

// tracked releases a connection's place when it is closed.
type tracked struct {
	net.Conn
	release func()
}

func (t *tracked) Close() error { t.release(); return t.Conn.Close() }

// Close stops accepting, closes what is open and waits.
func (l *Listener) Close() {
	l.cancel()
	_ = l.tcp.Close()
	l.mu.Lock()
	conns := l.conns
	l.conns = nil
	l.mu.Unlock()
	for c := range conns {
		_ = c.Close()
	}
	l.wg.Wait()
}

// Addr returns the address that others reach the port at.
func (l *Listener) Addr() net.Addr { return l.advertise }

// Raft returns the port as Raft's transport sees it.
func (l *Listener) Raft() raft.StreamLayer { return raftLayer{l} }

// raftLayer is the listener as Raft's transport sees it.
type raftLayer struct{ l *Listener }

// Accept waits for a connection that carries Raft.
func (r raftLayer) Accept() (net.Conn, error) {
	select {
	case c := <-r.l.raftConns:
		return c, nil
	case <-r.l.done:
		return nil, net.ErrClosed
	}
}

// Close is the listener's own business.
func (r raftLayer) Close() error { return nil }

// Addr is the address that other servers reach us at.
func (r raftLayer) Addr() net.Addr { return r.l.advertise }

// Dial opens a Raft connection to another server.
func (r raftLayer) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return r.l.o.TLS.Dial(ctx, "", string(addr), wire.ProtoRaft)
}
