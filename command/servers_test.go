package command

import (
	"regexp"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// TestStale: -stale asks the server that is asked for what it knows, for everything that the command reads.
func TestStale(t *testing.T) {
	f := cluster(t).on("GET /v1/operator/raft/configuration", &structs.RaftConfigurationReply{Servers: []*structs.RaftServer{{ID: "s1", Node: "server-1.global"}}})
	for _, line := range []string{"operator raft list-peers", "job status", "job status web", "node status", "node status " + nodeA,
		"job allocs web", "alloc status", "alloc status 5f3a9c01", "eval list", "eval status " + evalA} {
		for _, stale := range []bool{false, true} {
			before := len(f.requests("GET"))
			args := strings.Fields(line)
			if stale {
				args = append(args, "-stale")
			}
			if got := f.run(t, args...); got.code != exitDone {
				t.Errorf("%s: exit code %d, stderr %q", args, got.code, got.err)
			}
			for _, requested := range f.requests("GET")[before:] {
				if strings.Contains(requested, "stale=") != stale {
					t.Errorf("%s asks %s", args, requested)
				}
			}
		}
	}
}

// TestMembersWithoutLeader: why there is no leader is said in the server's words.
func TestMembersWithoutLeader(t *testing.T) {
	members := `{"Members":[{"Name":"server-1.global","Status":"alive","Tags":{"region":"global"}}]}`
	early := newFake(t).on("GET /v1/agent/members", members).on("GET /v1/status/leader", refusal{500, "No cluster leader: not bootstrapped yet: 1 of 3 servers (start the others)"})
	got := early.run(t, "server", "members")
	wants(t, got.out, "server-1.global")
	wants(t, got.err, "not bootstrapped yet: 1 of 3 servers (start the others)")
	if got.code != exitFailed || strings.Contains(got.err, "jobs run on") || strings.Contains(got.err, "HTTP 500") {
		t.Errorf("exit code %d, stderr %q", got.code, got.err)
	}
	lost := newFake(t).on("GET /v1/agent/members", members).on("GET /v1/status/leader", refusal{500, "No cluster leader (try again)"})
	got = lost.run(t, "server", "members")
	wants(t, got.err, "No cluster leader (try again)", "There is no leader now: jobs run on, but nothing new is placed")
}

func TestRaftPeers(t *testing.T) {
	f := newFake(t).on("DELETE /v1/operator/raft/peer", "").on("PUT /v1/operator/raft/transfer-leadership", "")
	if got := f.run(t, "operator", "raft", "remove-peer", "-peer-id", "s2"); got.code != exitDone || got.out != "Removed peer s2\n" {
		t.Errorf("exit code %d, output %q, stderr %q", got.code, got.out, got.err)
	}
	wants(t, f.requests("DELETE")[0], "id=s2")
	if got := f.run(t, "operator", "raft", "transfer-leadership", "-peer-address", "a:1"); got.code != exitDone {
		t.Errorf("exit code %d, stderr %q", got.code, got.err)
	}
	wants(t, f.requests("PUT")[0], "address=a%3A1")
	f.on("GET /v1/operator/raft/configuration", &structs.RaftConfigurationReply{Servers: []*structs.RaftServer{
		{ID: "id-1", Node: "server-1.global", Address: "10.0.0.1:4647"}, {ID: "id-2", Node: "server.2.global", Address: "10.0.0.2:4647"},
		{ID: "id-3", Node: "(unknown)", Address: "10.0.0.3:4647"}, {ID: "id-4", Node: "(unknown)", Address: "10.0.0.4:4647"},
	}})
	for name, id := range map[string]string{"server-1": "id-1", "server.2.global": "id-2", "10.0.0.3:4647": "id-3", "id-4": "id-4"} {
		if got := f.run(t, "operator", "raft", "remove-peer", name); got.code != exitDone || got.out != "Removed peer "+name+"\n" {
			t.Errorf("%s: exit code %d, output %q, stderr %q", name, got.code, got.out, got.err)
		}
		requested := f.requests("DELETE")
		wants(t, requested[len(requested)-1], "id="+id)
	}
	before := len(f.requests("DELETE")) + len(f.requests("PUT"))
	for _, verb := range []string{"remove-peer", "transfer-leadership"} {
		for args, want := range map[string]string{
			"":                                "list-peers",
			"-peer-id id-1 -peer-address a:1": "-peer-id and -peer-address",
			"server-1 -peer-id id-1":          "exactly one server is needed",
			"server-1 server.2":               "exactly one server is needed",
			"server":                          "server-1.global (id-1 at 10.0.0.1:4647)",
			"(unknown)":                       "2 servers",
		} {
			if got := f.run(t, append([]string{"operator", "raft", verb}, strings.Fields(args)...)...); got.code != exitFailed || !strings.Contains(got.err, want) {
				t.Errorf("%s %s: exit code %d, stderr %q", verb, args, got.code, got.err)
			}
		}
	}
	if now := len(f.requests("DELETE")) + len(f.requests("PUT")); now != before {
		t.Errorf("%d changes were asked for", now-before)
	}
}

// TestLostRegionOfAJob: a region that does not answer is shown as that, with the whole reason below.
func TestLostRegionOfAJob(t *testing.T) {
	job := webJob()
	job.Multiregion = &structs.Multiregion{Regions: []*structs.MultiregionRegion{{Name: "west"}, {Name: "east"}, {Name: "north"}, {Name: "south"}}}
	lost := `No path to region "east": it is known, but none of its servers can be reached (the region may be lost)`
	f := cluster(t)
	f.answers["GET /v1/job/web"] = []any{job, job, job, refusal{500, lost}, refusal{404, "job not found"}, refusal{500, "No cluster leader: 1 of 3 servers can be seen"}}
	got := f.run(t, "job", "status", "web")
	if got.code != exitDone {
		t.Fatalf("exit code %d, stderr %q", got.code, got.err)
	}
	for region, status := range map[string]string{"west": "running", "east": "cannot be reached", "north": "not registered", "south": "no leader"} {
		if !regexp.MustCompile(`(?m)^` + region + ` +` + status + `( |$)`).MatchString(got.out) {
			t.Errorf("region %s is not %q in:\n%s", region, status, got.out)
		}
	}
	wants(t, got.out, "\neast: "+lost+"\n", "\nsouth: No cluster leader: 1 of 3 servers can be seen\n")
	if strings.Contains(got.out, "north: ") || strings.Contains(got.out, "HTTP") {
		t.Errorf("too much is said:\n%s", got.out)
	}
}
