package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/structs"
)

// FileName is the name of the database in the state directory.
const FileName = "client.db"

// version is that of the layout. A store of another one is refused.
const version = "1"

var (
	bucketMeta   = []byte("meta")   // version, node, what was set of its metadata
	bucketAllocs = []byte("allocs") // allocation ID → structs.Allocation with its Job
	bucketRuns   = []byte("runs")   // allocation ID → how far it is (opaque)

	keyVersion = []byte("version")
	keyNode    = []byte("node")
	keyDynamic = []byte("node_meta")
)

// Node is who the node is. Seed derives the identities of simulated nodes.
type Node struct {
	ID     string
	Secret string
	Seed   string
}

// Record is one allocation that was kept.
type Record struct {
	Alloc *structs.Allocation // with its Job
	Run   []byte              // what was given to PutRun; nil: nothing yet
}

type recordKey struct {
	bucket string
	id     string
}

// Store is the database. It is safe for use by many goroutines.
type Store struct {
	db *bolt.DB

	mu      sync.Mutex
	pending map[recordKey][]byte // nil value: delete
	done    []func(error)
	closed  bool

	wake    chan struct{}
	stopped chan struct{}
}

// retryDelay is waited before a commit that failed (a full disk) is tried again.
const retryDelay = time.Second

// ErrClosed is given to those who wait for durability when the store closes.
var ErrClosed = errors.New("client state: closed")

// Open opens the store in dir, which is made when missing. Only one process may
// have it open.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("client state: %w", err)
	}
	path := filepath.Join(dir, FileName)
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: 2 * time.Second, NoFreelistSync: true, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return nil, fmt.Errorf("client state %s: %w; is another agent using the directory?", path, err)
	}
	s := &Store{db: db, pending: map[recordKey][]byte{}, wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("client state %s: %w", path, err), db.Close())
	}
	go s.run()
	return s, nil
}

// prepare makes what is not there yet. A store that is whole is not written to: there may be no room.
func (s *Store) prepare() error {
	whole := errors.New("whole")
	err := s.db.View(func(tx *bolt.Tx) error {
		if tx.Bucket(bucketAllocs) == nil || tx.Bucket(bucketRuns) == nil {
			return nil
		}
		if meta := tx.Bucket(bucketMeta); meta != nil && string(meta.Get(keyVersion)) == version {
			return whole
		}
		return nil
	})
	if errors.Is(err, whole) {
		return nil
	}
	return s.db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{bucketMeta, bucketAllocs, bucketRuns} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		meta := tx.Bucket(bucketMeta)
		if v := meta.Get(keyVersion); v != nil && string(v) != version {
			return fmt.Errorf("layout version %q, this agent knows %q; use the agent that wrote it, or move the file away (the node gets a new identity then)", v, version)
		}
		return meta.Put(keyVersion, []byte(version))
	})
}

// Node reads who the node is; empty if that was never set.
func (s *Store) Node() (Node, error) {
	return get[Node](s, keyNode, "node")
}

// SetNode keeps who the node is; it is durable when SetNode returns.
func (s *Store) SetNode(n Node) error { return s.set(keyNode, n, "node") }

// Meta reads the metadata that were set while the node ran; nil if that never was.
func (s *Store) Meta() (map[string]*string, error) {
	return get[map[string]*string](s, keyDynamic, "metadata of the node")
}

// SetMeta keeps the metadata that were set while the node ran, a nil value for a name that is unset; they are durable when SetMeta
// returns.
func (s *Store) SetMeta(m map[string]*string) error {
	return s.set(keyDynamic, m, "metadata of the node")
}

// get reads what a key of the node has; the zero value if that was never set. what describes it.
func get[T any](s *Store, key []byte, what string) (T, error) {
	var v, none T
	err := s.db.View(func(tx *bolt.Tx) error {
		raw := tx.Bucket(bucketMeta).Get(key)
		if raw == nil {
			return nil
		}
		return codec.Decode(raw, &v)
	})
	if err != nil {
		return none, fmt.Errorf("client state: %s: %w", what, err)
	}
	return v, nil
}

// set keeps what a key of the node has. what describes it.
func (s *Store) set(key []byte, v any, what string) error {
	raw, err := codec.Encode(v)
	if err != nil {
		return err
	}
	err = s.db.Update(func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(key, raw) })
	if err != nil {
		return fmt.Errorf("client state: %s: %w", what, err)
	}
	return nil
}

// Load reads all allocations, in the order of their IDs. A record that cannot be
// read is left out and reported in the error beside the others.
func (s *Store) Load() ([]Record, error) {
	var out []Record
	var bad []error
	err := s.db.View(func(tx *bolt.Tx) error {
		runs := tx.Bucket(bucketRuns)
		return tx.Bucket(bucketAllocs).ForEach(func(k, v []byte) error {
			r := Record{Alloc: &structs.Allocation{}}
			if err := codec.Decode(v, r.Alloc); err != nil {
				bad = append(bad, fmt.Errorf("client state: allocation %s: %w", k, err))
				return nil
			}
			if run := runs.Get(k); run != nil {
				r.Run = append([]byte{}, run...)
			}
			out = append(out, r)
			return nil
		})
	})
	return out, errors.Join(append(bad, err)...)
}

// PutAlloc keeps an allocation with its job. done (nil allowed) is called when
// this write, or a later one of the same record, is durable or has failed; a
// failed one is tried again.
func (s *Store) PutAlloc(a *structs.Allocation, done func(error)) {
	raw, err := codec.Encode(a)
	if err != nil {
		if done != nil {
			done(fmt.Errorf("client state: allocation %s: %w", a.ID, err))
		}
		return
	}
	s.put(done, map[recordKey][]byte{{string(bucketAllocs), a.ID}: raw})
}

// PutRun keeps how far an allocation is. done as in PutAlloc.
func (s *Store) PutRun(id string, run []byte, done func(error)) {
	s.put(done, map[recordKey][]byte{{string(bucketRuns), id}: run})
}

// Delete forgets an allocation. done as in PutAlloc.
func (s *Store) Delete(id string, done func(error)) {
	s.put(done, map[recordKey][]byte{{string(bucketAllocs), id}: nil, {string(bucketRuns), id}: nil})
}

func (s *Store) put(done func(error), records map[recordKey][]byte) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		if done != nil {
			done(ErrClosed)
		}
		return
	}
	for k, v := range records {
		s.pending[k] = v
	}
	if done != nil {
		s.done = append(s.done, done)
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run commits what is pending until the store is closed and nothing is.
func (s *Store) run() {
	defer close(s.stopped)
	for {
		s.mu.Lock()
		records, done, closed := s.pending, s.done, s.closed
		s.pending, s.done = map[recordKey][]byte{}, nil
		s.mu.Unlock()
		if len(records) == 0 && len(done) == 0 {
			if closed {
				return
			}
			<-s.wake
			continue
		}
		err := s.commit(records)
		for _, fn := range done {
			fn(err)
		}
		if err == nil {
			continue
		}
		if closed {
			return
		}
		s.requeue(records)
		select {
		case <-time.After(retryDelay):
		case <-s.wake:
		}
	}
}

// requeue puts back what could not be committed, but for records that have a
// newer value.
func (s *Store) requeue(records map[recordKey][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, v := range records {
		if _, newer := s.pending[k]; !newer {
			s.pending[k] = v
		}
	}
}

func (s *Store) commit(records map[recordKey][]byte) error {
	err := s.db.Update(func(tx *bolt.Tx) error {
		for k, v := range records {
			b := tx.Bucket([]byte(k.bucket))
			var err error
			if v == nil {
				err = b.Delete([]byte(k.id))
			} else {
				err = b.Put([]byte(k.id), v)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("client state: %w", err)
	}
	return nil
}

// Close commits what is pending and closes the store.
func (s *Store) Close() error {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	s.mu.Unlock()
	if already {
		return nil
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	<-s.stopped
	return s.db.Close()
}
