// Package leaks looks for goroutines that a package's tests leave behind. It is for tests only.
//
// A goroutine that was stopped need not have ended when the last test has: on a busy machine that takes seconds, more than
// goleak waits by itself. A leak is what is there for good.
package leaks

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long what is about to end may take.
const patience = 30 * time.Second

// Main runs a package's tests, and fails if they passed and left goroutines behind. It ends the process.
func Main(m *testing.M, options ...goleak.Option) {
	code := m.Run()
	if code == 0 {
		if err := find(patience, options); err != nil {
			fmt.Fprintln(os.Stderr, "leaks:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// None fails the test if there are goroutines which the options do not name.
func None(t testing.TB, options ...goleak.Option) {
	t.Helper()
	if err := find(patience, options); err != nil {
		t.Error(err)
	}
}

func find(limit time.Duration, options []goleak.Option) (err error) {
	for began := time.Now(); time.Since(began) < limit; { // goleak itself tries for half a second
		if err = goleak.Find(options...); err == nil {
			return nil
		}
	}
	return err
}
