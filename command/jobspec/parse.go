package jobspec

import (
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/nomadish/nomadish/command/jobspec/hclfile"
	"github.com/nomadish/nomadish/structs"
)

// Options are what a job file is read with.
type Options struct {
	hclfile.Options
	// SkipValidate leaves out what only a whole job can be checked for: the
	// server checks again anyway.
	SkipValidate bool
}

// Warnings are noteworthy things in a file that is right.
type Warnings = hclfile.Problems

// file is a job block: a job, and shorthands that Nomad has.
type file struct {
	structs.Job
	Groups  []*group          `hcl:"group,block"`  // those of the job
	Tasks   []*structs.Task   `hcl:"task,block"`   // each a group of its own name, with one instance
	Vault   *structs.Vault    `hcl:"vault,block"`  // of every task that states none
	Secrets []*structs.Secret `hcl:"secret,block"` // of every task
}

// group is a group block: a group, and a shorthand that Nomad has.
type group struct {
	structs.TaskGroup
	Vault *structs.Vault `hcl:"vault,block"` // of every task of the group that states none
}

// Parse reads a job file. The job is as written: call Canonicalize before using
// it. The error is hclfile.Problems; the job is nil with an error.
func Parse(filename string, src []byte, opts Options) (*structs.Job, Warnings, error) {
	job, warnings, _, err := ParseRanges(filename, src, opts)
	return job, warnings, err
}

// Ranges knows where in a file what of its job is written.
type Ranges struct{ d *hclfile.Decoder }

// Locate puts file, line and column before a line in which a server states something about the
// job; false: the file does not hold what it is of.
func (p *Ranges) Locate(line string) (string, bool) {
	rng, ok := p.d.RangeOfText(line)
	if !ok {
		return line, false
	}
	return hclfile.At(rng, "%s", line).String(), true
}

// ParseRanges is Parse for who wants to report later where something is written.
func ParseRanges(filename string, src []byte, opts Options) (*structs.Job, Warnings, *Ranges, error) {
	f, problems := hclfile.Parse(filename, src, opts.Limits)
	if len(problems) > 0 {
		return nil, nil, nil, problems.Err()
	}
	scope, blocks, problems := hclfile.NewScope(f, opts.Options)
	block, more := findJob(f, blocks)
	problems = append(problems, more...)
	if block == nil || len(problems) > 0 {
		return nil, nil, nil, problems.Err()
	}
	if problems = f.Literal(block.Body); len(problems) > 0 {
		return nil, nil, nil, problems.Err()
	}
	d := hclfile.NewDecoder(f, scope)
	path := structs.ChildPath("", "job", block.Labels[0], -1)
	var read file
	d.Block(block, &read, path)
	if problems = d.Problems(); len(problems) > 0 {
		return nil, nil, nil, problems.Err()
	}
	job := read.job(block.Labels[0], d, path)
	d.Alias(path, structs.ChildPath("", "job", job.ID, -1))
	if opts.SkipValidate {
		return job, nil, &Ranges{d}, nil
	}
	canonical := job.Copy()
	canonical.Canonicalize()
	if problems = locate(d, f.Name, canonical.Validate()); len(problems) > 0 {
		return nil, nil, nil, problems.Err()
	}
	return job, locate(d, f.Name, canonical.WarningList()), &Ranges{d}, nil
}

// findJob returns the one job block of a file.
func findJob(f *hclfile.File, blocks []*hclsyntax.Block) (*hclsyntax.Block, hclfile.Problems) {
	known := []string{"job", "variable", "variables", "locals"}
	var found *hclsyntax.Block
	var problems hclfile.Problems
	for _, a := range f.Attributes() {
		problems = append(problems, hclfile.At(a.NameRange, "unknown attribute %q: at the top of a file stand only the blocks job, variable and locals", a.Name))
	}
	for _, b := range blocks {
		switch {
		case b.Type == "workflow":
			problems = append(problems, hclfile.At(b.DefRange(), "a workflow is no job: `nomadish workflow run` runs it, and `nomadish workflow plan` and `validate` check it"))
		case b.Type != "job":
			text := "unknown block %q: at the top of a file stand only job, variable and locals"
			if near := structs.Nearest(b.Type, known); near != "" {
				problems = append(problems, hclfile.At(b.DefRange(), text+"; did you mean %q?", b.Type, near))
			} else {
				problems = append(problems, hclfile.At(b.DefRange(), text, b.Type))
			}
		case found != nil:
			problems = append(problems, hclfile.At(b.DefRange(), "a file may hold only one job; the first is on line %d", found.DefRange().Start.Line))
		case len(b.Labels) != 1 || b.Labels[0] == "":
			problems = append(problems, hclfile.At(b.DefRange(), `job needs one name: write job "NAME" { … }`))
			found = b
		default:
			found = b
		}
	}
	if found == nil && len(problems) == 0 {
		problems = append(problems, hclfile.Problem{File: f.Name, Text: `the file has no job: write job "NAME" { … }`})
	}
	return found, problems
}

// job unfolds the shorthands.
func (f *file) job(label string, d *hclfile.Decoder, path string) *structs.Job {
	job := &f.Job
	if job.ID == "" {
		job.ID = label
	}
	if job.Name == "" {
		job.Name = label
	}
	for _, g := range f.Groups {
		setVault(&g.TaskGroup, g.Vault, d, structs.ChildPath(path, "group", g.Name, -1), path)
		job.TaskGroups = append(job.TaskGroups, &g.TaskGroup)
	}
	for _, t := range f.Tasks {
		g := &structs.TaskGroup{Name: t.Name, Count: 1, Tasks: []*structs.Task{t}}
		job.TaskGroups = append(job.TaskGroups, g)
		group := structs.ChildPath(path, "group", t.Name, -1)
		task := structs.ChildPath(path, "task", t.Name, -1)
		d.Alias(task, group)
		d.Alias(task, structs.ChildPath(group, "task", t.Name, -1))
	}
	for _, g := range job.TaskGroups {
		setVault(g, f.Vault, d, path, path)
		for _, t := range g.Tasks {
			t.Secrets = append(t.Secrets, missing(f.Secrets, t.Secrets)...)
		}
	}
	return job
}

// setVault copies a vault block, stated in the block at from, to the group's tasks that have none. job is the job's path.
func setVault(g *structs.TaskGroup, vault *structs.Vault, d *hclfile.Decoder, from, job string) {
	if vault == nil {
		return
	}
	for _, t := range g.Tasks {
		if t.Vault != nil {
			continue
		}
		own := *vault
		own.Policies = slices.Clone(own.Policies)
		t.Vault = &own
		d.AliasField(from, structs.ChildPath(structs.ChildPath(job, "group", g.Name, -1), "task", t.Name, -1), "vault")
	}
}

// missing returns copies of the secrets whose names the task does not have.
func missing(all, has []*structs.Secret) []*structs.Secret {
	var out []*structs.Secret
	for _, s := range all {
		if !slices.ContainsFunc(has, func(h *structs.Secret) bool { return h.Name == s.Name }) {
			copied := *s
			out = append(out, &copied)
		}
	}
	return out
}

// locate points at the position in the file that a problem of the job is about.
func locate(d *hclfile.Decoder, filename string, in structs.Problems) hclfile.Problems {
	var out hclfile.Problems
	for _, p := range in {
		rng, ok := d.Range(p.Path, p.Field)
		if !ok {
			out = append(out, hclfile.Problem{File: filename, Text: p.String()})
			continue
		}
		out = append(out, hclfile.At(rng, "%s", p.String()))
	}
	return out
}
