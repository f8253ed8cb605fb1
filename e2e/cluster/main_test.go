// Package cluster tests servers and clients as a cluster: how it forms, gossip, TLS, roles, limits, snapshots, upgrades and metrics.
package cluster

import (
	"testing"

	"github.com/nomadish/nomadish/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
