package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/nomadish/nomadish/command/jobspec"
	"github.com/nomadish/nomadish/structs"
)

// maxJobFile bounds a job file's size in bytes.
const maxJobFile = 10 << 20

// jobFile is the flags of commands that read a job file.
type jobFile struct {
	vars     listFlag
	varFiles listFlag
	json     bool
}

// listFlag collects a flag that may be given many times.
type listFlag []string

func (l *listFlag) String() string     { return strings.Join(*l, ",") }
func (l *listFlag) Set(s string) error { *l = append(*l, s); return nil }

func (j *jobFile) flags(fs *flag.FlagSet, jsonName string) {
	fs.Var(&j.vars, "var", "set a variable of the file, as `name=value`; repeatable")
	fs.Var(&j.varFiles, "var-file", "read variables from an HCL `file`; repeatable")
	fs.BoolVar(&j.json, jsonName, false, "the file is JSON, not HCL")
}

// read parses the file that args names ("-": standard input).
func (j *jobFile) read(e *env, args []string) (*structs.Job, *structs.JobSubmission, error) {
	if len(args) != 1 {
		return nil, nil, fmt.Errorf("one job file is needed, %d given", len(args))
	}
	path := args[0]
	var from io.Reader = e.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			if errors.Is(err, os.ErrNotExist) {
				return nil, nil, fmt.Errorf("%s: no such file (`nomadish job init` writes an example)", path)
			}
			return nil, nil, err
		}
		defer f.Close() //nolint:errcheck // read only
		from = f
	}
	src, err := io.ReadAll(io.LimitReader(from, maxJobFile+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(src) > maxJobFile {
		return nil, nil, fmt.Errorf("%s: over %d bytes: a job file may have at most that many", path, maxJobFile)
	}
	if j.json {
		job, err := structs.DecodeJob(src)
		return job, &structs.JobSubmission{Source: string(src), Format: "json"}, err
	}
	vars := map[string]string{}
	for _, v := range j.vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			return nil, nil, fmt.Errorf("-var %q: write it as name=value", v)
		}
		vars[name] = value
	}
	job, warnings, err := jobspec.Parse(path, src, jobspec.Options{Vars: vars, VarFiles: j.varFiles, AllowFS: true, Env: os.Environ()})
	if err != nil {
		return nil, nil, err
	}
	for _, w := range warnings {
		_, _ = fmt.Fprintf(e.err, "Warning: %s\n", w)
	}
	return job, &structs.JobSubmission{Source: string(src), Format: "hcl2", VariableFlags: vars}, nil
}

// warn prints a server's warnings.
func (e *env) warn(warnings string) {
	if warnings != "" {
		e.printf("%s\n%s\n\n", e.style.Bold(e.style.Yellow("Job Warnings:")), warnings)
	}
}

// follow monitors an evaluation unless the user wants to go on at once.
func (e *env) follow(ctx context.Context, evalID string, detach, verbose bool) int {
	if evalID == "" {
		return exitDone
	}
	if detach {
		e.printf("Evaluation ID: %s\n", evalID)
		return exitDone
	}
	return newMonitor(e, verbose).eval(ctx, evalID)
}
