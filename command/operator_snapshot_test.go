package command

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/snapshot"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// smallArchive is an archive of a state with one node.
func smallArchive(t *testing.T) []byte {
	t.Helper()
	l := testcluster.New(6, state.Options{})
	l.Put(t, &structs.NodeRegisterEntry{Node: &structs.Node{ID: nodeA, SecretID: "s"}, Time: 1, EvalSeed: "e"})
	raw := l.Snapshot(t)
	var out bytes.Buffer
	meta := &structs.SnapshotMeta{
		Index: 9, Term: 2, StateBytes: int64(len(raw)), Server: "s1", Region: "global", Version: "1.2", Created: present,
		Servers: []structs.SnapshotServer{{ID: "s1", Address: "10.0.0.1:4647", Voter: true}},
	}
	if err := snapshot.Write(&out, meta, bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// snapshotServer answers as an agent does. A digest that is stated stands in place of the
// right one.
func snapshotServer(t *testing.T, archive []byte, digest string, got *bytes.Buffer) *httptest.Server {
	t.Helper()
	if digest == "" {
		sum := sha256.Sum256(archive)
		digest = "sha-256=" + base64.StdEncoding.EncodeToString(sum[:])
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Digest", digest)
			_, _ = w.Write(archive)
			return
		}
		_, _ = io.Copy(got, r.Body)
		_, _ = io.WriteString(w, `{"Index": 77, "Info": {"Meta": {"Index": 9, "Created": "2026-11-21T12:00:00Z"}}}`)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestSnapshotCommands(t *testing.T) {
	archive := smallArchive(t)
	var sent bytes.Buffer
	s := snapshotServer(t, archive, "", &sent)
	f := newFake(t)
	file := filepath.Join(t.TempDir(), "a.snap")
	got := f.run(t, "operator", "snapshot", "save", "-address", s.URL, file)
	if got.code != exitDone || !strings.Contains(got.out, "State up to log entry 9 saved in "+file) {
		t.Fatalf("save: %d %s%s", got.code, got.out, got.err)
	}
	if kept, err := os.ReadFile(file); err != nil || !bytes.Equal(kept, archive) {
		t.Fatalf("%d bytes of %d were kept: %v", len(kept), len(archive), err)
	}
	if got := f.run(t, "operator", "snapshot", "save", "-address", s.URL, file); got.code != exitFailed || !strings.Contains(got.err, "already") {
		t.Errorf("save over it: %d %s", got.code, got.err)
	}
	got = f.run(t, "operator", "snapshot", "inspect", file)
	wants(t, got.out, "Index    = 9", "s1, version 1.2, region global", "s1 at 10.0.0.1:4647", "nodes", "total")
	if got := f.run(t, "operator", "snapshot", "inspect", "-json", file); got.code != exitDone || !strings.Contains(got.out, `"Term": 2`) {
		t.Errorf("inspect -json: %d %s%s", got.code, got.out, got.err)
	}
	got = f.run(t, "operator", "snapshot", "restore", "-address", s.URL, file)
	if got.code != exitDone || !strings.Contains(got.out, "State of index 9 (saved 2026-11-21T12:00:00Z) restored, at index 77") {
		t.Errorf("restore: %d %s%s", got.code, got.out, got.err)
	}
	if !bytes.Equal(sent.Bytes(), archive) {
		t.Errorf("%d bytes of %d were sent", sent.Len(), len(archive))
	}

	// What is damaged is not even sent.
	sent.Reset()
	archive[len(archive)/2] ^= 1
	if err := os.WriteFile(file, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"inspect", "restore"} {
		args := []string{"operator", "snapshot", verb, file}
		if got := f.run(t, args...); got.code != exitFailed || !strings.Contains(got.err, "SHA-256 is not the one") {
			t.Errorf("%s of a damaged file: %d %s", verb, got.code, got.err)
		}
		if got := f.run(t, "operator", "snapshot", verb, file+"x"); got.code != exitFailed || !strings.Contains(got.err, "no such file") {
			t.Errorf("%s of no file: %d %s", verb, got.code, got.err)
		}
		if got := f.run(t, "operator", "snapshot", verb); got.code != exitFailed || !strings.Contains(got.err, "one file is needed") {
			t.Errorf("%s of nothing: %d %s", verb, got.code, got.err)
		}
		if got := f.run(t, "operator", "snapshot", verb, filepath.Dir(file)); got.code != exitFailed || !strings.Contains(got.err, "no regular file") {
			t.Errorf("%s of a folder: %d %s", verb, got.code, got.err)
		}
	}
	if sent.Len() > 0 {
		t.Errorf("%d bytes of a damaged file were sent", sent.Len())
	}
}

// What does not arrive as it was sent leaves no file behind.
func TestSnapshotSaveChecks(t *testing.T) {
	archive := smallArchive(t)
	archive[len(archive)/2] ^= 1
	f, dir := newFake(t), t.TempDir()
	for name, x := range map[string]struct{ digest, want string }{
		"damaged on the way": {"sha-256=AAAA", "save it again"},
		"damaged before":     {"", "it did not arrive whole"},
	} {
		s := snapshotServer(t, archive, x.digest, nil)
		got := f.run(t, "operator", "snapshot", "save", "-address", s.URL, filepath.Join(dir, "a.snap"))
		if got.code != exitFailed || !strings.Contains(got.err, x.want) {
			t.Errorf("%s: %d %s", name, got.code, got.err)
		}
	}
	refused := newFake(t).on("GET /v1/operator/snapshot", refusal{500, "No cluster leader"})
	if got := refused.run(t, "operator", "snapshot", "save", filepath.Join(dir, "a.snap")); got.code != exitFailed || !strings.Contains(got.err, "No cluster leader") {
		t.Errorf("without a leader: %d %s", got.code, got.err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// An archive that was written when this format began is read for ever.
func TestOldArchive(t *testing.T) {
	const file = "testdata/format1.snap"
	if os.Getenv("NOMADISH_WRITE_ARCHIVE") != "" {
		if err := os.WriteFile(file, smallArchive(t), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wants(t, newFake(t).run(t, "operator", "snapshot", "inspect", file).out, "Index    = 9", "nodes")
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := &progress{to: &out, verb: "sent", total: 2 << 20}
	if _, err := io.Copy(io.Discard, p.reader(strings.NewReader(strings.Repeat("x", 1<<20)))); err != nil {
		t.Fatal(err)
	}
	p.line(3 * time.Second)
	p.bytes.Store(2 << 20)
	p.line(4 * time.Second)
	p.now("checking the file")
	p.line(5 * time.Second)
	want := "sent 1.0 MiB of 2.0 MiB (3s)\nsent 2.0 MiB of 2.0 MiB; the servers are at work (4s)\nchecking the file (5s)\n"
	if out.String() != want {
		t.Errorf("have\n%swant\n%s", out.String(), want)
	}
}
