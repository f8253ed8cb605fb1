package job

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// TestJobsFromBeforeTheLimits: a job that is larger than jobs may be, and is in the state already, can be evaluated, scaled
// and stopped. It cannot be registered again, nor planned, and the error says why.
func TestJobsFromBeforeTheLimits(t *testing.T) {
	d := endpointtest.New(t)
	n := 0
	e := New(Config{MaxSize: 4 << 20}, Deps{Parts: rpc.Parts{
		Router: d.Router, Applier: d, Now: time.Now,
		NewID: func() string { n++; return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) },
	}})
	job := &structs.Job{ID: "old", Type: structs.JobTypeBatch, Meta: map[string]string{"m": strings.Repeat("m", 5<<20)}}
	for i := range structs.MaxJobGroups + 500 {
		job.TaskGroups = append(job.TaskGroups, &structs.TaskGroup{Name: fmt.Sprint("g", i), Tasks: []*structs.Task{{Name: "t", Driver: "d"}}})
	}
	job.Canonicalize()
	d.Put(&structs.JobRegisterEntry{Job: job, Time: 1})
	for what, call := range map[string]func() (*structs.JobRegisterReply, error){ // order does not matter: stopping comes last
		"evaluate": func() (*structs.JobRegisterReply, error) {
			return e.evaluate(t.Context(), &structs.JobEvaluateRequest{JobID: "old"})
		},
		"scale": func() (*structs.JobRegisterReply, error) {
			count := int64(3)
			return e.scale(t.Context(), &structs.JobScaleRequest{JobID: "old", Target: map[string]string{"Group": "g1400"}, Count: &count})
		},
	} {
		if reply, err := call(); err != nil || reply.EvalID == "" {
			t.Errorf("%s: %v, %v; want an evaluation", what, reply, err)
		}
	}
	again := d.Store.Snapshot().Job(nil, structs.DefaultNamespace, "old").Copy()
	if _, err := e.register(t.Context(), &structs.JobRegisterRequest{Job: again}); !errors.Is(err, structs.ErrBadRequest) || !strings.Contains(err.Error(), "at most 1000 groups") {
		t.Errorf("registering it again: %v, want a bad request", err)
	}
	if _, err := e.plan(t.Context(), &structs.JobPlanRequest{Job: again.Copy()}); !errors.Is(err, structs.ErrBadRequest) {
		t.Errorf("planning it: %v, want a bad request", err)
	}
	if reply, err := e.deregister(t.Context(), &structs.JobDeregisterRequest{JobID: "old"}); err != nil || reply.EvalID == "" {
		t.Errorf("stop: %v, %v; want an evaluation", reply, err)
	}
	if stored := d.Store.Snapshot().Job(nil, structs.DefaultNamespace, "old"); stored == nil || !stored.Stop || len(stored.TaskGroups) != len(job.TaskGroups) {
		t.Errorf("it is %v afterwards, want stopped with all its groups", stored)
	}
}
