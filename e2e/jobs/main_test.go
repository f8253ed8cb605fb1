// Package jobs tests jobs, tasks and their files, as users and Nomad's clients see them.
package jobs

import (
	"testing"

	"github.com/nomadish/nomadish/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
