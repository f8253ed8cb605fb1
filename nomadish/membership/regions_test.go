package membership

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/nomadish/gossip"
)

// TestBringAlong: the servers of a region bring each other into the pool of all regions.
func TestBringAlong(t *testing.T) {
	t.Parallel()
	gossips := func(kind gossip.Kind, name, region, wan string) *gossip.Pool {
		p, err := gossip.New(gossip.Config{Kind: kind, Name: name, Region: region, ID: name, RPCAddr: "127.0.0.1:1", WANAddr: wan, BindAddr: "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Shutdown() })
		return p
	}
	far := gossips(gossip.KindWAN, "f", "far", "")
	var lan, wan []*gossip.Pool
	for _, name := range []string{"a", "b", "c"} {
		w := gossips(gossip.KindWAN, name, "near", "")
		wan, lan = append(wan, w), append(lan, gossips(gossip.KindLAN, name, "near", w.Addr()))
	}
	if _, err := wan[1].Join([]string{far.Addr()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for i := range lan {
		running.Go(func() { BringAlong(ctx, lan[i], wan[i], hclog.NewNullLogger()) })
	}
	for _, p := range lan[1:] {
		if _, err := p.Join([]string{lan[0].Addr()}); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range append(wan, far) {
		changed, stop := p.Subscribe()
		for len(p.Servers()) != 4 {
			select {
			case <-changed:
			case <-time.After(2 * time.Minute):
				t.Fatalf("%d are known", len(p.Servers()))
			}
		}
		stop()
	}
}
