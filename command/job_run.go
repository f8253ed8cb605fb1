package command

import (
	"context"
	"flag"

	"github.com/nomadish/nomadish/structs"
)

func jobRun() spec {
	return spec{
		synopsis: "Submit a job, or a new version of one, and follow it",
		usage:    "<file>", accepts: append([]string{"ui"}, fileFlags...), example: "-var count=3 web.nomad.hcl",
		details: "The file is HCL (or JSON with -json); \"-\" reads standard input. Unless -detach is\n" +
			"given, the evaluation and its allocations are followed until they run, or, of\n" +
			"batch work, have finished. It goes to the region of -region, else to the one that it\n" +
			"states, else to the agent's; with a multiregion block, to all that this names. Exit code 1: batch work failed; 2: not all of it could\n" +
			"be placed; 130: interrupted while following, and the job goes on.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var file jobFile
			file.flags(fs, "json")
			detach := fs.Bool("detach", false, "do not follow the evaluation")
			verbose := fs.Bool("verbose", false, "print whole IDs")
			check := fs.Int64("check-index", -1, "register only if the job's modify index is `N` (0: it must be new)")
			keep := fs.Bool("preserve-counts", false, "keep the groups' present counts")
			keepResources := fs.Bool("preserve-resources", false, "keep the tasks' present resources")
			priority := fs.Int("eval-priority", 0, "the evaluation's `priority`, if not the job's")
			output := fs.Bool("output", false, "only print the job as JSON")
			return func(ctx context.Context, e *env, args []string) int {
				job, submission, err := file.read(e, args)
				if err != nil {
					return e.fail(err)
				}
				if *output {
					e.json = true
					_, code := e.formatted(map[string]any{"Job": job})
					return code
				}
				req := &structs.JobRegisterRequest{
					Job: job, Submission: submission, PreserveCounts: *keep, PreserveResources: *keepResources, EvalPriority: *priority,
				}
				if *check >= 0 {
					req.EnforceIndex, req.JobModifyIndex = true, uint64(*check)
				}
				if e.namespace != "" {
					job.Namespace = e.namespace
				}
				e.toJobsRegion(job)
				reply, err := e.client.JobRegister(ctx, req)
				if err != nil {
					return e.fail(file.placed(err))
				}
				e.warn(file.news(reply.Warnings))
				if *detach {
					e.printf("Job registration successful\n")
				}
				if len(reply.Regions) > 0 {
					return e.followRegions(ctx, reply.Regions, *detach, *verbose)
				}
				return e.follow(ctx, reply.EvalID, *detach, *verbose)
			}
		},
	}
}
