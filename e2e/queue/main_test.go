// Package queue tests the queue, explanations and forecasts, gangs, and preemption.
package queue

import (
	"testing"

	"github.com/nomadish/nomadish/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
