package raftnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nomadish/nomadish/internal/atomicfile"
)

// serverID is who the server is to Raft: what it made up at its first start, so that a
// server whose disk was lost never passes for the one that had voted. A log that was
// written before servers had IDs knows it by its name.
func serverID(o *Options, hasLog bool) (string, error) {
	if o.Dir == "" {
		return o.NewID(), nil
	}
	path := filepath.Join(o.Dir, "node-id")
	raw, err := os.ReadFile(path) // the operator names the directory
	switch id := strings.TrimSpace(string(raw)); {
	case err == nil && id != "":
		return id, nil
	case err == nil:
		return "", fmt.Errorf("%s is empty: write the server's ID into it, as `operator raft list-peers` shows it", path)
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("read the server's ID: %w", err)
	}
	id := o.Name
	if !hasLog {
		id = o.NewID()
	}
	if err := atomicfile.Write(path, id+"\n"); err != nil {
		return "", fmt.Errorf("keep the server's ID: %w", err)
	}
	return id, nil
}
