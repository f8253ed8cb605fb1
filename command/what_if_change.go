package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/command/tracefile"
	"github.com/nomadish/nomadish/structs"
)

// changeReader reads changes as a user states them on the command line.
type changeReader struct {
	o         *whatIfOptions
	e         *env
	begin     time.Time
	scheduler func() (*structs.SchedulerConfiguration, error) // the configuration as it is
	config    *structs.SchedulerConfiguration                 // with the changes so far; nil: there are none
	changes   []*structs.WhatIfChange
	places    []func(error) error // put the place in a file before an error
}

// changeKinds are the words that changes begin with.
var changeKinds = []string{"job", "vc", "project", "workflow", "add-nodes", "drain", "lose", "config"}

// statedChange is a change that was taken apart.
type statedChange struct {
	text, what string
	options    map[string]string
	after      time.Duration
}

// changeOptions are the options that a change may end with.
var changeOptions = map[string][]string{"add-nodes": {"like", "shape"}, "drain": {"deadline", "force", "ignore-system"}}

// optionForm is the form of an option at the end of a change.
var optionForm = regexp.MustCompile(`:([a-z_-]+)=[^:/.]*$`)

// optionsOf returns the options that changes of a kind may end with.
func optionsOf(kind string) []string { return append([]string{"after", "at"}, changeOptions[kind]...) }

// read reads a change, of which a file may make several.
func (c *changeReader) read(ctx context.Context, text string) error {
	kind, rest, ok := strings.Cut(text, ":")
	if !ok || rest == "" {
		return fmt.Errorf("%q: a change is written as KIND:WHAT, such as drain:NODE; kinds are %s", text, strings.Join(changeKinds, ", "))
	}
	s, err := c.takeApart(text, kind, rest)
	if err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	made, err := c.made(ctx, kind, s)
	if err != nil {
		return err
	}
	for _, ch := range made {
		ch.Text, ch.After = text, s.after
	}
	c.changes = append(c.changes, named(made)...)
	return nil
}

// named has the changes of a file that makes several state which each is.
func named(changes []*structs.WhatIfChange) []*structs.WhatIfChange {
	if len(changes) < 2 {
		return changes
	}
	for _, ch := range changes {
		switch {
		case ch.VirtualCluster != nil:
			ch.Text += " (" + ch.VirtualCluster.Name + ")"
		case ch.Project != nil:
			ch.Text += " (project " + ch.Project.Name + ")"
		case ch.Week != nil:
			ch.Text += " (week " + ch.Week.Week + " of project " + ch.Week.Project + ")"
		case ch.Flow != nil:
			ch.Text += " (flow " + ch.Flow.Name + ")"
		case ch.AddNodes != nil && ch.AddNodes.Node != nil:
			ch.Text += " (" + ch.AddNodes.Node.Name + ")"
		}
	}
	return changes
}

// takeApart cuts the options off the end of a change.
func (c *changeReader) takeApart(text, kind, rest string) (*statedChange, error) {
	s := &statedChange{text: text, what: rest, options: map[string]string{}}
	for {
		at := c.lastOption(kind, s.what)
		if at < 0 {
			break
		}
		name, value, _ := strings.Cut(s.what[at+1:], "=")
		if _, twice := s.options[name]; twice {
			return nil, fmt.Errorf("%s is stated twice", name)
		}
		s.options[name], s.what = value, s.what[:at]
	}
	if m := optionForm.FindStringSubmatch(s.what); m != nil && kind != "config" {
		return nil, fmt.Errorf("there is no option %q; a change of kind %s may end with %s", m[1], kind, strings.Join(optionsOf(kind), ", "))
	}
	after, at := s.options["after"], s.options["at"]
	var err error
	switch {
	case after != "" && at != "":
		return nil, fmt.Errorf("after and at exclude each other")
	case after != "":
		if s.after, err = time.ParseDuration(after); err != nil {
			err = fmt.Errorf("after=%s: write a duration, such as 90m or 2h", after)
		}
	case at != "":
		s.after, err = c.until(at)
	}
	if err == nil && s.after < 0 {
		err = fmt.Errorf("%s%s is before the what-if begins, at %s", after, at, c.begin.Format(time.RFC3339))
	}
	return s, err
}

// lastOption returns where the last option of a change begins, with its colon; -1: there is none.
func (c *changeReader) lastOption(kind, text string) (at int) {
	at = -1
	for _, name := range optionsOf(kind) {
		at = max(at, strings.LastIndex(text, ":"+name+"="))
	}
	return at
}

// until returns how long it is until a time of the day, or a time.
func (c *changeReader) until(text string) (time.Duration, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.Sub(c.begin), nil
	}
	clock, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("at=%s: write a time of the day as 15:04, or a time as 2026-12-01T15:04:00Z", text)
	}
	begin := c.begin.Local()
	t := time.Date(begin.Year(), begin.Month(), begin.Day(), clock.Hour(), clock.Minute(), 0, 0, begin.Location())
	if t.Before(begin) {
		t = t.AddDate(0, 0, 1)
	}
	return t.Sub(begin), nil
}

// made returns the changes that a stated one makes.
func (c *changeReader) made(ctx context.Context, kind string, s *statedChange) ([]*structs.WhatIfChange, error) {
	one := func(ch *structs.WhatIfChange, err error) ([]*structs.WhatIfChange, error) {
		return []*structs.WhatIfChange{ch}, err
	}
	isJSON := strings.HasSuffix(s.what, ".json")
	file := jobFile{vars: c.o.vars, varFiles: c.o.varFiles, json: isJSON}
	switch kind {
	case "job":
		job, _, err := file.read(ctx, c.e, []string{s.what})
		if err != nil {
			return nil, err
		}
		if ns := c.e.jobNamespace(); ns != "" {
			job.Namespace = ns
		}
		if job.Namespace == structs.AllNamespaces {
			return nil, fmt.Errorf("%q: namespace %q: a job lives in one namespace; what-if shows those of all without -namespace", s.text, job.Namespace)
		}
		c.places = append(c.places, file.placed)
		return one(&structs.WhatIfChange{Job: job, Opportunistic: c.o.opportunistic}, nil)
	case "workflow":
		f := &workflowFile{jobFile: file}
		w, err := f.load(ctx, c.e, []string{s.what})
		c.places = append(c.places, f.refused)
		return one(&structs.WhatIfChange{Workflow: w}, err)
	case "vc":
		f, err := readVirtualClusters(c.e.in, s.what, isJSON)
		if err != nil {
			return nil, err
		}
		c.places = append(c.places, f.placedChange)
		return f.changes(s.what, c.o.whenFree), nil
	case "project":
		f, err := readProjects(c.e.in, s.what, languageOf(isJSON, projectJSON))
		if err != nil {
			return nil, err
		}
		c.places = append(c.places, f.refused)
		return f.changes(s.what, c.o.tolerant), nil
	case "add-nodes":
		return c.nodes(s)
	case "drain":
		spec, err := s.drain()
		if err != nil {
			return nil, fmt.Errorf("%q: %w", s.text, err)
		}
		return one(&structs.WhatIfChange{Drain: &structs.WhatIfDrain{Node: s.what, DrainSpec: *spec}}, nil)
	case "lose":
		return one(&structs.WhatIfChange{Lose: s.what}, nil)
	case "config":
		return one(c.configured(s))
	}
	return nil, fmt.Errorf("%q: there is no change %q; kinds are %s", s.text, kind, strings.Join(changeKinds, ", "))
}

// drain returns how a node is drained.
func (s *statedChange) drain() (*structs.DrainSpec, error) {
	o := drainOptions{enable: true, deadline: drainDeadline}
	text, err := s.options["deadline"], error(nil)
	switch {
	case text == "none":
		o.noDeadline = true
	case text != "":
		if o.deadline, err = time.ParseDuration(text); err != nil || o.deadline <= 0 {
			return nil, fmt.Errorf("deadline %q: write a duration of more than 0, such as 30m, or none", text)
		}
	}
	for name, to := range map[string]*bool{"force": &o.force, "ignore-system": &o.ignoreSystem} {
		if value := s.options[name]; value != "" {
			if *to, err = strconv.ParseBool(value); err != nil {
				return nil, fmt.Errorf("%s %q: write true or false", name, value)
			}
		}
	}
	if o.force && text != "" {
		return nil, errors.New("force and deadline exclude each other")
	}
	return o.spec(), nil
}

// drainChange states a drain as a change of a what-if.
func drainChange(node string, s *structs.DrainSpec) string {
	text := "drain:" + node
	switch {
	case s.Deadline < 0:
		text += ":force=true"
	case s.Deadline == 0:
		text += ":deadline=none"
	default:
		text += ":deadline=" + strings.Replace(s.Deadline.String(), "m0s", "m", 1)
	}
	if s.IgnoreSystemJobs {
		text += ":ignore-system=true"
	}
	return text
}

// nodes returns the nodes that are added.
func (c *changeReader) nodes(s *statedChange) (changes []*structs.WhatIfChange, err error) {
	count, err := strconv.Atoi(s.what)
	if err != nil || count < 1 {
		return nil, fmt.Errorf("%q: how many nodes: write add-nodes:2:like=NODE or add-nodes:2:shape=FILE", s.text)
	}
	like, layout := s.options["like"], s.options["shape"]
	switch {
	case (like == "") == (layout == ""):
		return nil, fmt.Errorf("%q: one of like=NODE and shape=FILE is needed", s.text)
	case like != "":
		return []*structs.WhatIfChange{{AddNodes: &structs.WhatIfNodes{Count: count, Like: like}}}, nil
	}
	nodes, err := tracefile.OpenNodes(layout)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, n := range nodes {
		name := n.Name[:max(0, strings.LastIndex(n.Name, "-"))] // the shape's
		if seen[name] {
			continue
		}
		seen[name] = true
		n.Name = name
		changes = append(changes, &structs.WhatIfChange{AddNodes: &structs.WhatIfNodes{Count: count, Node: n}})
	}
	return changes, nil
}

// configured returns a change of the scheduler's configuration, on top of those before it.
func (c *changeReader) configured(s *statedChange) (*structs.WhatIfChange, error) {
	if c.config == nil {
		now, err := c.scheduler()
		if err != nil {
			return nil, err
		}
		c.config = now
	}
	fs := flag.NewFlagSet("config", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	edit := newSchedulerEdit(fs)
	name, value, ok := strings.Cut(s.what, "=")
	if !ok {
		return nil, fmt.Errorf("%q: write config:OPTION=VALUE, with an option of `nomadish operator scheduler set-config`", s.text)
	}
	names := []string{name}
	if name == "preemption" {
		names = []string{"preempt-system-scheduler", "preempt-service-scheduler", "preempt-batch-scheduler", "preempt-sysbatch-scheduler"}
	}
	for _, name := range names {
		if fs.Lookup(name) == nil {
			return nil, fmt.Errorf("%q: there is no option %q of the scheduler's configuration (`nomadish operator scheduler set-config -help` lists them)", s.text, name)
		}
		if err := fs.Set(name, value); err != nil {
			return nil, fmt.Errorf("%q: %s cannot be %q%s (`nomadish operator scheduler set-config -help` states what it takes)", s.text, name, value, causeText(err))
		}
	}
	if err := edit.apply(c.config); err != nil {
		return nil, fmt.Errorf("%q: %w", s.text, err)
	}
	if err := c.config.Validate(); err != nil {
		return nil, byFlag(fs, err)
	}
	config := *c.config
	config.Slots = config.Slots.Copy()
	return &structs.WhatIfChange{Scheduler: &config}, nil
}

// causeText states why a flag cannot have a value, unless that states nothing.
func causeText(err error) string {
	if err.Error() == "parse error" { // of the package flag
		return ""
	}
	return ": " + err.Error()
}

// refused puts the place in the file before an error, if it is known.
func (c *changeReader) refused(err error) error {
	for _, place := range c.places {
		if found := place(err); found.Error() != err.Error() {
			return found
		}
	}
	return err
}

// changes returns what applying the file changes.
func (v *virtualClusterFile) changes(path string, whenFree bool) (changes []*structs.WhatIfChange) {
	for _, vc := range v.clusters {
		changes = append(changes, &structs.WhatIfChange{Text: "vc:" + path, VirtualCluster: vc, WhenFree: whenFree})
	}
	return named(changes)
}

// placedChange is refused for whichever virtual cluster of the file an error names.
func (v *virtualClusterFile) placedChange(err error) error {
	for _, vc := range v.clusters {
		if strings.Contains(err.Error(), strconv.Quote(vc.Name)) {
			return v.refused(vc, err)
		}
	}
	return err
}

// changes returns what applying the file changes.
func (f *projectFile) changes(path string, force bool) (changes []*structs.WhatIfChange) {
	add := func(ch *structs.WhatIfChange) {
		ch.Text, ch.Force = "project:"+path, force
		changes = append(changes, ch)
	}
	for _, flow := range f.flows {
		add(&structs.WhatIfChange{Flow: flow})
	}
	for _, p := range f.projects {
		add(&structs.WhatIfChange{Project: &p.Project})
		for _, w := range p.Calendar {
			add(&structs.WhatIfChange{Week: &structs.WhatIfWeek{Project: p.Name, Week: w.Week, Rows: w.Slots}})
		}
	}
	return named(changes)
}
