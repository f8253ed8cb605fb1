package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// DGXNodes is a layout of simulated nodes in a rack, each with 8 GPUs under 4 switches of 2 sockets.
func DGXNodes(name string, count int, rack string) string {
	return fmt.Sprintf(`shape %q {
  count  = %d
  cores  = 128
  mhz    = 2000
  memory = 1048576
  disk   = 2000000
  meta   = { rack = %q }
  gpus "nvidia/gpu/H100" {
    count               = 8
    sockets             = 2
    switches_per_socket = 2
    memory              = 81920
  }
}
`, name, count, rack)
}

// PatientServer is the server block of agents whose simulated nodes must not look lost where the machine is slow.
const PatientServer = "server {\n  enabled = true\n  heartbeat_grace = \"1m\"\n}\n"

// StartSimulated starts a development agent with simulated nodes only, and waits for n of them.
func StartSimulated(t *testing.T, n int, config string, layouts ...string) *Agent {
	t.Helper()
	a := NewAgent(t, true, Simulate(t, strings.Join(layouts, ""))+config)
	a.Start()
	a.WaitReady(n)
	return a
}

// AttachNodes starts a process with more simulated nodes. It is no agent: only start, kill and its log are of use.
func (a *Agent) AttachNodes(layouts string) *Agent {
	a.T.Helper()
	p := NewAgent(a.T, false, "")
	p.Args = []string{"sim", "nodes", "-shape", p.JobFile("shapes", layouts), "-server", a.RPC}
	p.Start()
	return p
}

// Simulate returns the client block of an agent with simulated nodes.
func Simulate(t testing.TB, layouts string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shapes.hcl")
	if err := os.WriteFile(path, []byte(layouts), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("client {\n  enabled = true\n  simulate = %q\n}\n", path)
}

// PlainNodes is a layout of simulated nodes of one core.
func PlainNodes(name string, count, mhz, memory int) string {
	return fmt.Sprintf("shape %q {\n  count = %d\n  cores = 1\n  mhz = %d\n  memory = %d\n  disk = 1000000\n}\n", name, count, mhz, memory)
}
