package nomadish

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nomadish/nomadish/internal/atomicfile"
)

// serverDir is where a server keeps what must outlive it; empty: nothing does.
func (c *Config) serverDir() string {
	if c.DataDir == "" {
		return ""
	}
	return filepath.Join(c.DataDir, "server")
}

// serverID is who the server is to Raft: what it made up at its first start, so that a
// server whose disk was lost never passes for the one that had voted (see raftGate, too). A log that was
// written before servers had IDs knows it by its name.
func serverID(cfg *Config, hasLog bool) (string, error) {
	dir := cfg.serverDir()
	if dir == "" {
		return NewID(), nil
	}
	path := filepath.Join(dir, "node-id")
	raw, err := os.ReadFile(path) //nolint:gosec // the operator names the directory
	switch id := strings.TrimSpace(string(raw)); {
	case err == nil && id != "":
		return id, nil
	case err == nil:
		return "", fmt.Errorf("%s is empty: write the server's ID into it, as `operator raft list-peers` shows it", path)
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("read the server's ID: %w", err)
	}
	id := NewID()
	if hasLog {
		id = cfg.Name
	}
	if err := atomicfile.Write(path, id+"\n"); err != nil {
		return "", fmt.Errorf("keep the server's ID: %w", err)
	}
	return id, nil
}
