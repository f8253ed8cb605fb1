package reserve

import (
	"testing"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
)

// TestText: what is missing is named in words, one in the singular, and cores without their MHz.
func TestText(t *testing.T) {
	a := workflow.Amounts{Cores: 1, Devices: 1}
	a.CPU = 3000
	if got := text(a, 2000); got != "1 core, 1000 MHz, 1 GPU" {
		t.Error(got)
	}
	if got := text(workflow.Amounts{CPU: 4000, Cores: 2, Devices: 2}, 2000); got != "2 cores, 2 GPUs" {
		t.Error(got)
	}
}
