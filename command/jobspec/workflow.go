package jobspec

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/nomadish/nomadish/command/jobspec/hclfile"
	"github.com/nomadish/nomadish/structs"
)

// workflowBlock is stages of jobs, one after the other, and what is reserved for all of them. What HCL writes in another way than JSON stands here.
type workflowBlock struct {
	structs.Workflow
	Reserve any           `hcl:"reserve"`  // what is reserved: "max" (what the largest stage needs), "sum" (what all need), or amounts: { cores = 8 }; default: "max"
	LendMax any           `hcl:"lend_max"` // amounts that are lent at most, as { cores = 4 }; default: all that is idle
	Stages  []*stageBlock `hcl:"stage,block"`
}

// stageBlock is a stage: its jobs, and the file of one that needs no block.
type stageBlock struct {
	Name    string      `hcl:"name,label"` // the name of the stage
	JobFile string      `hcl:"job_file"`   // the file of a job, named as the file states; job blocks may stand beside it
	Jobs    []*jobBlock `hcl:"job,block"`
}

// jobBlock is a job in a stage: a job, or the name of its file, and what the workflow states about it.
type jobBlock struct {
	file
	Label     string   `hcl:"label,label"` // the name of the job in the workflow
	JobFile   string   `hcl:"job_file"`    // the file of the job, relative to that of the workflow, in the place of all that a job block states but depends_on and retries
	DependsOn []string `hcl:"depends_on"`  // jobs that must be complete before it starts; with them, stages are made of the graph
	Retries   int      `hcl:"retries"`     // how often it is tried again when it fails
}

// WorkflowType returns the struct that a workflow block is decoded into.
func WorkflowType() reflect.Type { return reflect.TypeFor[workflowBlock]() }

// JobType returns the struct that a job block at the top of a file is decoded into.
func JobType() reflect.Type { return reflect.TypeFor[file]() }

// WorkflowFile is a workflow that was read from a file.
type WorkflowFile struct {
	Workflow *structs.Workflow
	Warnings Warnings

	name string
	d    *hclfile.Decoder
}

// ParseWorkflow reads a workflow file. read returns the content of a job file that it names, relative to opts.BaseDir. The values of its
// variables, defaults included, go to the job files, too, as far as they declare them. The workflow is as written but for what [structs.Workflow.Canonicalize] fills in.
func ParseWorkflow(filename string, src []byte, opts Options, read func(path string) ([]byte, error)) (*WorkflowFile, error) {
	f, problems := hclfile.Parse(filename, src, opts.Limits)
	if len(problems) > 0 {
		return nil, problems.Err()
	}
	scope, blocks, problems := hclfile.NewScope(f, opts.Options)
	block, more := findWorkflow(f, blocks)
	if problems = append(problems, more...); block == nil || len(problems) > 0 {
		return nil, problems.Err()
	}
	if problems = f.Literal(block.Body); len(problems) > 0 {
		return nil, problems.Err()
	}
	w := &workflowReader{file: f, d: hclfile.NewDecoder(f, scope), scope: scope, opts: opts, read: read, path: structs.ChildPath("", "workflow", block.Labels[0], -1)}
	var from workflowBlock
	w.d.Block(block, &from, w.path)
	if problems = w.d.Problems(); len(problems) > 0 {
		return nil, problems.Err()
	}
	out := &from.Workflow
	out.ID = block.Labels[0]
	w.reserve(&from, out)
	w.sortProblems()
	w.problems = append(w.problems, twice(block)...)
	for _, s := range from.Stages {
		out.Stages = append(out.Stages, w.stage(s))
	}
	if len(w.problems) > 0 {
		return nil, w.problems.Err()
	}
	out.Canonicalize()
	result := &WorkflowFile{Workflow: out, name: filename, d: w.d}
	if opts.SkipValidate {
		return result, nil
	}
	if err := out.ValidateHead(); err != nil {
		return nil, result.Placed(err)
	}
	for _, s := range out.Stages {
		for _, j := range s.Jobs {
			w.problems = append(w.problems, locate(w.d, filename, j.Job.Validate())...)
			result.Warnings = append(result.Warnings, locate(w.d, filename, j.Job.WarningList())...)
		}
	}
	if len(w.problems) > 0 {
		return nil, w.problems.Err()
	}
	if err := out.Validate(); err != nil {
		return nil, result.Placed(err)
	}
	if err := out.CheckSubmitted(); err != nil {
		return nil, result.Placed(err)
	}
	return result, nil
}

// findWorkflow returns the one workflow block of a file.
func findWorkflow(f *hclfile.File, blocks []*hclsyntax.Block) (found *hclsyntax.Block, problems hclfile.Problems) {
	const only = "at the top of a file stand only the blocks workflow, variable and locals"
	for _, a := range f.Attributes() {
		problems = append(problems, hclfile.At(a.NameRange, "unknown attribute %q: "+only, a.Name))
	}
	for _, b := range blocks {
		switch {
		case b.Type == "job":
			problems = append(problems, hclfile.At(b.DefRange(), "a job at the top of a file is no workflow: `nomadish job run` runs it, or write it in a stage of a workflow"))
		case b.Type != "workflow":
			problems = append(problems, hclfile.At(b.DefRange(), "unknown block %q: "+only, b.Type))
		case found != nil:
			problems = append(problems, hclfile.At(b.DefRange(), "a file may hold only one workflow; the first is on line %d", found.DefRange().Start.Line))
		case len(b.Labels) != 1 || b.Labels[0] == "":
			problems = append(problems, hclfile.At(b.DefRange(), `workflow needs one name: write workflow "NAME" { … }`))
		default:
			found = b
		}
	}
	if found == nil && len(problems) == 0 {
		problems = append(problems, hclfile.Problem{File: f.Name, Text: `the file has no workflow: write workflow "NAME" { … }`})
	}
	return found, problems
}

// workflowReader turns the blocks of a file into a workflow.
type workflowReader struct {
	file     *hclfile.File
	d        *hclfile.Decoder
	scope    *hclfile.Scope
	opts     Options
	read     func(path string) ([]byte, error)
	path     string // of the workflow block
	problems hclfile.Problems
}

func (w *workflowReader) addf(path, field, format string, args ...any) {
	text := path + ": "
	if field != "" {
		text += field + ": "
	}
	text += fmt.Sprintf(format, args...)
	if rng, ok := w.d.Range(path, field); ok {
		w.problems = append(w.problems, hclfile.At(rng, "%s", text))
		return
	}
	w.problems = append(w.problems, hclfile.Problem{File: w.file.Name, Text: text})
}

// reserve reads the attributes that are a word or an object.
func (w *workflowReader) reserve(from *workflowBlock, into *structs.Workflow) {
	switch value := from.Reserve.(type) {
	case nil:
	case string:
		into.Reserve.Rule = value
	case map[string]any:
		into.Reserve.Amounts = w.amounts("reserve", value)
	default:
		w.addf(w.path, "reserve", "must be %q, %q or amounts such as { cores = 64, gpus = 8 }, not %s", structs.ReserveMax, structs.ReserveSum, valueText(value))
	}
	if from.LendMax != nil {
		into.LendMax = w.amounts("lend_max", from.LendMax)
	}
}

// twice reports stages of a workflow that have the name of an earlier one, and job blocks that have.
func twice(workflow *hclsyntax.Block) (problems hclfile.Problems) {
	stages, jobs := map[string]int{}, map[string]int{}
	again := func(b *hclsyntax.Block, what string, lines map[string]int) {
		if len(b.Labels) != 1 {
			return
		}
		if line, known := lines[b.Labels[0]]; known {
			problems = append(problems, hclfile.At(b.DefRange(), "workflow %q: two %ss have the name %q; the first is on line %d", workflow.Labels[0], what, b.Labels[0], line))
			return
		}
		lines[b.Labels[0]] = b.DefRange().Start.Line
	}
	for _, s := range workflow.Body.Blocks {
		if s.Type != "stage" {
			continue
		}
		again(s, "stage", stages)
		for _, j := range s.Body.Blocks {
			if j.Type == "job" {
				again(j, "job", jobs)
			}
		}
	}
	return problems
}

// amountNames lists what an object of amounts may state.
func amountNames() []string { return []string{"cores", "cpu", "gpus", "licenses", "memory"} }

// amounts reads an object such as { cores = 64, gpus = 8, licenses = { vcs = 2 } }.
func (w *workflowReader) amounts(field string, value any) *structs.WorkflowResources {
	object, ok := value.(map[string]any)
	if !ok {
		w.addf(w.path, field, "must be an object of amounts, such as { cores = 64, gpus = 8 }, not %s", valueText(value))
		return nil
	}
	out := &structs.WorkflowResources{}
	for name, amount := range object { // order does not matter: each by itself; problems are sorted
		if name == "licenses" {
			out.Licenses = w.licenses(field, amount)
			continue
		}
		into := map[string]*int64{"cpu": &out.CPU, "cores": &out.Cores, "memory": &out.MemoryMB, "gpus": &out.GPUs}[name]
		if into == nil {
			w.addf(w.path, field, "unknown amount %q; known are %s", name, strings.Join(amountNames(), ", "))
			continue
		}
		*into = w.amount(field, name, amount)
	}
	return out
}

// amount reads a whole number. A string of digits is one, as it is of other fields: the values that are stated for variables without a type are strings.
func (w *workflowReader) amount(field, name string, value any) int64 {
	n, ok := value.(int64)
	if text, is := value.(string); is {
		var err error
		n, err = strconv.ParseInt(text, 10, 64)
		ok = err == nil
	}
	if ok && n >= 1 && n <= structs.MaxWorkflowAmount {
		return n
	}
	hint := ""
	if ok && n == 0 {
		hint = ": leave it out where none is to be stated"
	}
	w.addf(w.path, field, "%s: must be a whole number from 1 to %d, not %s%s", name, structs.MaxWorkflowAmount, valueText(value), hint)
	return 0
}

// valueText shows a value in a message.
func valueText(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		if s := []rune(v); len(s) > 40 {
			v = string(s[:37]) + "..."
		}
		return "the string " + strconv.Quote(v)
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	return fmt.Sprint(value)
}

func (w *workflowReader) licenses(field string, value any) map[string]int64 {
	object, ok := value.(map[string]any)
	if !ok {
		w.addf(w.path, field, "licenses: must be an object, such as { vcs = 2 }, not %s", valueText(value))
		return nil
	}
	out := map[string]int64{}
	for name, amount := range object { // order does not matter: a map made of a map
		out[name] = w.amount(field, "licenses: "+name, amount)
	}
	return out
}

func (w *workflowReader) stage(s *stageBlock) *structs.WorkflowStage {
	path := structs.ChildPath(w.path, "stage", s.Name, -1)
	out := &structs.WorkflowStage{Name: s.Name}
	if s.JobFile != "" {
		if job := w.jobFile(path, s.JobFile); job != nil {
			out.Jobs = append(out.Jobs, &structs.WorkflowJob{Name: job.ID, Job: job})
		}
	}
	for _, j := range s.Jobs {
		if job := w.job(structs.ChildPath(path, "job", j.Label, -1), j); job != nil {
			out.Jobs = append(out.Jobs, &structs.WorkflowJob{Name: j.Label, DependsOn: j.DependsOn, Retries: j.Retries, Job: job})
		}
	}
	return out
}

func (w *workflowReader) job(path string, j *jobBlock) *structs.Job {
	if j.JobFile == "" {
		job := j.job(j.Label, w.d, path)
		w.d.Alias(path, structs.ChildPath("", "job", j.Label, -1))
		return job
	}
	if w.besideFile(path) {
		return nil
	}
	job := w.jobFile(path, j.JobFile)
	if job != nil {
		if job.Name == job.ID {
			job.Name = j.Label
		}
		job.ID = j.Label
	}
	return job
}

// besideFile reports what a job block states beside the file of the job: the job would not have it.
func (w *workflowReader) besideFile(path string) (found bool) {
	for _, name := range w.d.Stated(path) {
		switch name {
		case "job_file", "depends_on", "retries":
		default:
			found = true
			w.addf(path, name, "job_file is stated, too, and that file has the whole job: state it there, or leave job_file out")
		}
	}
	return found
}

// jobFile reads the job file that a block names.
func (w *workflowReader) jobFile(path, name string) *structs.Job {
	src, err := w.read(name)
	if err != nil {
		w.addf(path, "job_file", "%s", err)
		return nil
	}
	opts := w.opts
	opts.Lenient, opts.Inherited = true, w.scope.Variables()
	opts.SkipValidate = true // it is checked as a job of the workflow
	job, _, err := Parse(name, src, opts)
	if err != nil {
		w.addf(path, "job_file", "%s", err)
		return nil
	}
	return job
}

// Placed puts the place in the file before an error about the workflow, as [structs.Workflow.Validate] and the servers write them:
// workflow "chip": stage "synth": job "a": retries: …
func (f *WorkflowFile) Placed(err error) error {
	if err == nil {
		return nil
	}
	rest, path := err.Error(), ""
	for _, what := range []string{"workflow", "stage", "job"} {
		quoted, ok := strings.CutPrefix(rest, what+" ")
		if !ok {
			break
		}
		prefix, bad := strconv.QuotedPrefix(quoted)
		name, _ := strconv.Unquote(prefix)
		if bad != nil {
			break
		}
		path, rest = structs.ChildPath(path, what, name, -1), strings.TrimPrefix(quoted[len(prefix):], ": ")
	}
	if to, after, ok := lendOf(rest); ok {
		is := func(l *structs.WorkflowLend) bool { return l.To == to }
		i := slices.IndexFunc(f.Workflow.Lend, is)
		if after == structs.LendStatedTwice { // where it is stated again
			i += 1 + slices.IndexFunc(f.Workflow.Lend[i+1:], is)
		}
		if i >= 0 {
			path, rest = structs.ChildPath(path, "lend", "", i), after
		}
	}
	field := rest[:max(0, strings.IndexAny(rest, ": "))]
	rng, ok := f.d.Range(path, field)
	if !ok {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return fmt.Errorf("%s:%d:%d: %w", f.name, rng.Start.Line, rng.Start.Column, err)
}

// lendOf returns to whom the lend block lends that an error is about, and what the error states of it: lend "group:x": share: …
func lendOf(text string) (to, rest string, ok bool) {
	quoted, ok := strings.CutPrefix(text, "lend ")
	if !ok {
		return "", "", false
	}
	prefix, err := strconv.QuotedPrefix(quoted)
	if err != nil {
		return "", "", false
	}
	to, err = strconv.Unquote(prefix)
	return to, strings.TrimPrefix(quoted[len(prefix):], ": "), err == nil
}

// sortProblems sorts problems that were found in the order of a map.
func (w *workflowReader) sortProblems() {
	slices.SortStableFunc(w.problems, func(a, b hclfile.Problem) int { return strings.Compare(a.Text, b.Text) })
}
