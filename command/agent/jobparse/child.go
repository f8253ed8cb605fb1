package jobparse

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/nomadish/nomadish/command/jobspec"
	"github.com/nomadish/nomadish/command/jobspec/hclfile"
	"github.com/nomadish/nomadish/structs"
)

// Command is the first argument of a process that parses one job file. People do not run it.
const Command = "parse-job"

// The exit statuses of such a process.
const (
	exitDone    = 0
	exitFault   = 1 // of ours, described on standard error
	exitRuntime = 2 // Go's own, as when no memory is left
	exitCPU     = 3
)

const (
	maxWarnings = 100 // that are answered
	maxWarning  = structs.MaxErrorBytes
)

// task is what the process is started with.
type task struct {
	cpu               time.Duration
	memory            int64
	source, variables int // bytes of standard input: the job file, and the variables that follow it
	canonicalize      bool
}

// answer follows the job.
type answer struct {
	Problem  string   `json:",omitempty"` // what is wrong with the file
	Warnings []string `json:",omitempty"`
}

func (t task) args() []string {
	return []string{
		Command, "-cpu", t.cpu.String(), "-memory", strconv.FormatInt(t.memory, 10),
		"-source", strconv.Itoa(t.source), "-variables", strconv.Itoa(t.variables), "-canonicalize=" + strconv.FormatBool(t.canonicalize),
	}
}

// Main parses the one job file that standard input holds and returns the exit status. It limits the whole process, which
// must do nothing else.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	var t task
	fs := flag.NewFlagSet(Command, flag.ContinueOnError)
	fs.SetOutput(errOut)
	fs.DurationVar(&t.cpu, "cpu", DefaultCPU, "CPU time to use at most")
	fs.Int64Var(&t.memory, "memory", DefaultMemory, "bytes of memory to use at most")
	fs.IntVar(&t.source, "source", 0, "bytes of the job file")
	fs.IntVar(&t.variables, "variables", 0, "bytes of the variables")
	fs.BoolVar(&t.canonicalize, "canonicalize", false, "fill in defaults")
	if err := fs.Parse(args); err != nil {
		return exitFault
	}
	if err := limitProcess(t.cpu, t.memory); err != nil {
		_, _ = fmt.Fprintln(errOut, err)
		return exitFault
	}
	if err := t.run(in, out); err != nil {
		_, _ = fmt.Fprintln(errOut, err)
		return exitFault
	}
	return exitDone
}

func (t task) run(in io.Reader, out io.Writer) error {
	text := make([]byte, t.source+t.variables)
	if _, err := io.ReadFull(in, text); err != nil {
		return fmt.Errorf("read the job file: %w", err)
	}
	job, a := parse(text[:t.source], text[t.source:], t.canonicalize)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(shown(job))
	var unsupported *json.UnsupportedValueError // a number too large for a float, which only evaluating can make
	if errors.As(err, &unsupported) {
		a = answer{Problem: fmt.Sprintf("%s: the job has a value that JSON cannot hold: %s", fileName, unsupported.Str)}
		err = enc.Encode(nil)
	}
	if err != nil {
		return fmt.Errorf("write the job: %w", err)
	}
	if err := enc.Encode(a); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// shown is the job as it is answered: one that states no namespace or no priority has null for it, not an empty name or 0.
func shown(job *structs.Job) any {
	switch {
	case job == nil || job.Namespace != "" && job.Priority != 0:
		return job
	case job.Namespace != "":
		return struct {
			Priority *int
			*structs.Job
		}{Job: job}
	case job.Priority != 0:
		return struct {
			Namespace *string
			*structs.Job
		}{Job: job}
	}
	return struct {
		Namespace *string
		Priority  *int
		*structs.Job
	}{Job: job}
}

// fileName is what problems call the job file.
const fileName = "job.nomad.hcl"

// parse returns a nil job with a problem. The file may come from anybody, so functions that read this machine's files
// are off.
func parse(source, variables []byte, canonicalize bool) (*structs.Job, answer) {
	opts := jobspec.Options{SkipValidate: true} // /v1/validate/job answers whether the job is good
	if len(variables) > 0 {
		opts.VarFiles = []hclfile.VarFile{{Name: "variables.hcl", Src: variables}}
	}
	job, warnings, err := jobspec.Parse(fileName, source, opts)
	var problems hclfile.Problems
	if errors.As(err, &problems) {
		return nil, answer{Problem: problems.Short(structs.MaxErrorBytes)}
	}
	if err != nil {
		return nil, answer{Problem: structs.Clip(err.Error(), structs.MaxErrorBytes)}
	}
	job.Separate()
	if canonicalize {
		job.Canonicalize()
	}
	var a answer
	for _, w := range warnings[:min(len(warnings), maxWarnings)] {
		a.Warnings = append(a.Warnings, structs.Clip(w.String(), maxWarning))
	}
	return job, a
}
