package quorum

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
	if err := WriteFile(string(f), to.ID+" "+to.Name+"\n"); err != nil {
		return fmt.Errorf("keep the promise to a founder: %w", err)
	}
	return nil
}

// WriteFile replaces a small file so that after a crash either the old or the new
// text is there.
func WriteFile(path, text string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	_, err = tmp.WriteString(text)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
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
