package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// TestGossipKeyRotated: the servers get another key while jobs are registered, by the commands that the
// documentation names and by the official client. One that is started after that has the first key in its
// configuration still.
func TestGossipKeyRotated(t *testing.T) {
	t.Parallel()
	const first = "MDEyMzQ1Njc4OWFiY2RlZg==" // of harness.StartServers
	all := harness.StartServers(t, 3, "")
	out, code := all[0].CLI("operator", "gossip", "keyring", "generate")
	if code != 0 {
		t.Fatal(out)
	}
	key := strings.TrimSpace(out)
	keyring := func(a *harness.Agent, want string, args ...string) {
		t.Helper()
		harness.Within(t, 20*time.Second, args[0], func(context.Context) error { // one that is slow to answer is named
			out, code := a.CLI(append([]string{"operator", "gossip", "keyring"}, args...)...)
			if code != 0 || !strings.Contains(out, want) {
				return fmt.Errorf("exit %d: %s", code, out)
			}
			return nil
		})
	}
	l := harness.StartLoad(t, all, 20*time.Millisecond)
	keyring(all[0], "Done by 3 members", "install", key)
	harness.Within(t, 20*time.Second, "both keys", func(context.Context) error {
		keys, err := all[1].Nomad.Agent().ListKeys()
		if err == nil && (keys.Keys[key] != 3 || keys.Keys[first] != 3 || keys.NumNodes != 3) {
			err = fmt.Errorf("%+v", keys)
		}
		return err
	})
	keyring(all[1], "Done by 3 members", "use", key)
	harness.Within(t, 20*time.Second, "the one in use not removed", func(context.Context) error {
		out, code := all[2].CLI("operator", "gossip", "keyring", "remove", key)
		if code == 0 || !strings.Contains(out, "in use on server-0.global") {
			return fmt.Errorf("exit %d: %s", code, out)
		}
		return nil
	})
	harness.Within(t, 20*time.Second, "the first key removed", func(context.Context) error {
		_, err := all[2].Nomad.Agent().RemoveKey(first)
		return err
	})
	back := all.Except(all.Leader(t))[0]
	back.Kill()
	back.Start()
	all.WaitFormed(t, 3)
	l.WaitMore(t, 5)
	acked := l.End()
	keyring(back, key+"  3/3      3/3", "list")
	harness.Within(t, 20*time.Second, "all servers alive", func(ctx context.Context) error {
		members, err := back.API.Agent().Members(ctx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(members, func(m api.Member) bool { return m.Status != structs.MemberAlive }) || len(members) != 3 {
			return fmt.Errorf("%+v", members)
		}
		return nil
	})
	harness.Within(t, 20*time.Second, "all jobs", func(ctx context.Context) error {
		jobs, _, err := back.API.Jobs().List(ctx, nil)
		if err != nil {
			return err
		}
		known := map[string]bool{}
		for _, j := range jobs {
			known[j.ID] = true
		}
		for _, id := range acked {
			if !known[id] {
				return fmt.Errorf("%s of %d was acknowledged, and is not there", id, len(acked))
			}
		}
		return nil
	})
	for _, a := range all {
		if log := a.Log.Tail(1 << 20); strings.Contains(log, key) || strings.Contains(log, first) {
			t.Error("a key is in the log")
		}
	}
}
