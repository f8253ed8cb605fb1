package raftdata_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/raftdata"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

const secret = "keep-this-to-yourself"

// server is what a server leaves behind: a log of its entries, of which the first `saved` are in a snapshot too.
func server(t *testing.T, entries []*raft.Log, saved int, first int) string {
	t.Helper()
	dir := t.TempDir()
	raftDir := filepath.Join(dir, "server", "raft")
	if err := os.MkdirAll(raftDir, 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := raftboltdb.New(raftboltdb.Options{Path: filepath.Join(raftDir, "raft.db"), MsgpackUseNewTimeFormat: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(log.StoreLogs(entries[first:]), log.Close()); err != nil {
		t.Fatal(err)
	}
	snaps, err := raft.NewFileSnapshotStoreWithLogger(raftDir, 2, hclog.NewNullLogger())
	if err != nil || saved == 0 {
		return dir
	}
	machine := replay(entries[:saved])
	snap, err := machine.fsm.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	last := entries[saved-1]
	sink, err := snaps.Create(1, last.Index, last.Term, raft.Configuration{}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := snap.Persist(sink); err != nil {
		t.Fatal(err)
	}
	return dir
}

type machine struct {
	fsm   *fsm.FSM
	store *state.Store
}

func replay(entries []*raft.Log) machine {
	rebuilt, store := fsm.NewState(state.Options{}, hclog.NewNullLogger())
	m := machine{rebuilt, store}
	for _, entry := range entries {
		m.fsm.Apply(entry)
	}
	return m
}

// log are entries of a small life: nodes come, jobs are registered.
func log(t *testing.T) []*raft.Log {
	t.Helper()
	entries := []*raft.Log{{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(raft.Configuration{})}, {Index: 2, Term: 2, Type: raft.LogNoop}}
	add := func(kind structs.LogType, payload any) {
		data, err := fsm.Encode(kind, payload)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, &raft.Log{
			Index: uint64(len(entries) + 1), Term: 2, Type: raft.LogCommand, Data: data, AppendedAt: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC),
		})
	}
	for _, name := range []string{"a", "b"} {
		add(structs.LogNodeRegister, &structs.NodeRegisterEntry{Time: 1, EvalSeed: name, Node: &structs.Node{
			ID: "01976c1c-5f3a-7c11-a9d0-5d1f2b3c4d5" + name, SecretID: secret, Name: name, Datacenter: "dc1", NodePool: "default", Status: structs.NodeStatusReady,
		}})
	}
	for _, id := range []string{"web", "db", "cache"} {
		add(structs.LogJobRegister, &structs.JobRegisterEntry{Time: 2, Job: &structs.Job{
			ID: id, Name: id, Namespace: "default", Type: structs.JobTypeService, Priority: 50, Datacenters: []string{"dc1"}, NodePool: "default",
			TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1, Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver"}}}},
		}})
	}
	add(structs.LogSigningKey, &structs.SigningKeyEntry{Time: 3, First: true, Key: structs.SigningKey{
		KeyID: "01976c1c-5f3a-7c11-a9d0-5d1f2b3c4d5e", PrivateKey: []byte(secret),
	}})
	return entries
}

func open(t *testing.T, path string) *raftdata.Data {
	t.Helper()
	d, err := raftdata.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// The state that is rebuilt is the one that the server had, with a snapshot and without, and with a log that begins after its
// beginning.
func TestStateIsTheServers(t *testing.T) {
	entries := log(t)
	want := replay(entries).store.Snapshot().Hash()
	for _, c := range []struct{ saved, first int }{{0, 0}, {5, 0}, {5, 3}, {5, 5}, {len(entries), 0}} {
		d := open(t, server(t, entries, c.saved, c.first))
		snap, at, err := d.State(t.Context(), 0)
		if err != nil || snap.Hash() != want || at != uint64(len(entries)) {
			t.Errorf("%+v: at %d, error %v, another state: %v", c, at, err, err == nil && snap.Hash() != want)
		}
	}
	d := open(t, server(t, entries, 0, 0))
	for upTo, length := range map[int64]int{4: 4, -1: len(entries) - 1, -4: len(entries) - 4, 1000: len(entries)} {
		snap, at, err := d.State(t.Context(), upTo)
		if err != nil || at != uint64(length) || snap.Hash() != replay(entries[:length]).store.Snapshot().Hash() {
			t.Errorf("-last-index %d: at %d, want %d, error %v", upTo, at, length, err)
		}
	}
}

func TestStateRefusesWhatIsMissing(t *testing.T) {
	entries := log(t)
	f := func(want string, saved, first int, upTo int64) {
		t.Helper()
		_, _, err := open(t, server(t, entries, saved, first)).State(t.Context(), upTo)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	f("after entry 0 comes entry 4", 0, 3, 0)
	f("after entry 5 comes entry 8", 5, 7, 0)
	f("no state 100 entries before", 0, 0, -100)
	f("comes entry 4", 5, 3, 4) // of before the snapshot
	f("the state at entry 2 is gone", 5, 3, 2)
	f("the state at entry 4 is gone", 5, 5, 4)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := open(t, server(t, entries, 0, 0)).State(ended, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: error %v", err)
	}
	entries[4].Data = []byte{200, 1}
	entries[5].Data = []byte{100, 1}
	f("log entry 6 is of type 100", 0, 0, 0)
}

func TestEntriesAreNamedAndHoldNoSecrets(t *testing.T) {
	d := open(t, server(t, log(t), 0, 0))
	var names []string
	err := d.Entries(0, func(entry *raft.Log) error {
		names = append(names, raftdata.TypeName(entry))
		payload, err := raftdata.Payload(entry)
		if err != nil {
			return err
		}
		raw, err := json.Marshal(payload)
		if strings.Contains(string(raw), secret) || strings.Contains(string(raw), "a2VlcC10aGlz") { // in base64
			t.Errorf("entry %d shows a secret: %s", entry.Index, raw)
		}
		return err
	})
	if got := strings.Join(names, " "); err != nil || got != "Configuration Noop NodeRegister NodeRegister JobRegister JobRegister JobRegister SigningKey" {
		t.Errorf("%q, %v", got, err)
	}
	if first, last, err := d.Range(); first != 1 || last != 8 || err != nil {
		t.Errorf("range %d to %d, %v", first, last, err)
	}
}

// No file is changed, made or removed.
func TestNothingIsWritten(t *testing.T) {
	dir := server(t, log(t), 4, 0)
	look := func() map[string]string {
		out := map[string]string{}
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				out[path] = ""
				return err
			}
			raw, err := os.ReadFile(path) // a test's own
			info, _ := entry.Info()
			out[path] = info.ModTime().String() + string(raw)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := look()
	d := open(t, filepath.Join(dir, "server", "raft", "raft.db"))
	if _, _, err := d.State(t.Context(), 0); err != nil || len(d.Snapshots) != 1 {
		t.Fatalf("%v, snapshots %v", err, d.Snapshots)
	}
	_ = d.Close()
	after := look()
	if len(before) != len(after) {
		t.Errorf("files %d, before %d", len(after), len(before))
	}
	for path, was := range before {
		if after[path] != was {
			t.Errorf("%s was changed", path)
		}
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := server(t, log(t), 4, 0)
	for _, path := range []string{dir, filepath.Join(dir, "server"), filepath.Join(dir, "server", "raft"), filepath.Join(dir, "server", "raft", "raft.db")} {
		_ = open(t, path).Close()
	}
	f := func(want, path string) {
		t.Helper()
		d, err := raftdata.Open(path)
		if err == nil {
			_ = d.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
	f("no log of Raft's is there", t.TempDir())
	f("no such file", filepath.Join(dir, "none"))
	file := filepath.Join(dir, "server", "raft", "raft.db")
	running, err := raftboltdb.New(raftboltdb.Options{Path: file})
	if err != nil {
		t.Fatal(err)
	}
	f("a server is running with it", dir)
	_ = running.Close()
	whole, err := os.ReadFile(file) // a test's own
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 100, 4096, 3 * 4096, len(whole) / 2} { // torn
		if err := os.WriteFile(file, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := raftdata.Open(file)
		if err == nil {
			err = d.Entries(0, func(*raft.Log) error { return nil })
			_ = d.Close()
		}
		if err == nil && size < 3*4096 {
			t.Errorf("a log of %d bytes of %d was read", size, len(whole))
		}
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("nonsense", 4096)), 0o600); err != nil {
		t.Fatal(err)
	}
	f("invalid database", file)
}
