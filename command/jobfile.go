package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/jobspec"
	"github.com/nomadish/nomadish/command/jobspec/hclfile"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/internal/printable"
	"github.com/nomadish/nomadish/structs"
)

// maxJobFile bounds a job file's size in bytes.
const maxJobFile = 10 << 20

// jobFile is the flags of commands that read a job file.
type jobFile struct {
	vars     listFlag
	varFiles listFlag
	json     bool
	warnings []string // of the file last read
	ranges   *jobspec.Ranges
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

// again is the part of a command line that reads the same file with the same flags,
// quoted for a shell.
func (j *jobFile) again(path string) string {
	var words []string
	if j.json {
		words = append(words, "-json")
	}
	for _, v := range j.vars {
		words = append(words, "-var", shellWord(v))
	}
	for _, name := range j.varFiles {
		words = append(words, "-var-file", shellWord(name))
	}
	return strings.Join(append(words, shellWord(path)), " ")
}

// shellWord quotes a word where a POSIX shell would take it for more or less than it is.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,@%+", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	if strings.ContainsFunc(word, func(r rune) bool { return !printable.Printable(r) }) {
		return ansiWord(word)
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// ansiWord quotes a word as $'…', with what is not printable in it by the numbers of its bytes, so that it can be copied from
// a terminal.
func ansiWord(word string) string {
	var b strings.Builder
	b.WriteString("$'")
	for _, r := range word {
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case printable.Printable(r):
			b.WriteRune(r)
		default:
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		}
	}
	return b.String() + "'"
}

// read parses the file that args names ("-": standard input).
func (j *jobFile) read(ctx context.Context, e *env, args []string) (*structs.Job, *structs.JobSubmission, error) {
	if len(args) != 1 {
		return nil, nil, fmt.Errorf("one job file is needed, %d given", len(args))
	}
	path := args[0]
	from := e.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			if errors.Is(err, os.ErrNotExist) {
				return nil, nil, fmt.Errorf("%s: no such file (`nomadish job init` writes an example)", path)
			}
			return nil, nil, err
		}
		defer f.Close() //nolint:errcheck // read only
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, nil, fmt.Errorf("%s is a directory: name a job file in it", path)
		}
		from = f
	}
	src, err := io.ReadAll(io.LimitReader(from, maxJobFile+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(src) > maxJobFile {
		return nil, nil, fmt.Errorf("%s: over %d bytes: a job file may have at most that many", path, maxJobFile)
	}
	return j.parse(ctx, e, path, src)
}

// parsed is what became of a job file.
type parsed struct {
	job      *structs.Job
	warnings jobspec.Warnings
	ranges   *jobspec.Ranges
	err      error
}

func (j *jobFile) parse(ctx context.Context, e *env, path string, src []byte) (*structs.Job, *structs.JobSubmission, error) {
	opts, err := j.options(path)
	if err != nil {
		return nil, nil, err
	}
	submission := &structs.JobSubmission{Source: string(src), Format: "hcl2", VariableFlags: opts.Vars}
	asJSON := j.json
	if asJSON {
		submission = &structs.JobSubmission{Source: string(src), Format: "json"}
	}
	p, err := within(ctx, parseCosts, func() (p parsed) {
		if asJSON {
			p.job, p.warnings, p.err = jobspec.ParseJSON(path, src, opts)
		} else {
			p.job, p.warnings, p.ranges, p.err = jobspec.ParseRanges(path, src, opts)
		}
		return p
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if p.err != nil {
		return nil, nil, otherLanguage(path, src, asJSON, p.err)
	}
	job, warnings := p.job, p.warnings
	j.ranges = p.ranges
	for _, f := range opts.VarFiles {
		submission.Variables += string(f.Src) + "\n"
	}
	for _, w := range warnings {
		j.warnings = append(j.warnings, w.String())
		e.eprintf("Warning: %s\n", w)
	}
	return job, submission, nil
}

// options reads what -var and -var-file give.
func (j *jobFile) options(path string) (jobspec.Options, error) {
	o := jobspec.Options{Options: hclfile.Options{
		Vars: map[string]string{}, Env: os.Environ(), AllowFS: true, Limits: hclfile.Limits{FileBytes: maxJobFile},
	}}
	if path != "-" {
		o.BaseDir = filepath.Dir(path)
	}
	for _, v := range j.vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			return o, fmt.Errorf("-var %q: write it as name=value", v)
		}
		o.Vars[name] = value
	}
	for _, name := range j.varFiles {
		src, err := os.ReadFile(name)
		if err != nil {
			return o, fmt.Errorf("-var-file: %w", err)
		}
		o.VarFiles = append(o.VarFiles, hclfile.VarFile{Name: name, Src: src})
	}
	return o, nil
}

// placed returns where in the file that is written which a server refuses, as only it can.
func (j *jobFile) placed(err error) error {
	var refusal *api.Error
	if !errors.As(err, &refusal) || refusal.Status != http.StatusBadRequest {
		return err
	}
	if lines, ok := j.locateLines(strings.Split(refusal.Msg, "\n")); ok {
		return errors.New(strings.Join(lines, "\n"))
	}
	return err
}

// locateLines puts the places in the file before those lines that are of something in it;
// false: none is.
func (j *jobFile) locateLines(lines []string) (out []string, found bool) {
	for _, line := range lines {
		located, ok := line, false
		if j.ranges != nil {
			located, ok = j.ranges.Locate(strings.TrimPrefix(line, "  * "))
		}
		if !ok {
			located = line
		}
		out, found = append(out, located), found || ok
	}
	return out, found
}

// news are a server's warnings that were not printed with their places already.
func (j *jobFile) news(warnings string) string {
	var out []string
	for line := range strings.Lines(warnings) {
		line = strings.TrimSpace(line)
		known := slices.ContainsFunc(j.warnings, func(w string) bool { return strings.HasSuffix(w, line) })
		if line != "" && !known {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// warnOf prints warnings of a server about a job or a workflow.
func warnOf(e *env, what, warnings string) {
	if warnings != "" {
		e.printf("%s\n  %s\n\n", e.style.Bold(e.style.Yellow(what+" Warnings:")), ui.Indented(warnings))
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
