package agent

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// rpcServer answers the ping and the event stream as it is told to, and counts the calls.
func rpcServer(t *testing.T, answer error) (addr string, requested *atomic.Int64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		_ = ln.Close()
		wg.Wait()
	})
	requested = &atomic.Int64{}
	m := wire.NewMux(hclog.NewNullLogger(), 0)
	m.Handle(wire.MethodPing, wire.Unary(func(context.Context, *structs.EmptyRequest) (*structs.WriteReply, error) {
		requested.Add(1)
		return &structs.WriteReply{WriteMeta: structs.WriteMeta{Index: 7}}, answer
	}))
	m.Handle(wire.MethodEventStream, wire.Streaming(func(_ context.Context, _ *structs.EventStreamRequest, send func(any) error) error {
		requested.Add(1)
		if answer != nil {
			return answer
		}
		return send(&structs.Events{Index: 7})
	}))
	wg.Go(func() {
		for {
			raw, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				conn, err := (*wire.TLS)(nil).Accept(ctx, raw, time.Minute)
				if err != nil {
					_ = raw.Close()
					return
				}
				if s, err := wire.Server(conn, wire.Config{}); err == nil {
					m.Serve(ctx, s)
				}
			})
		}
	})
	return ln.Addr().String(), requested
}

// TestRemoteWithoutLeader: what a server without a leader did not do, another is asked for; what nobody knows of is left alone.
func TestRemoteWithoutLeader(t *testing.T) {
	const text = "No cluster leader"
	nothing := structs.Errorf(structs.CodeNotLeader, text)
	unknown := structs.Errorf(structs.CodeNoLeader, "the leader was lost before it answered")
	f := func(answers []error, code structs.Code, want ...int64) {
		t.Helper()
		var addrs []string
		var requested []*atomic.Int64
		for _, a := range answers {
			addr, n := rpcServer(t, a)
			addrs, requested = append(addrs, addr), append(requested, n)
		}
		for method, call := range map[string]func(*remote) (uint64, error){
			"a call": func(r *remote) (uint64, error) {
				var reply structs.WriteReply
				err := r.Call(t.Context(), wire.MethodPing, &structs.EmptyRequest{}, &reply)
				return reply.Index, err
			},
			"a stream": func(r *remote) (uint64, error) {
				var first structs.Events
				from, err := r.Stream(t.Context(), wire.MethodEventStream, &structs.EventStreamRequest{})
				if err == nil {
					err = from.Recv(&first)
					from.Close()
				}
				return first.Index, err
			},
		} {
			backend, stop := newRemote(func() []string { return addrs }, nil, hclog.NewNullLogger())
			index, err := call(backend.(*remote))
			stop()
			if (err == nil) != (code == "") || (err == nil && index != 7) || (err != nil && structs.CodeOf(err) != code) {
				t.Errorf("%s, %v: index %d, %v", method, answers, index, err)
			}
			if code == structs.CodeNoLeader && errors.Is(answers[0], nothing) && !strings.Contains(err.Error(), text) {
				t.Errorf("%s: it says %v", method, err)
			}
			for i, n := range requested {
				if got := n.Swap(0); got != want[i] {
					t.Errorf("%s, %v: server %d was asked %d times", method, answers, i, got)
				}
			}
		}
	}
	f([]error{nothing, nil}, "", 1, 1)
	f([]error{nothing, nothing, nil}, "", 1, 1, 1)
	f([]error{unknown, nil}, structs.CodeNoLeader, 1, 0)
	f([]error{structs.Errorf(structs.CodeNotFound, "no"), nil}, structs.CodeNotFound, 1, 0)
}
