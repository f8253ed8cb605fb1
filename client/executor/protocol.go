package executor

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// The protocol: each side sends frames, a big-endian uint32 length and that many
// bytes of JSON. The first exchange is hello; then requests are answered in any
// order, matched by their number. A request of op cancel has no answer and ends
// the waiting of another one.
//
// An executor outlives upgrades of the agent, so both sides name the range of
// versions that they speak and use the highest common one.
const (
	// Version is the protocol spoken, MinVersion the oldest still understood. Executors that speak versionGroups or
	// a later one know Spec.Groups and Spec.AllowNewPrivs, from versionLimits on also Spec.Cgroup.
	Version       = 3
	MinVersion    = 1
	versionGroups = 2
	versionLimits = 3

	maxFrame = 4 << 20
)

// The operations.
const (
	opHello    = "hello"
	opPing     = "ping"
	opStart    = "start"
	opStatus   = "status"
	opWait     = "wait"
	opSignal   = "signal"
	opStop     = "stop"
	opStats    = "stats"
	opList     = "list"
	opForget   = "forget"
	opShutdown = "shutdown"
	opCancel   = "cancel"
	// Unknown to older executors, which answer that the request is invalid.
	opSuspend = "freeze"
	opResume  = "thaw"
)

// request is what the agent sends. Only the fields of its op are set.
type request struct {
	Seq uint64
	Op  string
	// hello
	MinVersion, MaxVersion int `json:",omitempty"`
	// start
	Spec *Spec `json:",omitempty"`
	// all that concern one task
	ID string `json:",omitempty"`
	// signal, stop: the number of the signal
	Signal int `json:",omitempty"`
	// stop: how long after the signal to kill
	Timeout time.Duration `json:",omitempty"`
	// cancel: the Seq of the request to give up
	Cancel uint64 `json:",omitempty"`
}

// response is what the executor sends.
type response struct {
	Seq uint64
	// Code and Error are set if the request failed.
	Code  string `json:",omitempty"`
	Error string `json:",omitempty"`
	// hello, ping
	Version int `json:",omitempty"`
	Pid     int `json:",omitempty"`

	Status *Status  `json:",omitempty"`
	List   []Status `json:",omitempty"`
	Stats  *Stats   `json:",omitempty"`
}

// errTooLong refuses a frame before memory is given to it.
var errTooLong = errors.New("frame too long")

func writeFrame(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	if len(body) > maxFrame {
		return fmt.Errorf("%w: %d bytes, at most %d", errTooLong, len(body), maxFrame)
	}
	// One write, so that a frame is not torn by another writer's error.
	buf := make([]byte, 4, 4+len(body))
	binary.BigEndian.PutUint32(buf, uint32(len(body)))
	_, err = w.Write(append(buf, body...))
	return err
}

// readFrame decodes the next frame into v. io.EOF comes unwrapped and only
// between frames.
func readFrame(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return fmt.Errorf("%w: %d bytes, at most %d", errTooLong, n, maxFrame)
	}
	// Grow with what really arrives, not by the length that was announced.
	body, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil {
		return fmt.Errorf("read frame: %w", err)
	}
	if len(body) < int(n) {
		return fmt.Errorf("read frame: %w", io.ErrUnexpectedEOF)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("decode frame: %w", err)
	}
	return nil
}

// codes pairs the errors that callers distinguish with their names on the wire.
// Names are never changed nor used again.
var codes = []struct {
	code string
	err  error
}{
	{"not-found", ErrNotFound},
	{"not-running", ErrNotRunning},
	{"running", ErrRunning},
	{"invalid", ErrInvalid},
	{"start", ErrStart},
	{"busy", ErrBusy},
	{"version", ErrVersion},
}

// fail puts err into the response.
func (r *response) fail(err error) {
	r.Code, r.Error = "internal", err.Error()
	for _, c := range codes {
		if errors.Is(err, c.err) {
			r.Code = c.code
			return
		}
	}
}

// err takes the error out of the response again: errors.Is sees what it was.
func (r *response) err() error {
	if r.Code == "" {
		return nil
	}
	e := &remoteError{text: r.Error}
	for _, c := range codes {
		if c.code == r.Code {
			e.is = c.err
		}
	}
	return e
}

// remoteError is an error that came over the socket.
type remoteError struct {
	text string
	is   error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.is }
