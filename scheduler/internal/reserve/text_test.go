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
	for want, got := range map[string]string{
		"1 core is missing":                                 isMissing(text(workflow.Amounts{Cores: 1}, 0), ""),
		"1 core on hosts is missing":                        isMissing("1 core", " on hosts"),
		"1 core, 1 GPU are missing":                         isMissing("1 core, 1 GPU", ""),
		"12 cores are missing":                              isMissing("12 cores", ""),
		"the part on node a is lost":                        lostText([]string{"a"}),
		"the parts on nodes a and b are lost":               lostText([]string{"a", "b"}),
		"the parts on nodes a, b, c and d are lost":         lostText([]string{"a", "b", "c", "d"}),
		"the parts on nodes a, b, c, d and 2 more are lost": lostText([]string{"a", "b", "c", "d", "e", "f"}),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
