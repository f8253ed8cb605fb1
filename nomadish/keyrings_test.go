package nomadish

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/membership"
	"github.com/nomadish/nomadish/structs"
)

// Keys of 32 bytes.
var keyA, keyB = bytes.Repeat([]byte("a"), 32), bytes.Repeat([]byte("b"), 32)

// journal is what was logged.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *journal) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *journal) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), s)
}

func (l *journal) has(s string) bool { return l.count(s) > 0 }

// changeKey has a server's pools do something with a key.
func changeKey(t *testing.T, s *Server, op string, key []byte) (*structs.KeyringReply, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	reply := &structs.KeyringReply{}
	return reply, s.Call(ctx, wire.MethodKeyring, &structs.KeyringRequest{Op: op, Key: base64.StdEncoding.EncodeToString(key)}, reply)
}

// oneKey waits until all n members have this key alone.
func oneKey(t *testing.T, s *Server, key []byte, n int) {
	t.Helper()
	text := base64.StdEncoding.EncodeToString(key)
	within(t, time.Minute, "one key", func(context.Context) error {
		reply, err := changeKey(t, s, structs.KeyList, nil)
		if err == nil && (len(reply.Keys) != 1 || reply.Keys[text] != n || reply.PrimaryKeys[text] != n || reply.NumNodes != n) {
			err = fmt.Errorf("%d members: %v, in use %v", reply.NumNodes, reply.Keys, reply.PrimaryKeys)
		}
		return err
	})
}

// alive waits until all servers that run take n members for alive.
func (f *fleet) alive(n int) {
	f.t.Helper()
	within(f.t, time.Minute, fmt.Sprintf("%d members alive", n), func(context.Context) error {
		for _, s := range f.up() {
			there := 0
			for _, m := range s.gossip.Members() {
				if m.Status == structs.MemberAlive {
					there++
				}
			}
			if there != n {
				return fmt.Errorf("%s sees %v", s.cfg.Name, s.gossip.Members())
			}
		}
		return nil
	})
}

// TestKeysRotated: the key of a cluster that works is replaced by another, and a server that is
// started after that with the first key in its configuration is one of them.
func TestKeysRotated(t *testing.T) {
	t.Parallel()
	log := &journal{}
	f := newFleet(t, 3, func(_ int, c *Config) {
		c.Membership.Key, c.Membership.LAN.Probe = keyA, time.Second // nobody passes for failed on a busy machine
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Debug, Name: c.Name})
	})
	f.alive(3)
	back := f.follower() // the one that is started again
	others := slices.Delete(slices.Clone(f.all), back, back+1)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var acked []string
	var count atomic.Int64
	load.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			id := fmt.Sprintf("load-%04d", i)
			if _, err := register(ctx, others[i%2], batchJob(id, 1)); err == nil {
				acked = append(acked, id)
				count.Add(1)
			}
			<-tick.C
		}
	})
	defer load.Wait()
	defer stop()
	do := func(at int, op string, key []byte) {
		t.Helper()
		// A server that is slow to answer is named, and it is done again.
		within(t, time.Minute, op, func(context.Context) error {
			_, err := changeKey(t, f.all[at], op, key)
			return err
		})
	}
	refused := func(what, op string, key []byte, code structs.Code, word string) {
		t.Helper()
		within(t, time.Minute, what, func(context.Context) error {
			_, err := changeKey(t, f.all[0], op, key)
			if structs.CodeOf(err) == code && strings.Contains(err.Error(), word) {
				return nil
			}
			return fmt.Errorf("answered %w", err)
		})
	}
	refused("using what nobody has", structs.KeyUse, keyB, structs.CodeNotFound, "no member")
	refused("removing what nobody has", structs.KeyRemove, keyB, structs.CodeNotFound, "no member")
	refused("removing the one in use", structs.KeyRemove, keyA, structs.CodeConflict, "in use on s0.global")
	refused("a short key", structs.KeyInstall, []byte("x"), structs.CodeBadRequest, "16, 24 and 32")
	do(0, structs.KeyInstall, keyB)
	do(1, structs.KeyUse, keyB)
	refused("removing the one in use now", structs.KeyRemove, keyB, structs.CodeConflict, "in use")
	do(2, structs.KeyRemove, keyA)
	oneKey(t, f.all[0], keyB, 3)
	f.alive(3)

	f.crash(back)
	f.run(back) // its configuration has the first key still
	f.formed(3)
	f.alive(3)
	oneKey(t, f.all[back], keyB, 3)
	was := count.Load()
	within(t, time.Minute, "another write", func(context.Context) error {
		if now := count.Load(); now <= was {
			return fmt.Errorf("%d of them", now)
		}
		return nil
	})
	stop()
	load.Wait()
	within(t, time.Minute, "all that was acknowledged", func(context.Context) error {
		got := jobIDs(t, f.all[back], true)
		for _, id := range acked {
			if !slices.Contains(got, id) {
				return fmt.Errorf("%s is lost of %d", id, len(acked))
			}
		}
		return nil
	})
	if !log.has("`encrypt` of the configuration is only the first key") {
		t.Error("the restarted server does not say where its keys are from")
	}
	for _, key := range [][]byte{keyA, keyB} {
		if log.has(string(key)) || log.has(base64.StdEncoding.EncodeToString(key)) {
			t.Error("a key is in the log")
		}
	}
}

// TestWrongKey: a server with another key is refused, changes nothing, and is named once.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	log := &journal{}
	f := newFleet(t, 1, func(_ int, c *Config) {
		c.Membership.Key = keyA
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Debug})
	})
	strange := f.config(0)
	strange.Membership.Key, strange.Membership.LAN.Retry, strange.Membership.LAN.RetryInterval = keyB, []string{f.cfgs[0].Membership.LAN.Addr}, 10*time.Millisecond
	strange.Membership.LAN.RetryMax = 20
	s := f.run(1)
	select {
	case err := <-s.Failed():
		if err == nil || !strings.Contains(err.Error(), "not one of them was reached in 20 tries") || !strings.Contains(err.Error(), "another key than this server's") {
			t.Errorf("it fails with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on trying")
	}
	if n := log.count("refused gossip"); n != 1 {
		t.Errorf("it is named %d times", n)
	}
	if members := f.all[0].gossip.Members(); len(members) != 1 {
		t.Errorf("members: %v", members)
	}
	f.formed2(0)
	if voters, others := peers(f.all[0]); len(voters) != 1 || len(others) > 0 {
		t.Errorf("Raft has %v and %v", voters, others)
	}
}

// TestKeyPools: what is asked of pools that are not there, and by whom.
func TestKeyPools(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, nil)
	s := f.all[0]
	if _, err := changeKey(t, s, structs.KeyList, nil); structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), "not encrypted") {
		t.Errorf("in the clear: %v", err)
	}
	for what, args := range map[string]*structs.KeyringRequest{
		"a pool that is not there": {Op: structs.KeyList, Pool: structs.PoolClients},
		"no base64":                {Op: structs.KeyInstall, Key: "?"},
	} {
		if err := s.Call(t.Context(), wire.MethodKeyring, args, &structs.KeyringReply{}); structs.CodeOf(err) != structs.CodeBadRequest {
			t.Errorf("%s: %v", what, err)
		}
	}
	session, err := wire.Dial(t.Context(), "global", s.RPCAddr(), wire.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close() //nolint:errcheck // a test
	err = session.Call(t.Context(), wire.MethodKeyring, &structs.KeyringRequest{Op: structs.KeyList}, &structs.KeyringReply{})
	if structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("asked over the network: %v", err)
	}
}

// TestKeptKeys: what is kept rules, and what cannot be read stops the start.
func TestKeptKeys(t *testing.T) {
	t.Parallel()
	f := prepare(t, 1, func(_ int, c *Config) { c.Membership.Key = keyA })
	s := f.run(0)
	if _, err := changeKey(t, s, structs.KeyInstall, keyB); err != nil {
		t.Fatal(err)
	}
	f.crash(0)
	path := filepath.Join(s.cfg.serverDir(), "serf.keyring")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file: %v, %v", info, err)
	}
	f.cfgs[0].Membership.Key = nil
	if s = f.run(0); !s.Encrypted() {
		t.Error("the keys that were kept are not used")
	}
	f.crash(0)
	if err := os.WriteFile(path, []byte("[torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := NewServer(f.cfgs[0]); err == nil {
		f.all[0] = s
		t.Error("a torn file was taken")
	} else if !strings.Contains(err.Error(), path) {
		t.Errorf("%v: it does not name the file", err)
	}
}

// TestKeysOfSeveralPools: the pools of a group are changed together, or not at all.
func TestKeysOfSeveralPools(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, func(_ int, c *Config) { c.Membership.Key = keyA })
	other := newFleet(t, 1, func(_ int, c *Config) { c.Name, c.Membership.Key = "far", keyA })
	both := membership.KeyPools{{Name: "serf", Pool: f.all[0].gossip.Keys()}, {Name: "wan", Pool: other.all[0].gossip.Keys()}}
	query := func(pools membership.KeyPools, op string, key []byte) (*structs.KeyringReply, error) {
		return pools.Change(t.Context(), op, key)
	}
	if _, err := query(both[1:], structs.KeyInstall, keyB); err != nil {
		t.Fatal(err)
	}
	// One pool has it and the other does not: neither may use it.
	if _, err := query(both, structs.KeyUse, keyB); structs.CodeOf(err) != structs.CodeConflict || !strings.Contains(err.Error(), "s0.global") {
		t.Fatalf("used where it is not: %v", err)
	}
	for _, step := range []struct {
		op  string
		key []byte
	}{{structs.KeyInstall, keyB}, {structs.KeyUse, keyB}, {structs.KeyRemove, keyA}} {
		if _, err := query(both, step.op, step.key); err != nil {
			t.Fatal(step.op, err)
		}
	}
	reply, err := query(both, structs.KeyList, nil)
	if text := base64.StdEncoding.EncodeToString(keyB); err != nil || reply.Keys[text] != 2 || len(reply.Keys) != 1 || reply.NumNodes != 2 {
		t.Fatalf("%v, %+v", err, reply)
	}
}

// TestKeysWithOneAway: a server that is down for a while is not locked out.
func TestKeysWithOneAway(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, func(_ int, c *Config) { c.Membership.Key = keyA })
	f.alive(3)
	away := f.follower()
	name := f.cfgs[away].Name + "." + f.cfgs[away].Region
	f.crash(away)
	at := f.up()[0]
	until := func(what string, good func(*structs.KeyringReply, error) bool, op string, key []byte) {
		t.Helper()
		within(t, time.Minute, what, func(context.Context) error {
			if reply, err := changeKey(t, at, op, key); !good(reply, err) {
				return fmt.Errorf("%+v, %w", reply, err)
			}
			return nil
		})
	}
	begun := time.Now()
	_, err := changeKey(t, at, structs.KeyInstall, keyB) // it passes for alive still, perhaps
	if took := time.Since(begun); structs.CodeOf(err) != structs.CodeConflict || !strings.Contains(err.Error(), name+" has failed") || took > 8*time.Second {
		t.Fatalf("installed but for one that died a moment ago: %v, after %v", err, took)
	}
	until("not installed", func(_ *structs.KeyringReply, err error) bool {
		return err != nil && strings.Contains(err.Error(), name+" has failed")
	}, structs.KeyInstall, keyB)
	until("not used", func(_ *structs.KeyringReply, err error) bool {
		return err != nil && strings.Contains(err.Error(), name+" has failed")
	}, structs.KeyUse, keyB)
	until("listed", func(r *structs.KeyringReply, err error) bool {
		return err == nil && r.NumNodes == 2 && r.Messages[name] != ""
	}, structs.KeyList, nil)
	f.run(away)
	f.formed(3)
	f.alive(3)
	done := func(r *structs.KeyringReply, err error) bool { return err == nil && r.NumNodes == 3 }
	until("installed", done, structs.KeyInstall, keyB)
	until("used", done, structs.KeyUse, keyB)
	f.alive(3)
}

// TestKeysOfBothGossips: one command changes the keys of the region's gossip and of that with other regions.
func TestKeysOfBothGossips(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, func(_ int, c *Config) { c.Membership.Key, c.Membership.WAN.Addr = keyA, port(t) })
	s := f.all[0]
	for _, step := range []struct {
		op  string
		key []byte
	}{{structs.KeyInstall, keyB}, {structs.KeyUse, keyB}, {structs.KeyRemove, keyA}} {
		if _, err := changeKey(t, s, step.op, step.key); err != nil {
			t.Fatal(step.op, err)
		}
	}
	for name, keys := range map[string][][]byte{membership.KeyringLAN: s.gossip.Keys().Ring.Keys(), membership.KeyringWAN: s.wan.Keys().Ring.Keys()} {
		if len(keys) != 1 || !slices.Equal(keys[0], keyB) {
			t.Errorf("%s has %d keys, not the new one alone", name, len(keys))
		}
		if _, err := os.Stat(filepath.Join(s.cfg.serverDir(), name)); err != nil {
			t.Errorf("they are not kept: %v", err)
		}
	}
}
