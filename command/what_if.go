package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/nomadish/nomadish/command/report"
	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/identity"
	"github.com/nomadish/nomadish/nomadish/snapshot"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/whatif"
	"github.com/nomadish/nomadish/structs"
)

// whatIfOptions are the options of a what-if beside its changes.
type whatIfOptions struct {
	snapshot, report   string
	horizon            time.Duration
	latest, all        bool
	seed               uint64
	user               string
	vars, varFiles     listFlag
	opportunistic      bool
	whenFree, tolerant bool
}

func whatIfCmd() spec {
	return spec{
		synopsis: "Show what changes would do to the queue: both futures, without and with them",
		usage:    "<change>...", example: "add-nodes:2:like=gpu-3 drain:gpu-7:after=2h",
		output: true,
		details: "Nothing is changed. The cluster's state is run on in virtual time by the real scheduler, once as it is and once with the changes, and the\n" +
			"command shows who starts earlier, later or never, who would be taken for others, and what is used. Changes:\n" +
			"\n" +
			"  job:FILE                  the job is registered\n" +
			"  vc:FILE                   the virtual clusters of the file are applied\n" +
			"  project:FILE              the projects, weeks and flows of the file are applied\n" +
			"  workflow:FILE             the workflow is run\n" +
			"  add-nodes:N:like=NODE     N nodes are added that are like a node of the cluster\n" +
			"  add-nodes:N:shape=FILE    N nodes of each shape are added, as `sim nodes` reads them\n" +
			"  drain:NODE                the node is drained; :deadline=DURATION is how long its work has to move (1h), or none; :force=true stops\n" +
			"                            everything at once, :ignore-system=true lets system jobs run on\n" +
			"  lose:NODE                 the node is lost\n" +
			"  config:OPTION=VALUE       an option of `operator scheduler set-config`, such as config:bands=1-50,51-100;\n" +
			"                            config:preemption=true lets jobs of all types preempt\n" +
			"\n" +
			"Each may end with :after=DURATION or :at=TIME (15:04, or RFC 3339): it is made then. A change that the servers would refuse is refused in the same\n" +
			"words. Files whose names end in .json are JSON, others HCL.\n" +
			"\n" +
			"With -snapshot no cluster is needed: the state is that of a file of `operator snapshot save`.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var o whatIfOptions
			fs.StringVar(&o.snapshot, "snapshot", "", "the state of a `file` of `operator snapshot save`, instead of the cluster's")
			fs.DurationVar(&o.horizon, "horizon", structs.DefaultForecastHorizon, "how `far` both futures are looked at")
			fs.BoolVar(&o.latest, "latest", false, "all that runs takes all the time that it may, instead of as long as finished runs of its job or user took")
			fs.StringVar(&o.report, "report", "", "write an HTML page with plots to a `file`")
			fs.Uint64Var(&o.seed, "seed", 0, "a `number` that settles what the scheduler settles at random")
			fs.BoolVar(&o.all, "all", false, "list all groups, not only the 20 whose start changes most")
			fs.Var(&o.vars, "var", "set a variable of job and workflow files, as `name=value`; repeatable")
			fs.Var(&o.varFiles, "var-file", "read variables from an HCL `file`; repeatable")
			fs.BoolVar(&o.opportunistic, "opportunistic", false, "jobs are submitted with -opportunistic")
			fs.BoolVar(&o.whenFree, "when-free", false, "virtual clusters are applied with -when-free")
			fs.BoolVar(&o.tolerant, "force", false, "projects are applied with -force")
			fs.StringVar(&o.user, "user", "", userUsage)
			return func(ctx context.Context, e *env, args []string) int {
				if len(args) == 0 {
					return e.usage("at least one change is needed, such as add-nodes:2:like=NODE")
				}
				e.client = e.client.As(o.user)
				return o.run(ctx, e, args)
			}
		},
	}
}

// run reads the changes, runs the what-if and shows it.
func (o *whatIfOptions) run(ctx context.Context, e *env, args []string) int {
	var offline *savedState
	if o.snapshot != "" {
		var err error
		if offline, err = openState(ctx, e, o.snapshot); err != nil {
			return e.fail(err)
		}
	}
	c := &changeReader{o: o, e: e, begin: e.now(), scheduler: func() (*structs.SchedulerConfiguration, error) { return currentScheduler(ctx, e) }}
	if offline != nil {
		c.begin, c.scheduler = offline.saved, offline.scheduler
	}
	for _, text := range args {
		if err := c.read(ctx, text); err != nil {
			return e.fail(err)
		}
	}
	w, err := o.compute(ctx, e, offline, c.changes)
	if err != nil {
		return e.fail(c.refused(err))
	}
	return o.show(e, w)
}

// compute runs the what-if on the cluster, or here.
func (o *whatIfOptions) compute(ctx context.Context, e *env, offline *savedState, changes []*structs.WhatIfChange) (*structs.WhatIf, error) {
	req := &structs.WhatIfRequest{Changes: changes, Horizon: o.horizon, Latest: o.latest, Seed: o.seed}
	p := e.waiting("running both futures")
	defer p.stop()
	if offline == nil {
		return e.client.WhatIf(ctx, req)
	}
	for _, ch := range changes {
		ch.User = o.user
	}
	return whatif.Run(ctx, offline.store, req, whatif.Options{
		Now: offline.saved, Rules: whatif.Rules{Region: offline.region, Identity: identity.New(identity.Options{Trust: true})},
	})
}

// show prints the what-if, and writes the page.
func (o *whatIfOptions) show(e *env, w *structs.WhatIf) int {
	if o.report != "" {
		if err := writePage(o.report, w); err != nil {
			return e.fail(fmt.Errorf("-report: %w", err))
		}
	}
	if done, code := e.formatted(w); done {
		return code
	}
	(&whatIfPrinter{printer: &e.printer, w: w, all: o.all}).print()
	if o.report != "" {
		e.printf("\nThe plots are in %s\n", o.report)
	}
	return exitDone
}

func writePage(path string, w *structs.WhatIf) (err error) {
	f, err := os.Create(filepath.Clean(path)) // the user names the file
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return report.WhatIf(f, w)
}

// savedState is the state of a file.
type savedState struct {
	store  *state.Store
	saved  time.Time
	region string
}

// openState reads the state of a file that `operator snapshot save` wrote.
func openState(ctx context.Context, e *env, path string) (*savedState, error) {
	file, size, err := openArchive(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // read only
	p := e.waiting("reading the state")
	defer p.stop()
	info, err := snapshot.Read(ctx, file, size)
	var from io.Reader
	if err == nil {
		from, err = snapshot.State(file, size)
	}
	if err == nil {
		s := &savedState{saved: info.Meta.Created, region: info.Meta.Region}
		if s.store, err = fsm.Restored(from); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", path, err)
}

// scheduler returns the scheduler's configuration in the state.
func (s *savedState) scheduler() (*structs.SchedulerConfiguration, error) {
	config := s.store.Snapshot().SchedulerConfig(nil)
	return config.Effective(), nil
}

// trial is how a command shows what it would do instead of doing it.
type trial struct {
	whatIf, json     bool
	template, report string
}

// whatIfFlags adds the flags of commands that can show what they would do instead of doing it. Of most of them -json states what their file is.
func whatIfFlags(fs *flag.FlagSet) *trial {
	t := &trial{}
	fs.BoolVar(&t.whatIf, "what-if", false, "change nothing, and show what it would do to the queue, as the command what-if does")
	name := "json"
	if fs.Lookup(name) != nil {
		name = "json-output"
	}
	fs.BoolVar(&t.json, name, false, "with -what-if: print that as JSON")
	fs.StringVar(&t.template, "t", "", "with -what-if: print that through a Go `template`")
	fs.StringVar(&t.report, "report", "", "with -what-if: write an HTML page with plots to a `file`")
	return t
}

// wanted reports whether the changes are to be shown only. It is an error if they are not, and flags state how.
func (t *trial) wanted() (bool, error) {
	if !t.whatIf && (t.json || t.template+t.report != "") {
		return false, errors.New("-json, -json-output, -t and -report state how -what-if is shown: they go with it only")
	}
	if t.json && t.template != "" {
		return false, errors.New("-t and JSON exclude each other")
	}
	return t.whatIf, nil
}

// changes shows what changes would do.
func (t *trial) changes(ctx context.Context, e *env, changes ...*structs.WhatIfChange) int {
	return t.file(ctx, e, changes, func(err error) error { return err })
}

// file is changes for those of a file; refused puts the place in it before an error.
func (t *trial) file(ctx context.Context, e *env, changes []*structs.WhatIfChange, refused func(error) error) int {
	o := &whatIfOptions{report: t.report}
	e.json, e.template = t.json, t.template
	w, err := o.compute(ctx, e, nil, changes)
	if err != nil {
		return e.fail(refused(err))
	}
	return o.show(e, w)
}

// checking has changes require that what they change was last changed at an index, as -check-index does; below 0: at any. Flows and weeks, which a file of a project may
// have beside it, are changed at any.
func checking(index int64, changes ...*structs.WhatIfChange) []*structs.WhatIfChange {
	for _, ch := range changes {
		if index >= 0 && ch.Flow == nil && ch.Week == nil {
			ch.CheckIndex = new(uint64(index))
		}
	}
	return changes
}

// jobs is changes for job files.
func (t *trial) jobs(ctx context.Context, e *env, files []*readFile, opportunistic bool, check int64) int {
	var changes []*structs.WhatIfChange
	for _, f := range files {
		if e.jobNamespace() != "" {
			f.job.Namespace = e.namespace
		}
		changes = append(changes, &structs.WhatIfChange{Text: "job:" + f.path, Job: f.job, Opportunistic: opportunistic})
	}
	return t.file(ctx, e, checking(check, changes...), func(err error) error {
		if len(files) == 1 {
			return files[0].placed(err)
		}
		return err
	})
}
