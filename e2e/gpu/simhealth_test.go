package gpu

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// TestSimHealth: a simulated GPU and a simulated node are made bad and good again by
// name, in a process that the agent knows only through its servers.
func TestSimHealth(t *testing.T) {
	t.Parallel()
	a := harness.NewAgent(t, true, "server {\n  enabled = true\n}\n")
	a.Start()
	a.WaitReady(1)
	layouts := a.JobFile("shapes", "shape \"sick\" {\n  count = 2\n  gpus \"nvidia/gpu/H100\" {\n    switches = [2, 1]\n  }\n}\n")
	p := harness.NewAgent(t, false, "")
	p.Args = []string{"sim", "nodes", "-shape", layouts, "-server", a.RPC}
	p.Start()
	a.WaitReady(3)
	setHealth := func(what ...string) {
		t.Helper()
		if out, code := a.CLI(append([]string{"sim", "health"}, what...)...); code != 0 {
			t.Fatalf("sim health %s: exit %d\n%s", what, code, out)
		}
	}
	state := func(want string) {
		t.Helper()
		harness.Within(t, 10*time.Second, want, func(ctx context.Context) error {
			nodes, _, err := a.API.Nodes().List(ctx, nil)
			if err != nil {
				return err
			}
			var got []string
			for _, stub := range nodes {
				if !strings.HasPrefix(stub.Name, "sick-") {
					continue
				}
				if stub.Status != structs.NodeStatusReady {
					got = append(got, stub.Name+" "+stub.Status)
				}
				node, _, err := a.API.Nodes().Info(ctx, stub.ID, nil)
				if err != nil {
					return err
				}
				for _, one := range node.NodeResources.Devices[0].Instances {
					if !one.Healthy {
						got = append(got, one.ID+" bad")
					}
				}
			}
			if text := strings.Join(got, ", "); text != want {
				return fmt.Errorf("it is %q", text)
			}
			return nil
		})
	}
	state("")
	setHealth("sick-1-gpu-2", "bad")
	state("sick-1-gpu-2 bad")
	setHealth("sick-1-gpu-2", "good")
	state("")
	setHealth("sick-0", "bad")
	state("sick-0 down")
	setHealth("sick-0", "good")
	state("")
	if out, code := a.CLI("sim", "health", "sick-0-gpu-7", "bad"); code != 1 || !strings.Contains(out, "has no device") {
		t.Errorf("a GPU that is not there: exit %d\n%s", code, out)
	}
}
