package command

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

func TestGossipKey(t *testing.T) {
	f := newFake(t)
	a, b := f.run(t, "operator", "gossip", "keyring", "generate"), f.run(t, "operator", "gossip", "keyring", "generate")
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(a.out))
	if err != nil || len(key) != 32 || a.out == b.out || a.code != exitDone {
		t.Errorf("keys %q and %q: %v", a.out, b.out, err)
	}
}

func TestGossipKeysChanged(t *testing.T) {
	f := newFake(t)
	for _, op := range []string{"install", "use", "remove"} {
		f.on("PUT /v1/agent/keyring/"+op, &structs.KeyringReply{NumNodes: 3, Messages: map[string]string{"s3.global": "it has failed"}})
		for in, args := range map[string][]string{"": {"a2V5"}, "a2V5\n": {"-"}} {
			got := f.runIn(t, in, append([]string{"operator", "gossip", "keyring", op}, args...)...)
			if got.code != exitDone || !strings.Contains(got.out, "Done by 3 members") || !strings.Contains(got.err, "s3.global: it has failed") {
				t.Errorf("%s %v: %+v", op, args, got)
			}
			if last := f.bodies[len(f.bodies)-1]; last != `{"Key":"a2V5"}` {
				t.Errorf("%s %v: asked with %s", op, args, last)
			}
		}
	}
	f = newFake(t).on("PUT /v1/agent/keyring/use", &structs.KeyringReply{NumNodes: 5, Clients: 2}).
		on("GET /v1/agent/keyring/list", &structs.KeyringReply{NumNodes: 5, Clients: 2, Behind: 1},
			&structs.KeyringReply{NumNodes: 5, Clients: 2})
	if got := f.run(t, "operator", "gossip", "keyring", "use", "-clients", "a2V5"); got.code != exitDone || !strings.Contains(got.out, "Done by 3 servers\nDone by 2 clients") ||
		!slices.Contains(f.requested, "PUT /v1/agent/keyring/use?pool=clients") {
		t.Errorf("the clients' keys: %+v, asked %v", got, f.requested)
	}
	for what, args := range map[string][]string{"no key": {"use"}, "two keys": {"remove", "a", "b"}, "list of what": {"list", "a"}, "an empty input": {"install", "-"}} {
		if got := f.run(t, append([]string{"operator", "gossip", "keyring"}, args...)...); got.code != exitFailed || got.err == "" {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

func TestUnhealthyServers(t *testing.T) {
	f := newFake(t).on("GET /v1/operator/autopilot/health", refusal{429, `{"Healthy":false,"Servers":[{"ID":"s1","Name":"server-1"}]}`}, refusal{429, "too many requests"})
	if got := f.run(t, "operator", "autopilot", "health"); got.code != exitFailed || !strings.Contains(got.out, "server-1") || got.err != "" {
		t.Errorf("not healthy: %+v", got)
	}
	if got := f.run(t, "operator", "autopilot", "health"); got.code != exitFailed || !strings.Contains(got.err, "too many requests") {
		t.Errorf("refused: %+v", got)
	}
}
