package node

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// TestWaitingNodesHoldNoState: a node that waits for its allocations does not keep alive the state that it was looked up in.
// With as many states as nodes that wait, a server of 50,000 nodes needed more than 20 GiB.
func TestWaitingNodesHoldNoState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := endpointtest.New(t)
		e := New(Config{}, Deps{Parts: rpc.Parts{Router: d.Router, Applier: d, Now: time.Now}, Heartbeats: endpointtest.Alone{}})
		d.Router.DefaultQuery, d.Router.MaxQueryTime = time.Minute, time.Minute
		register := func(i int) *structs.Node {
			n := &structs.Node{
				ID: fmt.Sprintf("00000000-0000-7000-8000-%012d", i), SecretID: "s", Name: fmt.Sprint("n", i),
				Status: structs.NodeStatusReady, NodeResources: &structs.NodeResources{},
			}
			d.Put(&structs.NodeRegisterEntry{Node: n})
			return n
		}
		n := register(1)
		ctx, cancel := context.WithCancel(t.Context())
		old, done := weak.Make(d.Store.Snapshot().World()), make(chan error, 1)
		go func() {
			args := &structs.ClientAllocsRequest{NodeID: n.ID, SecretID: n.SecretID}
			args.MinQueryIndex = 100
			_, err := e.clientAllocs(ctx, args)
			done <- err
		}()
		synctest.Wait() // it waits
		register(2)
		runtime.GC()
		if old.Value() != nil {
			t.Error("the state of before is held by the node that waits")
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("canceled, it says %v", err)
		}
	})
}
