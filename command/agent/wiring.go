package agent

import (
	"github.com/nomadish/nomadish/command/jobspec"
	"github.com/nomadish/nomadish/command/jobspec/hclfile"

	httpapi "github.com/nomadish/nomadish/command/agent/http"
	"github.com/nomadish/nomadish/structs"
)

// realParts are those of the command.
func realParts() parts {
	return parts{server: newServer, client: newClient, remote: newRemote, parse: parseJob}
}

// parseJob reads a job file for /v1/jobs/parse. It may come from anybody, so
// functions that read this machine's files are off.
func parseJob(source, variables string, canonicalize bool) (*httpapi.ParsedJob, error) {
	opts := jobspec.Options{}
	if variables != "" {
		opts.VarFiles = []hclfile.VarFile{{Name: "variables.hcl", Src: []byte(variables)}}
	}
	job, warnings, err := jobspec.Parse("job.nomad.hcl", []byte(source), opts)
	if err != nil {
		return nil, structs.Errorf(structs.CodeBadRequest, "%w", err)
	}
	if canonicalize {
		job.Canonicalize()
	}
	out := &httpapi.ParsedJob{Job: job}
	for _, w := range warnings {
		out.Warnings = append(out.Warnings, w.String())
	}
	return out, nil
}
