package command

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/command/jobspec/hclfile"
	"github.com/nomadish/nomadish/structs"
)

// projectBlock is a project as a file states it.
type projectBlock struct {
	structs.Project
	Calendar []*calendarBlock `hcl:"calendar,block"` // what the project has in a week
}

// calendarBlock is all that a project has in a week.
type calendarBlock struct {
	Week  string                `hcl:"week,label"`  // an ISO week, as 2026-W48
	Slots []structs.CalendarRow `hcl:"slots,block"` // slots of one type
}

// projectFile is what a file states about flows and projects, each in their order.
type projectFile struct {
	path     string
	flows    []*structs.Flow
	projects []*projectBlock
	ranges   *hclfile.Decoder // where; nil: the file is JSON
}

// projectLanguage is what a file of flows and projects is written in.
type projectLanguage int

const (
	projectHCL  projectLanguage = iota
	projectJSON                 // JSON of projects, with or without flows
	flowJSON                    // JSON of flows
)

// languageOf returns the language of a command's file, given its flag -json.
func languageOf(isJSON bool, of projectLanguage) projectLanguage {
	if isJSON {
		return of
	}
	return projectHCL
}

// readProjects reads the flows and projects of a file, in which there is at least one; "-" is standard input.
func readProjects(stdin io.Reader, path string, as projectLanguage) (*projectFile, error) {
	src, err := readSpecFile(stdin, path, "project", "projects")
	if err != nil {
		return nil, err
	}
	f := &projectFile{path: path}
	if as == projectHCL {
		err = f.readHCL(src)
	} else {
		err = f.readJSON(src, as == flowJSON)
	}
	if err != nil {
		return nil, otherLanguage(path, src, as != projectHCL, err)
	}
	return f, f.validate()
}

// readHCL reads project "NAME" { … } and flow "NAME" { … }, the only blocks of a file.
func (f *projectFile) readHCL(src []byte) error {
	blocks, decoder, err := specBlocks{
		types:   []string{"project", "flow"},
		unnamed: `a %[1]s needs a name: write %[1]s "NAME" { … }`,
		none:    `the file has no project and no flow: write project "NAME" { … }`,
	}.read(f.path, src)
	if err != nil {
		return err
	}
	f.ranges = decoder
	for _, b := range blocks {
		at := structs.ChildPath("", b.Type, b.Labels[0], -1)
		if b.Type == "flow" {
			flow := &structs.Flow{}
			f.ranges.Block(b, flow, at)
			flow.Name = b.Labels[0]
			f.flows = append(f.flows, flow)
			continue
		}
		p := &projectBlock{}
		f.ranges.Block(b, p, at)
		p.Name = b.Labels[0]
		f.projects = append(f.projects, p)
	}
	return f.ranges.Problems().Err()
}

// validate returns what is wrong with the file whatever the cluster has.
func (f *projectFile) validate() error {
	seen := map[string]bool{}
	twice := func(what, name string) error {
		if seen[what+name] {
			return f.placed(fmt.Errorf("%s %q: the file states it twice", what, name))
		}
		seen[what+name] = true
		return nil
	}
	for _, flow := range f.flows {
		if err := errors.Join(twice("flow", flow.Name), f.placed(flow.Validate())); err != nil {
			return err
		}
	}
	for _, p := range f.projects {
		if err := errors.Join(twice("project", p.Name), f.placed(p.Validate())); err != nil {
			return err
		}
		for i, week := range p.Calendar {
			bad := func(format string, args ...any) *structs.Error {
				return structs.Errorf(structs.CodeBadRequest, "project %q: calendar %q: "+format, append([]any{p.Name, week.Week}, args...)...)
			}
			if slices.ContainsFunc(p.Calendar[:i], func(o *calendarBlock) bool { return o.Week == week.Week }) {
				return f.placed(bad("the week is stated twice").WithHint("write all its slots in one block"))
			}
			if !structs.ValidWeek(week.Week) {
				return f.placed(bad("there is no such week").WithHint("write an ISO week with its year, as in 2026-W48; a year has 52 or 53"))
			}
			if err := f.placed(structs.ValidateRows(week.Slots, bad)); err != nil {
				return err
			}
		}
	}
	return nil
}

// placed puts the place in the file before an error about a flow or a project, as their Validate methods and the servers write them: project
// "chip": calendar "2026-W48": slots 1: count: …
func (f *projectFile) placed(err error) error {
	if err == nil {
		return nil
	}
	if f.ranges == nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	rest, path := err.Error(), ""
	for _, what := range []string{"flow", "project", "calendar"} {
		quoted, ok := strings.CutPrefix(rest, what+" ")
		if !ok {
			continue
		}
		prefix, bad := strconv.QuotedPrefix(quoted)
		name, _ := strconv.Unquote(prefix)
		if bad != nil {
			break
		}
		index := -1
		if what == "calendar" {
			index = f.weekIndex(path, name)
		}
		path, rest = structs.ChildPath(path, what, name, index), strings.TrimPrefix(quoted[len(prefix):], ": ")
	}
	if number, after, ok := strings.Cut(strings.TrimPrefix(rest, "slots "), ": "); ok && strings.HasPrefix(rest, "slots ") {
		if n, bad := strconv.Atoi(number); bad == nil {
			path, rest = structs.ChildPath(path, "slots", "", n-1), after
		}
	}
	field := rest[:max(0, strings.IndexAny(rest, ": "))]
	rng, ok := f.ranges.Range(path, field)
	if !ok {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return fmt.Errorf("%s:%d:%d: %w", f.path, rng.Start.Line, rng.Start.Column, err)
}

// weekIndex returns where a week stands among those of a project.
func (f *projectFile) weekIndex(project, week string) int {
	for _, p := range f.projects {
		if structs.ChildPath("", "project", p.Name, -1) == project {
			return slices.IndexFunc(p.Calendar, func(b *calendarBlock) bool { return b.Week == week })
		}
	}
	return -1
}
