package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"github.com/nomadish/nomadish/command/jobspec"
	"github.com/nomadish/nomadish/structs"
)

// workflowFile is the flags of commands that read a workflow file, and what they read.
type workflowFile struct {
	jobFile
	read *jobspec.WorkflowFile // nil: the file is JSON
}

// load reads the workflow file that args name ("-": standard input), and the job files that it names.
func (f *workflowFile) load(ctx context.Context, e *env, args []string) (*structs.Workflow, error) {
	if len(args) != 1 || args[0] == "" {
		return nil, fmt.Errorf("one workflow file is needed, %d given", len(args))
	}
	path := args[0]
	src, err := readSpecFile(e.in, path, "workflow", "workflows")
	if err != nil {
		return nil, err
	}
	var w *structs.Workflow
	if f.json {
		w, err = workflowFromJSON(path, src)
	} else {
		w, err = f.parseHCL(ctx, e, path, src)
	}
	if err != nil {
		return nil, otherLanguage(path, src, f.json, err)
	}
	if ns := e.jobNamespace(); ns != "" {
		setNamespace(w, ns)
	}
	return w, nil
}

// setNamespace puts a workflow and its jobs into the namespace of the command line.
func setNamespace(w *structs.Workflow, namespace string) {
	for _, s := range w.Stages {
		for _, j := range s.Jobs {
			if j.Job.Namespace == w.Namespace {
				j.Job.Namespace = namespace
			}
		}
	}
	w.Namespace = namespace
}

// workflowFromJSON reads a workflow as the HTTP API takes it.
func workflowFromJSON(path string, src []byte) (*structs.Workflow, error) {
	w := &structs.Workflow{}
	if err := json.Unmarshal(src, w); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var tree any
	if err := json.Unmarshal(src, &tree); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := structs.CheckJSONKeys(path, tree, reflect.TypeOf(w)); err != nil {
		return nil, err
	}
	w.Canonicalize()
	if err := w.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := w.CheckSubmitted(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return w, nil
}

func (f *workflowFile) parseHCL(ctx context.Context, e *env, path string, src []byte) (*structs.Workflow, error) {
	opts, err := f.options(path)
	if err != nil {
		return nil, err
	}
	type result struct {
		file *jobspec.WorkflowFile
		err  error
	}
	r, err := within(ctx, parseCosts, func() (r result) {
		r.file, r.err = jobspec.ParseWorkflow(path, src, opts, func(name string) ([]byte, error) { return readJobFile(opts.BaseDir, name) })
		return r
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.err != nil {
		return nil, r.err
	}
	f.read = r.file
	for _, w := range r.file.Warnings {
		f.warnings = append(f.warnings, w.String())
		e.eprintf("Warning: %s\n", w)
	}
	return r.file.Workflow, nil
}

// readJobFile reads a job file that a workflow names, relative to the workflow's folder.
func readJobFile(folder, name string) ([]byte, error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, name)
	}
	file, err := os.Open(path) // the user names the file
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such file", path)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // read only
	src, err := io.ReadAll(io.LimitReader(file, maxJobFile+1))
	if err == nil && len(src) > maxJobFile {
		err = fmt.Errorf("over %d bytes: a job file may have at most that many", maxJobFile)
	}
	if at := (*fs.PathError)(nil); errors.As(err, &at) { // which names the file, too
		err = at.Err
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return src, nil
}

// refused puts the place in the file before what the servers report as wrong with it.
func (f *workflowFile) refused(err error) error {
	if f.read == nil || !isBadRequest(err) {
		return err
	}
	return f.read.Placed(err)
}
