package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/clientpool"
	"github.com/nomadish/nomadish/internal/keyring"
	"github.com/nomadish/nomadish/structs"
)

const (
	// gossipSoon is the time within which a node joins that needs the gossip to find a server.
	gossipSoon       = time.Second
	gossipFirstRetry = time.Second
	gossipRetry      = 30 * time.Second
)

// others are what joining needs of the pool.
type others interface {
	Join(addr string) error
	Servers() []clientpool.Member
	Alone() bool
}

// joiner is one node's way into the gossip. Thousands may start together, or lose the same servers: each comes at a moment of
// its own.
type joiner struct {
	others others
	known  func() bool   // whether an address of a server is known
	addrs  []string      // as configured
	retry  time.Duration // bounds the time between two tries
	logger hclog.Logger

	mu      sync.Mutex
	learned []string      // addresses from servers
	spread  time.Duration // over which to join them
	more    chan struct{} // has something when the first were learned
	nobody  chan struct{} // has something when none of the known servers was reached
}

func newJoiner(to others, known func() bool, config GossipConfig, logger hclog.Logger) *joiner {
	j := &joiner{others: to, known: known, addrs: config.Join, retry: config.Retry, logger: logger, more: make(chan struct{}, 1), nobody: make(chan struct{}, 1)}
	if j.retry <= 0 {
		j.retry = gossipRetry
	}
	return j
}

// learn takes addresses that a server named, and the time over which those join that start together.
func (j *joiner) learn(addrs []string, spread time.Duration) {
	if len(addrs) == 0 {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.learned) == 0 {
		signal(j.more)
	}
	j.learned, j.spread = addrs, spread
}

// missed takes note of a call of the servers that came to nothing. One that was reached, though it knows no leader yet, will name
// the gossip in a while.
func (j *joiner) missed(err error) {
	if !spoke(err) {
		signal(j.nobody)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// keepJoined joins the others, and does so again whenever no server is heard, until ctx ends. All tries are at moments drawn
// anew, so that thousands that have lost the same servers do not come back together.
func (j *joiner) keepJoined(ctx context.Context) {
	if !j.begin(ctx) {
		return
	}
	retry, logged := min(gossipFirstRetry, j.retry), false
	for {
		wait := j.retry
		if len(j.others.Servers()) == 0 {
			err := j.join(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil && !logged {
				j.logger.Warn("the clients' gossip is not reached; going on without it, and trying again", "error", keyring.Flat(err))
			}
			logged = err != nil || logged && j.others.Alone()
			wait = retry
			retry = min(2*retry, j.retry)
		} else {
			retry, logged = min(gossipFirstRetry, j.retry), false
		}
		t := time.NewTimer(jittered(wait))
		select {
		case <-t.C:
		case <-j.more:
			t.Stop()
			if !j.part(ctx) {
				return
			}
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// begin waits for the first try's time; false: ctx has ended. Who knows a server waits for its answer, as that states how many join.
// Who knows none, or reaches none, finds one by the gossip alone: what is configured may be another client's address.
func (j *joiner) begin(ctx context.Context) bool {
	if j.known() {
		t := time.NewTimer(jittered(j.retry))
		defer t.Stop()
		select {
		case <-j.more:
			return j.part(ctx)
		case <-j.nobody:
		case <-t.C: // servers are there that name no gossip
			return true
		case <-ctx.Done():
			return false
		}
	}
	return sleep(ctx, time.Duration(rand.Int64N(int64(gossipSoon)))) // jitter
}

// part waits for a moment of its own within the time that servers stated; false: ctx has ended.
func (j *joiner) part(ctx context.Context) bool {
	j.mu.Lock()
	spread := j.spread
	j.mu.Unlock()
	return spread <= 0 || sleep(ctx, time.Duration(rand.Int64N(int64(spread)))) // jitter
}

// join tries all addresses in an order of their own until one is reached.
func (j *joiner) join(ctx context.Context) error {
	j.mu.Lock()
	addrs := slices.Concat(j.addrs, j.learned)
	j.mu.Unlock()
	rand.Shuffle(len(addrs), func(a, b int) { addrs[a], addrs[b] = addrs[b], addrs[a] })
	var errs []error
	for _, addr := range addrs {
		joined := make(chan error, 1)
		go func() { joined <- j.others.Join(addr) }() // ends within the time that it allows the other side
		select {
		case err := <-joined:
			if err == nil {
				j.logger.Info("joined the clients' gossip", "at", addr)
				return nil
			}
			errs = append(errs, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.Join(errs...)
}

// spoke reports whether an error is a server's answer, and not that none was reached.
func spoke(err error) bool {
	var answer *structs.Error
	return errors.As(err, &answer)
}
