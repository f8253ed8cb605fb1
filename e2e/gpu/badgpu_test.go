package gpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/yamux"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// TestOddGPURequests: what is wrong in a request for GPUs is refused with file, line and what is allowed; what no machine has today is
// accepted, waits, and says what is missing; every spelling of a device's name does.
func TestOddGPURequests(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 4, harness.PatientServer, harness.DGXNodes("a", 2, "r1"), harness.DGXNodes("b", 2, "r2"))
	job := func(id, more, device string) string {
		return a.JobFile(id, fmt.Sprintf(`job %q {
  group "g" {
    %s
    task "t" {
      driver = "mock_driver"
      config { run_for = "24h" }
      resources {
        cpu    = 100
        memory = 64
        %s
      }
    }
  }
}`, id, more, device))
	}
	run := func(id, more, device string, code int, want ...string) {
		t.Helper()
		file := job(id, more, device)
		out, got := a.CLI("job", "run", file)
		if got != code {
			t.Errorf("%s: exit %d, want %d\n%s", id, got, code, out)
		}
		out = strings.ReplaceAll(out, filepath.Dir(file)+"/", "")
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: it does not say %q:\n%s", id, w, out)
			}
		}
		_, _, err := a.API.Jobs().Info(t.Context(), id, nil)
		if there := err == nil; there != (code != 1) {
			t.Errorf("%s: exit %d, and the job is there: %v (%v)", id, code, there, err)
		}
	}
	refused := func(id, more, device string, want ...string) { t.Helper(); run(id, more, device, 1, want...) }
	waits := func(id, more, device string, want ...string) {
		t.Helper()
		run(id, more, device, 2, want...)
		a.WaitBlocked(id)
	}
	placed := func(id, device string, gpus int) {
		t.Helper()
		run(id, "", device, 0)
		if n := len(a.GPUs().OfJob(id)); n != gpus {
			t.Errorf("%s holds %d GPUs, want %d", id, n, gpus)
		}
	}

	const levels = "mig, gpu, nvlink, pcie, socket, node, rack"
	refused("level-of-device", "", "device \"gpu\" {\n          topology { level = \"sokcet\" }\n        }",
		"level-of-device.nomad.hcl:11:22: ", `unknown level "sokcet"`, levels, `did you mean "socket"?`)
	refused("level-of-group", "gang {}\n    topology { level = \"galaxy\" }", "",
		"level-of-group.nomad.hcl:4:16: ", `unknown level "galaxy"`, levels)
	refused("share-of-two", "", "device \"gpu\" {\n          count = 2\n          share = 500\n        }",
		"share-of-two.nomad.hcl:12:", "share: must be 1000 with a count above 1")
	refused("share-of-none", "", "device \"gpu\" { share = 0 }", "share-of-none.nomad.hcl:10:", "share: must be between 1 and 1000, not 0")
	refused("share-of-more", "", "device \"gpu\" { share = 1001 }", "share-of-more.nomad.hcl:10:", "share: must be between 1 and 1000, not 1001")
	refused("name-of-four", "", "device \"nvidia/gpu/H100/x\" {}", "name-of-four.nomad.hcl:10:", "vendor/type/model")
	refused("min-of-more", "gang { min = 2 }", "", "min-of-more.nomad.hcl:3:", "at most the group's count of 1")

	waits("too-large", "count = 5\n    gang {}", "device \"gpu\" { count = 8 }",
		"larger than the cluster: wants 40 devices, all nodes that fit have 32", "room for 4 of 5 instances")
	waits("too-large-a-rack", "count = 3\n    gang {}\n    "+harness.OneRack, "device \"gpu\" { count = 8 }",
		"no rack fits 3 instances of 8 GPUs", "r1 has room for 2", "r2 for 2")
	waits("too-large-a-node", "", "device \"gpu\" { count = 9 }", "nodes")
	waits("other-type", "", "device \"nvidia/tpu\" {}", "missing devices: nvidia/tpu", "4 nodes excluded")
	waits("other-vendor", "", "device \"amd/gpu\" {}", "missing devices: amd/gpu", "4 nodes excluded")
	waits("other-model", "", "device \"nvidia/gpu/A100\" {}", "missing devices: nvidia/gpu/A100", "4 nodes excluded")
	if n := len(a.GPUs().GPUs); a.GPUs().Free != "4 node of 8" {
		t.Errorf("after all that %s of %d GPUs are free", a.GPUs().Free, n)
	}

	placed("type", "device \"gpu\" { count = 2 }", 2)
	placed("vendor", "device \"nvidia/gpu\" { count = 2 }", 2)
	placed("model", "device \"nvidia/gpu/H100\" { count = 2 }", 2)
	placed("share", "device \"gpu\" { share = 250 }", 1)
}

// rogue speaks the servers' protocol, as any program can that reaches their port.
type rogue struct{ mux *yamux.Session }

func newRogue(t *testing.T, a *harness.Agent) *rogue {
	t.Helper()
	conn, err := net.Dial("tcp", a.RPC)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte{0x6e}); err != nil {
		t.Fatal(err)
	}
	conf := yamux.DefaultConfig()
	conf.LogOutput = io.Discard
	mux, err := yamux.Client(conn, conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mux.Close() })
	return &rogue{mux}
}

// call calls a method; what the server answers instead of an answer is an error.
func (r *rogue) call(method string, args, reply any) error {
	conn, err := r.mux.OpenStream()
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the call is over
	if err := conn.SetDeadline(time.Now().Add(harness.Scaled(10 * time.Second))); err != nil {
		return err
	}
	handle := &codec.MsgpackHandle{WriteExt: true}
	handle.RawToString = true
	for _, v := range []any{map[string]string{"Method": method}, args} {
		frame := make([]byte, 4)
		var body []byte
		if err := codec.NewEncoderBytes(&body, handle).Encode(v); err != nil {
			return err
		}
		binary.BigEndian.PutUint32(frame, uint32(len(body)))
		if _, err := conn.Write(append(frame, body...)); err != nil {
			return err
		}
	}
	read := func(v any) error {
		var head [4]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return err
		}
		body := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(conn, body); err != nil {
			return err
		}
		return codec.NewDecoderBytes(body, handle).Decode(v)
	}
	var status struct{ Code, Msg, Hint string }
	if err := read(&status); err != nil {
		return err
	}
	if status.Code != "" {
		return errors.New(status.Msg + "; " + status.Hint)
	}
	return read(reply)
}

// TestImpossibleTopology: a node whose GPUs stand in no tree is refused with what is wrong, and stays out; when it reports a
// tree, it is in.
func TestImpossibleTopology(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	r := newRogue(t, a)
	cell := func(id, parent string, devices ...string) *structs.TopologyCell {
		return &structs.TopologyCell{ID: id, Level: structs.LevelPCIe, Parent: parent, Devices: devices}
	}
	register := func(cells ...*structs.TopologyCell) error {
		n := &structs.Node{
			ID: "00000000-0000-7000-8000-00000000beef", SecretID: "00000000-0000-7000-8000-00000000cafe", Name: "odd", Datacenter: "dc1",
			NodePool: "default", Status: structs.NodeStatusReady, SchedulingEligibility: structs.NodeEligible,
			Attributes: map[string]string{"kernel.name": "linux", "driver.mock_driver": "1"},
			Drivers:    map[string]*structs.DriverInfo{"mock_driver": {Detected: true, Healthy: true}},
			NodeResources: &structs.NodeResources{
				Cpu: structs.NodeCpuResources{CpuShares: 10000}, Memory: structs.NodeMemoryResources{MemoryMB: 10000},
				Disk: structs.NodeDiskResources{DiskMB: 10000},
				Devices: []*structs.NodeDeviceResource{{
					Vendor: "nvidia", Type: "gpu", Name: "H100", Instances: []*structs.NodeDevice{{ID: "g1", Healthy: true}, {ID: "g2", Healthy: true}},
				}},
				Topology: &structs.NodeTopology{Cells: cells},
			},
		}
		n.ComputeClass()
		return r.call("Node.Register", &structs.NodeRegisterRequest{Node: n}, &structs.NodeUpdateReply{})
	}
	nodes := func() int {
		t.Helper()
		list, _, err := a.API.Nodes().List(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	f := func(what, want string, cells ...*structs.TopologyCell) {
		t.Helper()
		err := register(cells...)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "odd") {
			t.Errorf("%s: %v; want %q", what, err, want)
		}
		if n := nodes(); n != 1 {
			t.Errorf("%s: %d nodes, want the agent's own", what, n)
		}
	}
	f("a cycle", `cell "s" is above itself`, cell("s", "p"), cell("p", "s", "g1", "g2"))
	f("a GPU under two parents", `device "g1" is under two parents, "p" and "q"`, cell("p", "", "g1"), cell("q", "", "g1", "g2"))
	f("an unknown GPU", `"g3", which the node does not have`, cell("p", "", "g1", "g2", "g3"))
	out, code := a.CLI("job", "run", a.JobFile("alone", harness.GangJob("alone", 1, 1, "", "", "")))
	if code != 2 || !strings.Contains(out, "missing devices: nvidia/gpu") {
		t.Errorf("a GPU is asked for: exit %d\n%s", code, out)
	}
	if err := register(cell("p", "", "g1"), cell("q", "", "g2")); err != nil {
		t.Fatalf("a tree is refused: %v", err)
	}
	if n := nodes(); n != 2 {
		t.Errorf("%d nodes after a good registration, want 2", n)
	}
	harness.Within(t, 10*time.Second, "the gang of one placed on it", func(context.Context) error {
		if n := len(a.GPUs().OfJob("alone")); n != 1 {
			return fmt.Errorf("%d GPUs are held", n)
		}
		return nil
	})
}
