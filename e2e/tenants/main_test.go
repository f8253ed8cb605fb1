// Package tenants tests namespaces, node pools, and virtual clusters with their cells.
package tenants

import (
	"testing"

	"github.com/nomadish/nomadish/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
