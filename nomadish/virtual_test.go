package nomadish

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/structs"
)

// The second ring of what proves that the cluster survives, after package simulation, in which Raft is modelled, and before the
// tests of e2e that run processes. Real Raft, with our wiring around it, our FSM and all that a leader runs, on a network and disks
// in memory and in virtual time: the network is cut, servers crash and leaders change, while they are written to. See
// virtualFaults for what is broken, virtualChecks for what must hold.
//
// A seed draws the faults and their times. A run does not come back bit for bit, as a simulation does: Raft draws from
// a source of its own, and goroutines run in the order in which the machine runs them.

var (
	virtualSeeds = flag.Int("seeds", 10, "how many seeds TestVirtual runs")
	virtualFirst = flag.Uint64("first", 1, "the first of them")
)

// rounds of faults of one seed
const virtualRounds = 7

// TestVirtual breaks clusters of three and of five servers, by turns.
func TestVirtual(t *testing.T) {
	for i := range *virtualSeeds {
		seed := *virtualFirst + uint64(i) // not negative
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			began := time.Now()
			bubble(t, seed, 3+2*int(seed%2), func(c *virtualCluster) { // small
				c.run(virtualRounds)
				for _, what := range c.checks.found() {
					t.Errorf("seed %d: %s", seed, what)
				}
				for what, least := range map[string]int{"writes " + fateReported: 100, "terms led": 2, "reads": 100, "pipelined": 10} { // order does not matter
					if c.checks.counts[what] < least {
						t.Errorf("seed %d: only %d %s", seed, c.checks.counts[what], what)
					}
				}
				t.Logf("seed %d: %s of virtual time: %s", seed, time.Since(c.began).Round(time.Second), c.checks.happened())
			})
			t.Logf("seed %d took %s", seed, time.Since(began).Round(time.Millisecond))
		})
	}
}

// TestVirtualFindsFaults plants faults of which each must be found, and no fault in what is left.
func TestVirtualFindsFaults(t *testing.T) {
	for _, one := range []struct {
		name  string
		finds string // "": nothing
		do    func(c *virtualCluster)
	}{
		{"none", "", func(c *virtualCluster) {
			c.bootstrap()
			c.writes(30)
		}},
		{"a state loses an entry", "has it not", func(c *virtualCluster) {
			c.machine = func(i int, m raft.BatchingFSM) raft.BatchingFSM {
				if i != 1 {
					return m
				}
				return &forgetful{BatchingFSM: m, at: 20}
			}
			c.bootstrap()
			c.writes(30)
		}},
		{"a state goes another way", "has hash", func(c *virtualCluster) {
			c.machine = func(i int, m raft.BatchingFSM) raft.BatchingFSM {
				if i != 2 {
					return m
				}
				return &forgetful{BatchingFSM: m, at: 20, changed: true}
			}
			c.bootstrap()
			c.writes(30)
		}},
		{"disks forget what they said was written", "has it not", func(c *virtualCluster) {
			c.bootstrap()
			c.writes(30)
			for i, s := range c.servers {
				c.stop(i, true)
				c.must(s.disk.forget(10))
			}
			c.mend("the disks have forgotten", true)
		}},
		{"acknowledged before it is committed", "has it not", func(c *virtualCluster) {
			c.bootstrap()
			cut := c.leads()
			others := slices.DeleteFunc(c.all(), func(i int) bool { return i == cut })
			c.part([]int{cut}, true, true)
			c.servers[cut].use(func(l *virtualLife) {
				if fate := c.write(l, c.servers[cut].cfg.Name, c.dice); fate != fateOpen {
					c.t.Errorf("a leader that is cut off says of a write: %s", fate)
				}
			})
			deeds := c.checks.deeds
			deeds[len(deeds)-1].fate = fateReported // as if it had not waited
			c.lives(others, "the others lead")      // else the entry may be committed yet
			c.mend("the leader is back", true)
		}},
		{"done after it was refused", "has it all the same", func(c *virtualCluster) {
			c.bootstrap()
			c.writes(3)
			c.checks.deeds[1].fate = fateRefused
		}},
		{"nobody is there to lead", "nobody has led", func(c *virtualCluster) {
			c.bootstrap()
			for i := range c.servers[1:] {
				c.stop(i, true)
			}
			c.lives(c.all(), "two of three are down")
			c.mend("all are back", true)
		}},
		{"two lead in a term", "lead in term", func(c *virtualCluster) {
			c.bootstrap()
			c.servers[c.leads()].use(func(l *virtualLife) {
				other := c.servers[(c.leads()+1)%len(c.servers)] // what it would send if it took itself for the leader
				_ = c.net.links[other.addr].AppendEntries(raft.ServerID(l.ID()), c.servers[c.leads()].addr,
					&raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(other.id)}, Term: l.CurrentTerm()},
					&raft.AppendEntriesResponse{}) // whatever it answers
			})
		}},
		{"a read of an old state", "answers a read", func(c *virtualCluster) {
			c.bootstrap()
			c.writes(3)
			c.checks.done(&deed{kind: structs.LogJobRegister, id: "it-is-nowhere", fate: fateReported, index: 1 << 30})
			at := c.leads()
			c.servers[at].use(func(l *virtualLife) { c.look(c.t.Context(), c.servers[at], l) })
			c.checks.deeds, c.checks.acked = c.checks.deeds[:len(c.checks.deeds)-1], 0
		}},
	} {
		t.Run(one.name, func(t *testing.T) {
			bubble(t, 1, 3, func(c *virtualCluster) {
				one.do(c)
				c.settleAlike()
				found := strings.Join(c.checks.found(), "\n")
				switch {
				case one.finds == "" && found != "":
					t.Errorf("there is no fault, and this was found:\n%s", found)
				case !strings.Contains(found, one.finds):
					t.Errorf("%q was not found, but:\n%s", one.finds, found)
				}
			})
		})
	}
}

// TestVirtualOldLeader: a leader that is cut off and does not know yet that another leads answers no read that is to be of now; one
// that may be old it answers.
func TestVirtualOldLeader(t *testing.T) {
	for _, silent := range []bool{false, true} {
		t.Run(fmt.Sprintf("in silence: %t", silent), func(t *testing.T) {
			bubble(t, 1, 3, func(c *virtualCluster) {
				const old = 0
				c.slow(old)
				c.bootstrap() // by the first, which leads then
				c.servers[old].use(func(l *virtualLife) {
					if c.write(l, c.servers[old].cfg.Name, c.dice) != fateReported {
						c.t.Fatal("the founder does not lead")
					}
				})
				for _, other := range c.servers[1:] {
					c.net.cut(c.servers[old].addr, other.addr, silent)
					c.net.cut(other.addr, c.servers[old].addr, silent)
				}
				known := c.checks.newest()
				for range 50 { // not every write is of a job
					c.lives([]int{1, 2}, "the others lead")
				}
				newest := c.checks.newest()
				if found := c.checks.found(); newest == known || len(found) > 0 {
					c.t.Fatalf("the others do not register a job: %v", found)
				}
				c.servers[old].use(func(l *virtualLife) {
					_, err := l.read(c.t.Context(), newest, false)
					there, staleErr := l.read(c.t.Context(), newest, true)
					if !l.leader.leading() {
						c.t.Fatal("it knows already that another leads: this shows nothing")
					}
					if err == nil || staleErr != nil || there {
						c.t.Errorf("it answers a read with %v; one that may be old with %v, and knows the new: %t", err, staleErr, there)
					}
				})
				for _, other := range c.servers[1:] {
					other.use(func(l *virtualLife) {
						if there, err := l.read(c.t.Context(), newest, false); l.leader.leading() && (err != nil || !there) {
							c.t.Errorf("the new leader answers a read with %v, and knows the new: %t", err, there)
						}
					})
				}
			})
		})
	}
}

// writes writes so many entries through whoever leads.
func (c *virtualCluster) writes(n int) {
	for range n {
		c.lives(c.all(), "write")
	}
}

// forgetful is an FSM to which one entry does not come, or comes changed.
type forgetful struct {
	raft.BatchingFSM
	at, seen int
	changed  bool
}

// Apply implements raft.FSM.
func (f *forgetful) Apply(l *raft.Log) any { return f.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch implements raft.BatchingFSM.
func (f *forgetful) ApplyBatch(logs []*raft.Log) []any {
	for i, l := range logs {
		if f.seen++; f.seen != f.at {
			continue
		}
		other := *l
		logs[i] = &other
		if !f.changed {
			other.Type = raft.LogNoop
			continue
		}
		t, payload, err := fsm.Decode(l.Data)
		if err != nil {
			panic(err)
		}
		switch p := payload.(type) {
		case *structs.JobRegisterEntry:
			p.Job.Priority++
		case *structs.NodeRegisterEntry:
			p.Node.Name += "x"
		case *structs.EvalUpsertEntry:
			p.Evals[0].Priority++
		}
		if other.Data, err = fsm.Encode(t, payload); err != nil {
			panic(err)
		}
	}
	return f.BatchingFSM.ApplyBatch(logs)
}
