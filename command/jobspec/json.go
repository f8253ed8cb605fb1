package jobspec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nomadish/nomadish/command/jobspec/hclfile"
	"github.com/nomadish/nomadish/structs"
)

// ParseJSON reads a job from JSON as the HTTP API takes it: the job, or an
// object whose Job is the job. It answers as [Parse] does, but only mistakes of
// syntax have a line; others name the field.
func ParseJSON(filename string, src []byte, opts Options) (*structs.Job, Warnings, error) {
	limit := opts.Limits.FileBytes
	if limit == 0 {
		limit = hclfile.DefaultFileBytes
	}
	if len(src) > limit {
		return nil, nil, hclfile.Problems{{File: filename, Text: fmt.Sprintf("the file has %d bytes, more than the limit of %d", len(src), limit)}}
	}
	var wrapped struct{ Job *structs.Job }
	err := json.Unmarshal(src, &wrapped)
	job := wrapped.Job
	if err == nil && job == nil {
		job = new(structs.Job)
		err = json.Unmarshal(src, job)
	}
	if err != nil {
		return nil, nil, hclfile.Problems{jsonProblem(filename, src, err)}
	}
	if job.ID == "" && len(job.TaskGroups) == 0 {
		return nil, nil, hclfile.Problems{{File: filename, Text: "the file has no job: neither ID nor TaskGroups, nor Job around them"}}
	}
	if opts.SkipValidate {
		return job, nil, nil
	}
	canonical := job.Copy()
	canonical.Canonicalize()
	if problems := unplaced(filename, canonical.Validate()); len(problems) > 0 {
		return nil, nil, problems
	}
	return job, unplaced(filename, canonical.WarningList()), nil
}

func jsonProblem(filename string, src []byte, err error) hclfile.Problem {
	p := hclfile.Problem{File: filename, Text: err.Error()}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		before := src[:min(max(int(syntax.Offset)-1, 0), len(src))]
		p.Line = bytes.Count(before, []byte("\n")) + 1
		p.Column = len(before) - (bytes.LastIndexByte(before, '\n') + 1) + 1
	}
	return p
}

func unplaced(filename string, in structs.Problems) hclfile.Problems {
	var out hclfile.Problems
	for _, p := range in {
		out = append(out, hclfile.Problem{File: filename, Text: p.String()})
	}
	return out
}
