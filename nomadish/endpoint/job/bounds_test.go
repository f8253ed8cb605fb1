package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// TestWriteLimits: what people may write with a job or a scaling is bounded, the instances of all groups too.
func TestWriteLimits(t *testing.T) {
	d := endpointtest.New(t)
	n := 0
	e := New(Config{MaxCount: 10, MaxSource: 1000}, Deps{Parts: rpc.Parts{
		Router: d.Router, Applier: d, Now: time.Now,
		NewID: func() string { n++; return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) },
	}})
	job := func(counts ...int) *structs.Job {
		j := &structs.Job{ID: "j", Type: structs.JobTypeBatch}
		for i, count := range counts {
			g := &structs.TaskGroup{Name: fmt.Sprint("g", i), Count: count, Tasks: []*structs.Task{{Name: "t", Driver: "d"}}}
			j.TaskGroups = append(j.TaskGroups, g)
		}
		return j
	}
	refused := func(what string, err error, says string) {
		t.Helper()
		if !errors.Is(err, structs.ErrBadRequest) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want a bad request with %q", what, err, says)
		}
	}
	_, err := e.register(t.Context(), &structs.JobRegisterRequest{Job: job(5, 6)})
	refused("eleven instances of two groups", err, "at most 10 instances of a job")
	_, err = e.plan(t.Context(), &structs.JobPlanRequest{Job: job(5, 6)})
	refused("planning them", err, "job_max_count")
	large := strings.Repeat("x", 2000)
	for what, s := range map[string]*structs.JobSubmission{
		"variables": {Variables: large}, "flags": {VariableFlags: map[string]string{"v": large}}, "source": {Source: large}, "small": {Source: "x"},
	} {
		reply, err := e.register(t.Context(), &structs.JobRegisterRequest{Job: job(5, 5), Submission: s})
		if err != nil || strings.Contains(reply.Warnings, "job_max_source_size") != (what != "small") {
			t.Errorf("a submission with much %s: %+v, %v", what, reply, err)
		}
	}
	count := int64(6)
	_, err = e.scale(t.Context(), &structs.JobScaleRequest{JobID: "j", Target: map[string]string{"Group": "g1"}, Count: &count})
	refused("scaling to eleven", err, "job_max_count")
	scale := structs.JobScaleRequest{JobID: "j", Target: map[string]string{"Group": "g1"}, Error: true}
	scale.Message = large
	_, err = e.scale(t.Context(), &scale)
	refused("a message of 2,000 bytes", err, "Message: must be at most 1024 bytes")
	scale.Message, scale.Meta = "", map[string]any{"m": []any{large, large, large}}
	_, err = e.scale(t.Context(), &scale)
	refused("meta of 6,000 bytes", err, "Meta: must be at most 4096 bytes")
	scale.Meta = map[string]any{"m": nested(structs.MaxJSONDepth)}
	_, err = e.scale(t.Context(), &scale)
	refused("deep meta", err, "Meta: must have at most 200 lists and objects within each other")
	deep := job(1)
	deep.TaskGroups[0].Tasks[0].Config = map[string]any{"a": nested(structs.MaxJSONDepth)}
	_, err = e.register(t.Context(), &structs.JobRegisterRequest{Job: deep})
	refused("a deep config", err, "config: must have at most 200 lists and objects within each other")
	deep.TaskGroups[0].Tasks[0].Config = map[string]any{"a": nested(structs.MaxJSONDepth - 1)}
	if _, err = e.register(t.Context(), &structs.JobRegisterRequest{Job: deep}); err != nil {
		t.Error(err)
	}
}

// nested is so many lists and maps within each other.
func nested(depth int) any {
	var v any = []any{}
	for i := range depth - 1 {
		if i%2 == 0 {
			v = map[string]any{"a": v}
		} else {
			v = []any{v}
		}
	}
	return v
}

// TestPlansWait: two jobs are planned at a time. Who waits and hangs up waits no longer.
func TestPlansWait(t *testing.T) {
	e := New(Config{}, Deps{Parts: rpc.Parts{Router: endpointtest.New(t).Router, NewID: func() string { return "id" }, Now: time.Now}})
	for range maxPlanning {
		e.planning <- struct{}{}
	}
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	j := &structs.Job{ID: "j", Type: structs.JobTypeBatch, TaskGroups: []*structs.TaskGroup{{Name: "g", Tasks: []*structs.Task{{Name: "t", Driver: "d"}}}}}
	if _, err := e.plan(ctx, &structs.JobPlanRequest{Job: j.Copy()}); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that hung up: %v", err)
	}
	<-e.planning
	if _, err := e.plan(t.Context(), &structs.JobPlanRequest{Job: j}); err != nil {
		t.Errorf("with room: %v", err)
	}
}
