package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/examples"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

const workflowFileDetails = "The file is HCL (or JSON with -json); \"-\" reads standard input. It has one block workflow, and variables as job files have them. Job\n" +
	"files that it names (job_file) are read from its folder, and get the values of the variables that they declare."

// isBadRequest reports whether the servers refused what a request states.
func isBadRequest(err error) bool {
	var answer *api.Error
	return errors.As(err, &answer) && answer.Status == http.StatusBadRequest
}

func workflowRun() spec {
	return spec{
		synopsis: "Run a workflow and follow it",
		usage:    "<file>", example: "-var version=3 chip.nomad.hcl",
		details: workflowFileDetails + "\n" +
			"\n" +
			"Unless -detach is set, the command follows the run until it ends; interrupted, it leaves the run as it is. A workflow whose last run\n" +
			"has not ended is not run again.\n" +
			"\n" +
			"Exit code 1: the workflow was not run, or failed or was cancelled. 130: interrupted while following, or no agent answered for\n" +
			"30 s; the run continues.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var file workflowFile
			file.flags(fs, "json")
			detach := fs.Bool("detach", false, "do not follow the run")
			user := fs.String("user", "", userUsage)
			check := fs.Int64("check-index", -1, "run only if the workflow's modify index is `N` (0: it must be new)")
			try := whatIfFlags(fs)
			return func(ctx context.Context, e *env, args []string) int {
				whatIf, err := try.wanted()
				if err != nil {
					return e.usage("%v", err)
				}
				w, err := file.load(ctx, e, args)
				if err != nil {
					return e.fail(err)
				}
				e.client = e.client.As(*user)
				if whatIf {
					return try.file(ctx, e, checking(*check, &structs.WhatIfChange{Text: "workflow:" + args[0], Workflow: w}), file.refused)
				}
				reply, err := e.client.Workflows().Run(ctx, w, api.Check{CAS: *check >= 0, Index: uint64(max(0, *check))})
				if err != nil {
					return e.fail(file.refused(err))
				}
				reply.Warnings = file.news(reply.Warnings)
				return followRun(ctx, e, structs.NamespacedID{Namespace: w.Namespace, ID: w.ID}, reply, *detach)
			}
		},
	}
}

// followRun reports a run that was started, and follows it to its end unless the user wants to go on at once.
func followRun(ctx context.Context, e *env, id structs.NamespacedID, reply *structs.WorkflowRunReply, detach bool) int {
	warnOf(e, "Workflow", reply.Warnings)
	if detach {
		e.printf("Run %d of workflow %q was started\n", reply.Run, id.ID)
		return exitDone
	}
	e.namespace = id.Namespace
	return (&workflowMonitor{e: e, id: id.ID, run: reply.Run, from: followWorkflow(e, id.ID), live: ui.NewLive(e.out), seen: map[string]string{}}).follow(ctx)
}

func workflowPlan() spec {
	return spec{
		synopsis: "Show the stages of a workflow, what they need and what would be reserved, without running it",
		usage:    "<file>", example: "chip.nomad.hcl",
		details: workflowFileDetails + "\n" +
			"\n" +
			"It shows what would be lent at most during each stage, and whether the workflow would start at once, with its reservation on which nodes, or what is missing,\n" +
			"and when each stage would start and end if it were run now (docs/guides/when-and-what-if.md). -json-output and -t print the\n" +
			"plan as the API returns it.\n" +
			"\n" +
			"Exit code 1: the workflow is refused, or what is missing does not come free by itself, as the ready nodes could not hold the workflow if they\n" +
			"were empty, there are too few licenses, or it reserves too little for its stages. 0: it would start, or wait; where only the slots that\n" +
			"projects are given this week are in the way, it may start with the next week.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var file workflowFile
			file.flags(fs, "json")
			asJSON := fs.Bool("json-output", false, "print the plan as JSON")
			template := fs.String("t", "", "print the plan through a Go `template`")
			user := fs.String("user", "", userUsage)
			return func(ctx context.Context, e *env, args []string) int {
				e.json, e.template = *asJSON, *template
				w, err := file.load(ctx, e, args)
				if err != nil {
					return e.fail(err)
				}
				e.client = e.client.As(*user)
				plan, err := e.client.Workflows().Plan(ctx, w, true)
				if err != nil {
					return e.fail(file.refused(err))
				}
				if done, code := e.formatted(plan); done {
					return code
				}
				plan.Warnings = file.news(plan.Warnings)
				workflowReader{e}.printPlan(plan)
				if plan.Never {
					return e.fail(fmt.Errorf("workflow %q cannot run here: %s (`nomadish workflow run` would accept it, and it would wait until that changes)", plan.ID, plan.Missing))
				}
				return exitDone
			}
		},
	}
}

// printPlan prints a plan for people.
func (r workflowReader) printPlan(p *structs.WorkflowPlan) {
	e := r.e
	warnOf(e, "Workflow", p.Warnings)
	e.printf("Workflow %q in namespace %q, node pool %q: %s\n\n", p.ID, p.Namespace, p.NodePool, plural(len(p.Stages), "stage"))
	rows := [][]string{append([]string{"Stage", "Jobs", "Instances"}, amountColumns()...)}
	for _, s := range p.Stages {
		instances, names := 0, []string{}
		for _, j := range s.Jobs {
			instances += j.Instances
			names = append(names, j.Name)
		}
		rows = append(rows, append([]string{s.Name, listedUpTo(names, 6), strconv.Itoa(instances)}, amountCells(s.Needs)...))
	}
	rows = append(rows,
		append([]string{"Largest stage", "", ""}, amountCells(p.Max)...),
		append([]string{"All stages", "", ""}, amountCells(p.Sum)...),
		append([]string{"Reserved", reserveText(p.Reserve), ""}, amountCells(p.Reserved)...))
	ui.Table(e.out, withoutEmpty(rows, 3))
	r.printLends(p)
	switch {
	case p.Never: // the error follows
	case p.Alive > 0: // as below
	case p.Missing != "":
		e.printf("\nIt would wait for its reservation: %s.\n", p.Missing)
	case p.Posted && len(p.Packing) > 0:
		e.printf("\nIt would start at once, with its reservation on %s:\n", plural(len(p.Packing), "node"))
		nodes := [][]string{{"Node", "CPU", "Cores", "Memory", "Disk", "GPUs"}}
		for i, part := range p.Packing {
			name := structs.ShortID(part.NodeID)
			if i < len(p.Nodes) {
				name = p.Nodes[i]
			}
			devices := strconv.Itoa(part.Devices)
			if part.CellLevel != "" {
				devices += ", in cells of level " + part.CellLevel
			}
			beside := max(0, part.CPU-int64(part.Cores)*p.MHzPerCore)
			nodes = append(nodes, []string{name, mhzText(beside), strconv.Itoa(part.Cores), ui.MiB(part.MemoryMB), diskCell(part.DiskMB), devices})
		}
		ui.Table(e.out, withoutEmpty(nodes, 1))
		if more := enlargedBy(p); more != "" {
			e.printf("\nThat is more than \"Reserved\" by %s, as the instances of the stages do not pack into less.\n", more)
		}
		if p.Leaving > 0 {
			e.printf("\n%s without a claim in the cells of its namespace would leave:\n", plural(p.Leaving, "instance"))
		}
		if p.Preempted > 0 {
			e.printf("\n%s of lower bands or standing would be preempted:\n", plural(p.Preempted, "instance"))
		}
		printLeavers(&e.printer, p.Leavers)
	}
	printPlanForecast(&e.printer, p, e.now())
	if p.Alive > 0 {
		e.printf("\nRun %d has not ended: the workflow cannot be run before `nomadish workflow cancel %s` or its end. Whether it would start at once then\nis not known: others may take what comes free.\n", p.Alive, shellWord(p.ID))
	}
}

// enlargedBy states by how much more is reserved than was to be, so that all stages pack into it; "": not more. Whole cores serve those that request MHz.
func enlargedBy(p *structs.WorkflowPlan) string {
	var sum structs.WorkflowResources
	for i := range p.Packing {
		part := &p.Packing[i]
		sum.Cores, sum.MemoryMB, sum.GPUs = sum.Cores+int64(part.Cores), sum.MemoryMB+part.MemoryMB, sum.GPUs+int64(part.Devices)
	}
	more := structs.WorkflowResources{Cores: max(0, sum.Cores-p.Reserved.Cores), MemoryMB: max(0, sum.MemoryMB-p.Reserved.MemoryMB), GPUs: max(0, sum.GPUs-p.Reserved.GPUs)}
	if more.Cores+more.MemoryMB+more.GPUs == 0 {
		return ""
	}
	return amountText(more)
}

// printLeavers prints whose instances would leave for a reservation.
func printLeavers(p *printer, list []structs.WorkflowLeaver) {
	if len(list) == 0 {
		return
	}
	rows := [][]string{{"Namespace", "Job ID", "Task Group", "Instances", "Priority", "Band", "How"}}
	for i := range list {
		l := &list[i]
		how := "stopped, back to the queue"
		if l.Suspended {
			how = "suspended"
		}
		rows = append(rows, []string{l.Namespace, l.JobID, l.TaskGroup, strconv.Itoa(l.Instances), strconv.Itoa(l.Priority), l.Band, how})
	}
	ui.Table(p.out, rows)
}

// printLends prints what the stages of a plan would lend, if the workflow lends anything.
func (r workflowReader) printLends(p *structs.WorkflowPlan) {
	rows, any := [][]string{append([]string{"Lent during"}, amountColumns()...)}, false
	for _, s := range p.Stages {
		any = any || amountText(s.Lends) != amountText(structs.WorkflowResources{})
		rows = append(rows, append([]string{s.Name}, amountCells(s.Lends)...))
	}
	if any {
		r.e.printf("\n")
		ui.Table(r.e.out, withoutEmpty(rows, 1))
	}
}

// withoutEmpty returns a table without those of its columns, from one on, in which nothing but zeros stands.
func withoutEmpty(rows [][]string, from int) [][]string {
	for c := len(rows[0]) - 1; c >= from; c-- {
		if slices.ContainsFunc(rows[1:], func(row []string) bool { return row[c] != "0" && row[c] != ui.OrNone("") }) {
			continue
		}
		for i := range rows {
			rows[i] = slices.Delete(rows[i], c, c+1)
		}
	}
	return rows
}

// mhzText is an amount of processor beside whole cores.
func mhzText(mhz int64) string {
	if mhz == 0 {
		return "0"
	}
	return fmt.Sprintf("%d MHz", mhz)
}

// diskCell is an amount of disk in a table.
func diskCell(mib int64) string {
	if mib == 0 {
		return "0"
	}
	return ui.MiB(mib)
}

// listedUpTo lists names, at most so many of them.
func listedUpTo(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// amountColumns are the heads of the columns that amountCells fills.
func amountColumns() []string { return []string{"CPU", "Cores", "Memory", "Disk", "GPUs", "Licenses"} }

func amountCells(r structs.WorkflowResources) []string {
	return []string{mhzText(r.CPU), strconv.FormatInt(r.Cores, 10), ui.MiB(r.MemoryMB), diskCell(r.DiskMB), strconv.FormatInt(r.GPUs, 10), ui.OrNone(licensesText(r.Licenses))}
}

func reserveText(r structs.WorkflowReserve) string {
	if r.Amounts != nil {
		return "as stated"
	}
	return r.Rule
}

func workflowValidate() spec {
	return spec{
		synopsis: "Check a workflow file without an agent",
		usage:    "<file>", example: "chip.nomad.hcl", local: true,
		details: workflowFileDetails,
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var file workflowFile
			file.flags(fs, "json")
			return func(ctx context.Context, e *env, args []string) int {
				w, err := file.load(ctx, e, args)
				if err != nil {
					return e.fail(err)
				}
				levels, err := w.Levels()
				if err != nil {
					return e.fail(err)
				}
				warnOf(e, "Workflow", strings.Join(w.Warnings(), "\n"))
				e.printf("Workflow %q is valid: %s, %s\n", w.ID, plural(len(levels), "stage"), plural(len(w.Jobs()), "job"))
				return exitDone
			}
		},
	}
}

func workflowInit() spec {
	return spec{
		synopsis: "Write an example workflow file",
		usage:    "[<file>]", example: "chip.nomad.hcl", local: true,
		details: exampleDetails,
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return func(_ context.Context, e *env, args []string) int {
				const path = "workflow.nomad.hcl"
				text := examples.Workflow
				if len(args) == 1 && args[0] != "-" { // which the example names as that to run
					text = strings.Replace(text, path, shellWord(args[0]), 1)
				}
				return initFile{path, text, "workflow"}.write(e, args)
			}
		},
	}
}

// workflowMonitor follows a run to its end. It prints a line whenever a stage or a job has another state, and draws the stages on a terminal.
type workflowMonitor struct {
	e    *env
	id   string
	run  int
	from *workflowFollower
	live *ui.Live
	seen map[string]string // stage, or stage and job, to the state last printed

	waits   string    // what was printed last of what the run waits for
	waitsAt time.Time // when

	failuresAt map[string]time.Time // job to when it was printed last that instances of it have failed and are tried again
}

// failuresEvery is how often it is printed of a job at most: of one with many instances many may fail at a time. What is not printed comes with the next answer.
const failuresEvery = time.Second

// waitsEvery is how often it is printed at most what a run waits for that has not started: forecasts change often by little.
const waitsEvery = 30 * time.Second

func (m *workflowMonitor) line(format string, args ...any) {
	m.live.Clear()
	m.e.printf("    %s: %s\n", m.e.now().Format("2006-01-02T15:04:05.000"), fmt.Sprintf(format, args...))
}

// follow follows the run until it ends. Exit code: done if it completed, failed if not, or interrupted.
func (m *workflowMonitor) follow(ctx context.Context) int {
	m.e.printf("==> %s: Monitoring run %d of workflow %q\n", m.e.now().Format("2006-01-02T15:04:05.000"), m.run, m.id)
	for {
		w, err := m.from.next(ctx, func(err error) {
			m.live.Clear()
			m.e.eprintf("%s\nTrying again for %s\n", lostText(err), durationText(followTries*m.from.pause))
		})
		switch {
		case errors.Is(err, context.Canceled):
			m.live.Clear()
			m.e.printf("The run continues; `nomadish workflow status %s%s` shows it\n", inNamespace(m.e.namespace), shellWord(m.id))
			return exitInterrupted
		case err != nil && isLost(err):
			m.live.Clear()
			m.e.eprintf("%s\nThe run does not end with this: once an agent answers, `nomadish workflow status %s%s` shows it\n", lostText(err), inNamespace(m.e.namespace), shellWord(m.id))
			return exitInterrupted
		case err != nil:
			return m.e.fail(err)
		case w.Run != m.run:
			m.line("Run %d of the workflow has taken the place of this one", w.Run)
			return exitFailed
		}
		m.report(w)
		if w.EndTime != 0 {
			m.line("Workflow %q %s after %s", w.ID, becameText(w.State), durationText(time.Duration(w.EndTime-w.SubmitTime)))
			for _, hint := range workflowHints(w) {
				m.e.printf("%s\n", hint)
			}
			if w.State == structs.WorkflowComplete {
				return exitDone
			}
			return exitFailed
		}
		m.from.draw(m.live, func() []string { return drawWorkflow(w, m.e.now()) })
	}
}

// becameText returns the verb of a sentence about a workflow, or a job of it, that has come into a state.
func becameText(state string) string {
	switch state {
	case structs.WorkflowFailed:
		return "failed"
	case structs.WorkflowCancelled:
		return "was cancelled"
	}
	return "is " + state
}

// report prints what has another state than before.
func (m *workflowMonitor) report(w *structs.WorkflowStatus) {
	changed := func(key, state string) bool {
		was, known := m.seen[key]
		m.seen[key] = state
		return was != state && (known || state != structs.StageWaiting)
	}
	if changed("", w.State) && w.EndTime == 0 { // the end is printed last, by follow
		m.line("Workflow is %s", w.State)
	}
	m.reportWait(w)
	for _, s := range w.Stages {
		if s.State == structs.StageComplete && s.End < w.SubmitTime {
			if changed("end "+s.Name, s.State) {
				m.line("Stage %q: complete in an earlier run", s.Name)
			}
			continue
		}
		started := changed("stage "+s.Name, s.State+" "+strconv.Itoa(s.Attempt)) && s.State == structs.StageStarting
		for i := range s.Jobs {
			m.reportFailed(s, &s.Jobs[i])
		}
		if started {
			m.line("Stage %q: %s%s", s.Name, s.State, attemptText(s.Attempt))
		}
		for _, j := range s.Jobs {
			if j.State != structs.StageStarting && changed("job "+j.Name, j.State+" "+strconv.Itoa(j.Attempt)) && j.Attempt > 0 {
				text := becameText(j.State)
				switch {
				case j.Stopped:
					text = "was stopped"
				case j.State == structs.StageFailed && j.TimedOut > 0:
					text = timedOutText(j)
				case j.Removed:
					text = "failed, and is not registered any more"
				}
				why := ""
				if j.State == structs.StageFailed {
					why = reasonText(j.Failure)
				}
				m.line("Stage %q: job %q %s%s%s", s.Name, j.Name, text, attemptText(j.Attempt), why)
			}
			m.reportInstances(s, j)
		}
		if !started && s.End > 0 && changed("end "+s.Name, s.State+" "+strconv.Itoa(s.Attempt)) {
			m.line("Stage %q: %s after %s%s", s.Name, s.State, durationText(time.Duration(s.End-s.Start)), attemptText(s.Attempt))
		}
	}
}

// reportFailed prints that an attempt of a job has failed after which the next one has started already.
func (m *workflowMonitor) reportFailed(s structs.WorkflowStageStatus, j *structs.WorkflowJobStatus) {
	key, now := "attempt "+j.Name, strconv.Itoa(j.Attempt)
	was := m.seen[key]
	m.seen[key] = now
	if was == "" || was == "0" || was == now || j.FailedBefore == 0 || j.Attempt < 2 {
		return
	}
	if before := j.Attempt - 1; m.seen["job "+j.Name] != structs.StageFailed+" "+strconv.Itoa(before) {
		m.line("Stage %q: job %q failed (attempt %d)%s", s.Name, j.Name, before, reasonText(j.Failure))
	}
}

// reportInstances prints of a job that has begun that none of its instances runs any more, as they wait in the queue, and that some have failed that are tried
// again.
func (m *workflowMonitor) reportInstances(s structs.WorkflowStageStatus, j structs.WorkflowJobStatus) {
	if j.State != structs.StageRunning {
		return
	}
	now, key, failures := m.e.now(), "failures "+j.Name, strconv.Itoa(j.Failures)
	if j.Failures > 0 && m.seen[key] != failures && now.Sub(m.failuresAt[j.Name]) >= failuresEvery {
		if m.failuresAt == nil {
			m.failuresAt = map[string]time.Time{}
		}
		m.seen[key], m.failuresAt[j.Name] = failures, now
		m.line("Stage %q: job %q %s%s", s.Name, j.Name, failuresText(j, now), reasonText(j.Failure))
	}
	const queued = "queued"
	switch key := "instances " + j.Name; {
	case j.Queued > 0 && j.Running == 0 && m.seen[key] != queued:
		m.seen[key] = queued
		m.line("Stage %q: job %q: no instance runs now, %d in the queue", s.Name, j.Name, j.Queued)
	case j.Running > 0 && m.seen[key] == queued:
		m.seen[key] = ""
		m.line("Stage %q: job %q: %d of %s running again", s.Name, j.Name, j.Running, plural(j.Instances, "instance"))
	}
}

// reportWait prints what a run waits for that has not started, and when it is expected to start, where either has changed.
func (m *workflowMonitor) reportWait(w *structs.WorkflowStatus) {
	if w.EndTime != 0 || w.State == structs.WorkflowPaused || w.Missing == "" && w.Forecast == nil {
		return
	}
	var lines []string
	switch {
	case w.Missing == "":
	case w.Posted:
		lines = append(lines, "Its reservation: "+w.Missing)
	default:
		lines = append(lines, "Waits for its reservation: "+w.Missing)
	}
	if w.Forecast != nil {
		lines = append(lines, forecastLines(runStart(w.Forecast), m.e.now())...)
	}
	text := strings.Join(lines, "\n")
	if text == m.waits || m.e.now().Sub(m.waitsAt) < waitsEvery {
		return
	}
	m.waits, m.waitsAt = text, m.e.now()
	m.line("%s", lines[0])
	for _, line := range lines[1:] {
		m.e.printf("      %s\n", line)
	}
}

// reasonText is a reason that may follow a state.
func reasonText(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// attemptText names an attempt that is not the first one.
func attemptText(attempt int) string {
	if attempt <= 1 {
		return ""
	}
	return fmt.Sprintf(" (attempt %d)", attempt)
}
