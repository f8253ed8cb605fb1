package command

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// TestWhatIfNever: of what never starts with the changes it is printed why.
func TestWhatIfNever(t *testing.T) {
	answer := &structs.WhatIf{Time: present.UnixNano(), Until: present.Add(time.Hour).UnixNano(), Groups: []*structs.WhatIfGroup{{
		Namespace: "default", JobID: "web", Group: "api", Verdict: structs.WhatIfNew, After: &structs.WhatIfStart{Waits: 2, Why: "larger than any node: so it is"},
	}}}
	got := newFake(t).on("PUT /v1/what-if", answer).run(t, "what-if", "lose:gpu-1")
	wants(t, got.out, "web, group \"api\", with the changes: larger than any node: so it is\n")
}
