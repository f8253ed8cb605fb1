package command

import (
	"strings"
	"testing"
)

func TestCheckExitCodes(t *testing.T) {
	type stats = map[string]map[string]string
	server := func(peers, leader string) stats {
		return stats{"nomad": {"leader_addr": leader}, "raft": {"num_peers": peers}}
	}
	client := func(known, registered, last, ttl string) stats {
		return stats{"client": {"known_servers": known, "registered": registered, "last_heartbeat": last, "heartbeat_ttl": ttl}}
	}
	f := func(code int, says string, s stats, args ...string) {
		t.Helper()
		fake := newFake(t).on("GET /v1/agent/self", map[string]any{"stats": s})
		got := fake.run(t, append([]string{"check"}, args...)...)
		if got.code != code || !strings.Contains(got.err, says) || (code == 0) != (got.err == "") {
			t.Errorf("%v %q: exit code %d, stderr %q, want %d and %q", s, args, got.code, got.err, code, says)
		}
	}
	f(0, "", server("0", "10.0.0.1:4647"))
	f(0, "", server("2", "10.0.0.1:4647"), "-min-peers", "2")
	f(2, "known peers: 1, expected are at least 2", server("1", "10.0.0.1:4647"), "-min-peers=2")
	f(2, "num_peers", server("", "10.0.0.1:4647"))
	f(1, "knows no leader", server("2", ""))
	full := server("2", "x")
	full["nomad"]["disk_full"] = "none is left"
	f(2, "none is left", full)
	f(0, "", client("1", "1", "1s", "12s"))
	f(0, "", client("1", "1", "", ""))
	f(2, "known servers: 0", client("0", "1", "1s", "12s"))
	f(2, "at least 3", client("1", "1", "1s", "12s"), "-min-servers", "3")
	f(2, "not registered", client("1", "0", "", ""))
	f(2, "13s ago", client("1", "1", "13s", "12s"))
	both := server("0", "")
	both["client"] = client("0", "1", "", "")["client"]
	f(2, "known servers", both) // the worse of two
	f(1, "neither", stats{})
	f(2, "no arguments", server("0", "x"), "extra")
	gone := newFake(t)
	gone.Close()
	if got := gone.run(t, "check"); got.code != 2 || !strings.Contains(got.err, "no agent answers") {
		t.Errorf("nobody answers: exit code %d, stderr %q", got.code, got.err)
	}
}
