package client

import (
	"context"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/sim"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func TestSimHealth(t *testing.T) {
	s, w := newFakeServer(t), newWorld()
	c, err := New(Config{
		Servers: []string{s.addr}, Drivers: []driver.Driver{fakeDriver{MockDriver, w}},
		Simulate: []sim.Layout{{Name: "n", Count: 2, Cores: 1, MHz: 1, Memory: 1, GPUs: []sim.GPUs{
			{Name: "nvidia/gpu/A", Count: 2, Sockets: 1, SwitchesPerSocket: 1},
			{Name: "nvidia/gpu/B", Count: 1, Sockets: 1, SwitchesPerSocket: 1, MIG: 2, MIGProfile: "1g"},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s.until("all are there", func() bool { return len(s.nodes) == 2 && len(s.sessions) == 2 })
	id, other := c.nodes[0].id, c.nodes[1].id
	request := func(node, device string, bad bool, want structs.Code) {
		t.Helper()
		err := s.call(id, wire.MethodClientSimHealth, &structs.SimHealthRequest{NodeID: node, Device: device, Bad: bad}, &structs.WriteReply{})
		if (err == nil) != (want == "") || err != nil && structs.CodeOf(err) != want {
			t.Errorf("%s bad %v: %v, want %q", device, bad, err, want)
		}
	}
	sick := func(node string) (n int) {
		for _, d := range s.nodes[node].NodeResources.Devices {
			for _, one := range d.Instances {
				if !one.Healthy && one.HealthDescription != "" {
					n++
				}
			}
		}
		return n
	}
	request(id, "n-0-gpu-1", true, "")
	s.until("one is bad", func() bool { return sick(id) == 1 && sick(other) == 0 })
	request(id, "n-0-gpu-2", true, "")
	s.until("both slices are bad too", func() bool { return sick(id) == 3 })
	request(id, "n-0-gpu-2-mig-0", false, "")
	s.until("one slice is good", func() bool { return sick(id) == 2 })
	request(id, "n-0-gpu-1", false, "")
	request(id, "n-0-gpu-2", false, "")
	s.until("all are good", func() bool { return sick(id) == 0 })
	request(id, "n-0-gpu-9", true, structs.CodeNotFound)
	request("another", "n-0-gpu-1", true, structs.CodeNotFound)

	err = s.call(id, wire.MethodClientAllocStats, &structs.ClientAllocRequest{AllocID: "ended"}, &structs.ClientStatsReply{})
	if err == nil || !strings.Contains(err.Error(), "simulated nodes keep no logs") {
		t.Errorf("of what has ended: %v", err)
	}

	request(id, "", true, "")
	s.until("the node calls itself down", func() bool { return s.reported[id] == structs.NodeStatusDown })
	if s.status(other) != structs.NodeStatusReady {
		t.Error("the other node is down too")
	}
	registered := s.registrations(id)
	request(id, "", false, "")
	s.until("the node is back", func() bool { return s.reported[id] == structs.NodeStatusReady && s.registered[id] > registered })
}

func TestRealNodesCannotBeMadeBad(t *testing.T) {
	r := newRig(t).start()
	err := r.s.call(r.c.NodeID(), wire.MethodClientSimHealth, &structs.SimHealthRequest{NodeID: r.c.NodeID(), Bad: true}, &structs.WriteReply{})
	if structs.CodeOf(err) != structs.CodeBadRequest {
		t.Errorf("a real node was made bad: %v", err)
	}
}
