package command

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/command/examples"
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

// TestWhatIfChecks: -check-index is a part of what the short forms try.
func TestWhatIfChecks(t *testing.T) {
	answer, config := &structs.WhatIf{Time: present.UnixNano(), Until: present.UnixNano()}, structs.DefaultSchedulerConfiguration()
	for line, checks := range map[string]int{"vc apply VC": 1, "project apply PROJECT": 1, "workflow run WORKFLOW": 1, "job run JOB": 1, "operator scheduler set-config -scheduler-algorithm spread": 1} {
		line = strings.NewReplacer("VC", file(t, "vc.hcl", examples.VirtualCluster), "PROJECT", file(t, "p.hcl", examples.Project),
			"WORKFLOW", file(t, "w.nomad.hcl", examples.Workflow), "JOB", file(t, "j.nomad.hcl", examples.Batch)).Replace(line)
		f := newFake(t).on("PUT /v1/what-if", answer).on("GET /v1/operator/scheduler/configuration", &structs.SchedulerConfigReply{SchedulerConfig: &config})
		words := strings.Fields(line)
		at := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") || strings.ContainsAny(w, "/.") })
		got := f.run(t, slices.Insert(words, at, "-what-if", "-check-index", "77")...)
		if body := strings.Join(f.bodies, ""); strings.Contains(line, "set-config") && !strings.Contains(body, `"Text":"config:scheduler-algorithm=spread"`) {
			t.Errorf("%s: %s", line, body)
		}
		if n := strings.Count(strings.Join(f.bodies, ""), `"CheckIndex":77`); n != checks {
			t.Errorf("%s: %d checks, %d %s%s", line, n, got.code, got.out, got.err)
		}
	}
}
