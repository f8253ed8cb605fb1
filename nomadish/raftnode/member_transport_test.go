package raftnode

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// TestMemberTransportRemembersLittle: of an unknown peer's ID, which it chooses, no more is remembered than is logged.
func TestMemberTransportRemembersLittle(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	d := &memberTransport{member: func(string) bool { return false }, logger: hclog.New(&hclog.LoggerOptions{Output: &log})}
	call := func(id string) {
		t.Helper()
		header := raft.RPCHeader{ID: []byte(id)}
		if d.allows(raft.RPC{Command: &raft.AppendEntriesRequest{RPCHeader: header}, RespChan: make(chan raft.RPCResponse, 1)}) {
			t.Errorf("%.10q may pass", id)
		}
	}
	long := strings.Repeat("x", 1<<20)
	call(long + "1")
	call(long + "2")
	call("short")
	if n := strings.Count(log.String(), "refused Raft"); n != 2 {
		t.Errorf("%d refusals are logged, not one of each that differs in what is logged", n)
	}
}
