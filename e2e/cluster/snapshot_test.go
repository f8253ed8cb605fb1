package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// serverOnly is a server without a client.
const serverOnly = "server {\n  enabled = true\n  bootstrap_expect = 1\n  heartbeat_grace = \"1m\"\n}\n"

// state checks a server's state by the command line and gives its index and hash.
func state(a *harness.Agent) *structs.CheckReport {
	a.T.Helper()
	out, code := a.CLI("operator", "debug", "check", "-json")
	var r structs.CheckReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		a.T.Fatalf("operator debug check: exit code %d, %v\n%s", code, err, out)
	}
	return &r
}

// TestSnapshotIntoANewCluster: the state of a busy server is saved while nothing moves,
// more is done, and the server is killed. A new one of another name takes the file: its
// state has the same hash. Its nodes come to it and their work runs on, the very same
// allocations; what was done after the saving is forgotten, and new work is placed. A file
// with a flipped bit is refused, by the command before it is sent and by the server, and
// changes nothing.
func TestSnapshotIntoANewCluster(t *testing.T) {
	t.Parallel()
	old, fresh := harness.NewAgent(t, false, "name = \"old\"\n"+serverOnly), harness.NewAgent(t, false, "name = \"fresh\"\n"+serverOnly)
	old.Start()
	old.WaitReady(0)
	nodes := harness.NewAgent(t, false, "")
	nodes.Args = []string{"sim", "nodes", "-shape", nodes.JobFile("shapes", harness.DGXNodes("dgx", 4, "r1")), "-server", old.RPC + "," + fresh.RPC}
	nodes.Start()
	old.WaitReady(4)
	old.SubmitMock(harness.MockJob{ID: "web", Priority: 50, Count: 20, CPU: 100, Memory: 100})
	old.SubmitMock(harness.MockJob{ID: "gang", Priority: 50, Count: 3, CPU: 100, Memory: 100, Group: "gang {}"})
	old.SubmitMock(harness.MockJob{ID: "large", Priority: 50, Count: 1, CPU: 100, Memory: 10 << 20}) // waits
	before := old.WaitRunning("web", 20, 30*time.Second)
	old.WaitRunning("gang", 3, 30*time.Second)

	file := filepath.Join(t.TempDir(), "backup.snap")
	var saved *structs.CheckReport
	harness.Within(t, 60*time.Second, "a moment of rest in which the state is saved", func(context.Context) error {
		_ = os.Remove(file) // of the last try
		saved = state(old)
		if out, code := old.CLI("operator", "snapshot", "save", file); code != 0 {
			t.Fatalf("save: %s", out)
		}
		if now := state(old); now.Hash != saved.Hash {
			return fmt.Errorf("it went from index %d to %d", saved.StateIndex, now.StateIndex)
		}
		return nil
	})
	out, code := old.CLI("operator", "snapshot", "inspect", file)
	if code != 0 || !strings.Contains(out, " at ") || !strings.Contains(out, "allocs") {
		t.Errorf("inspect: %s", out)
	}
	old.SubmitMock(harness.MockJob{ID: "forgotten", Priority: 50, Count: 2, CPU: 100, Memory: 100})
	old.WaitRunning("forgotten", 2, 30*time.Second)

	fresh.Start()
	fresh.WaitReady(0)
	refusesDamaged(t, fresh, file)
	if out, code := fresh.CLI("operator", "snapshot", "restore", file); code != 0 || !strings.Contains(out, "restored, at index") {
		t.Fatalf("restore: %s", out)
	}
	if now := state(fresh); now.Hash != saved.Hash || now.StateIndex <= saved.StateIndex || now.Server != "fresh" {
		t.Errorf("the state at index %d has hash %s; that of index %d was saved with %s", now.StateIndex, now.Hash, saved.StateIndex, saved.Hash)
	}

	old.Kill()
	harness.Within(t, 60*time.Second, "the nodes to come", func(ctx context.Context) error {
		list, _, err := fresh.API.Nodes().List(ctx, nil)
		if err != nil {
			return err
		}
		for _, n := range list {
			if n.Status != structs.NodeStatusReady {
				return fmt.Errorf("node %s is %s", n.Name, n.Status)
			}
		}
		fresh.SubmitMock(harness.MockJob{ID: "next", Priority: 50, Count: 2, CPU: 100, Memory: 100})
		return nil
	})
	fresh.WaitRunning("next", 2, 60*time.Second)
	ids := map[string]bool{}
	for _, a := range fresh.WaitRunning("web", 20, 30*time.Second) {
		ids[a.ID] = true
	}
	for _, a := range before {
		if !ids[a.ID] {
			t.Errorf("allocation %s of before does not run any more", a.ID)
		}
	}
	fresh.WaitRunning("gang", 3, 30*time.Second)
	if _, _, err := fresh.API.Jobs().Info(t.Context(), "forgotten", nil); err == nil {
		t.Error("a job that was registered after the saving is known")
	}
	state(fresh)
}

// refusesDamaged has a file with a flipped bit refused.
func refusesDamaged(t *testing.T, a *harness.Agent, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/3] ^= 16
	bad := filepath.Join(t.TempDir(), "bad.snap")
	if err := os.WriteFile(bad, data, 0o600); err != nil {
		t.Fatal(err)
	}
	before := state(a)
	for _, verb := range []string{"inspect", "restore"} {
		if out, code := a.CLI("operator", "snapshot", verb, bad); code != 1 || !strings.Contains(out, "use another") {
			t.Errorf("%s of a damaged file: exit code %d: %s", verb, code, out)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, a.HTTP+"/v1/operator/snapshot", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("the server answers a damaged file with %s", resp.Status)
	}
	if now := state(a); now.Hash != before.Hash {
		t.Errorf("what was refused moved the state from index %d to %d", before.StateIndex, now.StateIndex)
	}
}
