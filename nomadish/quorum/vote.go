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

// FileVote is a VoteStore in a file.
type FileVote string

// Load implements VoteStore.
func (f FileVote) Load() (Vote, error) {
	raw, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return Vote{}, nil
	}
	if err != nil {
		return Vote{}, fmt.Errorf("read the vote for a bootstrapper: %w", err)
	}
	id, name, _ := strings.Cut(strings.TrimSpace(string(raw)), " ")
	return Vote{ID: id, Name: name}, nil
}

// Store implements VoteStore. What it stored is on disk when it returns.
func (f FileVote) Store(to Vote) error {
	if err := atomicfile.Write(string(f), to.ID+" "+to.Name+"\n"); err != nil {
		return fmt.Errorf("store the vote for a bootstrapper: %w", err)
	}
	return nil
}

// MemoryVote is the VoteStore of a server that keeps nothing.
type MemoryVote struct {
	mu sync.Mutex
	to Vote
}

// Load implements VoteStore.
func (m *MemoryVote) Load() (Vote, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.to, nil
}

// Store implements VoteStore.
func (m *MemoryVote) Store(to Vote) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.to = to
	return nil
}
