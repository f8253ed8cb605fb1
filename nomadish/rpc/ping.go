package rpc

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
)

const (
	// SilentFor is how long a session may be silent before it is pinged.
	SilentFor = 3 * time.Second
	// PingLimit is how long it may take to answer.
	PingLimit = 2 * time.Second
	// PingsMissed is after how many questions in a row without an answer a session is closed. Its client opens another if it is
	// there.
	PingsMissed = 3
)

// Pinging pings sessions that are silent, and closes those that do not answer again and again.
type Pinging struct {
	// Silent returns the sessions that were not heard since a time, and who is behind them.
	Silent  func(since time.Time) map[*wire.Session][]string
	Silence time.Duration
	Call    func(ctx context.Context, s *wire.Session) bool
	Limit   time.Duration // of one question
	Lost    func(behind []string)
}

// Run does so until ctx ends.
func (p *Pinging) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	tick := time.NewTicker(p.Silence / 3)
	defer tick.Stop()
	queried, missed := map[*wire.Session]bool{}, map[*wire.Session]int{}
	type answer struct {
		of *wire.Session
		ok bool
	}
	answers := make(chan answer)
	for {
		select {
		case a := <-answers:
			delete(queried, a.of)
			if a.ok {
				delete(missed, a.of)
			} else if missed[a.of]++; missed[a.of] >= PingsMissed {
				delete(missed, a.of)
				_ = a.of.Close()
			}
			continue
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		silent := p.Silent(time.Now().Add(-p.Silence))
		maps.DeleteFunc(missed, func(s *wire.Session, _ int) bool { return silent[s] == nil && !queried[s] }) // heard of, or ended
		for s, behind := range silent {                                                                       // order does not matter: all are called
			if queried[s] {
				continue
			}
			queried[s] = true
			wg.Go(func() {
				limited, cancel := context.WithTimeout(ctx, p.Limit)
				defer cancel()
				ok := p.Call(limited, s)
				if !ok && ctx.Err() == nil {
					p.Lost(behind)
				}
				select {
				case answers <- answer{s, ok}:
				case <-ctx.Done():
				}
			})
		}
	}
}
