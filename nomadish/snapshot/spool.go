package snapshot

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// Limits of a Spool that are not stated otherwise.
const (
	DefaultMaxBytes = 64 << 30
	DefaultIdle     = 2 * time.Minute
	maxUploads      = 2 // archives that are received at once
)

// SpoolOptions bound a Spool.
type SpoolOptions struct {
	// Dir is where its files lie; it is emptied. Empty: the system's folder for such files.
	Dir string
	// MaxBytes bounds an upload; 0: DefaultMaxBytes.
	MaxBytes int64
	// Idle is after how long without more of it an upload is forgotten; 0: DefaultIdle.
	Idle time.Duration
}

// Spool keeps the files of archives that are being made or received. Safe for concurrent
// use; Close ends it.
type Spool struct {
	opts SpoolOptions

	mu      sync.Mutex
	uploads map[string]*upload
	closed  bool
}

// upload is an archive that comes in pieces.
type upload struct {
	file  *os.File
	size  int64
	timer *time.Timer
}

// NewSpool makes a spool and removes what an earlier one has left.
func NewSpool(o SpoolOptions) (*Spool, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Idle <= 0 {
		o.Idle = DefaultIdle
	}
	if o.Dir != "" {
		if err := os.RemoveAll(o.Dir); err != nil {
			return nil, fmt.Errorf("snapshot spool: %w", err)
		}
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("snapshot spool: %w", err)
		}
	}
	return &Spool{opts: o, uploads: map[string]*upload{}}, nil
}

// File makes a file for its caller, who closes it: nobody else can open it, and it goes
// with its closing.
func (s *Spool) File() (*os.File, error) {
	f, err := os.CreateTemp(s.opts.Dir, "nomadish-snapshot-")
	if err != nil {
		return nil, structs.Errorf(structs.CodeInternal, "snapshot spool: %w", err).
			WithHint("an archive is kept on the server's disk for a while; see to it that there is room")
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close() // nothing is in it
		return nil, fmt.Errorf("snapshot spool: %w", err)
	}
	return f, nil
}

// Begin begins an upload with an ID of the caller's.
func (s *Spool) Begin(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return structs.Errorf(structs.CodeNoLeader, "snapshot spool: the server is shutting down")
	}
	if len(s.uploads) >= maxUploads {
		return structs.Errorf(structs.CodeLimited, "%d archives are being uploaded already", len(s.uploads)).
			WithHint("wait for them to end; one that is not continued is dropped after %s", s.opts.Idle)
	}
	f, err := s.File()
	if err != nil {
		return err
	}
	s.uploads[id] = &upload{file: f, timer: time.AfterFunc(s.opts.Idle, func() { s.Drop(id) })}
	return nil
}

// Append adds a piece, which must be the next one.
func (s *Spool) Append(id string, offset int64, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.uploads[id]
	if u == nil {
		return unknownUpload(id)
	}
	if offset != u.size {
		return structs.Errorf(structs.CodeConflict, "upload %q: %d bytes are here, and the next piece is of byte %d", id, u.size, offset)
	}
	if u.size+int64(len(data)) > s.opts.MaxBytes {
		return structs.Errorf(structs.CodeTooLarge, "upload %q: over the %d bytes that an archive may have", id, s.opts.MaxBytes)
	}
	u.timer.Reset(s.opts.Idle)
	n, err := u.file.Write(data)
	u.size += int64(n)
	if err != nil {
		return structs.Errorf(structs.CodeInternal, "upload %q: %w", id, err).WithHint("is there room on the server's disk?")
	}
	return nil
}

// Take ends an upload and returns its file, which the caller closes.
func (s *Spool) Take(id string) (*os.File, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.uploads[id]
	if u == nil {
		return nil, 0, unknownUpload(id)
	}
	u.timer.Stop()
	delete(s.uploads, id)
	return u.file, u.size, nil
}

// Drop forgets an upload, if it is there.
func (s *Spool) Drop(id string) {
	if f, _, err := s.Take(id); err == nil {
		_ = f.Close() // it is not wanted
	}
}

// Close forgets all uploads.
func (s *Spool) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for id, u := range s.uploads { // order does not matter: each by itself
		u.timer.Stop()
		_ = u.file.Close() // it is not wanted
		delete(s.uploads, id)
	}
}

func unknownUpload(id string) error {
	return structs.Errorf(structs.CodeNotFound, "upload %q: not known here; another server may lead by now, or it took too long", id).
		WithHint("start again")
}
