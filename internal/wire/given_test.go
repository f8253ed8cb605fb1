package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/structs"
)

type given struct {
	Payload any
	structs.WriteRequest
}

// TestGiven: what is given away comes as it is within the process, and encoded where it is passed on or wanted as another type.
func TestGiven(t *testing.T) {
	mux := NewMux(hclog.NewNullLogger(), 0)
	key := &struct{ N int }{3}
	var seen any
	mux.Handle("Unary", func(ctx context.Context, call *Call) error {
		r, err := call.Routing()
		if err != nil || r.Region != "here" {
			t.Errorf("routing %+v, %v", r, err)
		}
		raw, err := call.RawArgs()
		if err != nil {
			return err
		}
		var other, copied struct{ Payload struct{ N int } }
		if err := errors.Join(call.Args(&other), codec.Decode(raw, &copied)); err != nil || other.Payload.N != 3 || copied.Payload.N != 3 {
			t.Errorf("as another type %+v, its encoding %+v, %v", other, copied, err)
		}
		return Unary(func(_ context.Context, args *given) (*structs.WriteReply, error) {
			seen = args.Payload
			return &structs.WriteReply{}, nil
		})(ctx, call)
	})
	args := &given{key, structs.WriteRequest{Region: "here"}}
	if err := mux.Local(t.Context(), "Unary", codec.Given{V: args}, &structs.WriteReply{}); err != nil || seen != any(key) {
		t.Errorf("given away %v, %v", seen, err)
	}
	if err := mux.Local(t.Context(), "Unary", args, &structs.WriteReply{}); err != nil || seen == any(key) || seen == nil {
		t.Errorf("not given away %v, %v", seen, err)
	}
	abroad, err := codec.Encode(codec.Given{V: args})
	if same, _ := codec.Encode(args); err != nil || !bytes.Equal(abroad, same) {
		t.Errorf("to another process: %q, %v, want %q", abroad, err, same)
	}
}

func TestGivenInStreams(t *testing.T) {
	mux := NewMux(hclog.NewNullLogger(), 0)
	key := &struct{ N int }{3}
	mux.Handle("Stream", Streaming(func(_ context.Context, _ *structs.EmptyRequest, send func(any) error) error {
		for range 3 {
			if err := errors.Join(send(codec.Given{V: &given{Payload: key}}), send(&given{Payload: key})); err != nil {
				return err
			}
		}
		return send(codec.Given{V: &given{Payload: key}})
	}))
	st, err := mux.LocalStream(t.Context(), "Stream", &structs.EmptyRequest{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for i := range 6 {
		var got given
		if err := st.Recv(&got); err != nil || got.Payload == nil || (got.Payload == any(key)) != (i%2 == 0) {
			t.Errorf("answer %d: %v, %v", i, got.Payload, err)
		}
	}
	var other struct{ Payload struct{ N int } }
	if err := st.Recv(&other); err != nil || other.Payload.N != 3 {
		t.Errorf("as another type: %+v, %v", other, err)
	}
	if err := st.Recv(&other); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}
