package nomadish

import (
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// dice are drawn from by many goroutines.
type dice struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func newDice(seed, stream uint64) *dice { return &dice{rng: rand.New(rand.NewPCG(seed, stream))} } // a test

// n draws a number below n.
func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

// between draws a time.
func (d *dice) between(least, most time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return least + time.Duration(d.rng.Int64N(int64(most-least)))
}

// order draws an order of n.
func (d *dice) order(n int) []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.Perm(n)
}

const (
	callLimit  = 500 * time.Millisecond // for an answer
	latest     = 3 * time.Second        // by which something that is late arrives
	oddOne     = 60                     // one call of so many is late, or its answer is lost, while the network is rough
	shortest   = 50 * time.Microsecond  // on the way
	longestWay = 3 * time.Millisecond
)

var errCut = errors.New("no way there")

// virtualNet is the network of a virtual cluster: in memory, with calls that take their time. What leads from one
// server to another may be cut, in one direction alone.
type virtualNet struct {
	dice   *dice
	checks *virtualChecks
	late   sync.WaitGroup

	mu    sync.Mutex
	links map[raft.ServerAddress]*link
	cuts  map[[2]raft.ServerAddress]bool // true: nobody says that it is cut, one waits
	rough bool
}

func newVirtualNet(d *dice, checks *virtualChecks) *virtualNet {
	return &virtualNet{dice: d, checks: checks, links: map[raft.ServerAddress]*link{}, cuts: map[[2]raft.ServerAddress]bool{}}
}

// link makes a server's end of the network, to be plugged in.
func (n *virtualNet) link(addr raft.ServerAddress) *link {
	_, inner := raft.NewInmemTransportWithTimeout(addr, callLimit)
	return &link{InmemTransport: inner, net: n, addr: addr}
}

// plug connects a server that starts.
func (n *virtualNet) plug(l *link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[l.addr] = l
	for other, o := range n.links { // order does not matter
		l.Connect(other, o.InmemTransport)
		o.Connect(l.addr, l.InmemTransport)
	}
}

// unplug takes a server off that ends: nothing that it sends from now on arrives.
func (n *virtualNet) unplug(addr raft.ServerAddress) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[addr].DisconnectAll()
	delete(n.links, addr)
	for _, o := range n.links { // order does not matter
		o.Disconnect(addr)
	}
}

// cut cuts one direction, and connections that need both.
func (n *virtualNet) cut(from, to raft.ServerAddress, silent bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cuts[[2]raft.ServerAddress{from, to}] = silent
	for _, way := range [][2]raft.ServerAddress{{from, to}, {to, from}} {
		if a, b := n.links[way[0]], n.links[way[1]]; a != nil && b != nil {
			a.Disconnect(way[1]) // ends its pipelines
			a.Connect(way[1], b.InmemTransport)
		}
	}
}

// heal mends all ways.
func (n *virtualNet) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cuts)
	n.rough = false
}

// roughen has calls be late and answers be lost until heal.
func (n *virtualNet) roughen() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rough = true
}

// odd reports whether something unusual happens to a call.
func (n *virtualNet) odd() bool {
	n.mu.Lock()
	rough := n.rough
	n.mu.Unlock()
	return rough && n.dice.n(oddOne) == 0
}

func (n *virtualNet) isCut(from, to raft.ServerAddress) (is, silent bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	silent, is = n.cuts[[2]raft.ServerAddress{from, to}]
	return is, silent
}

// travel takes the time of one way, and fails if it is cut.
func (n *virtualNet) travel(from, to raft.ServerAddress) error {
	is, silent := n.isCut(from, to)
	switch {
	case is && silent:
		time.Sleep(callLimit)
		return errCut
	case is:
		return errCut
	}
	time.Sleep(n.dice.between(shortest, longestWay))
	return nil
}

// link is one server's end of the network.
type link struct {
	*raft.InmemTransport
	net  *virtualNet
	addr raft.ServerAddress
}

// exchange makes a call and takes its answer.
func (l *link) exchange(to raft.ServerAddress, call func() error) error {
	if err := l.net.travel(l.addr, to); err != nil {
		return err
	}
	if err := call(); err != nil {
		return err
	}
	if l.net.odd() {
		return errors.New("the answer was lost")
	}
	return l.net.travel(to, l.addr)
}

// delayed has a call arrive after its caller has given up, now and then, and reports whether it does.
func (l *link) delayed(to raft.ServerAddress, call func()) bool {
	if !l.net.odd() {
		return false
	}
	l.net.late.Go(func() {
		time.Sleep(l.net.dice.between(callLimit, latest))
		if l.net.travel(l.addr, to) == nil {
			call()
		}
	})
	time.Sleep(callLimit)
	return true
}

var errLate = errors.New("no answer in time")

// AppendEntries implements raft.Transport.
func (l *link) AppendEntries(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, reply *raft.AppendEntriesResponse) error {
	l.net.checks.led(args.Term, string(args.ID))
	again := *args
	if l.delayed(to, func() {
		_ = l.InmemTransport.AppendEntries(id, to, &again, &raft.AppendEntriesResponse{}) // nobody waits for it
	}) {
		return errLate
	}
	return l.exchange(to, func() error { return l.InmemTransport.AppendEntries(id, to, args, reply) })
}

// RequestVote implements raft.Transport.
func (l *link) RequestVote(id raft.ServerID, to raft.ServerAddress, args *raft.RequestVoteRequest, reply *raft.RequestVoteResponse) error {
	again := *args
	if l.delayed(to, func() {
		_ = l.InmemTransport.RequestVote(id, to, &again, &raft.RequestVoteResponse{}) // nobody waits for it
	}) {
		return errLate
	}
	return l.exchange(to, func() error { return l.InmemTransport.RequestVote(id, to, args, reply) })
}

// RequestPreVote implements raft.WithPreVote.
func (l *link) RequestPreVote(id raft.ServerID, to raft.ServerAddress, args *raft.RequestPreVoteRequest, reply *raft.RequestPreVoteResponse) error {
	return l.exchange(to, func() error { return l.InmemTransport.RequestPreVote(id, to, args, reply) })
}

// InstallSnapshot implements raft.Transport.
func (l *link) InstallSnapshot(id raft.ServerID, to raft.ServerAddress, args *raft.InstallSnapshotRequest, reply *raft.InstallSnapshotResponse, data io.Reader) error {
	return l.exchange(to, func() error {
		err := l.InmemTransport.InstallSnapshot(id, to, args, reply, data)
		if err == nil && reply.Success {
			l.net.checks.count("snapshots installed")
		}
		return err
	})
}

// TimeoutNow implements raft.Transport.
func (l *link) TimeoutNow(id raft.ServerID, to raft.ServerAddress, args *raft.TimeoutNowRequest, reply *raft.TimeoutNowResponse) error {
	return l.exchange(to, func() error { return l.InmemTransport.TimeoutNow(id, to, args, reply) })
}

// AppendEntriesPipeline implements raft.Transport.
func (l *link) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	for _, way := range [][2]raft.ServerAddress{{l.addr, to}, {to, l.addr}} { // there and back: it is a connection
		if is, _ := l.net.isCut(way[0], way[1]); is {
			return nil, errCut
		}
	}
	p, err := l.InmemTransport.AppendEntriesPipeline(id, to)
	if err != nil {
		return nil, err
	}
	return &linkPipeline{p, l, to}, nil
}

// linkPipeline is a pipeline whose entries take their time.
type linkPipeline struct {
	raft.AppendPipeline
	link *link
	to   raft.ServerAddress
}

// AppendEntries implements raft.AppendPipeline.
func (p *linkPipeline) AppendEntries(args *raft.AppendEntriesRequest, reply *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	p.link.net.checks.led(args.Term, string(args.ID))
	if err := p.link.net.travel(p.link.addr, p.to); err != nil {
		return nil, err
	}
	p.link.net.checks.count("pipelined")
	return p.AppendPipeline.AppendEntries(args, reply)
}
