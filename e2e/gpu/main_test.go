// Package gpu tests GPUs, their health, and the topology of nodes and racks.
package gpu

import (
	"testing"

	"github.com/nomadish/nomadish/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
