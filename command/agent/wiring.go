package agent

import (
	"context"

	"github.com/nomadish/nomadish/command/agent/config"
	httpapi "github.com/nomadish/nomadish/command/agent/http"
	"github.com/nomadish/nomadish/command/agent/jobparse"
)

// realParts are those of the command.
func realParts() parts {
	return parts{server: newServer, client: newClient, remote: newRemote}
}

// newParser returns what parses job files for /v1/jobs/parse, each in a process of its own.
func newParser(l config.Limits) func(ctx context.Context, source, variables string, canonicalize bool) (*httpapi.ParsedJob, error) {
	pool := jobparse.New(jobparse.Config{
		Processes: l.JobParseProcesses, Waiting: l.JobParseWaiting, CPU: l.JobParseCPU, Memory: l.JobParseMemory, Output: l.HTTPMaxBody,
	})
	return func(ctx context.Context, source, variables string, canonicalize bool) (*httpapi.ParsedJob, error) {
		job, err := pool.Parse(ctx, source, variables, canonicalize)
		if err != nil {
			return nil, err
		}
		return &httpapi.ParsedJob{Job: job.JSON, Warnings: job.Warnings}, nil
	}
}
