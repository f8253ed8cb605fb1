package report

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// TestWhatIfPage: the page lists workflows, shortfalls and why a future is not complete, and has no plots and tables of which there is nothing.
func TestWhatIfPage(t *testing.T) {
	page := func(f structs.WhatIfFuture) string {
		t.Helper()
		var b strings.Builder
		if err := WhatIf(&b, &structs.WhatIf{Time: 1, Until: 2, After: f}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	full := page(structs.WhatIfFuture{
		Ended: "it ran out of time", Usage: []structs.WhatIfUsage{{GPU: 0.5, CPU: 0.1, Waiting: 1}},
		Shortfalls: []structs.WhatIfShortfall{{Owner: "team", Kind: "nvidia/gpu/H100", Level: "node", Cells: 1, Time: 1}, {Owner: "project chip", Instances: 2, Time: 1}},
		Workflows:  []structs.WhatIfWorkflow{{Namespace: "default", ID: "chip", Stages: []structs.WhatIfStage{{Name: "synth", Start: 1}}}},
	})
	for _, want := range []string{
		"The future with the changes is not complete: it ran out of time.", "<h2>GPUs in use</h2>", "default/chip</td><td>synth</td><td>with</td>",
		"team</td><td>nvidia/gpu/H100 node</td><td>with</td><td>1</td>", "project chip</td><td>all that is owned</td>",
	} {
		if !strings.Contains(full, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	small := page(structs.WhatIfFuture{Usage: []structs.WhatIfUsage{{CPU: 0.1, Waiting: 1}}})
	for _, none := range []string{"<h2>GPUs in use</h2>", "Fragmentation", "Workflows", "Shortfalls", "is not complete"} {
		if strings.Contains(small, none) {
			t.Errorf("the page has %q, and there is nothing of it", none)
		}
	}
	if !strings.Contains(small, "<h2>CPU in use</h2>") {
		t.Error("the page lacks the plot of the CPU")
	}
}
