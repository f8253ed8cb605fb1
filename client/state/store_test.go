package state

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/nomadish/nomadish/internal/leaks"
	"github.com/nomadish/nomadish/structs"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// durable waits for a write.
func durable(t *testing.T, write func(done func(error))) {
	t.Helper()
	done := make(chan error, 1)
	write(func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestKeeps(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	n := Node{ID: "id", Secret: "secret", Seed: "seed"}
	if err := s.SetNode(n); err != nil {
		t.Fatal(err)
	}
	job := &structs.Job{ID: "j", TaskGroups: []*structs.TaskGroup{{Name: "g", Tasks: []*structs.Task{{Name: "t", Config: map[string]any{"args": []any{"a", int64(1), true}}}}}}}
	for i := range 3 {
		a := &structs.Allocation{ID: fmt.Sprint("a", i), Job: job, DesiredStatus: "run"}
		durable(t, func(done func(error)) { s.PutAlloc(a, done) })
		s.PutRun(a.ID, []byte("old"), nil)
		s.PutRun(a.ID, []byte{byte(i)}, nil)
	}
	s.Delete("a1", nil)
	s.Delete("never", nil)
	if err := s.Close(); err != nil { // commits what is pending
		t.Fatal(err)
	}
	s = open(t, dir)
	if got, err := s.Node(); err != nil || got != n {
		t.Errorf("node %+v, %v", got, err)
	}
	recs, err := s.Load()
	if err != nil || len(recs) != 2 || recs[0].Alloc.ID != "a0" || recs[1].Alloc.ID != "a2" || !bytes.Equal(recs[1].Run, []byte{2}) {
		t.Fatalf("%d records, %v", len(recs), err)
	}
	if got := recs[0].Alloc.Job.TaskGroups[0].Tasks[0].Config; !reflect.DeepEqual(got, map[string]any{"args": []any{"a", int64(1), true}}) {
		t.Errorf("config came back as %#v", got)
	}
}

func TestOnlyOneMayHaveIt(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	if _, err := Open(dir); err == nil {
		t.Error("opened twice")
	}
}

func TestRefusesOtherVersions(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.db.Update(func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyVersion, []byte("9")) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil {
		t.Error("a store of another version was opened")
	}
}

func TestRefusesGarbage(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), bytes.Repeat([]byte("x"), 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil {
		t.Error("garbage was opened")
	}
}

func TestOneBadRecordDoesNotHideOthers(t *testing.T) {
	s := open(t, t.TempDir())
	durable(t, func(done func(error)) { s.PutAlloc(&structs.Allocation{ID: "good"}, done) })
	if err := s.db.Update(func(tx *bolt.Tx) error { return tx.Bucket(bucketAllocs).Put([]byte("bad"), []byte{0xc1}) }); err != nil {
		t.Fatal(err)
	}
	recs, err := s.Load()
	if err == nil || len(recs) != 1 || recs[0].Alloc.ID != "good" {
		t.Errorf("%d records, error %v", len(recs), err)
	}
}

func TestClosedStoreSaysSo(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var got error
	s.PutRun("a", nil, func(err error) { got = err })
	if got == nil {
		t.Error("a write to a closed store looked durable")
	}
}

func TestManyWriters(t *testing.T) {
	s := open(t, t.TempDir())
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			id := fmt.Sprintf("a%02d", i)
			done := make(chan error, 1)
			s.PutAlloc(&structs.Allocation{ID: id}, nil)
			s.PutRun(id, []byte(id), func(err error) { done <- err })
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	recs, err := s.Load()
	if err != nil || len(recs) != 50 {
		t.Fatalf("%d records, %v", len(recs), err)
	}
	for _, r := range recs {
		if string(r.Run) != r.Alloc.ID {
			t.Errorf("%s has the state of %s", r.Alloc.ID, r.Run)
		}
	}
}

// TestKeepsMeta: that a name is unset is kept as well.
func TestKeepsMeta(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if m, err := s.Meta(); err != nil || m != nil {
		t.Fatalf("of a new store: %v, %v", m, err)
	}
	value := "r7"
	if err := s.SetMeta(map[string]*string{"rack": &value, "canary": nil}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := open(t, dir).Meta()
	if unset, there := m["canary"]; err != nil || len(m) != 2 || !there || unset != nil || m["rack"] == nil || *m["rack"] != value {
		t.Errorf("%v, %v", m, err)
	}
}
