package snapshot

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/nomadish/nomadish/internal/leaks"
	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// testState is a state of n nodes as the FSM writes it, and its hash.
func testState(t testing.TB, n int) (raw []byte, hash string) {
	t.Helper()
	l := testcluster.New(0, state.Options{})
	for i := range n {
		l.Put(t, &structs.NodeRegisterEntry{Node: testcluster.Node(fmt.Sprint("node-", i), 1000), Time: 1, EvalSeed: "e"})
	}
	return l.Snapshot(t), l.Store.Snapshot().Hash()
}

func testMeta(raw []byte) *structs.SnapshotMeta {
	return &structs.SnapshotMeta{
		Index: 12, Term: 3, StateBytes: int64(len(raw)), RaftVersion: 1, Server: "s1", Region: "global", Version: "v",
		Created: time.Unix(1000, 0).UTC(), Servers: []structs.SnapshotServer{{ID: "a", Address: "10.0.0.1:4647", Voter: true}}, ConfigurationIndex: 1,
	}
}

func testArchive(t testing.TB, nodes int) []byte {
	t.Helper()
	raw, _ := testState(t, nodes)
	var out bytes.Buffer
	if err := Write(&out, testMeta(raw), bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func read(data []byte) (*structs.SnapshotInfo, error) {
	return Read(context.Background(), bytes.NewReader(data), int64(len(data)))
}

func TestRoundTrip(t *testing.T) {
	raw, _ := testState(t, 5)
	data := testArchive(t, 5)
	info, err := read(data)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if info.Digest != hex.EncodeToString(sum[:]) || info.Bytes != int64(len(data)) || info.StateIndex != 5 {
		t.Errorf("info: %+v", info)
	}
	want := *testMeta(raw)
	want.Format = Format
	if got := info.Meta; !slices.Equal(got.Servers, want.Servers) || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("meta: %+v, want %+v", got, want)
	}
	i := slices.IndexFunc(info.Tables, func(t structs.SnapshotTable) bool { return t.Name == state.TableNodes })
	if i < 0 || info.Tables[i].Rows != 5 || info.Tables[i].Bytes < 100 {
		t.Errorf("tables: %+v", info.Tables)
	}
	from, err := State(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(from); err != nil || !bytes.Equal(got, raw) {
		t.Errorf("the state comes out as %d bytes, went in as %d: %v", len(got), len(raw), err)
	}
}

// Any tar reads an archive.
func TestIsATar(t *testing.T) {
	zip, err := gzip.NewReader(bytes.NewReader(testArchive(t, 1)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
	if _, err := io.Copy(io.Discard, zip); err != nil || strings.Join(names, " ") != "meta.json state.bin SHA256SUMS" {
		t.Errorf("%v, %v", names, err)
	}
}

// No bit of an archive may flip, and nothing of it may be missing.
func TestEveryBitCounts(t *testing.T) {
	data := testArchive(t, 2)
	for i := range data {
		data[i] ^= 1 << (i % 8)
		if _, err := read(data); err == nil {
			t.Fatalf("byte %d of %d was flipped, and the archive taken", i, len(data))
		}
		data[i] ^= 1 << (i % 8)
	}
	for n := range data {
		if _, err := read(data[:n]); err == nil {
			t.Fatalf("%d bytes of %d were taken for a whole archive", n, len(data))
		}
	}
	if _, err := read(append(slices.Clone(data), 0)); err == nil {
		t.Fatal("an archive with one byte more was taken")
	}
}

// parts seals an archive of any parts.
func parts(t testing.TB, list ...[2]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, p := range list {
		if err := w.WriteHeader(&tar.Header{Name: p[0], Size: int64(len(p[1])), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, p[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return sealed(out.Bytes())
}

func sealed(body []byte) []byte {
	sum := sha256.Sum256(body)
	return append(slices.Clone(body), seal(sum[:])...)
}

func sumsOf(list ...[2]string) [2]string {
	var b strings.Builder
	for _, p := range list {
		sum := sha256.Sum256([]byte(p[1]))
		fmt.Fprintf(&b, "%s  %s\n", hex.EncodeToString(sum[:]), p[0])
	}
	return [2]string{sumsName, b.String()}
}

func TestRefused(t *testing.T) {
	raw, _ := testState(t, 2)
	text := func(change func(*structs.SnapshotMeta)) [2]string {
		m := testMeta(raw)
		m.Format = Format
		if change != nil {
			change(m)
		}
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return [2]string{metaName, string(b)}
	}
	good, body := text(nil), [2]string{stateName, string(raw)}
	broken := [2]string{stateName, string(raw[:len(raw)-1]) + string([]byte{raw[len(raw)-1] ^ 1})}
	all := func(list ...[2]string) []byte { return parts(t, append(list, sumsOf(list...))...) }
	if _, err := read(all(good, body)); err != nil {
		t.Fatalf("the archive that the others are made from: %v", err)
	}
	for _, x := range []struct {
		name, want string
		data       []byte
	}{
		{"an empty file", "no archive of a cluster's state", nil},
		{"a text", "no archive of a cluster's state", []byte(strings.Repeat("hello ", 100))},
		{"somebody else's gzip", "the checksum at its end is missing", append(slices.Clone(all(good, body)), make([]byte, 200)...)},
		{"gzip of nothing", "meta.json is missing", sealed(gzipped(t, nil))},
		{"gzip of something else", "where meta.json should be", sealed(gzipped(t, bytes.Repeat([]byte("hello"), 1000)))},
		{"no meta", `"state.bin" is where meta.json should be`, all(body, good)},
		{"no state", "state.bin is missing", parts(t, good)},
		{"no checksums", "SHA256SUMS is missing", parts(t, good, body)},
		{"wrong checksums", "SHA256SUMS lists", parts(t, good, body, sumsOf(good, good))},
		{"something more", `"more" follows SHA256SUMS`, parts(t, good, body, sumsOf(good, body), [2]string{"more", "x"})},
		{"meta that is no JSON", "meta.json: ", all([2]string{metaName, "{"}, body)},
		{"meta beyond all bounds", "at most", all([2]string{metaName, strings.Repeat(" ", maxMeta+1)}, body)},
		{"a newer format", "its format is 2, and this version reads up to 1", all([2]string{metaName, `{"Format": 2, "Index": "in words"}`}, body)},
		{"no format", "there is no format 0", all(text(func(m *structs.SnapshotMeta) { m.Format = 0 }), body)},
		{"another size", "meta.json states", all(text(func(m *structs.SnapshotMeta) { m.StateBytes++ }), body)},
		{"an index before the state's", "meta.json states 1", all(text(func(m *structs.SnapshotMeta) { m.Index = 1 }), body)},
		{"a state that is none", "this is not a nomadish snapshot", all(text(func(m *structs.SnapshotMeta) { m.StateBytes = 5 }), [2]string{stateName, "hello"})},
		{"a damaged state", "the checksum does not match", all(good, broken)},
		{"a newer state", "the snapshot's format is 2, and this version reads up to 1", all(good, [2]string{
			stateName, strings.Replace(string(raw), "Version\x01", "Version\x02", 1),
		})},
	} {
		_, err := read(x.data)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: error %v, want one with %q", x.name, err, x.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	data := all(good, body)
	if _, err := Read(ctx, bytes.NewReader(data), int64(len(data))); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	short := testMeta(raw)
	short.StateBytes++
	if err := Write(io.Discard, short, bytes.NewReader(raw)); err == nil {
		t.Error("a state that ends too early was written")
	}
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	if _, err := zip.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Whatever the bytes are, sealed or not, they are read or refused.
func FuzzRead(f *testing.F) {
	good := testArchive(f, 2)
	f.Add(good)
	f.Add(good[:len(good)-sealSize])
	f.Add([]byte{})
	f.Add(gzipped(f, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := read(data); err == nil && !bytes.Equal(data, good) {
			return // whoever knows how may make another one that is whole
		}
		info, err := read(sealed(data))
		if err != nil {
			return
		}
		from, err := State(bytes.NewReader(sealed(data)), int64(len(data)+sealSize))
		if err != nil {
			t.Fatalf("what was found whole cannot be opened: %v", err)
		}
		l := testcluster.New(0, state.Options{})
		l.Restore(t, from) // what was found whole can be restored
		if l.Index() != info.StateIndex {
			t.Fatalf("restored at index %d, found %d", l.Index(), info.StateIndex)
		}
	})
}

func TestSpool(t *testing.T) {
	dir := t.TempDir()
	s, err := NewSpool(SpoolOptions{Dir: dir + "/spool", MaxBytes: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if err := s.Begin(id); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Begin("c"); structs.CodeOf(err) != structs.CodeLimited {
		t.Errorf("a third upload: %v", err)
	}
	if err := errors.Join(s.Append("a", 0, []byte("hello")), s.Append("a", 5, []byte(" you"))); err != nil {
		t.Fatal(err)
	}
	if err := s.Append("a", 5, []byte("x")); structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("a piece twice: %v", err)
	}
	if err := s.Append("a", 9, []byte("xx")); structs.CodeOf(err) != structs.CodeTooLarge {
		t.Errorf("too large: %v", err)
	}
	file, size, err := s.Take("a")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(io.NewSectionReader(file, 0, size))
	if err != nil || string(got) != "hello you" {
		t.Errorf("taken: %q, %v", got, err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Take("a"); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("taken twice: %v", err)
	}
	s.Drop("b")
	s.Drop("nobody's")
	if err := s.Append("b", 0, nil); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("dropped: %v", err)
	}
	if err := s.Begin("d"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := s.Begin("e"); err == nil {
		t.Error("an upload was begun after the end")
	}
}

// An upload that nobody goes on with makes room for others.
func TestSpoolForgets(t *testing.T) {
	s, err := NewSpool(SpoolOptions{Dir: t.TempDir() + "/spool", Idle: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Begin("a"); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Minute); s.Append("a", 1, nil) == nil || structs.CodeOf(s.Append("a", 1, nil)) != structs.CodeNotFound; {
		if time.Now().After(end) {
			t.Fatal("it is never forgotten")
		}
		<-time.After(time.Millisecond)
	}
}
