package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// protoTLS is the first byte of a TLS handshake. Within, the first byte is again one of
// the Proto*; the accepting side answers it with answerOK, or answerNo, two bytes of a length
// and a text, so that who is refused learns why.
const (
	protoTLS byte = 0x16
	answerOK byte = 0
	answerNo byte = 1
)

// maxRefusal bounds the text of a refusal in bytes.
const maxRefusal = 1024

// dialTimeout bounds a dial: the connection, and again the handshake.
const dialTimeout = 10 * time.Second

// Peer is who is at the other end of an accepted connection, as its certificate states. The
// zero value is somebody unknown, on a connection on which nobody has to identify themselves.
type Peer struct {
	verified bool // its roles count
	https    bool // it calls the HTTP API
	names    []string
	region   string // this agent's
	stated   Role   // by the names
	rules    *TLS   // this agent's; set if verified
}

func peerOf(leaf *x509.Certificate, verified bool) Peer {
	return Peer{verified: verified, names: leaf.DNSNames}
}

// peer returns who has shown this agent a certificate.
func (t *TLS) peer(leaf *x509.Certificate, verified, https bool) Peer {
	p := peerOf(leaf, verified)
	p.https, p.region, p.rules = https, t.now.Load().Region, t
	p.stated = p.statedRoles()
	return p
}

func (p Peer) has(role, region string) bool {
	for _, n := range p.names {
		if r, of, ok := structs.ParseCertName(n); ok && r == role && structs.CertName(role, of) == normalName(role, region) {
			return true
		}
	}
	return false
}

// normalName is CertName as ParseCertName returns it: in small letters.
func normalName(role, region string) string {
	_, of, _ := structs.ParseCertName(structs.CertName(role, region))
	return structs.CertName(role, of)
}

// states reports whether the certificate states a role in any region.
func (p Peer) states(role string) bool {
	for _, n := range p.names {
		if r, _, ok := structs.ParseCertName(n); ok && r == role {
			return true
		}
	}
	return false
}

// String names the peer in messages.
func (p Peer) String() string {
	if len(p.names) == 0 {
		return "without a name"
	}
	return fmt.Sprintf("of %v", p.names)
}

// Conn is an accepted connection that has stated what it carries.
type Conn struct {
	net.Conn
	Proto byte // ProtoRPC or ProtoRaft
	Peer  Peer
}

// Refused is why a connection was not accepted.
type Refused struct {
	Reason string
	Kind   string // the reason without what changes from one connection to the next
	// Gone: it sent nothing, or not in time, which is not worth a line in a log.
	Gone bool
}

// Error returns the reason.
func (r *Refused) Error() string { return r.Reason }

func refused(format string, args ...any) error {
	return &Refused{Reason: fmt.Sprintf(format, args...), Kind: format}
}

// Accept takes a new connection through the handshake, within limit, and finds out what
// it carries and whether its peer may. After an error, which is a *Refused, the caller
// closes raw.
func (t *TLS) Accept(ctx context.Context, raw net.Conn, limit time.Duration) (*Conn, error) {
	_ = raw.SetDeadline(time.Now().Add(limit))
	conn, err := t.accept(ctx, raw)
	if err != nil {
		return nil, err
	}
	_ = raw.SetDeadline(time.Time{})
	return conn, nil
}

func (t *TLS) accept(ctx context.Context, raw net.Conn) (*Conn, error) {
	var first [1]byte
	if _, err := io.ReadFull(raw, first[:]); err != nil {
		return nil, &Refused{Reason: "it sent nothing: " + err.Error(), Gone: true}
	}
	switch proto := first[0]; {
	case proto == protoTLS && t == nil:
		return nil, refused("it speaks TLS, which this agent does not: set tls { rpc = true } here too, or not there")
	case proto == protoTLS:
		return t.acceptTLS(ctx, raw)
	case proto != ProtoRPC && proto != ProtoRaft:
		return nil, refused("it speaks neither RPC nor Raft (its first byte is %#x): is something calling the HTTP API on the RPC port?", proto)
	case t != nil && !t.now.Load().Upgrade:
		return nil, refused("it does not speak TLS, which is needed here: set tls { rpc = true } there too")
	default:
		return &Conn{Conn: raw, Proto: proto}, nil
	}
}

// reread is a connection of which the first byte has been read already.
type reread struct {
	net.Conn
	r io.Reader
}

func (c *reread) Read(p []byte) (int, error) { return c.r.Read(p) }

func (t *TLS) acceptTLS(ctx context.Context, raw net.Conn) (*Conn, error) {
	s := t.now.Load()
	if s.roots == nil {
		return nil, refused("tls.ca_file is not set here: nobody can be verified")
	}
	c := s.config()
	c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, s.roots
	conn := tls.Server(&reread{raw, io.MultiReader(bytes.NewReader([]byte{protoTLS}), raw)}, c)
	if err := conn.HandshakeContext(ctx); err != nil {
		if unexpectedEnd(err) {
			return nil, &Refused{Reason: "it broke off the TLS handshake: " + err.Error(), Gone: true}
		}
		return nil, &Refused{Reason: fmt.Sprintf("its TLS handshake failed: %v", err), Kind: "handshake" + faultOf(err)}
	}
	peer := t.peer(conn.ConnectionState().PeerCertificates[0], s.VerifyRoles, false)
	var proto [1]byte
	if _, err := io.ReadFull(conn, proto[:]); err != nil {
		return nil, &Refused{Reason: "it did not state what it carries: " + err.Error(), Gone: true}
	}
	if why := s.forbids(peer, proto[0]); why != "" {
		answer := binary.BigEndian.AppendUint16([]byte{answerNo}, uint16(min(len(why), maxRefusal))) // bounded
		_, _ = conn.Write(append(answer, why[:min(len(why), maxRefusal)]...))
		_ = conn.CloseWrite()
		return nil, &Refused{Reason: why, Kind: why} // the names in it are the CA's doing, and so few
	}
	if _, err := conn.Write([]byte{answerOK}); err != nil {
		return nil, &Refused{Reason: err.Error(), Gone: true}
	}
	return &Conn{Conn: conn, Proto: proto[0], Peer: peer}, nil
}

// faultOf returns the kind of a certificate's fault, without what differs from one to the next.
func faultOf(err error) string {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &invalid):
		return fmt.Sprintf(", certificate %d", invalid.Reason)
	case errors.As(err, &unknown):
		return ", authority"
	}
	return ""
}

// forbids returns why a peer may not carry a protocol; empty: it may.
func (s *tlsState) forbids(p Peer, proto byte) string {
	own := func(role string) string { return structs.CertName(role, s.Region) }
	switch {
	case proto != ProtoRPC && proto != ProtoRaft:
		return fmt.Sprintf("protocol %#x: neither RPC nor Raft", proto)
	case !p.verified || p.has(structs.CertServer, s.Region):
		return ""
	case proto == ProtoRaft:
		return fmt.Sprintf("a certificate %s may not take part in Raft, which is for %s", p, own(structs.CertServer))
	case p.has(structs.CertClient, s.Region) || p.states(structs.CertServer): // servers of other regions pass calls on
		return ""
	}
	return fmt.Sprintf("a certificate %s may not use RPC, which is for %s and %s", p, own(structs.CertClient), own(structs.CertServer))
}

func unexpectedEnd(err error) bool {
	var timeout net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || (errors.As(err, &timeout) && timeout.Timeout())
}

// Dial opens a connection to the server at addr, of a region ("": the own), and states what
// it will carry. With TLS the server must prove itself before anything is sent.
func (t *TLS) Dial(ctx context.Context, region, addr string, proto byte) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*dialTimeout)
	defer cancel()
	raw, err := dialTCP(ctx, addr)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return greet(raw, addr, proto)
	}
	s := t.now.Load()
	conn, err := s.dial(ctx, raw, region, addr, proto)
	if err == nil {
		return conn, nil
	}
	_ = raw.Close()
	if !s.Upgrade || !errors.Is(err, errNoTLS) || ctx.Err() != nil {
		return nil, err
	}
	if t.plainLogged.Allow(addr, time.Now()) {
		t.logger.Warn("a server does not speak TLS yet: talking to it in the clear, as rpc_upgrade_mode allows", "server", addr)
	}
	if raw, err = dialTCP(ctx, addr); err != nil {
		return nil, err
	}
	return greet(raw, addr, proto)
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", addr, err)
	}
	return conn, nil
}

func greet(conn net.Conn, addr string, proto byte) (net.Conn, error) {
	if _, err := conn.Write([]byte{proto}); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("greet %s: %w", addr, err)
	}
	return conn, nil
}

// errNoTLS means that the other side does not seem to speak TLS.
var errNoTLS = errors.New("it broke off the TLS handshake: does it speak TLS? (tls { rpc = true })")

func (s *tlsState) dial(ctx context.Context, raw net.Conn, region, addr string, proto byte) (net.Conn, error) {
	if s.roots == nil {
		return nil, errors.New("tls.ca_file is not set: no server can be verified")
	}
	if region == "" {
		region = s.Region
	}
	_ = raw.SetDeadline(time.Now().Add(dialTimeout))
	defer context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })()
	c := s.config()
	c.ServerName = structs.CertName(structs.CertServer, region)
	c.InsecureSkipVerify = true // verified below: the chain always, the name as the options state
	c.VerifyConnection = func(state tls.ConnectionState) error {
		if err := s.verifyChain(state.PeerCertificates, x509.ExtKeyUsageServerAuth, time.Now()); err != nil {
			return fmt.Errorf("not verified by tls.ca_file %s: %w", s.CAFile, err)
		}
		if p := peerOf(state.PeerCertificates[0], true); s.VerifyRoles && !p.has(structs.CertServer, region) {
			return fmt.Errorf("it has a certificate %s, but a server's names %s", p, c.ServerName)
		}
		return nil
	}
	conn := tls.Client(raw, c)
	if err := conn.HandshakeContext(ctx); err != nil {
		var header tls.RecordHeaderError
		if ctx.Err() == nil && (errors.As(err, &header) || (unexpectedEnd(err) && !isTimeout(err))) {
			err = fmt.Errorf("%w: %w", errNoTLS, err)
		}
		return nil, fmt.Errorf("TLS to %s: %w", addr, err)
	}
	if err := answered(conn, proto); err != nil {
		return nil, fmt.Errorf("server %s: %w", addr, err)
	}
	_ = raw.SetDeadline(time.Time{})
	return conn, nil
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// answered states what a connection will carry and waits for the server's consent.
func answered(conn net.Conn, proto byte) error {
	if _, err := conn.Write([]byte{proto}); err != nil {
		return fmt.Errorf("refused our certificate: %w", err)
	}
	var head [3]byte
	if _, err := io.ReadFull(conn, head[:1]); err != nil {
		return fmt.Errorf("refused our certificate, see its log: %w", err)
	}
	if head[0] == answerOK {
		return nil
	}
	if _, err := io.ReadFull(conn, head[1:]); err != nil {
		return fmt.Errorf("refused us: %w", err)
	}
	text := make([]byte, min(maxRefusal, int(binary.BigEndian.Uint16(head[1:]))))
	if _, err := io.ReadFull(conn, text); err != nil {
		return fmt.Errorf("refused us: %w", err)
	}
	return fmt.Errorf("refused us: %q", text)
}
