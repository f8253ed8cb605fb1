package nomadish

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

// listener is the one port that Raft and RPC share: the first byte of a
// connection says which of the two it carries.
type listener struct {
	tcp       net.Listener
	advertise net.Addr
	raftConns chan net.Conn
	onRPC     func(ctx context.Context, conn net.Conn)
	logger    hclog.Logger
	handshake time.Duration // for a connection to say who it is and what it carries
	tls       *wire.TLS     // nil: plain
	told      wire.Once     // peers whose refusal was logged
	perPeer   int           // connections at once from one address; 0: no limit
	// takesRaft tells whether this server may speak Raft; set before run. See raftGate.
	takesRaft func() bool

	mu    sync.Mutex
	conns map[net.Conn]string // open connections and their peers' addresses
	peers map[string]int

	wg     sync.WaitGroup
	cancel context.CancelFunc
	done   <-chan struct{}
}

// listen opens the port. onRPC is called with each RPC connection in a goroutine
// of its own and owns it until it returns.
func listen(cfg *Config, onRPC func(ctx context.Context, conn net.Conn)) (*listener, error) {
	tcp, err := net.Listen("tcp", cfg.RPCAddr)
	if err != nil {
		return nil, fmt.Errorf("listen for RPC on %s: %w (is another agent running? set ports { rpc = … })", cfg.RPCAddr, err)
	}
	advertise := tcp.Addr()
	if cfg.RPCAdvertise != "" {
		a, err := net.ResolveTCPAddr("tcp", cfg.RPCAdvertise)
		if err != nil {
			_ = tcp.Close()
			return nil, fmt.Errorf("advertise { rpc = %q }: %w", cfg.RPCAdvertise, err)
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
	l := &listener{
		tcp: tcp, advertise: advertise, raftConns: make(chan net.Conn), onRPC: onRPC,
		logger: cfg.Logger.Named("listener"), handshake: cfg.HandshakeTimeout, perPeer: cfg.MaxConnsPerClient, tls: cfg.TLS,
		conns: map[net.Conn]string{}, peers: map[string]int{}, cancel: cancel, done: ctx.Done(),
	}
	return l, nil
}

// run accepts connections until close.
func (l *listener) run() {
	ctx, cancel := context.WithCancel(context.Background())
	l.wg.Go(func() { <-l.done; cancel() })
	l.wg.Go(func() {
		for {
			conn, err := l.tcp.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // out of file handles, say: wait for some to come free
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

func (l *listener) admit(conn net.Conn) bool {
	peer, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns == nil || (l.perPeer > 0 && l.peers[peer] >= l.perPeer) {
		return false
	}
	l.conns[conn] = peer
	l.peers[peer]++
	return true
}

// full counts a connection that is over its peer's number; the first is logged.
func (l *listener) full(conn net.Conn) {
	refusedConnCount.Add(1)
	peer, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
	if l.told.FirstOf("full", peer, time.Now()) {
		l.logger.Warn("refused a connection: rpc_max_conns_per_client is reached; more from there are not logged for an hour", "client", peer, "limit", l.perPeer)
	}
}

func (l *listener) release(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if peer, ok := l.conns[conn]; ok {
		delete(l.conns, conn)
		if l.peers[peer]--; l.peers[peer] == 0 {
			delete(l.peers, peer)
		}
	}
}

func (l *listener) serve(ctx context.Context, raw net.Conn) {
	conn, err := l.tls.Accept(ctx, raw, l.handshake)
	if err != nil {
		l.refuse(raw, err)
		l.release(raw)
		_ = raw.Close()
		return
	}
	if conn.Proto == wire.ProtoRPC {
		l.onRPC(ctx, conn)
		l.release(raw)
		_ = conn.Close()
		return
	}
	if !l.takesRaft() {
		l.refuse(raw, &wire.Refused{Kind: "raft", Reason: "this server belongs to no cluster yet and has promised itself to none: it takes no part in Raft"})
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
func (l *listener) refuse(raw net.Conn, err error) {
	refusedConnCount.Add(1)
	var why *wire.Refused
	if !errors.As(err, &why) || why.Gone {
		l.logger.Debug("a connection ended before it said what it is", "from", raw.RemoteAddr(), "error", err)
		return
	}
	peer, _, _ := net.SplitHostPort(raw.RemoteAddr().String())
	if l.told.FirstOf(why.Kind, peer, time.Now()) {
		l.logger.Warn("refused a connection; more of this kind from there are not logged for an hour", "from", raw.RemoteAddr(), "error", err)
	}
}

// tracked releases a connection's place when it is closed.
type tracked struct {
	net.Conn
	release func()
}

func (t *tracked) Close() error { t.release(); return t.Conn.Close() }

// close stops accepting, closes what is open and waits.
func (l *listener) close() {
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

// raftLayer is the listener as Raft's transport sees it.
type raftLayer struct{ l *listener }

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
	return r.l.tls.Dial(ctx, "", string(addr), wire.ProtoRaft)
}
