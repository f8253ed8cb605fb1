package httpapi

import (
	"crypto/sha1" // what the handshake of a WebSocket is made of; it guards nothing
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// allocExec answers why no command can be run in an allocation. Callers speak WebSocket: they get the reason in the message that closes
// it, as Nomad's clients show that text alone.
func allocExec(r *request) (any, error) {
	var reply structs.AllocReply
	err := r.queryClient(wire.MethodAllocGet, &structs.IDRequest{ID: r.id(), QueryOptions: r.opts}, &reply)
	switch {
	case structs.CodeOf(err) == structs.CodeNotFound, err == nil && reply.Alloc == nil:
		err = &statusError{http.StatusNotFound, fmt.Sprintf("Unknown allocation %q", r.id())}
	case err == nil:
		err = unsupported("running a command in an allocation")
	}
	key := r.Header.Get("Sec-WebSocket-Key")
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") || key == "" {
		return nil, err
	}
	return answered, r.closeWebSocket(key, 4000+statusOf(err), err.Error())
}

// closeWebSocket takes a WebSocket up and closes it with a code and the beginning of a reason.
func (r *request) closeWebSocket(key string, code int, reason string) error {
	conn, _, err := http.NewResponseController(r.w).Hijack()
	if err != nil {
		return structs.Errorf(structs.CodeBadRequest, "a WebSocket needs HTTP/1.1: %w", err)
	}
	defer conn.Close()                                    //nolint:errcheck // it has been answered
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second)) // a caller that does not read is let go
	r.w.code = http.StatusSwitchingProtocols
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // see above
	answer := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
		base64.StdEncoding.EncodeToString(sum[:]) + "\r\n\r\n"
	const most = 125 // bytes of a control frame
	reason = structs.Clip(reason, most-2)
	frame := binary.BigEndian.AppendUint16([]byte{0x88, byte(2 + len(reason))}, uint16(code)) // both are small
	if _, err := conn.Write(append([]byte(answer), append(frame, reason...)...)); err != nil {
		return nil // a caller that is gone needs no answer
	}
	var rest [512]byte // the caller closes in its turn; until then nothing of the answer may be lost
	for {
		if _, err := conn.Read(rest[:]); err != nil {
			return nil
		}
	}
}
