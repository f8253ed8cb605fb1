package command

import (
	"cmp"
	"context"
	"flag"
	"fmt"

	"github.com/nomadish/nomadish/structs"
)

func jobRun() spec {
	return spec{
		synopsis: "Submit a job, or a new version of one, and follow it",
		usage:    "<file>...", accepts: append([]string{"ui"}, fileFlags...), example: "-var count=3 web.nomad.hcl",
		details: "The file is HCL (or JSON with -json); \"-\" reads standard input. Unless -detach is set, the command follows the\n" +
			"evaluation until the allocations run or, for batch jobs, have finished. The job is registered in the region of\n" +
			"-region, else in the region that the job states, else in the agent's. A job with a multiregion block is registered in all regions\n" +
			"that the block names. If several files are given, all are read before the first job is submitted; if one job is\n" +
			"rejected, the others are still submitted.\n" +
			"\n" +
			"Exit code 1: the job was not submitted, or a batch job failed. 2: some instances could not be placed, or an instance of\n" +
			"another type of job failed or did not run within 5 minutes. 130: interrupted while following; the job continues.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var file jobFile
			file.flags(fs, "json")
			detach := fs.Bool("detach", false, "do not follow the evaluation")
			verbose := fs.Bool("verbose", false, "print whole IDs")
			check := fs.Int64("check-index", -1, "register only if the job's modify index is `N` (0: it must be new)")
			keep := fs.Bool("preserve-counts", false, "keep the groups' present counts")
			keepResources := fs.Bool("preserve-resources", false, "keep the tasks' present resources")
			priority := fs.Int("eval-priority", 0, "the evaluation's `priority`, if not the job's")
			opportunistic := fs.Bool("opportunistic", false, "run what exceeds the virtual cluster of the namespace on idle resources; it may be reclaimed at any time")
			user := fs.String("user", "", userUsage)
			try := whatIfFlags(fs)
			output := fs.Bool("output", false, "only print the job as JSON")
			return func(ctx context.Context, e *env, args []string) int {
				whatIf, err := try.wanted()
				switch {
				case err != nil:
					return e.usage("%v", err)
				case len(args) == 0:
					return e.usage("at least one job file is needed, 0 given")
				case len(args) > 1 && *check >= 0:
					return e.usage("-check-index is of one job: submit the files one by one")
				case len(args) > 1 && *output:
					return e.usage("-output prints one job: name exactly one file")
				}
				files, err := file.readAll(ctx, e, args)
				if err != nil {
					return e.fail(err)
				}
				if *output {
					files[0].job.Separate()
					e.json = true
					_, code := e.formatted(map[string]any{"Job": files[0].job})
					return code
				}
				requests := make([]*structs.JobRegisterRequest, 0, len(files))
				for _, f := range files {
					req := &structs.JobRegisterRequest{
						Job: f.job, Submission: f.submission, PreserveCounts: *keep, PreserveResources: *keepResources, EvalPriority: *priority,
						Opportunistic: *opportunistic,
					}
					if *check >= 0 {
						req.EnforceIndex, req.JobModifyIndex = true, uint64(*check)
					}
					if e.jobNamespace() != "" {
						f.job.Namespace = e.namespace
					}
					requests = append(requests, req)
				}
				e.client = e.client.As(*user)
				if whatIf {
					return try.jobs(ctx, e, files, *opportunistic, *check)
				}
				return runJobs(ctx, e, files, requests, *detach, *verbose)
			}
		},
	}
}

// readFile is a job file that was read.
type readFile struct {
	jobFile // with its own warnings and places

	path       string
	job        *structs.Job
	submission *structs.JobSubmission
}

// readAll reads the files that args name. Nothing is to be submitted if one cannot be read, or two state one job.
func (j *jobFile) readAll(ctx context.Context, e *env, args []string) ([]*readFile, error) {
	files, paths := make([]*readFile, 0, len(args)), map[structs.NamespacedID]string{}
	for _, path := range args {
		f := &readFile{jobFile: *j, path: path}
		var err error
		if f.job, f.submission, err = f.read(ctx, e, []string{path}); err != nil {
			return nil, err
		}
		id := structs.NamespacedID{Namespace: cmp.Or(e.jobNamespace(), f.job.Namespace), ID: f.job.ID}
		if other, twice := paths[id]; twice {
			return nil, fmt.Errorf("%s and %s both state the job %q: submit them one by one", other, path, f.job.ID)
		}
		paths[id] = path
		files = append(files, f)
	}
	return files, nil
}

// runJobs submits all jobs, and then follows one after the other. One that is refused keeps no other back. It returns the
// worst of their exit codes: a failure counts more than what could not be placed.
func runJobs(ctx context.Context, e *env, files []*readFile, requests []*structs.JobRegisterRequest, detach, verbose bool) int {
	code := exitDone
	worse := func(c int) {
		if c != exitDone && (code == exitDone || c != exitIncomplete) {
			code = c
		}
	}
	var follow []func() int
	for i, f := range files {
		there := *e
		there.toJobsRegion(f.job)
		head := func() {
			if len(files) > 1 {
				e.printf("%s\n", e.style.Bold(fmt.Sprintf("Job %q:", f.job.ID)))
			}
		}
		reply, err := there.client.Jobs().Register(ctx, requests[i])
		if err != nil {
			head()
			worse(e.fail(f.placed(err)))
			if ctx.Err() != nil {
				return code
			}
			continue
		}
		follow = append(follow, func() int {
			head()
			warnOf(e, "Job", f.news(reply.Warnings))
			if reply.Submission == structs.SubmissionRecognised {
				e.printf("Recognised: %s\n", structs.SubmissionText(requests[i].Job, reply.Submission))
			}
			if detach {
				e.printf("Job registration successful\n")
			}
			if len(reply.Regions) > 0 {
				return there.followRegions(ctx, reply.Regions, detach, verbose)
			}
			return there.follow(ctx, reply.EvalID, detach, verbose)
		})
	}
	for _, next := range follow {
		worse(next())
		if ctx.Err() != nil {
			break
		}
	}
	return code
}
