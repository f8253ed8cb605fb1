package simulation

import (
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/state"
)

// recorder keeps the log that a state machine is given.
type recorder struct {
	raft.FSM
	log map[uint64]*raft.Log
}

func (r recorder) Apply(l *raft.Log) any {
	r.log[l.Index] = l
	return r.FSM.Apply(l)
}

// BenchmarkReplay applies the log of a seed, of every type of entry, to an empty state machine: what a server does that comes
// back, but one entry at a time. It is the time of one.
func BenchmarkReplay(b *testing.B) {
	log := map[uint64]*raft.Log{}
	if _, err := run(1, seams{machine: func(_ int, m raft.FSM) raft.FSM { return recorder{m, log} }}, 5000, 500); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		store, writer := state.New(state.Options{HistoryMax: 100, JobVersions: 3})
		machine := fsm.New(writer, store, hclog.NewNullLogger())
		for at := uint64(1); at <= uint64(len(log)) && n < b.N; at++ {
			machine.Apply(log[at])
			n++
		}
	}
}
