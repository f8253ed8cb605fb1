package client

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestReportsOfUnknownOutcomeAreConfirmed: what was sent again, because nobody said whether the first had been taken, is sent once
// more later: the first may come after the second. What is over needs no more, and what was taken at once neither.
func TestReportsOfUnknownOutcomeAreConfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const interval = 100 * time.Millisecond
		p := newReporter()
		told := func(ids ...string) {
			for _, id := range ids {
				p.dirty[id] = time.Now()
			}
			p.urgent = true
		}
		next := func() []string {
			t.Helper()
			for {
				wait, idle := p.due(interval)
				if idle {
					return nil
				}
				if wait == 0 {
					ids, _ := p.take(interval)
					return ids
				}
				time.Sleep(wait)
			}
		}
		told("a", "b")
		lost := next()
		p.putBack(lost, nil)
		p.markUnsure(lost...)
		if again := next(); len(again) != 2 {
			t.Fatalf("sent again: %v", again)
		}
		p.acknowledged("a", false)
		p.acknowledged("b", true)
		told("c")
		if got := next(); len(got) != 1 || got[0] != "c" {
			t.Errorf("what is to be confirmed goes with the next one: %v", got)
		}
		p.acknowledged("c", false)
		began := time.Now()
		if got := next(); len(got) != 1 || got[0] != "a" || time.Since(began) < confirmAfter {
			t.Errorf("after %v: %v; want a, once more, after %v", time.Since(began), got, confirmAfter)
		}
		p.acknowledged("a", false)
		if got := next(); got != nil || p.active {
			t.Errorf("and then %v", got)
		}
	})
}
