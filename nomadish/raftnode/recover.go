package raftnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hashicorp/raft"
)

// PeersFile is what an operator writes to state who the servers are, when so many are
// lost for good that no leader can be elected.
const PeersFile = "peers.json"

const peersHelp = `To recover a cluster of which a majority is lost for good, end all servers that are
left, write a file peers.json beside this one on each of them, the same, with the
servers that are left:

  [
    { "id": "01976c1c-5f3a-7c11-a9d0-5d1f2b3c4d5e", "address": "10.0.0.1:4647", "non_voter": false }
  ]

The id is the text of the file server/node-id in the data_dir, the address that of RPC.
Then start them. The file is read once and removed; a server whose own id is not in it
does not start, and leaves it. Entries of the log that had not been committed may count
as committed after that.
`

// recoverPeers makes the servers of peers.json the cluster, if there is such a file.
func recoverPeers(dir string, s *Stores, conf *raft.Config, scratch raft.FSM, transport raft.Transport) error {
	help := filepath.Join(dir, "peers.info")
	if was, err := os.ReadFile(help); err != nil || string(was) != peersHelp { // the operator names the directory
		if err := os.WriteFile(help, []byte(peersHelp), 0o600); err != nil && !errors.Is(err, syscall.ENOSPC) { // it can wait
			return fmt.Errorf("data_dir: %w", err)
		}
	}
	path := filepath.Join(dir, PeersFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	servers, err := raft.ReadConfigJSON(path)
	if err != nil {
		return fmt.Errorf("recover the cluster by %s: %w (peers.info beside it describes the format)", path, err)
	}
	if err := listed(servers, conf.LocalID); err != nil {
		return fmt.Errorf("recover the cluster by %s: %w; the file stays as it is", path, err)
	}
	if err := raft.RecoverCluster(conf, scratch, s.Log, s.Stable, s.Snapshots, transport, servers); err != nil {
		return fmt.Errorf("recover the cluster by %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("the cluster is recovered, but its file stays: %w", err)
	}
	conf.Logger.Warn("the cluster was recovered by peers.json", "servers", len(servers.Servers))
	return nil
}

// listed refuses a set of servers that this one is not in: it would take part in no election, and wait for ever.
func listed(servers raft.Configuration, own raft.ServerID) error {
	var named []string
	for _, s := range servers.Servers {
		if s.ID == own {
			return nil
		}
		named = append(named, string(s.ID))
	}
	return fmt.Errorf("it names the servers %s, and not this one, whose ID is %s (the file server/node-id in the data_dir)", strings.Join(named, ", "), own)
}
