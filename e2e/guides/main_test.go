// Package guides runs what README.md and docs/guides show: the commands of their terminals, with the files that they show, and every
// file of examples.
package guides

import (
	"testing"

	"github.com/nomadish/nomadish/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
