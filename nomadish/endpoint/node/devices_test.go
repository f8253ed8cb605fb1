package node

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// journal stands for Raft: it keeps what would be committed.
type journal struct{ entries []structs.LogType }

func (j *journal) Apply(_ context.Context, t structs.LogType, _ any) (uint64, error) {
	j.entries = append(j.entries, t)
	return 1, nil
}

// TestImpossibleDevicesAreRefused: a node whose devices are no tree stays out.
func TestImpossibleDevicesAreRefused(t *testing.T) {
	cell := func(id, parent string, devices ...string) *structs.TopologyCell {
		return &structs.TopologyCell{ID: id, Level: structs.LevelPCIe, Parent: parent, Devices: devices}
	}
	gpus := func(ids ...string) *structs.NodeDeviceResource {
		d := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "H100"}
		for _, id := range ids {
			d.Instances = append(d.Instances, &structs.NodeDevice{ID: id, Healthy: true})
		}
		return d
	}
	f := func(what, want string, devices []*structs.NodeDeviceResource, cells ...*structs.TopologyCell) {
		t.Helper()
		j := &journal{}
		e := New(Config{}, Deps{Parts: rpc.Parts{Router: endpointtest.New(t).Router, Applier: j, NewID: func() string { return "seed" }, Now: time.Now}, Heartbeats: endpointtest.Alone{}})
		n := &structs.Node{
			ID: "00000000-0000-7000-8000-000000000001", SecretID: "s", Name: "n1", Status: structs.NodeStatusReady,
			NodeResources: &structs.NodeResources{Devices: devices, Topology: &structs.NodeTopology{Cells: cells}},
		}
		_, err := e.register(t.Context(), &structs.NodeRegisterRequest{Node: n})
		if want == "" {
			if err != nil || len(j.entries) != 1 {
				t.Errorf("%s: %v, %d entries", what, err, len(j.entries))
			}
			return
		}
		if err == nil || structs.CodeOf(err).HTTPStatus() != http.StatusBadRequest || len(j.entries) > 0 {
			t.Errorf("%s: %v, %d entries", what, err, len(j.entries))
			return
		}
		if text := err.Error(); !strings.Contains(text, want) || !strings.Contains(text, "n1") || strings.Contains(text, "\n") || len(text) > 3000 {
			t.Errorf("%s: %q, want %q", what, text, want)
		}
	}
	type groups = []*structs.NodeDeviceResource
	f("a tree", "", groups{gpus("a", "b")}, cell("s", ""), cell("p", "s", "a"), cell("q", "s", "b"))
	f("devices under the node itself", "", groups{gpus("a", "b")})
	f("a cycle", "above itself", groups{gpus("a")}, cell("s", "p"), cell("p", "s", "a"))
	f("two parents", "under two parents", groups{gpus("a")}, cell("s", "", "a"), cell("p", "", "a"))
	f("an unknown device", "does not have", groups{gpus("a")}, cell("s", "", "b"))
	f("an unknown parent", "is not reported", groups{gpus("a")}, cell("s", "r", "a"))
	f("one device twice", "reported twice", groups{gpus("a"), gpus("a")})
	f("an empty cell", "needs an ID", groups{gpus("a")}, nil)
	f("an empty group", "is empty", groups{nil})
	var many []*structs.TopologyCell
	for i := range 5000 {
		many = append(many, cell(fmt.Sprintf("c%d", i), "nowhere"))
	}
	f("thousands of mistakes", "…", groups{gpus("a")}, many...)
}
