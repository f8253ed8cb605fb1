package job

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/identity"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// applied stores what is applied in a site's state.
type applied struct{ *site }

func (a applied) Apply(_ context.Context, _ structs.LogType, entry any) (uint64, error) {
	a.Put(entry)
	return a.Router.Snapshot().Index(), nil
}

// users is a user database that has ada alone.
type users struct{}

// Groups implements identity.Database.
func (users) Groups(user string) ([]string, bool) {
	return map[string][]string{"ada": {"users", "chip", "users"}}[user], user == "ada"
}

// HasGroup implements identity.Database.
func (users) HasGroup(string) bool { return false }

// TestSubmitter: who registers a job is the user that the request is of, where that is trusted, with the groups that the server knows;
// what the job itself states counts for nothing.
func TestSubmitter(t *testing.T) {
	s := newSite(t)
	s.Endpoint = New(Config{MaxPriority: 100, DefaultPriority: 50}, Deps{
		Parts:    rpc.Parts{Router: s.Router, Applier: applied{s}, NewID: func() string { return structs.DeriveID("x", uint64(time.Now().UnixNano())) }, Now: time.Now},
		Identity: identity.New(identity.Options{Trust: true, Database: users{}}),
	})
	register := func(user string) (*structs.Job, string, error) {
		job := endpointtest.Job("web", 64)
		job.Submitter = &structs.Submitter{User: "root", Groups: []string{"wheel"}, Source: structs.SubmitterSourceHeader} // forged
		reply, err := s.register(t.Context(), &structs.JobRegisterRequest{Job: job, WriteRequest: structs.WriteRequest{Namespace: job.Namespace, User: user}})
		if err != nil {
			return nil, "", err
		}
		return s.Router.Snapshot().Job(nil, job.Namespace, job.ID), reply.Warnings, nil
	}
	job, _, err := register("")
	if err != nil || job.Submitter != nil || job.Version != 0 {
		t.Fatalf("of nobody: %+v, version %d, %v", job.Submitter, job.Version, err)
	}
	job, warnings, err := register("ada")
	if err != nil || job.Submitter == nil || job.Submitter.User != "ada" || !slices.Equal(job.Submitter.Groups, []string{"chip", "users"}) ||
		job.Submitter.Source != structs.SubmitterSourceHeader || job.Version != 1 || strings.Contains(warnings, "ada") {
		t.Fatalf("of ada: %+v, version %d, warnings %q, %v", job.Submitter, job.Version, warnings, err)
	}
	if job, _, err = register("ada"); err != nil || job.Version != 1 {
		t.Errorf("of ada again: version %d, %v", job.Version, err)
	}
	if job, warnings, err = register("bob@site"); err != nil || job.Submitter.User != "bob@site" || len(job.Submitter.Groups) != 0 || !strings.Contains(warnings, `user "bob@site" is not known`) {
		t.Errorf("of somebody who is not known: %+v, warnings %q, %v", job.Submitter, warnings, err)
	}
	for _, bad := range []string{"-x", "a b", "a\n", strings.Repeat("a", 65), "ä"} {
		if _, _, err := register(bad); structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), "letters, digits") {
			t.Errorf("user %q: %v", bad, err)
		}
	}
	s.Identity = identity.New(identity.Options{Database: users{}})
	if _, _, err := register("ada"); structs.CodeOf(err) != structs.CodeForbidden || !strings.Contains(err.Error(), "trust_user_header") {
		t.Errorf("of ada, whom nobody trusts: %v", err)
	}
	if job, _, err = register(""); err != nil || job.Submitter != nil {
		t.Errorf("of nobody, where nobody is trusted: %+v, %v", job.Submitter, err)
	}
}

// TestSubmitterChangesNothingThatRuns: a job that another user registers is another version, and its instances run on.
func TestSubmitterChangesNothingThatRuns(t *testing.T) {
	old, now := endpointtest.Job("web", 64), endpointtest.Job("web", 64)
	now.Submitter = &structs.Submitter{User: "ada"}
	if !now.SpecChanged(old) || structs.JobGroupChange(old, now, old.TaskGroups[0].Name) != structs.ChangeInPlace {
		t.Errorf("changed %v, of its group %v", now.SpecChanged(old), structs.JobGroupChange(old, now, old.TaskGroups[0].Name))
	}
}

// TestScaleOfEndedStage: a job of a workflow is scaled while its stage runs, and not when the run is over with it: it would run again beside the next stage.
func TestScaleOfEndedStage(t *testing.T) {
	s := newSite(t)
	s.Endpoint = siteOfWorkflow(s)
	job := endpointtest.Job("chip/1/a", 64)
	job.Namespace, job.Workflow = structs.DefaultNamespace, &structs.JobWorkflow{ID: "chip", Run: 1, Stage: "s", Attempt: 1}
	s.Put(&structs.JobRegisterEntry{Job: job, Time: 1})
	count := int64(3)
	for _, state := range []string{structs.StageRunning, structs.StageComplete} {
		r := s.Store.Snapshot().Workflows(nil).Get(structs.DefaultNamespace, "chip")
		s.Put(&structs.WorkflowAdvanceEntry{
			Namespace: r.Namespace, ID: r.ID, Run: 1, CheckIndex: r.ModifyIndex, State: structs.WorkflowRunning,
			Jobs: []structs.WorkflowJobMove{{State: state}}, Time: 1,
		})
		_, err := s.scale(t.Context(), &structs.JobScaleRequest{JobID: job.ID, Target: map[string]string{"Group": job.TaskGroups[0].Name}, Count: &count})
		if over := structs.CodeOf(err) == structs.CodeConflict; over != (state == structs.StageComplete) || !over && err != nil {
			t.Errorf("of a job that is %s: %v", state, err)
		}
	}
}

// siteOfWorkflow returns an endpoint of a state with a run of workflow chip, whose stage s has the job a.
func siteOfWorkflow(s *site) *Endpoint {
	w := &structs.Workflow{ID: "chip", Stages: []*structs.WorkflowStage{{Name: "s", Jobs: []*structs.WorkflowJob{{Name: "a", Job: &structs.Job{
		TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1, Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver"}}}},
	}}}}}}
	w.Canonicalize()
	s.Put(&structs.WorkflowRunEntry{Workflow: w, Time: 1})
	return New(Config{}, Deps{
		Parts:    rpc.Parts{Router: s.Router, Applier: applied{s}, NewID: func() string { return structs.DeriveID("x", uint64(time.Now().UnixNano())) }, Now: time.Now},
		Identity: identity.New(identity.Options{}),
	})
}

// TestJobsOfWorkflowsAreTheirs: nobody else registers a job of the ID that a later stage of a run registers.
func TestJobsOfWorkflowsAreTheirs(t *testing.T) {
	s := newSite(t)
	s.Endpoint = siteOfWorkflow(s)
	for id, refused := range map[string]bool{"chip/1/a": true, "chip/1/b": false, "chip/2/a": false, "other/1/a": false, "chip/1": false} {
		job := endpointtest.Job(id, 64)
		job.Namespace = structs.DefaultNamespace
		_, err := s.register(t.Context(), &structs.JobRegisterRequest{Job: job})
		if got := structs.CodeOf(err) == structs.CodeConflict; got != refused || err != nil && !strings.Contains(err.Error(), "run 1 of workflow") {
			t.Errorf("%s: %v", id, err)
		}
	}
}
