package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// slow commits one entry at a time and takes a while for each.
type slow struct {
	*endpointtest.Site
	busy chan struct{}
}

func (s *slow) Apply(ctx context.Context, t structs.LogType, payload any) (uint64, error) {
	s.busy <- struct{}{}
	defer func() { <-s.busy }()
	time.Sleep(10 * time.Millisecond)
	return s.Site.Apply(ctx, t, payload)
}

// TestManyRegistrations: of more nodes than can be committed before their callers give up, those that gave up cost no log
// entry, so that all are registered after as many rounds as that takes.
func TestManyRegistrations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes, patience = 1000, time.Second // a round commits 100
		d := &slow{endpointtest.New(t), make(chan struct{}, 1)}
		e := New(Config{MaxRegistering: 2}, Deps{
			Parts:      rpc.Parts{Router: d.Router, Applier: d, NewID: func() string { return "00000000-0000-7000-8000-000000000000" }, Now: time.Now},
			Heartbeats: endpointtest.Alone{},
		})
		done := make(chan error, nodes)
		for i := range nodes {
			go func() {
				for {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					answer := make(chan error, 1)
					go func() { // a caller does not wait for a server that does not heed its end
						_, err := e.register(ctx, &structs.NodeRegisterRequest{Node: &structs.Node{
							ID: fmt.Sprintf("00000000-0000-7000-8000-%012d", i), SecretID: "s", Name: fmt.Sprint("n", i),
							Status: structs.NodeStatusReady, NodeResources: &structs.NodeResources{},
						}})
						answer <- err
					}()
					var err error
					select {
					case err = <-answer:
					case <-ctx.Done():
						err = ctx.Err()
					}
					cancel()
					if !errors.Is(err, context.DeadlineExceeded) {
						done <- err
						return
					}
				}
			}()
		}
		for range nodes {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		// A few of each round have begun when their callers give up.
		if most := uint64(nodes + nodes/10); d.Index() > most {
			t.Errorf("%d nodes cost %d log entries, at most %d are well", nodes, d.Index(), most)
		}
	})
}
