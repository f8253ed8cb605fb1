package clientpool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/serf/serf"
	"go.uber.org/goleak"

	"github.com/nomadish/nomadish/structs"
)

// memberlist's goroutines may outlive a shutdown by one of its intervals.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("github.com/hashicorp/go-metrics.(*InmemSink).Run"),
		goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"),
		goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).pushPullNode"),
		goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).handleConn"),
	)
}

// journal is a log that tests read.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) lines(with string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for line := range strings.Lines(j.b.String()) {
		if strings.Contains(line, with) {
			n++
		}
	}
	return n
}

func (j *journal) logger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Output: j, Level: hclog.Warn})
}

// once is what agents pass to a pool: each key is the first once.
func once() func(string, string, time.Time) bool {
	var reported sync.Map
	return func(kind, key string, _ time.Time) bool {
		_, before := reported.LoadOrStore(kind+" "+key, true)
		return !before
	}
}

func config(id string, change ...func(*Config)) Config {
	c := Config{ID: id, Role: RoleClient, Region: "global", BindAddr: "127.0.0.1:0", ProbeInterval: 200 * time.Millisecond, AllowLog: once()}
	for _, f := range change {
		f(&c)
	}
	return c
}

func server(c *Config) { c.Role, c.RPCAddr = RoleServer, "10.0.0.1:4647" }

func pool(t *testing.T, id string, change ...func(*Config)) *Pool {
	t.Helper()
	p, err := New(config(id, change...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func within(t *testing.T, what string, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// sees waits until a member is known to p in one of the statuses.
func sees(t *testing.T, p *Pool, id string, statuses ...string) {
	t.Helper()
	within(t, id+" is "+strings.Join(statuses, " or "), func() error {
		m, _ := p.Member(id)
		for _, s := range statuses {
			if m.Status == s {
				return nil
			}
		}
		return fmt.Errorf("it is %q", m.Status)
	})
}

func join(t *testing.T, p, to *Pool) {
	t.Helper()
	if err := p.Join(to.Addr()); err != nil {
		t.Fatal(err)
	}
}

func TestEveryoneByOneAddress(t *testing.T) {
	t.Parallel()
	key := func(c *Config) { c.Key = bytes.Repeat([]byte{7}, 32) }
	s, a, b := pool(t, "server", server, key), pool(t, "a", key), pool(t, "b", key)
	if !a.Alone() || !a.Encrypted() {
		t.Fatal("alone at first, and encrypted")
	}
	join(t, a, s)
	join(t, b, a) // a client, not a server
	for _, p := range []*Pool{s, a, b} {
		for _, id := range []string{"server", "a", "b"} {
			sees(t, p, id, structs.MemberAlive)
		}
	}
	if got := b.Servers(); len(got) != 1 || got[0].RPCAddr != "10.0.0.1:4647" {
		t.Fatalf("servers as a client sees them: %v", got)
	}
	if n := s.Clients(); n != 2 || len(s.Servers()) != 0 || b.Alone() {
		t.Fatalf("%d clients, servers %v", n, s.Servers())
	}
	within(t, "b answers a's probe", func() error { return a.Probe("b") })
	if err := a.Probe("nobody"); err == nil {
		t.Fatal("nobody answers")
	}
}

func TestFailedAndLeft(t *testing.T) {
	t.Parallel()
	changes := make(chan Member, 100)
	s := pool(t, "server", server, func(c *Config) { c.OnChange = func(m Member) { changes <- m } })
	fails, leaves := pool(t, "fails"), pool(t, "leaves")
	join(t, fails, s)
	join(t, leaves, s)
	if err := leaves.Leave(); err != nil {
		t.Fatal(err)
	}
	sees(t, s, "leaves", structs.MemberLeft, structs.MemberLeaving)
	if err := fails.Shutdown(); err != nil {
		t.Fatal(err)
	}
	sees(t, s, "fails", structs.MemberFailed)
	if err := s.Probe("fails"); err == nil {
		t.Fatal("the dead answered")
	}
	for { // every change was reported
		select {
		case m := <-changes:
			if m.ID == "fails" && m.Status == structs.MemberFailed {
				return
			}
		case <-t.Context().Done():
			t.Fatal("the failure was not told of")
		}
	}
}

// TestRefused: who does not belong here has no effect, and is logged once.
func TestRefused(t *testing.T) {
	t.Parallel()
	for what, unknown := range map[string]func(*Config){
		"another key":    func(c *Config) { c.Key = bytes.Repeat([]byte{8}, 32) },
		"no key":         func(c *Config) { c.Key = nil },
		"another region": func(c *Config) { c.Region = "other" },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			key := func(c *Config) { c.Key = bytes.Repeat([]byte{7}, 32) }
			var log journal
			s := pool(t, "server", server, key, func(c *Config) { c.Logger = log.logger() })
			bad := pool(t, "bad", key, unknown)
			for range 3 {
				err := bad.Join(s.Addr())
				if err == nil {
					t.Fatal("joined")
				}
				if named := strings.Contains(err.Error(), "client { gossip_encrypt } here"); named != strings.HasSuffix(what, "key") {
					t.Fatalf("it is told: %v", err)
				}
			}
			within(t, "a line in the log", func() error {
				if log.lines("") == 0 {
					return errors.New("none")
				}
				return nil
			})
			if m, ok := s.Member("bad"); ok {
				t.Fatalf("it is known: %v", m)
			}
			if n := log.lines(""); n > 3 { // of a stream: that it was refused, and that the answer was not taken
				t.Fatalf("logged %d times\n%s", n, log.b.String())
			}
		})
	}
}

// TestPacketsAreLoggedOnce: a thousand packets of unknown hosts are one line.
func TestPacketsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	var log journal
	s := pool(t, "server", server, func(c *Config) { c.Key = bytes.Repeat([]byte{7}, 32); c.Logger = log.logger() })
	for range 20 { // of as many ports
		conn, err := net.Dial("udp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if _, err := conn.Write([]byte("not encrypted with the key of the pool")); err != nil {
				t.Fatal(err)
			}
		}
		_ = conn.Close()
	}
	within(t, "a line in the log", func() error {
		if log.lines("server { client_gossip_encrypt } here") == 0 {
			return errors.New("none")
		}
		return nil
	})
	if n := log.lines(""); n != 1 {
		t.Fatalf("logged %d times", n)
	}
}

// TestStolenID: a second agent of the same ID changes nothing of the true one's address; and when it says that it leaves, the
// true one says that it does not.
func TestStolenID(t *testing.T) {
	t.Parallel()
	s, honest := pool(t, "server", server), pool(t, "same")
	join(t, honest, s)
	sees(t, s, "same", structs.MemberAlive)
	thief := pool(t, "same")
	_ = thief.Join(s.Addr()) // whether it gets in is its own affair
	if err := thief.Leave(); err != nil {
		t.Logf("leave: %v", err)
	}
	if err := thief.Shutdown(); err != nil {
		t.Fatal(err)
	}
	sees(t, s, "same", structs.MemberAlive)
	within(t, "the honest one answers", func() error {
		if m, _ := s.Member("same"); m.Addr != honest.Addr() {
			return fmt.Errorf("its address is %s, not %s", m.Addr, honest.Addr())
		}
		return s.Probe("same")
	})
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*Config){
		"no ID":                  func(c *Config) { c.ID = "" },
		"an ID too long":         func(c *Config) { c.ID = strings.Repeat("x", 65) },
		"no role":                func(c *Config) { c.Role = "" },
		"a region too long":      func(c *Config) { c.Region = strings.Repeat("x", TagBytes) },
		"a short key":            func(c *Config) { c.Key = []byte("short") },
		"no port to bind":        func(c *Config) { c.BindAddr = "127.0.0.1" },
		"a port too large":       func(c *Config) { c.BindAddr = "127.0.0.1:99999" },
		"an unreachable address": func(c *Config) { c.Advertise = "0.0.0.0:4650" },
	} {
		if p, err := New(config("a", change)); err == nil {
			_ = p.Shutdown()
			t.Errorf("%s: taken", what)
		}
	}
	a := pool(t, "a")
	if p, err := New(config("b", func(c *Config) { c.BindAddr = a.Addr() })); !errors.Is(err, ErrInUse) {
		if p != nil {
			_ = p.Shutdown()
		}
		t.Errorf("a port that is taken: %v", err)
	}
}

func TestWithPort(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"10.0.0.1": "10.0.0.1:4650", "h:1": "h:1", "::1": "[::1]:4650", "[::1]:7": "[::1]:7"} {
		if got := WithPort(in); got != want {
			t.Errorf("%s: %s, not %s", in, got, want)
		}
	}
}

// FuzzMember: names and tags come from whoever gossips.
func FuzzMember(f *testing.F) {
	f.Add("id", []byte(`{"role":"server","region":"global","rpc":"10.0.0.1:4647"}`))
	f.Add("", []byte(`{"role":"server","region":"global","rpc":"nothing"}`))
	f.Add("x\n", []byte(`{"role":"client","region":"global","more":"`+strings.Repeat("y", 200)+`"}`))
	f.Fuzz(func(t *testing.T, id string, raw []byte) {
		var tags map[string]string
		if json.Unmarshal(raw, &tags) != nil {
			return
		}
		m := memberOf(&serf.Member{Name: id, Tags: tags})
		if err := checkMember(id, tags, "global"); err != nil {
			return
		}
		if m.ID == "" || len(m.ID) > maxID || m.Role != RoleClient && m.Role != RoleServer || m.Role == RoleClient && m.RPCAddr != "" {
			t.Fatalf("accepted: %+v", m)
		}
		if m.RPCAddr != "" {
			if _, _, err := net.SplitHostPort(m.RPCAddr); err != nil {
				t.Fatal(err)
			}
		}
	})
}
