package nomadish

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/clientpool"
	"github.com/nomadish/nomadish/internal/keyring"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/clientgossip"
	"github.com/nomadish/nomadish/structs"
)

// Keys of the clients' gossip; the first is that of gossips.
var key3, key4, key5 = bytes.Repeat([]byte{3}, 16), bytes.Repeat([]byte{4}, 32), bytes.Repeat([]byte{5}, 32)

func changeClientKey(t *testing.T, s *Server, op string, key []byte) (*structs.KeyringReply, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	reply := &structs.KeyringReply{}
	return reply, s.Call(ctx, wire.MethodKeyring, &structs.KeyringRequest{Op: op, Key: base64.StdEncoding.EncodeToString(key), Pool: structs.PoolClients}, reply)
}

// beater is a client that has keys and heartbeats, and nothing else.
type beater struct {
	t       *testing.T
	session *wire.Session
	ring    *keyring.Ring
}

// beat returns what a server tells of the gossip.
func (b *beater) beat() *structs.ClientGossip {
	b.t.Helper()
	var reply *structs.NodeUpdateReply
	within(b.t, time.Minute, "a heartbeat", func(ctx context.Context) error {
		prints := b.ring.Prints()
		reply = &structs.NodeUpdateReply{}
		return b.session.Call(ctx, wire.MethodNodeHeartbeat, &structs.NodeHeartbeatRequest{NodeID: nodeID, SecretID: "s", GossipKeys: &prints}, reply)
	})
	return reply.Gossip
}

// follow takes what a heartbeat brings, and says what it has.
func (b *beater) follow() {
	b.t.Helper()
	if told := b.beat(); len(told.Keyring) > 0 {
		s, err := b.ring.Unseal(told.Keyring)
		if err == nil {
			_, err = b.ring.Take(s)
		}
		if err != nil {
			b.t.Fatal(err)
		}
		b.beat()
	}
}

func ringOf(t *testing.T, key []byte) *keyring.Ring {
	t.Helper()
	k, err := keyring.Open("", "client_gossip_encrypt", key, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestClientKeysRotated: the key of the clients' gossip is replaced on servers and clients. A server that was away, and one that comes with
// the first key in its configuration, have the new one; nothing is used or removed that would cut a client off.
func TestClientKeysRotated(t *testing.T) {
	t.Parallel()
	var log journal
	f := newFleet(t, 3, func(i int, c *Config) {
		gossips(i, c)
		c.Membership.Key, c.Membership.LAN.Probe, c.Heartbeats.MinTTL, c.Heartbeats.Grace = keyA, time.Second, time.Hour, time.Hour
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Debug, Name: c.Name})
	})
	f.alive(3)
	follower := f.follower()
	b := &beater{t, registered(t, f.all[follower]), ringOf(t, key3)}
	member(t, nodeID, clientpool.RoleClient, f.all[follower].ClientGossipAddr())
	f.formed(3)
	until := func(what string, at int, op string, key []byte, good func(*structs.KeyringReply, error) bool) {
		t.Helper()
		within(t, time.Minute, what, func(context.Context) error {
			if reply, err := changeClientKey(t, f.all[at], op, key); !good(reply, err) {
				return fmt.Errorf("%+v, %w", reply, err)
			}
			return nil
		})
	}
	refused := func(code structs.Code, words string) func(*structs.KeyringReply, error) bool {
		return func(_ *structs.KeyringReply, err error) bool {
			return structs.CodeOf(err) == code && strings.Contains(err.Error(), words)
		}
	}
	done := func(r *structs.KeyringReply, err error) bool { return err == nil && r.NumNodes == 4 && r.Clients == 1 }
	all := func(key []byte, has, uses int) func(*structs.KeyringReply, error) bool {
		text := base64.StdEncoding.EncodeToString(key)
		return func(r *structs.KeyringReply, err error) bool {
			return done(r, err) && r.Keys[text] == has && r.PrimaryKeys[text] == uses
		}
	}
	b.beat()
	until("the first key listed", 1, structs.KeyList, nil, all(key3, 4, 4))
	until("a key of the servers", 0, structs.KeyInstall, keyA, refused(structs.CodeBadRequest, "key of the servers' gossip"))
	until("a short key", 0, structs.KeyInstall, []byte("x"), refused(structs.CodeBadRequest, "16, 24 and 32"))
	until("no key of any", 0, structs.KeyUse, key4, refused(structs.CodeNotFound, "no member"))
	until("the one in use", 0, structs.KeyRemove, key3, refused(structs.CodeConflict, "still encrypt"))
	until("installed", 0, structs.KeyInstall, key4, done)
	until("not with the clients yet", 1, structs.KeyList, nil, all(key4, 3, 0))
	until("used before they have it", 2, structs.KeyUse, key4, refused(structs.CodeConflict, "1 of 1 clients have not confirmed that they have the key"))
	if _, err := changeKey(t, f.all[1], structs.KeyInstall, key4); structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), "key of the clients' gossip") {
		t.Errorf("a key of the clients for the servers: %v", err)
	}
	if told := b.beat(); len(told.Keyring) == 0 || bytes.Contains(told.Keyring, []byte(base64.StdEncoding.EncodeToString(key4))) {
		t.Errorf("the client is told %q", told.Keyring)
	}
	unknown := &beater{t, b.session, ringOf(t, key5)}
	if told := unknown.beat(); len(told.Keyring) > 0 || told.Primary != keyring.Print(key3) {
		t.Errorf("one that has no key of it is told %+v", told)
	}
	b.follow()
	until("with all", 1, structs.KeyList, nil, all(key4, 4, 0))
	until("used", 2, structs.KeyUse, key4, done)
	until("removed before they follow", 0, structs.KeyRemove, key3, refused(structs.CodeConflict, "1 of 1 clients still encrypt"))
	b.follow()
	until("removed", 0, structs.KeyRemove, key3, done)
	b.follow()
	until("one key", 0, structs.KeyList, nil, all(key4, 4, 4))
	if got := b.ring.Keys(); len(got) != 1 || !slices.Equal(got[0], key4) {
		t.Errorf("the client has %d keys", len(got))
	}

	// One that was away, and one that begins with the first key.
	back := f.follower()
	f.crash(back)
	until("with one away", f.leader(), structs.KeyInstall, key5, refused(structs.CodeConflict, "has failed"))
	f.cfgs[back].DataDir = filepath.Join(t.TempDir(), "fresh")
	f.run(back)
	within(t, time.Minute, "the ring of the others", func(context.Context) error {
		if got := f.all[back].clients.Ring().State(); got.Version != 3 || !got.Has(key4) || len(got.Keys) != 1 {
			return fmt.Errorf("version %d, %d keys", got.Version, len(got.Keys))
		}
		return nil
	})
	within(t, time.Minute, "all in one pool", func(context.Context) error {
		if n := len(f.all[back].clients.Servers()); n != 2 {
			return fmt.Errorf("it sees %d others", n)
		}
		return nil
	})
	for _, key := range [][]byte{keyA, key3, key4, key5} {
		if log.has(string(key)) || log.has(base64.StdEncoding.EncodeToString(key)) {
			t.Error("a key is in the log")
		}
	}
}

// TestClientsCannotReadKeys: a member of the clients' gossip gets nothing by the servers' query, and nobody by RPC.
func TestClientsCannotReadKeys(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, func(i int, c *Config) { gossips(i, c); c.Membership.Key = keyA })
	s := f.all[0]
	session := registered(t, s)
	err := session.Call(t.Context(), wire.MethodKeyring, &structs.KeyringRequest{Op: structs.KeyList, Pool: structs.PoolClients}, &structs.KeyringReply{})
	if structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("by RPC: %v", err)
	}
	// It cannot join the servers' gossip with what it has, and the clients' carries no such queries to a server: see clientpool.
	if _, err := changeClientKey(t, s, structs.KeyInstall, key4); err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]*keyring.Ring{"the servers'": s.gossip.Keys().Ring} {
		if len(k.Keys()) != 1 {
			t.Errorf("%s ring has %d keys", name, len(k.Keys()))
		}
	}
	if !s.clients.Ring().State().Has(key4) {
		t.Error("it was not installed")
	}
}

// TestClientKeysInTheClear: servers whose own gossip is in the clear do not tell each other the clients' keys by it.
func TestClientKeysInTheClear(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, gossips)
	f.alive(3)
	if _, err := changeClientKey(t, f.all[0], structs.KeyInstall, key4); structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), "in the clear") {
		t.Errorf("several servers: %v", err)
	}
	r, err := f.all[0].gossip.Keys().Gather(t.Context(), clientgossip.KeyQuery, []byte(`{"Op":"get"}`), func(from string, _ []byte) { t.Errorf("%s answers", from) })
	if err == nil || r != nil && len(r.Silent) != 3 {
		t.Logf("asked all the same: %+v, %v", r, err)
	}
	one := newFleet(t, 1, gossips)
	if _, err := changeClientKey(t, one.all[0], structs.KeyInstall, key4); err != nil {
		t.Errorf("one server: %v", err)
	}
}
