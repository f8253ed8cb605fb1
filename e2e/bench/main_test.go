// Package bench tests and measures how fast a real server is.
package bench

import (
	"testing"

	"github.com/nomadish/nomadish/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
