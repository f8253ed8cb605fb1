package structs

import (
	"fmt"
	"strings"
	"testing"
)

// TestWorkflowBounds: the instances of all jobs, and the names in depends_on, are bounded of what is submitted; what is stored is valid.
func TestWorkflowBounds(t *testing.T) {
	refused := func(w *Workflow, want string) {
		t.Helper()
		w.Canonicalize()
		if err := w.Validate(); err != nil {
			t.Errorf("stored: %v", err)
		}
		if err := w.CheckSubmitted(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("submitted: %v, want %q", err, want)
		}
	}
	counts := func(per string, counts ...int) *Workflow {
		w := workflowOf([]string{"a", "b"}, []string{"c"})
		for i, j := range []*WorkflowJob{w.Stages[0].Jobs[0], w.Stages[0].Jobs[1], w.Stages[1].Jobs[0]} {
			j.Job.TaskGroups[0].Count = counts[i]
		}
		if per != "" {
			job := w.Stages[1].Jobs[0].Job
			job.Type, job.TaskGroups[0].ReschedulePolicy = per, nil
		}
		return w
	}
	const third = MaxWorkflowInstances / 3
	refused(counts("", third, third, MaxWorkflowInstances-2*third), "")
	refused(counts("", third, third, MaxWorkflowInstances-2*third+1), "its jobs have 100001 instances together, at most 100000 are allowed")
	refused(counts(JobTypeSysBatch, third, MaxWorkflowInstances-third, 1), "")

	before := make([]string, 500)
	for i := range before {
		before[i] = fmt.Sprintf("j%d", i)
	}
	all := strings.Join(before, ",")
	after := make([]string, MaxWorkflowDepends/len(before))
	for i := range after {
		after[i] = fmt.Sprintf("k%d:%s", i, all)
	}
	refused(workflowOf(before, after), "")
	refused(workflowOf(before, append(after, "last:j0")), `stage "s1": job "last": depends_on: the jobs of the workflow name more than 100000 jobs together`)

	w := workflowOf([]string{"a"}, []string{"b:a"})
	rest := MaxWorkflowBytes - w.Stages[0].Jobs[0].Job.Size(MaxWorkflowBytes) - w.Stages[1].Jobs[0].Job.Size(MaxWorkflowBytes)
	meta := w.Stages[0].Jobs[0].Job.TaskGroups[0].Tasks[0]
	meta.Config = map[string]any{"data": strings.Repeat("x", rest-200)}
	over := MaxWorkflowBytes - w.Stages[0].Jobs[0].Job.Size(MaxWorkflowBytes) - w.Stages[1].Jobs[0].Job.Size(MaxWorkflowBytes)
	meta.Config["data"] = strings.Repeat("x", rest-200+over-1)
	refused(w, "")
	meta.Config["data"] = strings.Repeat("x", rest-200+over)
	refused(w, "together with the names in depends_on")
}
