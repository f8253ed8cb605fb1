package raftnode

import (
	"sync"

	"github.com/hashicorp/raft"
)

// unclaimedRoom is for how many answers that nobody takes any more a pipeline has room. Raft sends on with a chance of one half
// each time, so that this many do not come.
const unclaimedRoom = 128

// pipeline sends entries ahead to one follower, and never blocks its sender for good.
//
// Raft takes no answers after the first that refuses, but may send once or twice more before it sees that. Its own pipeline has no
// room for an answer that nobody takes: that send never returned. The follower got heartbeats, and no entry until another led;
// and who led could not shut Raft down (hashicorp/raft#612).
type pipeline struct {
	raft.AppendPipeline
	answers chan raft.AppendFuture
	done    chan struct{}
	once    sync.Once
	wg      sync.WaitGroup
}

// AppendEntriesPipeline implements raft.Transport.
func (d *memberTransport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	inner, err := d.Transport.AppendEntriesPipeline(id, target)
	if err != nil {
		return nil, err
	}
	p := &pipeline{AppendPipeline: inner, answers: make(chan raft.AppendFuture, unclaimedRoom), done: make(chan struct{})}
	p.wg.Go(p.pass)
	return p, nil
}

// pass hands answers on until Close.
func (p *pipeline) pass() {
	for {
		select {
		case answer := <-p.AppendPipeline.Consumer():
			select {
			case p.answers <- answer:
			case <-p.done:
				return
			}
		case <-p.done:
			return
		}
	}
}

// Consumer implements raft.AppendPipeline.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

// Close implements raft.AppendPipeline.
func (p *pipeline) Close() error {
	err := p.AppendPipeline.Close()
	p.once.Do(func() { close(p.done) })
	p.wg.Wait()
	return err
}
