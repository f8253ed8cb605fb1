package nomadish

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// inRegions is a job of several regions; group "g" gets each region's count.
func inRegions(id string, regions ...string) *structs.Job {
	job := batchJob(id, 0)
	job.Multiregion = &structs.Multiregion{}
	for i, name := range regions {
		job.Multiregion.Regions = append(job.Multiregion.Regions, &structs.MultiregionRegion{
			Name: name, Count: i + 1, Meta: map[string]string{"where": name},
		})
	}
	return job
}

func registerAll(ctx context.Context, s *Server, job *structs.Job, change ...func(*structs.JobRegisterRequest)) (*structs.JobRegisterReply, error) {
	args, reply := &structs.JobRegisterRequest{Job: job}, &structs.JobRegisterReply{}
	for _, f := range change {
		f(args)
	}
	return reply, s.Call(ctx, wire.MethodJobRegister, args, reply)
}

func jobIn(t *testing.T, s *Server, region, id string) *structs.Job {
	t.Helper()
	reply := &structs.JobReply{}
	if err := s.Call(t.Context(), wire.MethodJobGet, &structs.IDRequest{ID: id, QueryOptions: in(region)}, reply); err != nil {
		t.Fatal(err)
	}
	return reply.Job
}

// TestMultiregion: a job is registered in all its regions, each with its count and meta; again without
// effect; and stopped in all. One that a region does not know, or would not take, is registered nowhere.
func TestMultiregion(t *testing.T) {
	t.Parallel()
	f := federate(t, nil, "east", "west")
	east := f.regions["east"].all[0]
	for range 2 { // the second time changes nothing
		reply, err := registerAll(t.Context(), east, inRegions("wide", "west", "east"))
		if err != nil || len(reply.Regions) != 2 || !reply.Regions[0].Done || reply.Regions[0].EvalID == "" || reply.EvalID != reply.Regions[1].EvalID {
			t.Fatalf("%+v, %v", reply, err)
		}
	}
	for i, region := range []string{"west", "east"} {
		job := jobIn(t, east, region, "wide")
		if job == nil || job.Region != region || job.TaskGroups[0].Count != i+1 || job.Meta["where"] != region || job.Version != 0 || job.Multiregion == nil {
			t.Errorf("in %s: %+v", region, job)
		}
	}
	bad := inRegions("bad", "west", "east")
	bad.TaskGroups[0].Count = -1
	for what, c := range map[string]struct {
		job  *structs.Job
		code structs.Code
		says string
		with func(*structs.JobRegisterRequest)
	}{
		"an unknown region":    {inRegions("lost", "west", "mars"), structs.CodeNoRegion, `nothing was registered anywhere: region "mars": No path to region "mars"`, nil},
		"a bad job":            {bad, structs.CodeBadRequest, "count", nil},
		"the same twice":       {inRegions("twice", "west", "west"), structs.CodeBadRequest, "west", nil},
		"no region":            {inRegions("none"), structs.CodeBadRequest, "at least once", nil},
		"a name that none has": {inRegions("odd", "a b"), structs.CodeBadRequest, "letters, digits", nil},
		"a check index": {inRegions("index", "west", "east"), structs.CodeBadRequest, "a check index belongs to one region",
			func(r *structs.JobRegisterRequest) { r.EnforceIndex, r.JobModifyIndex = true, 7 }},
	} {
		var change []func(*structs.JobRegisterRequest)
		if c.with != nil {
			change = append(change, c.with)
		}
		if _, err := registerAll(t.Context(), east, c.job, change...); structs.CodeOf(err) != c.code || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v (code %s)", what, err, structs.CodeOf(err))
		}
		if jobIn(t, east, "west", c.job.ID) != nil {
			t.Errorf("%s: registered in west", what)
		}
	}
	check := &structs.JobValidateReply{}
	args := &structs.JobRegisterRequest{Job: inRegions("lost", "west", "mars")}
	if err := east.Call(t.Context(), wire.MethodJobValidate, args, check); err != nil || !strings.Contains(check.Error, `region "mars": No path`) {
		t.Errorf("validated: %+v, %v", check, err)
	}
	plan := &structs.JobPlanReply{}
	planned := &structs.JobPlanRequest{Job: inRegions("wide", "west", "east"), WriteRequest: structs.WriteRequest{Region: "west"}}
	if err := east.Call(t.Context(), wire.MethodJobPlan, planned, plan); err != nil {
		t.Errorf("planned in west: %v", err)
	}
	planned = &structs.JobPlanRequest{Job: inRegions("wide", "west")}
	if err := east.Call(t.Context(), wire.MethodJobPlan, planned, plan); !strings.Contains(fmt.Sprint(err), "it does not run in region \"east\"") {
		t.Errorf("planned where it does not run: %v", err)
	}
	stopAll(t, east, "wide", "west", "east")
}

// stopAll stops a job everywhere, twice.
func stopAll(t *testing.T, s *Server, id string, regions ...string) {
	t.Helper()
	for range 2 {
		reply := &structs.JobRegisterReply{}
		if err := s.Call(t.Context(), wire.MethodJobDeregister, &structs.JobDeregisterRequest{JobID: id, Global: true}, reply); err != nil || len(reply.Regions) != len(regions) {
			t.Fatalf("%+v, %v", reply, err)
		}
	}
	for _, region := range regions {
		if job := jobIn(t, s, region, id); job == nil || !job.Stop {
			t.Errorf("in %s: %+v", region, job)
		}
	}
}

// TestMultiregionHalfway: a region that refuses half-way leaves the others with what they have, and is
// named; when it is put right, the same again does the rest.
func TestMultiregionHalfway(t *testing.T) {
	t.Parallel()
	f := federate(t, nil, "east", "west")
	east, west := f.regions["east"].all[0], f.regions["west"].all[0]
	reject := func(on bool) {
		t.Helper()
		config := structs.DefaultSchedulerConfiguration()
		config.RejectJobRegistration = on // which no check before tells of
		if err := west.Call(t.Context(), wire.MethodSchedulerSet, &structs.SchedulerConfigRequest{Config: config}, &structs.SchedulerSetReply{}); err != nil {
			t.Fatal(err)
		}
	}
	reject(true)
	_, err := registerAll(t.Context(), east, inRegions("half", "east", "west"))
	if text := fmt.Sprint(err); !strings.Contains(text, "registered in east; not in region west: job registration is switched off") || structs.CodeOf(err) != structs.CodeForbidden {
		t.Fatalf("%v", err)
	}
	_, err = registerAll(t.Context(), east, inRegions("first", "west", "east"))
	if text := fmt.Sprint(err); !strings.Contains(text, "not registered in any region") || !strings.Contains(text, "not tried in east") {
		t.Fatalf("%v", err)
	}
	local := inRegions("local", "west", "east")
	local.Multiregion.Strategy = &structs.MultiregionStrategy{OnFailure: structs.OnFailureLocal}
	if _, err = registerAll(t.Context(), east, local); !strings.Contains(fmt.Sprint(err), "registered in east; not in region west") {
		t.Fatalf("%v", err)
	}
	reject(false)
	if reply, err := registerAll(t.Context(), east, inRegions("half", "east", "west")); err != nil || len(reply.Regions) != 2 {
		t.Fatalf("%+v, %v", reply, err)
	}
	if job := jobIn(t, east, "east", "half"); job.Version != 0 {
		t.Errorf("it became version %d where it was already", job.Version)
	}

	// Stopped while west is away: east remembers it, though it was to be purged.
	f.regions["west"].crash(0)
	purge := &structs.JobDeregisterRequest{JobID: "half", Global: true, Purge: true}
	within(t, 2*time.Minute, "west being found missing", func(ctx context.Context) error {
		err := east.Call(ctx, wire.MethodJobDeregister, purge, &structs.JobRegisterReply{})
		if !strings.Contains(fmt.Sprint(err), "stopped in east; not in region west") {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
	if job := jobIn(t, east, "east", "half"); job == nil || !job.Stop {
		t.Errorf("in east: %+v", job)
	}
}
