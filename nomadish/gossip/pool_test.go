package gossip

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/structs"
)

// pool starts a server's gossip on a free loopback port.
func pool(t *testing.T, name string, change func(*Config)) *Pool {
	t.Helper()
	p, err := New(config(name, change))
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

func config(name string, change func(*Config)) Config {
	c := Config{
		Name: name, Region: "r", Datacenter: "dc1", ID: "id-" + name, Version: "1.2.3", RPCAddr: "127.0.0.1:4647", Expect: 3,
		BindAddr: "127.0.0.1:0", ProbeInterval: 50 * time.Millisecond,
	}
	if os.Getenv("NOMADISH_TEST_LOG") != "" {
		c.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Name: name})
	}
	if change != nil {
		change(&c)
	}
	return c
}

// sees waits until a pool knows exactly these members in these states: "a=alive".
func sees(t *testing.T, p *Pool, want ...string) {
	t.Helper()
	changed, cancel := p.Subscribe()
	defer cancel()
	limit := time.After(60 * time.Second)
	tick := time.NewTicker(200 * time.Millisecond) // states of which Serf reports nothing
	defer tick.Stop()
	for {
		var got []string
		for _, s := range p.Servers() {
			got = append(got, s.Name+"="+s.Status)
		}
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-limit:
			t.Fatalf("%s sees %v, not %v", p.config.Name, got, want)
		}
	}
}

func TestServersFindEachOther(t *testing.T) {
	t.Parallel()
	a, b, c := pool(t, "a", nil), pool(t, "b", nil), pool(t, "c", func(c *Config) { c.Expect = 1 })
	if _, err := b.Join([]string{a.Addr()}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Join([]string{b.Addr()}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Pool{a, b, c} {
		sees(t, p, "a=alive", "b=alive", "c=alive")
	}
	want := Server{
		Member: "c.r", Name: "c", ID: "id-c", Region: "r", Datacenter: "dc1", Version: "1.2.3", RPCAddr: "127.0.0.1:4647",
		Expect: 1, Status: structs.MemberAlive, Entries: structs.LogTypeLast,
	}
	if got := a.Servers()[2]; got != want {
		t.Fatalf("a knows of c: %+v, not %+v", got, want)
	}
	if got := a.Servers()[1].Expect; got != 3 {
		t.Fatalf("b expects %d servers, not 3", got)
	}
	if a.Self().Name != "a.r" || a.Encrypted() {
		t.Fatalf("a itself: %+v, encrypted %v", a.Self(), a.Encrypted())
	}
}

func TestLeftAndFailed(t *testing.T) {
	t.Parallel()
	a, b, c := pool(t, "a", nil), pool(t, "b", nil), pool(t, "c", nil)
	for _, p := range []*Pool{b, c} {
		if _, err := p.Join([]string{a.Addr()}); err != nil {
			t.Fatal(err)
		}
	}
	sees(t, a, "a=alive", "b=alive", "c=alive")
	sees(t, c, "a=alive", "b=alive", "c=alive")
	if err := b.Leave(); err != nil {
		t.Fatal(err)
	}
	if err := b.Shutdown(); err != nil {
		t.Fatal(err)
	}
	sees(t, a, "a=alive", "b=left", "c=alive")
	if err := c.Shutdown(); err != nil {
		t.Fatal(err)
	}
	sees(t, a, "a=alive", "b=left", "c=failed")
	if err := a.ForceLeave("c", false); err != nil {
		t.Fatal(err)
	}
	sees(t, a, "a=alive", "b=left", "c=left")
	if err := a.ForceLeave("c.r", true); err != nil {
		t.Fatal(err)
	}
	sees(t, a, "a=alive", "b=left")
	for name, code := range map[string]structs.Code{"nobody": structs.CodeNotFound, "a": structs.CodeBadRequest} {
		if err := a.ForceLeave(name, false); structs.CodeOf(err) != code {
			t.Errorf("force %s to leave: %v, not code %s", name, err, code)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	key := "0123456789abcdef"
	open, keyed := pool(t, "open", nil), pool(t, "keyed", with(key))
	for what, other := range map[string]*Pool{
		"another region": pool(t, "x", func(c *Config) { c.Region = "mars" }),
		"the WAN's port": pool(t, "y", func(c *Config) { c.Kind = KindWAN }),
		"a key":          keyed,
	} {
		if _, err := other.Join([]string{open.Addr()}); err == nil {
			t.Errorf("%s: joined an open pool of region r", what)
		}
		sees(t, other, other.config.Name+"=alive")
	}
	other := pool(t, "other", with("another key 6789"))
	if _, err := other.Join([]string{keyed.Addr()}); err == nil {
		t.Error("joined with another key")
	}
	if _, err := open.Join([]string{keyed.Addr()}); err == nil {
		t.Error("joined without the key")
	}
	sees(t, open, "open=alive")
	friend := pool(t, "friend", with(key))
	if _, err := friend.Join([]string{keyed.Addr()}); err != nil || !friend.Encrypted() {
		t.Errorf("with the key: %v, encrypted %v", err, friend.Encrypted())
	}
	sees(t, keyed, "friend=alive", "keyed=alive")
}

// TestNamesakes: of two servers with one name everybody logs that they are two, with both addresses, once, however often they are
// heard of.
func TestNamesakes(t *testing.T) {
	t.Parallel()
	logs := map[string]lines{}
	one := func(id, name string) *Pool {
		logs[id] = make(lines, 1000)
		return pool(t, name, func(c *Config) { c.ID, c.Logger = id, hclog.New(&hclog.LoggerOptions{Output: logs[id]}) })
	}
	a, b, c := one("a", "same"), one("b", "same"), one("c", "other")
	sees(t, a, "same=alive")
	for range 5 {
		for _, p := range []*Pool{b, c} {
			if _, err := p.Join([]string{a.Addr()}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Join([]string{b.Addr()}); err != nil {
			t.Fatal(err)
		}
	}
	if name := c.Namesakes(); name != "same.r" {
		t.Errorf("it knows of two called %q", name)
	}
	for id, log := range logs {
		text := ""
		for len(log) > 0 {
			text += <-log
		}
		if strings.Count(text, "are called same.r") != 1 || strings.Contains(text, "onflict") ||
			!strings.Contains(text, a.Addr()) || !strings.Contains(text, b.Addr()) {
			t.Errorf("%s says:\n%s", id, text)
		}
	}
}

// TestRegionsMeetOverWAN: what keeps regions apart is the kind of the pool.
func TestRegionsMeetOverWAN(t *testing.T) {
	t.Parallel()
	wan := func(region string) func(*Config) { return func(c *Config) { c.Kind, c.Region = KindWAN, region } }
	a, b := pool(t, "a", wan("earth")), pool(t, "a", wan("mars"))
	if _, err := a.Join([]string{b.Addr()}); err != nil {
		t.Fatal(err)
	}
	sees(t, a, "a=alive", "a=alive")
	if got := a.Servers(); got[0].Region != "earth" || got[1].Region != "mars" {
		t.Fatalf("the regions: %+v", got)
	}
}

// lines are what a logger writes; what does not fit is dropped.
type lines chan string

// Write implements io.Writer.
func (l lines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default:
	}
	return len(line), nil
}

func (l lines) until(t *testing.T, what string) {
	t.Helper()
	for {
		select {
		case line := <-l:
			if strings.Contains(line, what) {
				return
			}
		case <-time.After(60 * time.Second):
			t.Fatalf("nothing is said of %q", what)
		}
	}
}

// TestKeepMeeting: reaching servers of the own region is not enough.
func TestKeepMeeting(t *testing.T) {
	t.Parallel()
	wan := func(region, at string) func(*Config) {
		return func(c *Config) {
			c.Kind, c.Region = KindWAN, region
			if at != "" {
				c.BindAddr = at
			}
		}
	}
	gone := pool(t, "gone", wan("mars", ""))
	addr := gone.Addr()
	if err := gone.Shutdown(); err != nil {
		t.Fatal(err)
	}
	a, b := pool(t, "a", wan("earth", "")), pool(t, "b", wan("earth", ""))
	err := a.KeepMeeting(t.Context(), JoinConfig{Addrs: []string{a.Addr(), b.Addr()}, Max: 2, Interval: 10 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "no server of another region") {
		t.Fatalf("with those of the own region alone: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- a.KeepMeeting(ctx, JoinConfig{Addrs: []string{b.Addr(), addr}, Interval: 20 * time.Millisecond})
	}()
	pool(t, "late", wan("mars", addr))
	sees(t, b, "a=alive", "b=alive", "late=alive")
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestRestartRemembers(t *testing.T) {
	t.Parallel()
	a := pool(t, "a", nil)
	told := make(lines, 100)
	conf := config("b", func(c *Config) {
		c.SnapshotPath = filepath.Join(t.TempDir(), "serf", "snapshot")
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: told})
	})
	b, err := New(conf)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Join([]string{a.Addr()}); err != nil {
		t.Fatal(err)
	}
	sees(t, b, "a=alive", "b=alive")
	told.until(t, "member=a.r") // a member is seen before Serf writes it down, and what is not written is forgotten
	if err := b.Shutdown(); err != nil {
		t.Fatal(err)
	}
	sees(t, a, "a=alive", "b=failed")
	conf.BindAddr, conf.Logger = b.Addr(), nil
	if b, err = New(conf); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Shutdown() }()
	sees(t, a, "a=alive", "b=alive")
	sees(t, b, "a=alive", "b=alive")
}

func TestKeepJoining(t *testing.T) {
	t.Parallel()
	nobody := pool(t, "gone", nil)
	addr := nobody.Addr()
	if err := nobody.Shutdown(); err != nil {
		t.Fatal(err)
	}
	a := pool(t, "a", nil)
	err := a.KeepJoining(t.Context(), JoinConfig{Addrs: []string{addr}, Max: 2, Interval: 10 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "2 tries") {
		t.Fatalf("after two tries at nobody: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	// a itself answers at the first address: that is no reason to stop.
	go func() {
		done <- a.KeepJoining(ctx, JoinConfig{Addrs: []string{a.Addr(), addr}, Interval: 20 * time.Millisecond})
	}()
	pool(t, "late", func(c *Config) { c.BindAddr = addr })
	sees(t, a, "a=alive", "late=alive")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := a.KeepJoining(ctx, JoinConfig{Addrs: []string{"127.0.0.1:1"}}); err != nil {
		t.Fatalf("told to end: %v", err)
	}
}

func TestWithPort(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"10.0.0.1": "10.0.0.1:4648", "10.0.0.1:1": "10.0.0.1:1", "host": "host:4648", "::1": "[::1]:4648", "[::1]": "[::1]:4648", "[::1]:7": "[::1]:7",
	} {
		if got := KindLAN.WithPort(in); got != want {
			t.Errorf("%s: %s, not %s", in, got, want)
		}
	}
	if got := KindWAN.WithPort("10.0.0.1"); got != "10.0.0.1:4649" {
		t.Errorf("on a WAN: %s", got)
	}
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*Config){
		"no port to bind":               func(c *Config) { c.BindAddr = "127.0.0.1" },
		"a port too large":              func(c *Config) { c.BindAddr = "127.0.0.1:99999" },
		"an RPC address without a port": func(c *Config) { c.RPCAddr = "here" },
		"an unreachable address":        func(c *Config) { c.Advertise = "0.0.0.0:4648" },
		"a snapshot in a file":          func(c *Config) { c.SnapshotPath = "/dev/null/serf/snapshot" },
	} {
		if p, err := New(config("a", change)); err == nil {
			_ = p.Shutdown()
			t.Errorf("%s: taken", what)
		}
	}
}

// FuzzServerOf: tags come from whoever gossips.
func FuzzServerOf(f *testing.F) {
	good, err := json.Marshal(map[string]string{
		tagRole: role, tagRegion: "r", tagID: "i", tagRPCHost: "10.0.0.1", tagRPCPort: "4647", tagExpect: "3",
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("a.r", good)
	f.Add(".r", []byte(`{"role":"nomad","region":"r","id":"x","rpc_addr":"::1","port":"65535","bootstrap":"1"}`))
	f.Add("", []byte(`{"role":"node","port":"-1","expect":"999999999999999999999"}`))
	f.Fuzz(func(t *testing.T, name string, tags []byte) {
		m := structs.ServerMember{Name: name}
		if json.Unmarshal(tags, &m.Tags) != nil {
			return
		}
		s, err := ServerOf(&m)
		if err == nil && (s.ID == "" || s.Region == "" || s.RPCAddr == "" || s.Expect < 0 || s.Expect > 255) {
			t.Fatalf("accepted: %+v", s)
		}
	})
}
