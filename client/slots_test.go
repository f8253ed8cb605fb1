package client

import (
	"maps"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/client/sim"
)

// TestNodeSlots: the own node registers with the slots that it states, each simulated one with those of its shape. More slots than cores are
// logged once for each.
func TestNodeSlots(t *testing.T) {
	r := newRig(t)
	log := &syncBuffer{}
	r.config.Logger = hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Info})
	own, fits := map[string]int{"batch": 60_000, "gpu": 10_000}, map[string]int{"batch": 2, "wide": 2}
	r.config.Node.Slots, r.config.SimulateBeside = own, true
	r.config.Simulate = []sim.Layout{
		{Name: "fits", Count: 2, Cores: 4, MHz: 1000, Memory: 1000, Slots: fits},
		{Name: "small", Count: 3, Cores: 4, MHz: 1000, Memory: 1000, Slots: map[string]int{"batch": 4, "wide": 1}},
		{Name: "typo", Count: 1, Cores: 4, MHz: 1000, Memory: 1000, Slots: map[string]int{"btch": 4}},
	}
	r.start()
	r.s.until("all nodes register", func() bool { return len(r.s.nodes) == 7 })
	r.s.change(func() {
		for _, n := range r.s.nodes {
			want := map[string]int{"batch": 4, "wide": 1}
			switch n.Name {
			case "n1":
				want = own
			case "fits-0", "fits-1":
				want = fits
			case "typo-0":
				want = map[string]int{"btch": 4}
			}
			if !maps.Equal(n.NodeResources.Slots, want) {
				t.Errorf("%s: %v", n.Name, n.NodeResources.Slots)
			}
		}
	})
	if n := log.count("more slots than it has cores"); n != 2 || log.count("node=n1 slots=70000") != 1 || log.count("node=small slots=5 cores=4") != 1 {
		t.Errorf("%d warnings in %s", n, log.b.String())
	}
	if log.count("nearly that of a built-in one") != 1 || log.count("node=typo type=btch built_in=batch") != 1 {
		t.Errorf("a type that is mistyped is not warned of once: %s", log.b.String())
	}
}
