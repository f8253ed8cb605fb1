package client

import (
	"context"
	"sync"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// How reports are timed. A change that nobody waits for (an event of a task that
// is being set up) goes with the next one, after lazyReport at the latest.
const (
	lazyReport    = time.Second
	reportLimit   = 10 * time.Second       // for the answer to one
	reportEach    = 100 * time.Millisecond // and for each allocation in it: servers that have much to do take many at once
	maxReport     = 512                    // allocations in one
	reportBurst   = 1                      // how many may follow the first without waiting
	reportBackoff = 100 * time.Millisecond
	maxBackoff    = 5 * time.Second
	// confirmAfter is when what was sent twice is sent once more: the first may have been kept by a server that hung, and come
	// after the second.
	confirmAfter = 20 * time.Second
)

// reporter collects which allocations have news. The latest state of each is read
// when it is sent; what is not acknowledged stays.
type reporter struct {
	mu     sync.Mutex
	dirty  map[string]time.Time // → since when
	final  map[string]*structs.AllocClientUpdate
	unsure map[string]struct{}  // of which a report may be on its way still
	again  map[string]time.Time // → when it is sent once more
	urgent bool
	active bool // a goroutine is sending
	wake   chan struct{}
	next   time.Time // when the next would go if all had been spaced evenly
}

func newReporter() *reporter {
	return &reporter{dirty: map[string]time.Time{}, final: map[string]*structs.AllocClientUpdate{}, unsure: map[string]struct{}{}, again: map[string]time.Time{}, wake: make(chan struct{}, 1)}
}

// Report notes that an allocation has news (alloc.Host).
func (n *node) Report(id string, urgent bool) {
	p := n.reports
	p.mu.Lock()
	first := len(p.dirty) == 0 // it may wait for what is to be confirmed
	if _, ok := p.dirty[id]; !ok {
		p.dirty[id] = time.Now()
	}
	n.kickReports(urgent, urgent || first)
}

// reportAs reports an allocation that this node has no runner of.
func (n *node) reportAs(u *structs.AllocClientUpdate) {
	p := n.reports
	p.mu.Lock()
	p.dirty[u.ID] = time.Now()
	p.final[u.ID] = u
	n.kickReports(true, true)
}

// kickReports unlocks the reporter, and starts its goroutine if there is none, or wakes it.
func (n *node) kickReports(urgent, wake bool) {
	p := n.reports
	p.urgent = p.urgent || urgent
	start := !p.active
	p.active = true
	p.mu.Unlock()
	if start {
		n.Go(n.sendReports)
		return
	}
	if wake {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// sendReports sends until there is nothing left to send.
func (n *node) sendReports(ctx context.Context) {
	p := n.reports
	backoff := reportBackoff
	select {
	case <-n.known:
	case <-ctx.Done():
		return
	}
	for {
		wait, idle := p.due(n.c.config.ReportInterval)
		if idle {
			return
		}
		if wait > 0 && !p.wait(ctx, wait) {
			return
		}
		if wait > 0 {
			continue // look again: it may be urgent now
		}
		ids, extra := p.take(n.c.config.ReportInterval)
		left, err := n.sendReport(ctx, ids, extra)
		if err == nil {
			backoff = reportBackoff
			continue
		}
		if ctx.Err() != nil {
			return
		}
		p.putBack(left, extra)
		if unknownOutcome(err) {
			p.markUnsure(left...)
		}
		if structs.CodeOf(err) == structs.CodeLimited {
			backoff = max(backoff, limitedBackoff)
		}
		n.logger.Debug("a report is sent again later", "allocs", len(left), "error", err)
		if !sleep(ctx, backoff) {
			return
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// due returns how long to wait before the next report; idle: there is none to send,
// and the goroutine ends.
func (p *reporter) due(interval time.Duration) (wait time.Duration, idle bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, next := time.Now(), time.Time{}
	for id, at := range p.again {
		switch {
		case !at.After(now):
			delete(p.again, id)
			p.dirty[id] = at
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	if len(p.dirty) == 0 {
		if !next.IsZero() {
			return next.Sub(now), false
		}
		p.active, p.urgent = false, false
		p.dirty, p.final = map[string]time.Time{}, map[string]*structs.AllocClientUpdate{} // one keeps the room that it once needed
		return 0, true
	}
	at := p.next.Add(-reportBurst * interval)
	if !p.urgent {
		oldest := now
		for _, t := range p.dirty {
			if t.Before(oldest) {
				oldest = t
			}
		}
		if lazy := oldest.Add(lazyReport); lazy.After(at) {
			at = lazy
		}
	}
	return max(0, at.Sub(now)), false
}

// wait waits; it comes back early when something urgent came. false: ctx ended.
func (p *reporter) wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-p.wake:
	case <-t.C:
	}
	return true
}

// take takes the allocations of the next report.
func (p *reporter) take(interval time.Duration) (ids []string, extra map[string]*structs.AllocClientUpdate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	extra = map[string]*structs.AllocClientUpdate{}
	for id := range p.dirty {
		if len(ids) == maxReport {
			break
		}
		ids = append(ids, id)
		delete(p.dirty, id)
		if u, ok := p.final[id]; ok {
			extra[id] = u
			delete(p.final, id)
		}
	}
	p.urgent = p.urgent && len(p.dirty) > 0
	if now := time.Now(); p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(interval)
	return ids, extra
}

func (p *reporter) putBack(ids []string, extra map[string]*structs.AllocClientUpdate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.urgent = true
	for _, id := range ids {
		if _, ok := p.dirty[id]; !ok {
			p.dirty[id] = time.Now()
		}
	}
	for _, id := range ids {
		if u, ok := extra[id]; ok {
			p.final[id] = u
		}
	}
}

// markUnsure records that reports may still be on their way.
func (p *reporter) markUnsure(ids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		p.unsure[id] = struct{}{}
	}
}

// unknownOutcome reports whether a report that failed so may have been applied nevertheless.
func unknownOutcome(err error) bool {
	code := structs.CodeOf(err)
	return !answered(err) || code == structs.CodeInternal || code == structs.CodeNoLeader
}

// acknowledged notes that a report of an allocation was accepted; over: it will not change any more, and nothing that comes later
// changes it.
func (p *reporter) acknowledged(id string, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.unsure[id]; ok {
		delete(p.unsure, id)
		if !over {
			p.again[id] = time.Now().Add(confirmAfter)
		}
	}
}

// sleep waits; false: ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
