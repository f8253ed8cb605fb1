package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// A stream whose callee is lost after an answer has not ended well: who follows logs or events, or saves a snapshot, would
// take what has come for all there is. That is so at the caller, behind a server that passes the call on, and in the same process.
func TestACutStreamIsNoEnd(t *testing.T) {
	callee := echoMux()
	callee.Handle("cut", func(_ context.Context, call *Call) error {
		if err := call.Send(&echo{"first"}); err != nil {
			return err
		}
		return call.Session.Close()
	})
	relay := NewMux(hclog.NewNullLogger(), 0)
	relay.Handle("cut", func(ctx context.Context, call *Call) error {
		back, _ := between(t, callee)
		if err := call.Relay(ctx, back, ViaLeader, nil); err != nil {
			return fmt.Errorf("to whom: %w", err)
		}
		return nil
	})
	direct, _ := between(t, callee)
	front, _ := between(t, relay)
	for name, open := range map[string]func() (Receiver, error){
		"at the caller":         func() (Receiver, error) { return direct.Stream(t.Context(), "cut", &echo{}) },
		"behind a relay":        func() (Receiver, error) { return front.Stream(t.Context(), "cut", &echo{}) },
		"behind one in process": func() (Receiver, error) { return relay.LocalStream(t.Context(), "cut", &echo{}) },
	} {
		st, err := open()
		if err == nil { // else the callee was lost before the request was written as a whole
			for err == nil {
				err = st.Recv(&echo{})
			}
			st.Close()
		}
		if errors.Is(err, io.EOF) || !strings.Contains(err.Error(), ErrSessionClosed.Error()) {
			t.Errorf("%s: a stream that is cut ends with %v", name, err)
		}
		if passed := strings.Contains(err.Error(), "to whom: pass on cut to "); passed != (name != "at the caller") {
			t.Errorf("%s: who was lost is not told: %v", name, err)
		}
	}
}
