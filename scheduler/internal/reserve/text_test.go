package reserve

import (
	"testing"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
)

// TestText: what is missing is named in words, one in the singular.
func TestText(t *testing.T) {
	a := workflow.Amounts{Cores: 1, Devices: 1}
	a.CPU = 1000
	if got := text(a); got != "1 core, 1000 MHz, 1 GPU" {
		t.Error(got)
	}
	if got := text(workflow.Amounts{Cores: 2, Devices: 2}); got != "2 cores, 2 GPUs" {
		t.Error(got)
	}
}
