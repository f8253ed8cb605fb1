package raftnode

import (
	"net"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// TestPipelineOfUnclaimedAnswers: when nobody takes the answers of a pipeline any more, sending goes on returning, and the pipeline
// ends when it is closed.
func TestPipelineOfUnclaimedAnswers(t *testing.T) {
	t.Parallel()
	open := func() *memberTransport {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		plain := raft.NewNetworkTransport(tcpLayer{l}, 1, time.Minute, nil)
		d := newMemberTransport(Transport{plain, plain, plain}, func(string) bool { return true }, hclog.NewNullLogger())
		t.Cleanup(func() {
			d.close()
			_ = plain.Close() // it has served
		})
		return d
	}
	from, to := open(), open()
	go func() { // ends with the test's end of to
		for {
			select {
			case call := <-to.Consumer():
				call.Respond(&raft.AppendEntriesResponse{Term: 2, Success: false}, nil)
			case <-to.done:
				return
			}
		}
	}()
	p, err := from.AppendEntriesPipeline("b", to.LocalAddr())
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan int)
	go func() {
		defer close(sent)
		for i := range unclaimedRoom {
			if _, err := p.AppendEntries(&raft.AppendEntriesRequest{Term: 1}, &raft.AppendEntriesResponse{}); err != nil {
				t.Errorf("send %d: %v", i, err)
				return
			}
			sent <- i
		}
	}()
	last := -1
	for more := true; more; {
		select {
		case i, ok := <-sent:
			if more = ok; ok {
				last = i
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("after %d sends, the next has not returned: nobody takes the answers", last+1)
		}
	}
	if err := p.Close(); err != nil || p.Close() != nil {
		t.Errorf("close: %v", err)
	}
}

// tcpLayer is a plain listener as Raft wants it.
type tcpLayer struct{ net.Listener }

// Dial implements raft.StreamLayer.
func (tcpLayer) Dial(to raft.ServerAddress, limit time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", string(to), limit)
}
