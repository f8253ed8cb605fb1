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

// TestMembersWithoutLeader: why there is no leader is said in the server's words.
func TestMembersWithoutLeader(t *testing.T) {
	members := `{"Members":[{"Name":"server-1.global","Status":"alive","Tags":{"region":"global"}}]}`
	early := newFake(t).on("GET /v1/agent/members", members).on("GET /v1/status/leader", refusal{500, "No cluster leader: not founded yet: 1 of 3 servers (start the others)"})
	got := early.run(t, "server", "members")
	wants(t, got.out, "server-1.global")
	wants(t, got.err, "not founded yet: 1 of 3 servers (start the others)")
	if got.code != exitFailed || strings.Contains(got.err, "jobs run on") || strings.Contains(got.err, "HTTP 500") {
		t.Errorf("exit code %d, stderr %q", got.code, got.err)
	}
	lost := newFake(t).on("GET /v1/agent/members", members).on("GET /v1/status/leader", refusal{500, "No cluster leader (try again)"})
	got = lost.run(t, "server", "members")
	wants(t, got.err, "No cluster leader (try again)", "There is no leader now: jobs run on, but nothing new is placed")
}
