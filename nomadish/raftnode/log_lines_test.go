package raftnode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

func TestRaftLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := newRaftLog(hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Info})).(raftLog)
	now := time.Unix(1000, 0)
	log.repeats.now = func() time.Time { return now }
	lines := func(what string, want ...string) {
		t.Helper()
		got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		out.Reset()
		if got[0] == "" {
			got = nil
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %d lines, not %d: %q", what, len(got), len(want), got)
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%s: %q is missing in %q", what, want[i], got[i])
			}
		}
	}
	for i := range 240 { // a minute without one server
		log.Error("failed to heartbeat to", "peer", "a:1", "backoff time", time.Duration(i), "error", fmt.Errorf("try %d", i))
		now = now.Add(250 * time.Millisecond)
	}
	lines("what repeats", "error=\"try 0\"")
	log.Named("again").With("x", 1).Error("failed to heartbeat to", "peer", "a:1", "error", errors.New("still"))
	lines("after a minute", "repeated=239")
	log.Error("failed to heartbeat to", "peer", "b:1", "error", errors.New("another"))
	log.Warn("failed to contact", "server-id", "a", "time", 1)
	log.Warn("failed to contact", "server-id", "a", "time", 2)
	log.Info("entering follower state")
	log.Info("entering follower state")
	lines("what differs", "peer=b:1", "server-id=a", "entering follower", "entering follower")

	reset := &net.OpError{Op: "read", Err: net.ErrClosed}
	log.Error("failed to decode incoming command", "error", reset)
	log.Error("failed to get log", "index", 13, "error", raft.ErrLogNotFound)
	log.Error("failed to take snapshot", "error", raft.ErrNothingNewToSnapshot)
	log.Error("peer has newer term, stopping replication", "peer", "a")
	log.Warn("no known peers, aborting election")
	log.Warn("failed to get previous log", "previous-index", 1, "error", raft.ErrLogNotFound)
	lines("what is ordinary")
	log.SetLevel(hclog.Debug)
	log.Error("failed to flush response", "error", io.ErrUnexpectedEOF)
	lines("what is ordinary, asked for", "[DEBUG]")
	log.SetLevel(hclog.Info)
	log.Error("failed to decode incoming command", "error", errors.New("unknown rpc type 9"))
	log.Error("failed to get log", "index", 13, "error", errors.New("disk on fire"))
	log.Error("failed to take snapshot", "error", errors.New("disk on fire"))
	lines("what is not", "unknown rpc type", "disk on fire", "disk on fire")

	for i := range 3 * maxRepeats {
		log.Error("failed to heartbeat to", "peer", i)
	}
	if n := len(log.repeats.logged); n > maxRepeats {
		t.Errorf("%d lines are remembered", n)
	}
}
