package agent

import (
	"context"
	"testing"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// recorded is a backend that says who was asked last; as a node it holds the allocation "own".
type recorded struct {
	name string
	last *string
}

func (r recorded) Call(context.Context, string, any, any) error { *r.last = r.name; return nil }

func (r recorded) Stream(context.Context, string, any) (wire.Receiver, error) {
	*r.last = r.name
	return nil, nil
}

func (r recorded) Serves(args any) bool {
	a, ok := args.(*structs.FSRequest)
	return ok && a.AllocID == "own"
}

// The agent of a client answers what is about its own node by itself, and passes on the rest.
func TestOwnNode(t *testing.T) {
	var last string
	b := ownNode{recorded{"servers", &last}, recorded{"node", &last}}
	f := func(args any, want string) {
		t.Helper()
		if err := b.Call(t.Context(), wire.MethodClientFSList, args, nil); err != nil || last != want {
			t.Errorf("a call is answered by %s: %v", last, err)
		}
		last = ""
		if _, err := b.Stream(t.Context(), wire.MethodClientFSRead, args); err != nil || last != want {
			t.Errorf("a stream is answered by %s: %v", last, err)
		}
	}
	f(&structs.FSRequest{AllocID: "own"}, "node")
	f(&structs.FSRequest{AllocID: "other"}, "servers")
	f(&structs.ListRequest{}, "servers")
}
