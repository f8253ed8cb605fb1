// Package workflows tests workflows, what they reserve and lend, and licenses.
package workflows

import (
	"testing"

	"github.com/nomadish/nomadish/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
