package e2e

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

	"github.com/nomadish/nomadish/structs"
)

// serverOnly is a server without a client.
const serverOnly = "server {\n  enabled = true\n  bootstrap_expect = 1\n  heartbeat_grace = \"1m\"\n}\n"

// state checks a server's state by the command line and gives its index and hash.
func (a *agent) state() *structs.CheckReport {
	a.t.Helper()
	out, code := a.cli("operator", "debug", "check", "-json")
	var r structs.CheckReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		a.t.Fatalf("operator debug check: exit code %d, %v\n%s", code, err, out)
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
	old, fresh := newAgent(t, false, "name = \"old\"\n"+serverOnly), newAgent(t, false, "name = \"fresh\"\n"+serverOnly)
	old.start()
	old.ready(0)
	nodes := newAgent(t, false, "")
	nodes.args = []string{"sim", "nodes", "-shape", nodes.job("shapes", dgx("dgx", 4, "r1")), "-server", old.rpc + "," + fresh.rpc}
	nodes.start()
	old.ready(4)
	old.submitVolume(volume{id: "web", priority: 50, count: 20, cpu: 100, memory: 100})
	old.submitVolume(volume{id: "gang", priority: 50, count: 3, cpu: 100, memory: 100, group: "gang {}"})
	old.submitVolume(volume{id: "large", priority: 50, count: 1, cpu: 100, memory: 10 << 20}) // waits
	before := old.running("web", 20, 30*time.Second)
	old.running("gang", 3, 30*time.Second)

	file := filepath.Join(t.TempDir(), "backup.snap")
	var saved *structs.CheckReport
	within(t, 60*time.Second, "a moment of rest in which the state is saved", func(context.Context) error {
		_ = os.Remove(file) // of the last try
		saved = old.state()
		if out, code := old.cli("operator", "snapshot", "save", file); code != 0 {
			t.Fatalf("save: %s", out)
		}
		if now := old.state(); now.Hash != saved.Hash {
			return fmt.Errorf("it went from index %d to %d", saved.StateIndex, now.StateIndex)
		}
		return nil
	})
	out, code := old.cli("operator", "snapshot", "inspect", file)
	if code != 0 || !strings.Contains(out, " at ") || !strings.Contains(out, "allocs") {
		t.Errorf("inspect: %s", out)
	}
	old.submitVolume(volume{id: "forgotten", priority: 50, count: 2, cpu: 100, memory: 100})
	old.running("forgotten", 2, 30*time.Second)

	fresh.start()
	fresh.ready(0)
	refusesDamaged(t, fresh, file)
	if out, code := fresh.cli("operator", "snapshot", "restore", file); code != 0 || !strings.Contains(out, "restored, at index") {
		t.Fatalf("restore: %s", out)
	}
	if now := fresh.state(); now.Hash != saved.Hash || now.StateIndex <= saved.StateIndex || now.Server != "fresh" {
		t.Errorf("the state at index %d has hash %s; that of index %d was saved with %s", now.StateIndex, now.Hash, saved.StateIndex, saved.Hash)
	}

	old.kill()
	within(t, 60*time.Second, "the nodes to come", func(ctx context.Context) error {
		list, _, err := fresh.api.Nodes().List(ctx, nil)
		if err != nil {
			return err
		}
		for _, n := range list {
			if n.Status != structs.NodeStatusReady {
				return fmt.Errorf("node %s is %s", n.Name, n.Status)
			}
		}
		fresh.submitVolume(volume{id: "next", priority: 50, count: 2, cpu: 100, memory: 100})
		return nil
	})
	fresh.running("next", 2, 60*time.Second)
	ids := map[string]bool{}
	for _, a := range fresh.running("web", 20, 30*time.Second) {
		ids[a.ID] = true
	}
	for _, a := range before {
		if !ids[a.ID] {
			t.Errorf("allocation %s of before does not run any more", a.ID)
		}
	}
	fresh.running("gang", 3, 30*time.Second)
	if _, _, err := fresh.api.Jobs().Info(t.Context(), "forgotten", nil); err == nil {
		t.Error("a job that was registered after the saving is known")
	}
	fresh.state()
}

// refusesDamaged has a file with a flipped bit refused.
func refusesDamaged(t *testing.T, a *agent, file string) {
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
	before := a.state()
	for _, verb := range []string{"inspect", "restore"} {
		if out, code := a.cli("operator", "snapshot", verb, bad); code != 1 || !strings.Contains(out, "use another") {
			t.Errorf("%s of a damaged file: exit code %d: %s", verb, code, out)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, a.http+"/v1/operator/snapshot", bytes.NewReader(data))
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
	if now := a.state(); now.Hash != before.Hash {
		t.Errorf("what was refused moved the state from index %d to %d", before.StateIndex, now.StateIndex)
	}
}
