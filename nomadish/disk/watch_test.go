package disk

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/structs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mib = 1 << 20

// fake is a disk that says what it is told.
type fake struct {
	mu    sync.Mutex
	free  uint64
	err   error // of a try
	tries int
}

func (f *fake) set(free uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free, f.err = free, err
}

func (f *fake) measure(dir string) (structs.DiskRoom, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return structs.DiskRoom{Path: dir, Total: 1000 * mib, Free: f.free}, nil
}

func (f *fake) try(string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries++
	return f.err
}

func (f *fake) watch(log *strings.Builder) *Watch {
	f.free = 500 * mib
	return NewWatch(Options{
		Dir: "/data", Limit: structs.DiskLimit{MB: 10, Percent: 5}, Measure: f.measure, Try: f.try,
		Logger: hclog.New(&hclog.LoggerOptions{Output: log}),
	})
}

// What is short is said once, with where and how much, and so is that it is over.
func TestWatchSaysOnce(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	d := &fake{}
	w := d.watch(&log)
	w.Look()
	if w.Full() != "" {
		t.Fatalf("with room: %s", w.Full())
	}
	d.set(9*mib, nil)
	for range 5 {
		w.Look()
	}
	if want := "the disk of /data is full (9.0 MiB of 1000.0 MiB left)"; w.Full() != want {
		t.Errorf("%q, want %q", w.Full(), want)
	}
	<-w.Changed()
	d.set(15*mib, nil) // more than the limit, less than twice
	w.Look()
	if w.Full() == "" {
		t.Error("there is room again at less than twice the limit")
	}
	d.set(20*mib, nil)
	w.Look()
	w.Look()
	if w.Full() != "" {
		t.Errorf("with room again: %s", w.Full())
	}
	<-w.Changed()
	if n := strings.Count(log.String(), "steps down"); n != 1 {
		t.Errorf("said %d times that it is full:\n%s", n, log.String())
	}
	if n := strings.Count(log.String(), "room on the disk again"); n != 1 {
		t.Errorf("said %d times that there is room:\n%s", n, log.String())
	}
	if d.tries > 0 {
		t.Errorf("%d tries to write while no write has failed", d.tries)
	}
}

// A write that failed counts, whatever is measured, until one succeeds: a quota, say.
func TestWatchBelievesWrites(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	d := &fake{}
	w := d.watch(&log)
	w.Look()
	d.set(500*mib, unix.EDQUOT)
	w.Failed(fmt.Errorf("store: %w", unix.EDQUOT))
	if !strings.Contains(w.Full(), "is full") {
		t.Errorf("after a write that failed: %q", w.Full())
	}
	w.Look()
	if w.Full() == "" {
		t.Error("there is room although nothing can be written")
	}
	d.set(500*mib, nil)
	w.Look()
	if w.Full() != "" {
		t.Errorf("after a write that went well: %s", w.Full())
	}
	d.set(500*mib, unix.EIO)
	w.Failed(unix.EIO)
	w.Look()
	if !strings.Contains(w.Full(), "cannot be written: input/output error") {
		t.Errorf("a broken disk: %q", w.Full())
	}
	var none *Watch
	none.Failed(unix.EIO)
	if none.Full() != "" {
		t.Error("a disk that nobody watches is full")
	}
}

func TestTry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Try(dir); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("a try leaves %v, %v", left, err)
	}
	if err := Try(dir + "/nowhere"); err == nil {
		t.Error("a directory that is not there can be written")
	}
}

// failing is a store that can be told to fail.
type failing struct {
	*raft.InmemStore
	err error
}

func (f *failing) SetUint64(k []byte, v uint64) error {
	if f.err != nil {
		return f.err
	}
	return f.InmemStore.SetUint64(k, v)
}

func (f *failing) Set(k, v []byte) error {
	if f.err != nil {
		return f.err
	}
	return f.InmemStore.Set(k, v)
}

func (f *failing) StoreLogs(l []*raft.Log) error {
	if f.err != nil {
		return f.err
	}
	return f.InmemStore.StoreLogs(l)
}

// A term that cannot be stored is held back, and nothing else is stored before it.
func TestStoresHoldTheTermBack(t *testing.T) {
	t.Parallel()
	term, vote := []byte(keyTerm), []byte("LastVoteTerm")
	below := &failing{InmemStore: raft.NewInmemStore()}
	d := &fake{}
	w := d.watch(&strings.Builder{})
	s := NewStores(below, below, w)
	check := func(what string, want uint64, onDisk uint64) {
		t.Helper()
		if got, err := s.GetUint64(term); err != nil || got != want {
			t.Errorf("%s: term %d, %v; want %d", what, got, err, want)
		}
		if got, err := below.GetUint64(term); err != nil || got != onDisk {
			t.Errorf("%s: on disk is term %d, %v; want %d", what, got, err, onDisk)
		}
	}
	if err := s.SetUint64(term, 5); err != nil {
		t.Fatal(err)
	}
	check("with room", 5, 5)
	below.err = unix.ENOSPC
	for _, v := range []uint64{6, 7} {
		if err := s.SetUint64(term, v); err != nil {
			t.Fatalf("a term that cannot be stored would end the process: %v", err)
		}
	}
	check("full", 7, 5)
	for what, err := range map[string]error{
		"a vote": s.SetUint64(vote, 7), "whom": s.Set([]byte("LastVoteCand"), []byte("x")),
		"an entry": s.StoreLogs([]*raft.Log{{Index: 1, Term: 7}}), "one": s.StoreLog(&raft.Log{Index: 1, Term: 7}), "a cut": s.DeleteRange(1, 1),
	} {
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("%s is taken while its term is not on disk: %v", what, err)
		}
	}
	if w.Full() == "" {
		t.Error("the watch was not told")
	}
	below.err = nil
	if err := s.StoreLogs([]*raft.Log{{Index: 1, Term: 7}}); err != nil {
		t.Fatal(err)
	}
	check("with room again", 7, 7)
}
