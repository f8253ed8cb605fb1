package command

import (
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

func TestDebugCheck(t *testing.T) {
	good := structs.CheckReport{
		Server: "s1", StateIndex: 42, Hash: "abcd", Took: 1500 * time.Millisecond, Rows: map[string]int{"nodes": 3, "allocs": 9},
		Notes: []structs.CheckFinding{{Rule: structs.CheckDevices, Kind: "node", ID: nodeA, What: "it has shrunk"}},
	}
	f := newFake(t).on("GET /v1/operator/check", good)
	got := f.run(t, "operator", "debug", "check", "-stale")
	if got.code != exitDone || !strings.Contains(f.requested[0], "stale") {
		t.Errorf("code %d, asked %s: %s", got.code, f.requested, got.err)
	}
	wants(t, got.out, "Index  = 42", "Hash   = abcd", "9 allocs, 3 nodes", "1.5s", "it has shrunk", "The state is in order.")

	bad := good
	bad.Faults = []structs.CheckFinding{{Rule: structs.CheckWorld, Kind: "state", What: "it differs"}}
	bad.Found = map[string]int{structs.CheckWorld: 700}
	got = newFake(t).on("GET /v1/operator/check", bad).run(t, "operator", "debug", "check")
	if got.code != exitFailed || strings.Contains(got.out, "in order") {
		t.Errorf("code %d: %s", got.code, got.out)
	}
	wants(t, got.out, "world  state  <none>  it differs", "Of rule world 700 were found; the first 100 are shown.")

	got = newFake(t).on("GET /v1/operator/check", bad).run(t, "operator", "debug", "check", "-json")
	if got.code != exitFailed || !strings.Contains(got.out, `"StateIndex": 42`) {
		t.Errorf("-json: code %d: %s", got.code, got.out)
	}
	if got := f.run(t, "operator", "debug", "check", "now"); got.code != exitFailed || !strings.Contains(got.err, "no arguments") {
		t.Errorf("with an argument: %d %s", got.code, got.err)
	}
	refused := newFake(t).on("GET /v1/operator/check", refusal{500, "No cluster leader"})
	if got := refused.run(t, "operator", "debug", "check"); got.code != exitFailed || !strings.Contains(got.err, "No cluster leader") {
		t.Errorf("without a leader: %d %s", got.code, got.err)
	}
}
