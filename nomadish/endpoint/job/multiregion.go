package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// checkLimit bounds the call that checks whether a region would take a job.
const checkLimit = 30 * time.Second

// scope is the part of a request that reports whether a job is for many regions.
type scope struct {
	Job *struct {
		Multiregion *struct{ Regions []struct{ Name string } }
	}
	OneRegion bool
	Global    bool
}

// byRegion has everywhere answer requests about a multiregion job, and one all others: those for one
// region, and what everywhere requests of the regions.
func byRegion[A, R any](r *rpc.Router, one wire.Handler, everywhere func(ctx context.Context, args *A) (*R, error)) wire.Handler {
	all := r.Regional(false, wire.Unary(everywhere))
	return func(ctx context.Context, call *wire.Call) error {
		if many, err := forMany(call); err != nil {
			return structs.Errorf(structs.CodeBadRequest, "%s: %w", call.Method, err)
		} else if many {
			return all(ctx, call)
		}
		return one(ctx, call)
	}
}

func forMany(call *wire.Call) (bool, error) {
	if r, ok := call.Given().(*structs.JobRegisterRequest); ok {
		return r.Job != nil && r.Job.Multiregion != nil && !r.OneRegion, nil
	}
	var s scope
	if err := call.Args(&s); err != nil {
		return false, err
	}
	return (s.Global || s.Job != nil && s.Job.Multiregion != nil) && !s.OneRegion, nil
}

// registerEverywhere registers a multiregion job in one region after the other, when all of them are
// there and would take it. It is no transaction: what a region has it keeps when a later one fails,
// and the answer states which has it. Doing it again changes nothing where it is done.
func (e *Endpoint) registerEverywhere(ctx context.Context, args *structs.JobRegisterRequest) (*structs.JobRegisterReply, error) {
	job := args.Job
	if err := e.checkMulti(job, args.Namespace); err != nil {
		return nil, err
	}
	if args.EnforceIndex && args.JobModifyIndex > 0 {
		return nil, structs.Errorf(structs.CodeBadRequest, "job %q: a check index belongs to one region, and this job runs in several", job.ID).
			WithHint("leave it out; 0 means that the job must be new in each")
	}
	checks := e.checkRegions(ctx, args)
	if err := refusals(job.ID, checks); err != nil {
		return nil, err
	}
	reply := &structs.JobRegisterReply{Warnings: checks[0].warnings}
	var failed error
	for _, name := range job.RegionNames() {
		done := structs.JobRegionReply{Region: name}
		if failed == nil || job.Multiregion.Strategy.OnFailure == structs.OnFailureLocal {
			one := e.oneRegion(args, name)
			var got structs.JobRegisterReply
			if err := e.Self(ctx, wire.MethodJobRegister, one, &got); err != nil {
				failed, done.Error = errors.Join(failed, err), err.Error()
			} else {
				done.Done, done.EvalID, done.JobModifyIndex = true, got.EvalID, got.JobModifyIndex
				if name == e.Router.Region || reply.EvalID == "" {
					reply.EvalID, reply.EvalCreateIndex, reply.JobModifyIndex, reply.Index = got.EvalID, got.EvalCreateIndex, got.JobModifyIndex, got.Index
				}
			}
		}
		reply.Regions = append(reply.Regions, done)
	}
	if failed != nil {
		return nil, structs.Errorf(structs.CodeOf(failed), "job %q: %s", job.ID, outcome("registered", reply.Regions)).
			WithHint("run it again when that is put right: it changes nothing in regions that have it")
	}
	return reply, nil
}

// checkMulti refuses what no region would take.
func (e *Endpoint) checkMulti(job *structs.Job, ns string) error {
	if job.Namespace == "" && ns != structs.AllNamespaces {
		job.Namespace = ns
	}
	if err := job.CheckSize(e.MaxSize); err != nil {
		return err
	}
	stated := job.Priority
	job.Canonicalize()
	err := job.Validate().Err()
	job.Priority = stated // not stated, it is the default of each region
	return err
}

// oneRegion returns the request for one of the regions.
func (e *Endpoint) oneRegion(args *structs.JobRegisterRequest, region string) *structs.JobRegisterRequest {
	one := *args
	one.Job, one.Region, one.OneRegion = args.Job.InRegion(region), region, true
	return &one
}

// regionCheck is what a region reports about a job before anything is done.
type regionCheck struct {
	region   string
	err      error // it cannot be reached, or has no leader
	problems []string
	warnings string
}

// checkRegions checks in all regions at once whether they would take the job.
func (e *Endpoint) checkRegions(ctx context.Context, args *structs.JobRegisterRequest) []regionCheck {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	names := args.Job.RegionNames()
	checks := make([]regionCheck, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		checks[i].region = name
		all.Go(func() {
			c := &checks[i]
			leader := &structs.EmptyRequest{QueryOptions: structs.QueryOptions{Region: name, AuthToken: args.AuthToken}}
			if c.err = e.Self(ctx, wire.MethodLeader, leader, &structs.StringReply{}); c.err != nil {
				return
			}
			var reply structs.JobValidateReply
			if c.err = e.Self(ctx, wire.MethodJobValidate, e.oneRegion(args, name), &reply); c.err == nil {
				c.problems, c.warnings = reply.ValidationErrors, reply.Warnings
			}
		})
	}
	all.Wait()
	return checks
}

// refusals is an error if a region would not take the job, and states for each that would not why.
func refusals(id string, checks []regionCheck) error {
	var lines []string
	code := structs.CodeBadRequest
	for _, c := range checks {
		if c.err != nil {
			code = structs.CodeOf(c.err)
			lines = append(lines, fmt.Sprintf("region %q: %v", c.region, c.err))
		}
		for _, p := range c.problems {
			lines = append(lines, fmt.Sprintf("region %q: %s", c.region, p))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return structs.Errorf(code, "job %q: nothing was registered anywhere: %s", id, strings.Join(lines, "; "))
}

// validateEverywhere validates a multiregion job in all its regions.
func (e *Endpoint) validateEverywhere(ctx context.Context, args *structs.JobRegisterRequest) (*structs.JobValidateReply, error) {
	if err := e.checkMulti(args.Job, args.Namespace); err != nil {
		return &structs.JobValidateReply{DriverConfigValidated: true, Error: err.Error(), ValidationErrors: leaves(err)}, nil
	}
	reply := &structs.JobValidateReply{DriverConfigValidated: true}
	for _, c := range e.checkRegions(ctx, args) {
		if c.err != nil {
			c.problems = []string{c.err.Error()}
		}
		for _, p := range c.problems {
			reply.ValidationErrors = append(reply.ValidationErrors, fmt.Sprintf("region %q: %s", c.region, p))
		}
		reply.Warnings = c.warnings
	}
	reply.Error = strings.Join(reply.ValidationErrors, "\n")
	return reply, nil
}

// deregisterEverywhere stops a multiregion job in all its regions, as far as they can be reached. This
// server's region comes last and is purged only when all others are: it is what records where else the
// job runs.
func (e *Endpoint) deregisterEverywhere(ctx context.Context, args *structs.JobDeregisterRequest) (*structs.JobRegisterReply, error) {
	one := *args
	one.Global = false
	read := &structs.IDRequest{ID: args.JobID, QueryOptions: structs.QueryOptions{Namespace: args.Namespace, AuthToken: args.AuthToken}}
	var here structs.JobReply
	if err := e.Self(ctx, wire.MethodJobGet, read, &here); err != nil {
		return nil, err
	}
	if here.Job == nil || here.Job.Multiregion == nil { // as in Nomad: it is for multiregion jobs only
		reply := &structs.JobRegisterReply{}
		one.Region = ""
		return reply, e.Self(ctx, wire.MethodJobDeregister, &one, reply)
	}
	names := slices.DeleteFunc(here.Job.RegionNames(), func(name string) bool { return name == e.Router.Region })
	reply := &structs.JobRegisterReply{}
	var failed error
	for _, name := range append(names, e.Router.Region) {
		one.Region = name
		if name == e.Router.Region && failed != nil {
			one.Purge = false
		}
		var got structs.JobRegisterReply
		done := structs.JobRegionReply{Region: name, Done: true}
		if err := e.Self(ctx, wire.MethodJobDeregister, &one, &got); err != nil && structs.CodeOf(err) != structs.CodeNotFound {
			failed, done.Done, done.Error = errors.Join(failed, err), false, err.Error()
		}
		done.EvalID, done.JobModifyIndex = got.EvalID, got.JobModifyIndex
		reply.Regions = append(reply.Regions, done)
		reply.EvalID, reply.EvalCreateIndex, reply.JobModifyIndex, reply.Index = got.EvalID, got.EvalCreateIndex, got.JobModifyIndex, got.Index
	}
	if failed != nil {
		return nil, structs.Errorf(structs.CodeOf(failed), "job %q: %s", args.JobID, outcome("stopped", reply.Regions)).
			WithHint("do it again when that is put right; region %q remembers the job until then", e.Router.Region)
	}
	return reply, nil
}

// outcome returns which regions were changed and which were not.
func outcome(verb string, regions []structs.JobRegionReply) string {
	var done, failed, left []string
	for _, r := range regions {
		switch {
		case r.Done:
			done = append(done, r.Region)
		case r.Error != "":
			failed = append(failed, fmt.Sprintf("not in region %s: %s", r.Region, r.Error))
		default:
			left = append(left, r.Region)
		}
	}
	text := "not " + verb + " in any region"
	if len(done) > 0 {
		text = verb + " in " + strings.Join(done, ", ")
	}
	text = strings.Join(append([]string{text}, failed...), "; ")
	if len(left) > 0 {
		text += "; not tried in " + strings.Join(left, ", ")
	}
	return text
}
