package command

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// TestStale: -stale asks the server that is asked for what it knows, for everything that the command reads.
func TestStale(t *testing.T) {
	f := cluster(t).on("GET /v1/operator/raft/configuration", &structs.RaftConfigurationReply{Servers: []*structs.RaftServer{{ID: "s1", Node: "server-1.global"}}})
	for _, line := range []string{"operator raft list-peers", "job status", "job status web", "node status", "node status " + nodeA} {
		for _, stale := range []bool{false, true} {
			before := len(f.requests("GET"))
			args := strings.Fields(line)
			if stale {
				args = append(args, "-stale")
			}
			if got := f.run(t, args...); got.code != exitDone {
				t.Errorf("%s: exit code %d, stderr %q", args, got.code, got.err)
			}
			for _, asked := range f.requests("GET")[before:] {
				if strings.Contains(asked, "stale=") != stale {
					t.Errorf("%s asks %s", args, asked)
				}
			}
		}
	}
}
