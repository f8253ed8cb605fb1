package quorum

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/nomadish/nomadish/internal/atomicfile"
)

// FilePromise is a promise in a file.
type FilePromise string

// Load implements Promise.
func (f FilePromise) Load() (Promised, error) {
	raw, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return Promised{}, nil
	}
	if err != nil {
		return Promised{}, fmt.Errorf("read the promise to a founder: %w", err)
	}
	id, name, _ := strings.Cut(strings.TrimSpace(string(raw)), " ")
	return Promised{ID: id, Name: name}, nil
}

// Store implements Promise. What it stored is on disk when it returns.
func (f FilePromise) Store(to Promised) error {
	if err := atomicfile.Write(string(f), to.ID+" "+to.Name+"\n"); err != nil {
		return fmt.Errorf("keep the promise to a founder: %w", err)
	}
	return nil
}

// MemoryPromise is the promise of a server that keeps nothing.
type MemoryPromise struct {
	mu sync.Mutex
	to Promised
}

// Load implements Promise.
func (m *MemoryPromise) Load() (Promised, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.to, nil
}

// Store implements Promise.
func (m *MemoryPromise) Store(to Promised) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.to = to
	return nil
}
