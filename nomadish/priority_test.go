package nomadish

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// unranked is a job that states no priority.
func unranked(id string) *structs.Job {
	job := batchJob(id, 1)
	job.Priority = 0
	return job
}

// TestJobPriorities: what a job that states no priority gets, and what one may state, is the servers' to say; registering,
// planning and validating agree about it.
func TestJobPriorities(t *testing.T) {
	t.Parallel()
	s := startBeside(t, "", func(c *Config) { c.Jobs.DefaultPriority, c.Jobs.MaxPriority = 30, 60 })
	plan := func(job *structs.Job) (*structs.JobPlanReply, error) {
		reply := &structs.JobPlanReply{}
		return reply, s.Call(t.Context(), wire.MethodJobPlan, &structs.JobPlanRequest{Job: job, Diff: true}, reply)
	}
	validated := func(job *structs.Job) string {
		t.Helper()
		reply := &structs.JobValidateReply{}
		if err := s.Call(t.Context(), wire.MethodJobValidate, &structs.JobRegisterRequest{Job: job}, reply); err != nil {
			t.Fatal(err)
		}
		return reply.Error
	}
	for stated, want := range map[int]int{0: 30, 1: 1, 60: 60} {
		id := fmt.Sprint("states-", stated)
		job := func() *structs.Job {
			j := unranked(id)
			j.Priority = stated
			return j
		}
		if _, err := registerAll(t.Context(), s, job()); err != nil {
			t.Fatal(err)
		}
		if got := jobIn(t, s, "", id).Priority; got != want {
			t.Errorf("a job that states %d has priority %d, want %d", stated, got, want)
		}
		if reported := validated(job()); reported != "" {
			t.Errorf("validating a job that states %d: %s", stated, reported)
		}
		if p, err := plan(job()); err != nil || p.Diff == nil || p.Diff.Type != structs.DiffTypeNone {
			t.Errorf("planning again a job that states %d: %+v, %v", stated, p.Diff, err)
		}
	}
	const refusal = `job "high": priority 61: the servers of this region allow at most 60 (job_max_priority)`
	high := func() *structs.Job {
		j := unranked("high")
		j.Priority = 61
		return j
	}
	_, registered := registerAll(t.Context(), s, high())
	_, planned := plan(high())
	for what, reported := range map[string]string{
		"registering": fmt.Sprint(registered), "planning": fmt.Sprint(planned), "validating": validated(high()),
	} {
		if !strings.Contains(reported, refusal) {
			t.Errorf("%s: %s", what, reported)
		}
	}
	if jobIn(t, s, "", "high") != nil {
		t.Error("it is registered")
	}
}

// TestJobPrioritiesOfRegions: a multiregion job that states no priority has in each region what that region's servers say, and
// one that a region does not allow is registered nowhere.
func TestJobPrioritiesOfRegions(t *testing.T) {
	t.Parallel()
	f := federate(t, func(region string, c *Config) {
		if region == "west" {
			c.Jobs.DefaultPriority, c.Jobs.MaxPriority = 40, 70
		}
	}, "east", "west")
	east := f.regions["east"].all[0]
	wide := inRegions("wide", "east", "west")
	wide.Priority = 0
	if _, err := registerAll(t.Context(), east, wide); err != nil {
		t.Fatal(err)
	}
	for region, want := range map[string]int{"east": structs.JobDefaultPriority, "west": 40} {
		if got := jobIn(t, east, region, "wide").Priority; got != want {
			t.Errorf("in %s it has priority %d, want %d", region, got, want)
		}
	}
	high := inRegions("high", "east", "west")
	high.Priority = 71
	if _, err := registerAll(t.Context(), east, high); !strings.Contains(fmt.Sprint(err), `region "west": job "high": priority 71: the servers of this region allow at most 70`) {
		t.Errorf("%v", err)
	}
	if jobIn(t, east, "east", "high") != nil {
		t.Error("it is registered in east")
	}
}

// TestLoweredMaxPriority: jobs that were registered with a priority which is not allowed any more run on, and can be scaled,
// stopped and reverted to.
func TestLoweredMaxPriority(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := startBeside(t, dir, func(*Config) {})
	for _, priority := range []int{90, 55} {
		job := unranked("old")
		job.Priority, job.Type = priority, structs.JobTypeService
		if _, err := registerAll(t.Context(), before, job); err != nil {
			t.Fatal(err)
		}
	}
	if err := before.Shutdown(); err != nil {
		t.Fatal(err)
	}
	s := startBeside(t, dir, func(c *Config) { c.Jobs.MaxPriority = 60 })
	revert := &structs.JobRevertRequest{JobID: "old", JobVersion: 0}
	if err := s.Call(t.Context(), wire.MethodJobRevert, revert, &structs.JobRegisterReply{}); err != nil {
		t.Fatalf("revert to the version of priority 90: %v", err)
	}
	three := int64(3)
	scale := &structs.JobScaleRequest{JobID: "old", Target: map[string]string{"Group": "g"}, Count: &three}
	if err := s.Call(t.Context(), wire.MethodJobScale, scale, &structs.JobRegisterReply{}); err != nil {
		t.Fatalf("scale it: %v", err)
	}
	if job := jobIn(t, s, "", "old"); job.Priority != 90 || job.TaskGroups[0].Count != 3 {
		t.Errorf("priority %d, count %d", job.Priority, job.TaskGroups[0].Count)
	}
	again := unranked("old")
	again.Priority, again.Type = 90, structs.JobTypeService
	if _, err := registerAll(t.Context(), s, again); !strings.Contains(fmt.Sprint(err), "job_max_priority") {
		t.Errorf("registered anew with priority 90: %v", err)
	}
}
