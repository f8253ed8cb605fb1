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
		Ended: "it ran out of time", EndedAt: 2e9, Displaced: []structs.WhatIfTaken{{Name: "low.g[0]", Time: 1}}, Usage: []structs.WhatIfUsage{{GPU: 0.5, CPU: 0.1, Waiting: 1}},
		Shortfalls: []structs.WhatIfShortfall{{Owner: "team", Kind: "nvidia/gpu/H100", Level: "node", Cells: 1, Time: 1}, {Owner: "project chip", Instances: 2, Time: 1}},
		Workflows:  []structs.WhatIfWorkflow{{Namespace: "default", ID: "chip", Stages: []structs.WhatIfStage{{Name: "synth", Start: 1}}}},
	})
	for _, want := range []string{
		"The future with the changes is not complete: it ran out of time. What comes after 1970-01-01 00:00:02 UTC is not known, and no part of the figures.",
		"synth</td><td>with</td><td>1970-01-01 00:00:00 UTC</td><td>not known</td>", "low.g[0]</td><td></td><td>1970-01-01 00:00:00 UTC</td><td></td><td>not known</td>", "<h2>GPUs in use</h2>", "default/chip</td><td>synth</td><td>with</td>",
		"team</td><td>nvidia/gpu/H100 node</td><td>with</td><td>1</td>", "project chip</td><td>all that is owned</td>",
	} {
		if !strings.Contains(full, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	small := page(structs.WhatIfFuture{Usage: []structs.WhatIfUsage{{CPU: 0.1, Waiting: 1}}})
	at := func(int64) string { return "noon" }
	f := func(want string, ended bool, s *structs.WhatIfStart) {
		t.Helper()
		f := &structs.WhatIfFuture{}
		if ended {
			f.Ended, f.EndedAt = "it ran out of time", 7
		}
		if got := WhatIfStartText(s, f, at); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	f("never", false, &structs.WhatIfStart{})
	f("not known", true, &structs.WhatIfStart{})
	f("some never", false, &structs.WhatIfStart{First: 1})
	f("some not known", true, &structs.WhatIfStart{First: 1})
	f("noon", true, &structs.WhatIfStart{First: 1, All: 2})
	for _, none := range []string{"<h2>GPUs in use</h2>", "Fragmentation", "Workflows", "Shortfalls", "is not complete"} {
		if strings.Contains(small, none) {
			t.Errorf("the page has %q, and there is nothing of it", none)
		}
	}
	if !strings.Contains(small, "<h2>CPU in use</h2>") {
		t.Error("the page lacks the plot of the CPU")
	}
}
