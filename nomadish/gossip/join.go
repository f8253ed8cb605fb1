package gossip

import (
	"context"
	"fmt"
	"time"

	"github.com/nomadish/nomadish/internal/keyring"
)

// JoinConfig configures how a server retries to join.
type JoinConfig struct {
	Addrs []string // host or host:port
	// Max bounds the tries; 0: no bound. The quick ones within the first Interval are
	// one together.
	Max int
	// Interval is the time between tries; 0: 30 s. The first ones come quicker, as
	// servers that are started together wait for each other.
	Interval time.Duration
}

const (
	defaultRetry = 30 * time.Second
	firstRetry   = 200 * time.Millisecond
)

// KeepJoining tries until another member is reached, or ctx ends. It returns an error only
// when all tries are used up. Having reached itself alone is no failure, but no
// reason to stop either.
func (p *Pool) KeepJoining(ctx context.Context, c JoinConfig) error {
	if c.Interval <= 0 {
		c.Interval = defaultRetry
	}
	wait, tries := min(firstRetry, c.Interval), 0
	for {
		n, err := p.Join(c.Addrs)
		if n > 0 && len(p.serf.Members()) > 1 {
			p.logger.Info("joined the other servers", "reached", n)
			return nil
		}
		if wait == c.Interval && n == 0 {
			if tries++; tries == c.Max {
				return fmt.Errorf("join %v: not one of them was reached in %d tries: %w", c.Addrs, tries, err)
			}
		}
		if err != nil {
			p.logger.Warn("servers to join are not reached yet", "error", keyring.Flat(err), "again_in", wait)
		}
		if !pause(ctx, wait) {
			return nil
		}
		wait = min(2*wait, c.Interval)
	}
}

// KeepMeeting is KeepJoining of a WAN pool, for as long as ctx lasts: whenever no server of
// another region is there, the addresses are tried. Having reached servers of the own region
// is no success, as the same addresses may stand in every server's configuration.
func (p *Pool) KeepMeeting(ctx context.Context, c JoinConfig) error {
	if c.Interval <= 0 {
		c.Interval = defaultRetry
	}
	wait, tries, met := min(firstRetry, c.Interval), 0, false
	for {
		if p.others() {
			met, wait = true, c.Interval
		} else {
			_, err := p.Join(c.Addrs)
			switch {
			case p.others():
				met = true
				p.logger.Info("joined the servers of other regions")
			case wait == c.Interval && !met:
				if tries++; tries == c.Max {
					return fmt.Errorf("join %v: no server of another region was reached in %d tries: %w", c.Addrs, tries, err)
				}
			}
			if err != nil && p.logged.Allow("join "+err.Error(), time.Now()) {
				p.logger.Warn("servers of other regions are not reached; the same is not logged again for an hour", "error", keyring.Flat(err), "again_in", wait)
			}
		}
		if !pause(ctx, wait) {
			return nil
		}
		wait = min(2*wait, c.Interval)
	}
}

// pause waits; false: ctx ended meanwhile.
func pause(ctx context.Context, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// others reports whether a server of another region is there.
func (p *Pool) others() bool {
	for _, s := range p.Servers() {
		if s.Region != p.config.Region && s.Alive() {
			return true
		}
	}
	return false
}
