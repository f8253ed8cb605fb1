package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// maxUnread bounds the body of a request whose method has none, in bytes.
const maxUnread = 256 << 10

// timeBody has the body of r come within BodyTimeout, whatever becomes of the request: what a handler has left of it, net/http
// reads itself. Where the body ends, net/http ends the deadline too, since it then watches for the caller's hanging up.
func (s *Server) timeBody(w http.ResponseWriter, r *http.Request) {
	if r.Body != nil && r.Body != http.NoBody {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.cfg.BodyTimeout)) // a recorder in a test has no deadlines
	}
}

// drain reads the body of a request that should have none, before it streams or waits: net/http would else read it amid the answer.
func drain(r *http.Request) error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	n, err := io.CopyN(io.Discard, r.Body, maxUnread+1)
	switch {
	case err == nil:
		return tooLarge(maxUnread)
	case errors.Is(err, io.EOF):
		return nil
	}
	return unreadable(err, n)
}

// unreadable is the error of a body that could not be read to its end, after n bytes.
func unreadable(err error, n int64) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &statusError{http.StatusRequestTimeout, fmt.Sprintf(
			"request body: not complete in time; %d bytes came (limits { http_body_timeout } in the agent's configuration bounds it)", n)}
	}
	return &statusError{http.StatusRequestTimeout, "request body: could not be read to its end: " + err.Error()}
}
