package gossip

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/keyring"
	"github.com/nomadish/nomadish/structs"
)

// with makes a pool encrypt with a key.
func with(key string) func(*Config) {
	return func(c *Config) { c.Keyring, _ = keyring.Open("", "encrypt", []byte(key), hclog.NewNullLogger()) }
}

// Keys of 16 bytes.
const keyA, keyB, keyC, keyD = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc", "dddddddddddddddd"

func texts(p *Pool) string {
	var out []string
	for _, key := range p.Keys().Ring.Keys() {
		out = append(out, string(key[:1]))
	}
	return strings.Join(out, "")
}

// query has a pool's members do something, until all of these were queried at once (a busy machine makes one pass for failed
// for a moment) and so many could not do it.
func query(t *testing.T, p *Pool, op, key string, members []string, failed int) *keyring.Report {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		r, err := p.Keys().Query(t.Context(), op, []byte(key))
		if err == nil && len(r.Failed) == failed && slices.Equal(r.Members, members) {
			return r
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %v, %+v", op, err, r)
		}
	}
}

// TestKeysOfAPool: all members change their keys, one is named that cannot, and one that was
// away is named as such.
func TestKeysOfAPool(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "folder", "keys")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	stuck, err := keyring.Open(path, "encrypt", []byte(keyA), hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := pool(t, "a", with(keyA)), pool(t, "b", with(keyA)), pool(t, "c", func(c *Config) { c.Keyring = stuck })
	for _, p := range []*Pool{b, c} {
		if _, err := p.Join([]string{a.Addr()}); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []*Pool{a, b, c} {
		sees(t, p, "a=alive", "b=alive", "c=alive")
	}
	all := []string{"a.r", "b.r", "c.r"}
	query(t, b, structs.KeyInstall, keyB, all, 0)
	query(t, c, structs.KeyUse, keyB, all, 0)
	query(t, a, structs.KeyInstall, keyC, all, 0)
	r := query(t, a, structs.KeyList, "", all, 0)
	text := base64.StdEncoding.EncodeToString
	if len(r.Keys) != 3 || len(r.InUse) != 1 || !slices.Equal(r.Keys[text([]byte(keyC))], all) || !slices.Equal(r.InUse[text([]byte(keyB))], all) || !slices.Equal(r.Members, all) {
		t.Fatalf("the list: %+v", r)
	}
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if r := query(t, a, structs.KeyRemove, keyA, all, 1); !strings.Contains(r.Failed["c.r"], "keep") {
		t.Fatalf("with one that cannot: %+v", r)
	}
	if texts(a) != "bc" || texts(b) != "bc" || texts(c) != "bac" {
		t.Fatalf("the rings: %s, %s, %s", texts(a), texts(b), texts(c))
	}
	if err := c.Shutdown(); err != nil {
		t.Fatal(err)
	}
	sees(t, a, "a=alive", "b=alive", "c=failed")
	if r := query(t, a, structs.KeyList, "", all[:2], 0); !slices.Equal(r.Absent, []string{"c.r"}) {
		t.Fatalf("with one away: %+v", r)
	}
	for what, call := range map[string]func() (*keyring.Report, error){
		"a short key": func() (*keyring.Report, error) { return a.Keys().Query(t.Context(), structs.KeyInstall, []byte("x")) },
		"in the clear": func() (*keyring.Report, error) {
			return pool(t, "clear", nil).Keys().Query(t.Context(), structs.KeyInstall, []byte(keyA))
		},
	} {
		if _, err := call(); structs.CodeOf(err) != structs.CodeBadRequest {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// journal keeps what is logged.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

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

// TestUnknownHostsLoggedOnce: who has another key, or none, changes nothing, and is named once.
func TestUnknownHostsLoggedOnce(t *testing.T) {
	t.Parallel()
	log := &journal{}
	a := pool(t, "a", func(c *Config) {
		with(keyA)(c)
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Debug})
	})
	for name, change := range map[string]func(*Config){"wrong": with(keyB), "none": nil} {
		unknown := pool(t, name, change)
		for range 5 {
			if _, err := unknown.Join([]string{a.Addr()}); err == nil {
				t.Errorf("%s: joined", name)
			}
		}
		// Packets, too: it takes a for a member that it knows.
		for range 5 {
			node := *unknown.serf.Memberlist().LocalNode()
			node.Addr, node.Port = a.serf.Memberlist().LocalNode().Addr, a.serf.Memberlist().LocalNode().Port
			if err := unknown.serf.Memberlist().SendBestEffort(&node, []byte("hello there")); err != nil {
				t.Fatal(err)
			}
		}
	}
	friend := pool(t, "friend", with(keyA))
	if _, err := friend.Join([]string{a.Addr()}); err != nil {
		t.Fatal(err)
	}
	sees(t, a, "a=alive", "friend=alive")
	if n := log.count("refused gossip"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log.b.String())
	}
	if n := log.count("memberlist: failed to receive") + log.count("Decrypt packet"); n != 0 {
		t.Errorf("and %d times in memberlist's words:\n%s", n, log.b.String())
	}
	for _, key := range []string{keyA, keyB} {
		if log.count(key)+log.count(base64.StdEncoding.EncodeToString([]byte(key))) > 0 {
			t.Error("a key is in the log")
		}
	}
}
