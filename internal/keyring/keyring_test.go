package keyring

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/structs"
)

// ring is a keyring that keeps nothing.
func ring(t *testing.T, keys ...string) *Ring {
	t.Helper()
	k, err := Open("", "encrypt", []byte(keys[0]), hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys[1:] {
		if err := k.Change(structs.KeyInstall, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// Keys of 16 bytes.
const keyA, keyB, keyC, keyD = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc", "dddddddddddddddd"

func texts(k *Ring) string {
	var out []string
	for _, key := range k.Keys() {
		out = append(out, string(key[:1]))
	}
	return strings.Join(out, "")
}

func TestKeyringChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	open := func(initial string) *Ring {
		t.Helper()
		k, err := Open(path, "encrypt", []byte(initial), hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	k := open(keyA)
	for _, c := range []struct {
		op, key, want string
		code          structs.Code // "": it is done
	}{
		{structs.KeyUse, keyB, "a", structs.CodeNotFound},
		{structs.KeyRemove, keyA, "a", structs.CodeConflict},
		{structs.KeyRemove, keyB, "a", ""},
		{structs.KeyInstall, "short", "a", structs.CodeBadRequest},
		{"burn", keyB, "a", structs.CodeUnsupported},
		{structs.KeyInstall, keyA, "a", ""},
		{structs.KeyInstall, keyB, "ab", ""},
		{structs.KeyInstall, keyC, "abc", ""},
		{structs.KeyInstall, keyD, "abcd", ""},
		{structs.KeyUse, keyA, "abcd", ""},
		{structs.KeyUse, keyC, "cabd", ""},
		{structs.KeyRemove, keyC, "cabd", structs.CodeConflict},
		{structs.KeyRemove, keyA, "cbd", ""}, // one with keys behind it
		{structs.KeyRemove, keyD, "cb", ""},  // the last one
		{structs.KeyRemove, keyD, "cb", ""},
	} {
		err := k.Change(c.op, []byte(c.key))
		if (err == nil) != (c.code == "") || c.code != "" && structs.CodeOf(err) != c.code || texts(k) != c.want {
			t.Fatalf("%s %s: %v (code %q), then %s; wanted code %q, then %s", c.op, c.key[:1], err, structs.CodeOf(err), texts(k), c.code, c.want)
		}
		if err != nil && strings.Contains(err.Error(), c.key) && c.key != "short" {
			t.Errorf("%s: the error tells the key: %v", c.op, err)
		}
		// Whatever it is, the next start knows the same, in spite of another first key.
		if _, err := os.Stat(path); err == nil && texts(open(keyD)) != c.want {
			t.Fatalf("%s: kept is %s, not %s", c.op, texts(open(keyD)), c.want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file: %v, %v", info.Mode(), err)
	}
}

func TestKeyringBounds(t *testing.T) {
	t.Parallel()
	k := ring(t, keyA)
	for i := range MaxKeys {
		err := k.Change(structs.KeyInstall, bytes.Repeat([]byte{byte(i)}, 32))
		if full := i == MaxKeys-1; (err != nil) != full {
			t.Fatalf("key %d: %v", i+2, err)
		}
	}
}

// A ring that cannot be kept is not used.
func TestKeyringNotKept(t *testing.T) {
	t.Parallel()
	k, err := Open(filepath.Join(t.TempDir(), "no", "keys"), "encrypt", []byte(keyA), hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Change(structs.KeyInstall, []byte(keyB)); err == nil || texts(k) != "a" {
		t.Fatalf("%v, the ring is %s", err, texts(k))
	}
}

func TestKeyringFiles(t *testing.T) {
	t.Parallel()
	one := `"` + base64.StdEncoding.EncodeToString([]byte(keyA)) + `"`
	for what, text := range map[string]string{
		"nothing": "", "no list": `{}`, "no keys": `[]`, "a short key": `["MDEy"]`, "no base64": `["?` + keyA + `"]`, "one twice": "[" + one + "," + one + "]",
		"too many": "[" + strings.Repeat(one+",", MaxKeys) + one + "]", "torn": "[" + one + ",", "a number": "[1]",
	} {
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path, "encrypt", []byte(keyB), hclog.NewNullLogger())
		if err == nil {
			t.Errorf("%s: taken", what)
		} else if !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), strings.Trim(one, `"`)) {
			t.Errorf("%s: %v: it does not name the file, or tells a key", what, err)
		}
	}
	if _, err := Open(t.TempDir(), "encrypt", nil, hclog.NewNullLogger()); err == nil {
		t.Error("a folder: taken")
	}
	if k, err := Open(filepath.Join(t.TempDir(), "none"), "encrypt", nil, hclog.NewNullLogger()); k != nil || err != nil {
		t.Errorf("no keys at all: %v, %v", k, err)
	}
	if _, err := Open("", "gossip_encrypt", []byte("short"), hclog.NewNullLogger()); err == nil || !strings.Contains(err.Error(), "gossip_encrypt") {
		t.Errorf("a short first key: %v", err)
	}
}

// lines keeps what is logged.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), s)
}

// TestLines: what libraries say in many lines, or in bytes, is one line for people; what the pool says itself is said once.
func TestLines(t *testing.T) {
	t.Parallel()
	out := &lines{}
	log := Log(hclog.New(&hclog.LoggerOptions{Output: out, Level: hclog.Info}), &LogLimiter{}, nil)
	log.Print("[WARN] memberlist: Refuting an alive message for 'server-1.global' (127.0.0.1:4648) meta:([255 139 164] VS [255 139]), vsn:([1 5 2 2 5 4] VS [1 5 2 2 5 4])")
	log.Print("[INFO] serf: EventMemberJoin: server-1.global 127.0.0.1")
	log.Print("[INFO] serf: EventMemberReap: server-1.global")
	log.Print("[WARN] serf: joining: 2 errors occurred:\n\t* failed to join 127.0.0.1:1: refused\n\t* failed to join 127.0.0.1:2: refused\n\n")
	if out.count("\n") != 3 || out.count("[255") > 0 || out.count("'server-1.global' (127.0.0.1:4648): it says") != 1 || out.count("EventMemberJoin") > 0 ||
		out.count("joining: failed to join 127.0.0.1:1: refused; failed to join 127.0.0.1:2: refused (more of this kind are not logged for an hour)\n") != 1 {
		t.Errorf("it says:\n%s", out.b.String())
	}
	err := Flat(errors.New("1 error occurred:\n\t* failed to join 127.0.0.1:1: refused\n\n"))
	if err.Error() != "failed to join 127.0.0.1:1: refused" || Flat(nil) != nil {
		t.Errorf("an error: %q", err)
	}
}

func TestUnknownHostsLater(t *testing.T) {
	t.Parallel()
	now, reported, passed := time.Unix(0, 0), &lines{}, &lines{}
	s := &unknownHosts{next: passed, logger: hclog.New(&hclog.LoggerOptions{Output: reported}), limiter: &LogLimiter{}, now: func() time.Time { return now }}
	write := func(line string) {
		t.Helper()
		if n, err := s.Write([]byte(line)); err != nil || n != len(line) {
			t.Fatal(n, err)
		}
	}
	for range 3 {
		write("[ERR] memberlist: Decrypt packet failed: no installed keys could decrypt the message from=10.0.0.1:1\n")
		write("[ERR] memberlist: failed to receive: no installed keys could decrypt the message from=10.0.0.2:2\n")
		write("[ERR] memberlist: failed to receive: Remote state is encrypted and encryption is not configured\n")
		write("[WARN] memberlist: something else from=10.0.0.1:1\n")
	}
	now = now.Add(2 * time.Hour)
	write("[ERR] memberlist: Decrypt packet failed: no installed keys could decrypt the message from=10.0.0.1:9\n")
	if a, b, c := reported.count("from=10.0.0.1\n"), reported.count("from=10.0.0.2"), reported.count("unknown"); a != 2 || b != 1 || c != 1 {
		t.Errorf("said %d, %d and %d times:\n%s", a, b, c, reported.b.String())
	}
	if n := reported.count("something else"); n != 1 || passed.count("\n") != 0 {
		t.Errorf("another warning is logged %d times, and passed on is:\n%s", n, passed.b.String())
	}
}

// TestLogLimiter: whatever senders of packets bring the libraries to say, with whichever addresses, few lines a minute are logged; how many
// were not is said with the next. What is no warning is not counted.
func TestLogLimiter(t *testing.T) {
	t.Parallel()
	now, reported, passed := time.Unix(0, 0), &lines{}, &lines{}
	s := &unknownHosts{next: passed, logger: hclog.New(&hclog.LoggerOptions{Output: reported}), limiter: &LogLimiter{}, now: func() time.Time { return now }}
	flood := func() {
		for i := range 20_000 {
			host := fmt.Sprintf("10.%d.%d.%d:%d", i%7, i%200, i%250, i)
			for _, format := range []string{
				"[ERR] memberlist: msg type (%d) not supported from=%s", "[ERR] memberlist: Failed to decode ping request: %d from=%s", "[WARN] memberlist: Got invalid checksum for UDP packet: %x, %s",
				"[ERR] memberlist: Decrypt packet failed: no installed keys could decrypt the message %d from=%s", "[WARN] serf: Received message of unknown type: %d %s",
			} {
				if _, err := fmt.Fprintf(s, format+"\n", i, host); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	flood()
	if n := reported.count("\n"); n != linesPerMinute {
		t.Errorf("%d lines are logged of 100,000:\n%s", n, reported.b.String())
	}
	now = now.Add(time.Minute)
	flood()
	if n := reported.count("\n"); n > 2*linesPerMinute || n == linesPerMinute || reported.count("not_logged=99995\n") != 1 && reported.count("not_logged=99995 ") != 1 {
		t.Errorf("%d lines are logged in two minutes:\n%s", n, reported.b.String())
	}
	if _, err := s.Write([]byte("[INFO] serf: EventMemberReap: a\n")); err != nil || passed.count("\n") != 1 {
		t.Errorf("what is no warning: %v, %q", err, passed.b.String())
	}
}

// FuzzKeyQuery: queries and answers come from whoever gossips.
func FuzzKeyQuery(f *testing.F) {
	f.Add([]byte(`{"Op":"install","Key":"YmJiYmJiYmJiYmJiYmJiYg=="}`))
	f.Add([]byte(`{"Op":"list"}`))
	f.Add([]byte(`{"Op":"remove","Key":"YWFhYWFhYWFhYWFhYWFhYQ=="}`))
	f.Add([]byte(`{"Error":"no","Keys":["YWFhYWFhYWFhYWFhYWFhYQ=="]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := &Pool{Ring: ring(t, keyA, keyC), Logger: hclog.NewNullLogger()}
		a := p.doKeys(raw)
		if keys := p.Ring.Keys(); len(keys) == 0 || len(keys) > MaxKeys || len(a.Error) > 400 {
			t.Fatalf("%d keys, answered %+v", len(keys), a)
		}
		r := &Report{Keys: map[string][]string{}, InUse: map[string][]string{}, Failed: map[string]string{}}
		r.add("m", raw)
	})
}

// FuzzKeyFile: a file may contain anything.
func FuzzKeyFile(f *testing.F) {
	f.Add([]byte(`["YWFhYWFhYWFhYWFhYWFhYQ=="]`))
	f.Add([]byte(`["YWFhYWFhYWFhYWFhYWFhYQ==","YmJiYmJiYmJiYmJiYmJiYg=="]`))
	f.Add([]byte(`{"Version":7,"Keys":["YWFhYWFhYWFhYWFhYWFhYQ=="]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := parseKeys(raw)
		if err == nil && (len(s.Keys) == 0 || len(s.Keys) > MaxKeys) {
			t.Fatalf("%d keys", len(s.Keys))
		}
	})
}
