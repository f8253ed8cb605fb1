// Package fields tests every field of jobs and of answers, held against Nomad's.
package fields

import (
	"testing"

	"github.com/nomadish/nomadish/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
