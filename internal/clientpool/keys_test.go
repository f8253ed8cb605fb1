package clientpool

import (
	"bytes"
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/keyring"
	"github.com/nomadish/nomadish/structs"
)

var keyA, keyB = bytes.Repeat([]byte("a"), 32), bytes.Repeat([]byte("b"), 32)

// TestMembersCannotChangeKeys: Serf has queries of its own by which any member changes, and reads, the keys of all others. No member
// answers them: keys come from servers, and over RPC.
func TestMembersCannotChangeKeys(t *testing.T) {
	t.Parallel()
	ring := func() *keyring.Ring {
		k, err := keyring.Open("", "client_gossip_encrypt", keyA, hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	kept := ring()
	one := pool(t, "server-1", server, func(c *Config) { c.Keyring = kept })
	neighbour := pool(t, "client-1", func(c *Config) { c.Keyring = ring() })
	thief := pool(t, "client-2", func(c *Config) { c.Keyring = ring() })
	join(t, neighbour, one)
	join(t, thief, one)
	sees(t, one, "client-2", structs.MemberAlive)
	sees(t, thief, "client-1", structs.MemberAlive)
	keys := thief.serf.KeyManager()
	for what, answers := range map[string]func() int{
		"install": func() int { r, _ := keys.InstallKey(base64.StdEncoding.EncodeToString(keyB)); return r.NumResp },
		"use":     func() int { r, _ := keys.UseKey(base64.StdEncoding.EncodeToString(keyB)); return r.NumResp },
		"list":    func() int { r, _ := keys.ListKeys(); return r.NumResp },
	} {
		if n := answers(); n > 0 {
			t.Errorf("%s: %d members answered", what, n)
		}
	}
	for who, k := range map[string]*keyring.Ring{"the server": kept, "its neighbour": neighbour.config.Keyring} {
		if got := k.Keys(); len(got) != 1 || !slices.Equal(got[0], keyA) {
			t.Errorf("%s has %d keys, and another one first", who, len(got))
		}
	}
	if !one.Encrypted() || one.Stats()["encrypted"] != "true" {
		t.Error("it passes for gossip in the clear")
	}
}

// TestKeysReplaced: members whose rings are changed one after the other hear each other all the time.
func TestKeysReplaced(t *testing.T) {
	t.Parallel()
	var rings []*keyring.Ring
	var pools []*Pool
	for _, id := range []string{"server-1", "client-1", "client-2"} {
		k, err := keyring.Open("", "client_gossip_encrypt", keyA, hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		p := pool(t, id, func(c *Config) { c.Keyring = k })
		if len(pools) > 0 {
			join(t, p, pools[0])
		}
		rings, pools = append(rings, k), append(pools, p)
	}
	for step, s := range []keyring.State{{Version: 1, Keys: [][]byte{keyA, keyB}}, {Version: 2, Keys: [][]byte{keyB, keyA}}, {Version: 3, Keys: [][]byte{keyB}}} {
		for i, k := range rings {
			if taken, err := k.Take(s); !taken || err != nil {
				t.Fatalf("step %d: member %d: %v, %v", step, i, taken, err)
			}
			for _, p := range pools {
				for _, to := range []string{"server-1", "client-1", "client-2"} {
					within(t, "a probe", func() error { return p.Probe(to) })
				}
			}
		}
	}
	time.Sleep(time.Second) // several probes of memberlist's own
	for _, p := range pools {
		if n := p.Clients(); n != 3 {
			t.Errorf("%s hears %d", p.config.ID, n)
		}
	}
}
