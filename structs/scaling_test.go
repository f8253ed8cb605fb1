package structs

import "testing"

// The ID of a policy follows from the names alone: it must never change, because autoscalers know a policy by it.
func TestScalingPolicyID(t *testing.T) {
	if got, want := ScalingPolicyID("default", "web", "front"), "e2fda5a0-2b15-8ef0-bd85-2f54d1b15620"; got != want {
		t.Errorf("the ID is %s, and was %s", got, want)
	}
	seen := map[string]string{}
	for _, names := range [][3]string{{"default", "web", "front"}, {"other", "web", "front"}, {"default", "webfront", ""}, {"default", "web", "back"}, {"defaultweb", "", "front"}} {
		id := ScalingPolicyID(names[0], names[1], names[2])
		if was, twice := seen[id]; twice {
			t.Errorf("%v has the ID of %s", names, was)
		}
		seen[id] = names[1]
	}
	job := &Job{Namespace: "default", ID: "web", TaskGroups: []*TaskGroup{{Name: "front", Scaling: &ScalingPolicy{Max: 3}}, {Name: "back"}}}
	if p := job.ScalingPolicyOf(job.TaskGroups[0]); p.Target["Group"] != "front" || p.Type != ScalingHorizontal || job.TaskGroups[0].Scaling.ID != "" {
		t.Errorf("policy %+v of %+v", p, job.TaskGroups[0].Scaling)
	}
	if p := job.ScalingPolicyOf(job.TaskGroups[1]); p != nil || !job.HasScaling() {
		t.Errorf("policy %+v, the job has scaling: %v", p, job.HasScaling())
	}
	if job.Stop = true; job.HasScaling() {
		t.Error("a stopped job has scaling")
	}
}
