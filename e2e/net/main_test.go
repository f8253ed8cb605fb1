// Package net tests the cluster in network namespaces, with faults of the network and of disks (-tags netns, as root).
package net

import (
	"testing"

	"github.com/nomadish/nomadish/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
