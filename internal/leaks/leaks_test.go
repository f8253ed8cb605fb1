package leaks

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestNone: what ends late is no leak.
func TestNone(t *testing.T) {
	before := goleak.IgnoreCurrent()
	end := make(chan struct{})
	go func() { <-end }()
	if goleak.Find(before) == nil {
		t.Fatal("a goroutine that is there is not found")
	}
	time.AfterFunc(time.Second, func() { close(end) })
	None(t, before)
}

// TestFind: what stays is told, in the end.
func TestFind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	end := make(chan struct{})
	defer close(end)
	go func() { <-end }()
	if err := find(time.Second, []goleak.Option{before}); err == nil {
		t.Fatal("a goroutine that stays is not found")
	}
}
