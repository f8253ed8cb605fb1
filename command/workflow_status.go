package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func workflowList() spec {
	return spec{
		synopsis: "List the workflows",
		usage:    "", example: "-filter 'State == \"running\"'", output: true,
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			return pageOfAll(fs, "No workflows", func(e *env) listOf[*structs.WorkflowStub] { return e.client.Workflows().List }, workflowRows)
		},
	}
}

// workflowRows is a table of workflows.
func workflowRows(workflows []*structs.WorkflowStub) [][]string {
	rows := [][]string{{"Name", "Namespace", "Run", "State", "Stage", "Priority", "Submitted"}}
	for _, w := range workflows {
		rows = append(rows, []string{
			w.ID, w.Namespace, strconv.Itoa(w.Run), w.State, fmt.Sprintf("%d of %d (%s)", w.Stage, w.Stages, w.StageName), strconv.Itoa(w.Priority), ui.Time(w.SubmitTime),
		})
	}
	return rows
}

// workflowReader reads workflows for the commands about one of them, and prints them.
type workflowReader struct{ e *env }

// named returns the name of the workflow that a command's argument names: by its name or a prefix of it.
func (r workflowReader) named(ctx context.Context, name string) (string, error) {
	e := r.e
	k := byName("workflow", func(w *structs.WorkflowStub) string { return w.ID }, e.client.Workflows().List, workflowRows)
	k.namespace = func(w *structs.WorkflowStub) string { return w.Namespace }
	w, err := one(ctx, e, k, name)
	if err != nil {
		return "", err
	}
	e.namespace = w.Namespace
	return w.ID, nil
}

func workflowStatus() spec {
	return spec{
		synopsis: "Show a workflow: its stages, its jobs and its reservation",
		usage:    "[<workflow>]", example: "-watch chip", output: true,
		details: "The workflow is given by its name or a prefix of it; without one, all are listed. Stages are drawn from left to right with their jobs: ✓ is\n" +
			"complete, ▶ running, … registered while no instance of it runs, ✗ failed or cancelled. The time of a stage\n" +
			"is that of its last attempt, and so is that of a job.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			stale := staleFlag(fs)
			watch := fs.Bool("watch", false, "show it again whenever it changes, until its run ends")
			return func(ctx context.Context, e *env, args []string) int {
				stale(e)
				switch {
				case len(args) == 0:
					return listWorkflows(ctx, e)
				case len(args) > 1:
					return e.usage("at most one workflow is taken, %d given", len(args))
				}
				id, err := workflowReader{e}.named(ctx, args[0])
				if err != nil {
					return e.fail(err)
				}
				if *watch {
					return watchWorkflow(ctx, e, id)
				}
				w, _, err := e.client.Workflows().Info(ctx, id, e.query())
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(w); done {
					return code
				}
				workflowReader{e}.print(w)
				return exitDone
			}
		},
	}
}

func listWorkflows(ctx context.Context, e *env) int {
	list, _, err := e.client.Workflows().List(ctx, e.query())
	if err != nil {
		return e.fail(err)
	}
	if done, code := e.formatted(list); done {
		return code
	}
	if len(list) == 0 {
		e.printf("No workflows\n")
		return exitDone
	}
	ui.Table(e.out, workflowRows(list))
	return exitDone
}

// watchWorkflow shows a workflow whenever it changes, in place on a terminal, until its run ends.
func watchWorkflow(ctx context.Context, e *env, id string) int {
	live, from := ui.NewLive(e.out), followWorkflow(e, id)
	shown := ""
	for {
		w, err := from.next(ctx, func(err error) {
			live.Clear()
			e.eprintf("%s\nTrying again for %s\n", lostText(err), durationText(followTries*from.pause))
		})
		if errors.Is(err, context.Canceled) {
			return exitDone // this is how watching ends
		}
		if err != nil {
			return e.fail(err)
		}
		if done, code := e.formatted(w); done && code != exitDone {
			return code
		} else if !done {
			if live.On() && w.EndTime == 0 {
				from.draw(live, func() []string { return drawWorkflow(w, e.now()) })
			} else if now := strings.Join(drawWorkflow(w, time.Unix(0, w.SubmitTime)), "\n"); now != shown { // more than the time has changed
				live.Clear()
				if !live.On() {
					e.printf("==> %s:\n", e.now().Format("2006-01-02T15:04:05.000"))
				}
				shown = now
				workflowReader{e}.print(w)
			}
		}
		if w.EndTime != 0 {
			return exitDone
		}
	}
}

// print prints a workflow for people.
func (r workflowReader) print(w *structs.WorkflowStatus) {
	e := r.e
	for _, line := range drawWorkflow(w, e.now()) {
		e.printf("%s\n", line)
	}
	for _, line := range workflowWaitLines(w, e.now()) {
		e.printf("%s\n", line)
	}
	for _, hint := range workflowHints(w) {
		e.printf("%s\n", hint)
	}
	if len(w.Previous) == 0 {
		return
	}
	e.printf("\n%s\n", e.style.Bold("Earlier Runs"))
	rows := [][]string{{"Run", "State", "Stage", "Submitted", "Ran"}}
	for _, p := range w.Previous {
		rows = append(rows, []string{strconv.Itoa(p.Run), p.State, strconv.Itoa(p.Stage + 1), ui.Time(p.SubmitTime), took(p.StartTime, p.EndTime, e.now())})
	}
	ui.Table(e.out, rows)
}

// workflowHints returns the commands that help with a workflow that does not go on by itself: one that is paused, has failed or was cancelled.
func workflowHints(w *structs.WorkflowStatus) []string {
	command := func(name string) string {
		return "`nomadish workflow " + name + " " + inNamespace(w.Namespace) + shellWord(w.ID)
	}
	switch w.State {
	case structs.WorkflowPaused:
		return []string{command("resume") + "` lets it go on"}
	case structs.WorkflowCancelled:
		return []string{command("retry") + "` runs it again from the first stage that is not complete"}
	case structs.WorkflowFailed:
		return append(failedHints(w, command), command("retry")+"` runs it again from the first stage that is not complete")
	}
	return nil
}

// failedHints returns what helps with each job that has failed, of the first ones. command begins the text of a command about the workflow.
func failedHints(w *structs.WorkflowStatus, command func(name string) string) (lines []string) {
	more := 0
	for _, s := range w.Stages {
		for _, j := range s.Jobs {
			switch {
			case s.State != structs.StageFailed || j.State != structs.StageFailed && !j.Stopped && !j.Removed:
			case len(lines) == failuresNamed:
				more++
			case j.Stopped:
				lines = append(lines, fmt.Sprintf("Job %q was stopped (`nomadish job stop`), and with that has failed", j.Name))
			case j.Removed:
				lines = append(lines, fmt.Sprintf("Job %q is not registered any more: it was purged (`nomadish job stop -purge`), or has ended long ago; its logs are not there any more either", j.Name))
			case j.TimedOut > 0:
				lines = append(lines, fmt.Sprintf("Job %q %s (its group's max_run_duration): what follows would lack its result", j.Name, timedOutText(j)))
			default:
				lines = append(lines, command("logs -stderr")+" "+shellWord(j.Name)+"` prints the errors of job \""+j.Name+"\", without -stderr its output")
			}
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %s failed", plural(more, "more job")))
	}
	return lines
}

// timedOutText states, as a clause, that a job has failed as instances of it were ended at their time limit.
func timedOutText(j structs.WorkflowJobStatus) string {
	if j.Instances == 1 {
		return "failed: ended at its time limit"
	}
	return fmt.Sprintf("failed: %d of %s ended at the time limit", j.TimedOut, plural(j.Instances, "instance"))
}

// drawWorkflow returns lines about a workflow: its state and reservation, the graph of its stages, and how far each is.
func drawWorkflow(w *structs.WorkflowStatus, now time.Time) []string {
	head := fmt.Sprintf("%s run %d  %s  stage %d of %d", w.ID, w.Run, w.State, w.Stage, len(w.Stages))
	if w.Posted {
		head += "  reserved " + amountText(w.Reserved) + "   " + useText(amountText, w.Used, w.Lent, w.Idle, w.Lost)
	}
	lines := []string{head + reasonText(w.Missing)}
	for _, text := range []string{diskText(w), keepsText(w), stoppingText(w)} {
		if text != "" {
			lines = append(lines, text)
		}
	}
	lines = append(lines, drawStages(w, now)...)
	lines = append(lines, progressLines(w, now)...)
	lines = append(lines, failureLines(w, now)...)
	if w.Posted && len(w.LentTo) > 0 {
		var to, back []string
		for _, l := range w.LentTo {
			text := fmt.Sprintf("%s %s of %s", l.To, amountText(l.Lent), amountText(l.Due))
			if beside := amountText(besideOf(&l)); beside != "0" {
				text += " (and " + beside + " beside the reservation)"
			}
			to = append(to, text)
		}
		for _, s := range w.Stages[:min(w.Stage, len(w.Stages))] {
			if s.Start != 0 {
				back = append(back, strconv.Itoa(s.Reclaimed))
			}
		}
		lines = append(lines, "Lent: "+strings.Join(to, ", ")+"   taken back: "+strings.Join(back, ", "))
	}
	return lines
}

// diskText states how what is reserved of disk is used; "": none is.
func diskText(w *structs.WorkflowStatus) string {
	if !w.Posted || w.Reserved.DiskMB == 0 {
		return ""
	}
	text := fmt.Sprintf("Disk: reserved %s   used %s  lent %s  idle %s", ui.MiB(w.Reserved.DiskMB), ui.MiB(w.Used.DiskMB), ui.MiB(w.Lent.DiskMB), ui.MiB(w.Idle.DiskMB))
	if w.Lost.DiskMB > 0 {
		text += "  lost " + ui.MiB(w.Lost.DiskMB)
	}
	return text
}

// besideOf returns what a borrower has that is not of the reservation.
func besideOf(l *structs.WorkflowLoan) structs.WorkflowResources {
	less := func(a, b int64) int64 { return max(0, a-b) }
	out := structs.WorkflowResources{
		CPU: less(l.Amount.CPU, l.Lent.CPU), Cores: less(l.Amount.Cores, l.Lent.Cores),
		MemoryMB: less(l.Amount.MemoryMB, l.Lent.MemoryMB), GPUs: less(l.Amount.GPUs, l.Lent.GPUs),
	}
	for name, n := range l.Amount.Licenses { // order does not matter: each by itself
		if n = less(n, l.Lent.Licenses[name]); n > 0 {
			out.Add(structs.WorkflowResources{Licenses: map[string]int64{name: n}})
		}
	}
	return out
}

// keepsText states where a workflow keeps what comes free; "": nowhere.
func keepsText(w *structs.WorkflowStatus) string {
	if len(w.Keeps) == 0 {
		return ""
	}
	text, forWhat := make([]string, 0, keepsNamed), "for its reservation"
	if w.Posted {
		forWhat = "for what is missing"
	}
	for i := range w.Keeps {
		switch k := &w.Keeps[i]; {
		case i >= keepsNamed:
		case k.NodeID+k.Node == "": // licenses, which belong to no node
			text = append(text, amountText(k.Amount))
		default:
			text = append(text, amountText(k.Amount)+" on node "+k.Node)
		}
	}
	if more := len(w.Keeps) - keepsNamed; more > 0 {
		text = append(text, "and of "+plural(more, "more node"))
	}
	return "Keeps what comes free " + forWhat + ": " + strings.Join(text, "; ")
}

// stoppingText states that jobs wait for instances of earlier ones, which are being stopped; "": they do not.
func stoppingText(w *structs.WorkflowStatus) string {
	if len(w.Stopping) == 0 {
		return ""
	}
	return fmt.Sprintf("Waits for %s of earlier jobs of the workflow to stop: `nomadish alloc status %s`", plural(len(w.Stopping), "instance"), structs.ShortID(w.Stopping[0]))
}

// useText states how a reservation is used, in amounts as text writes them.
func useText(text func(structs.WorkflowResources) string, used, lent, idle, lost structs.WorkflowResources) string {
	line := fmt.Sprintf("used %s  lent %s  idle %s", text(used), text(lent), text(idle))
	if lost := text(lost); lost != "0" {
		line += "  lost " + lost
	}
	return line
}

// amountText describes amounts, most important first.
func amountText(r structs.WorkflowResources) string {
	var parts []string
	for _, p := range []struct {
		amount int64
		unit   string
	}{{r.Cores, "core"}, {r.GPUs, "GPU"}} {
		if p.amount > 0 {
			parts = append(parts, plural(int(p.amount), p.unit))
		}
	}
	if r.CPU > 0 {
		parts = append(parts, fmt.Sprintf("%d MHz", r.CPU))
	}
	if r.MemoryMB > 0 {
		parts = append(parts, ui.MiB(r.MemoryMB))
	}
	if text := licensesText(r.Licenses); text != "" {
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "0"
	}
	return strings.Join(parts, ", ")
}

func licensesText(licenses map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(licenses)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, licenses[name]))
	}
	return strings.Join(parts, ", ")
}

const (
	// drawWidth is how long a line of the graph may be.
	drawWidth = 120
	// drawJobs is how many jobs of a stage the graph names; of more it states how many are in which state.
	drawJobs = 8
	// failuresNamed is of how many jobs it is stated why they failed.
	failuresNamed = 8
	// keepsNamed is of how many nodes it is stated what is kept of them.
	keepsNamed = 4
	// barWidth is the width of a stage's progress bar.
	barWidth = 20
)

// drawStages returns the graph: a stage after the other, on as many lines as it needs.
func drawStages(w *structs.WorkflowStatus, now time.Time) (lines []string) {
	const edge = " ── "
	line := ""
	for _, s := range w.Stages {
		text := s.Name + " [" + drawStage(s, now) + "]"
		switch {
		case line == "":
			line = text
		case len([]rune(line+edge+text)) > drawWidth:
			lines, line = append(lines, line+strings.TrimRight(edge, " ")), "  "+strings.TrimLeft(edge, " ")+text
		default:
			line += edge + text
		}
	}
	return append(lines, line)
}

// marks are the signs of the states of a job.
var marks = map[string]string{
	structs.StageComplete: " ✓", structs.StageRunning: " ▶", structs.StageStarting: " …", structs.StageFailed: " ✗",
}

func drawStage(s structs.WorkflowStageStatus, now time.Time) string {
	var parts []string
	if len(s.Jobs) > drawJobs {
		count := map[string]int{}
		for _, j := range s.Jobs {
			count[shownState(j)]++
		}
		for _, state := range []string{structs.StageComplete, structs.StageRunning, structs.StageStarting, structs.StageFailed, structs.StageWaiting} {
			if count[state] > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", count[state], state))
			}
		}
		return strings.Join(parts, ", ")
	}
	for _, j := range s.Jobs {
		text := j.Name + marks[shownState(j)]
		if j.State == structs.StageComplete || j.State == structs.StageRunning || j.State == structs.StageFailed {
			if time := took(j.Start, j.End, now); time != "" {
				text += " " + time
			}
		}
		switch {
		case j.Removed:
			text += " not registered any more"
		case j.Stopped:
			text += " stopped"
		case j.TimedOut > 0:
			text += " time limit"
		case j.State == structs.StageRunning && j.Failures > 0:
			text += " " + failuresText(j, now)
		}
		parts = append(parts, text+attemptText(j.Attempt))
	}
	return strings.Join(parts, ", ")
}

// shownState is the state of a job as it is drawn: one of which instances have run, and none runs now, is as one of which none has.
func shownState(j structs.WorkflowJobStatus) string {
	if j.State == structs.StageRunning && j.Running == 0 && j.Complete < j.Instances {
		return structs.StageStarting
	}
	return j.State
}

// failuresText states how often instances of a job that runs have failed, and when they are tried again.
func failuresText(j structs.WorkflowJobStatus, now time.Time) string {
	text := "failed " + plural(j.Failures, "time")
	switch {
	case j.RetryTime == 0:
		return text
	case j.RetryTime <= now.UnixNano():
		return text + ", is tried again"
	}
	return text + ", is tried again in " + ui.Short(time.Duration(j.RetryTime-now.UnixNano()).Round(time.Second))
}

// failureLines states what failed last of each job of which something has failed, of the first ones.
func failureLines(w *structs.WorkflowStatus, now time.Time) (lines []string) {
	more, specs := 0, map[string]*structs.WorkflowJob{}
	if w.Workflow != nil {
		specs = w.Workflow.Jobs()
	}
	for _, s := range w.Stages {
		for i := range s.Jobs {
			j := &s.Jobs[i]
			switch {
			case j.Failure == "" && (j.TimedOut == 0 || j.State != structs.StageFailed):
			case len(lines) == failuresNamed:
				more++
			default:
				attempts := 0
				if spec := specs[j.Name]; spec != nil && s.Attempt <= 1 { // a job is tried as often anew in each attempt of its stage
					attempts = spec.Retries + 1
				}
				lines = append(lines, failureLine(j, attempts, now))
			}
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %s failed", plural(more, "more job")))
	}
	return lines
}

// failureLine states what failed last of a job: that the job has failed only where it is not tried again. attempts is how many it has in all; 0: that is not known.
func failureLine(j *structs.WorkflowJobStatus, attempts int, now time.Time) string {
	text := "failed"
	switch {
	case j.State == structs.StageFailed && j.TimedOut > 0:
		text = timedOutText(*j)
	case j.State == structs.StageFailed || j.State == structs.StageComplete:
	case j.Failures > 0:
		text = failuresText(*j, now)
	case j.FailedBefore > 0 && j.Failed == 0 && attempts >= j.Attempt:
		text = fmt.Sprintf("failed in attempt %d, attempt %d of %d goes on", j.Attempt-1, j.Attempt, attempts)
	case j.FailedBefore > 0 && j.Failed == 0:
		text = fmt.Sprintf("failed in attempt %d, attempt %d goes on", j.Attempt-1, j.Attempt)
	case j.Failed > 0:
		text = fmt.Sprintf("goes on, and %d of %s failed", j.Failed, plural(j.Instances, "instance"))
	}
	text = fmt.Sprintf("Job %q %s", j.Name, text) + reasonText(j.Failure)
	if j.FailureAlloc == "" {
		return text
	}
	return text + fmt.Sprintf(" (`nomadish alloc status %s`)", structs.ShortID(j.FailureAlloc))
}

// took returns how long something took, or has been taking; empty if it has not begun.
func took(start, end int64, now time.Time) string {
	if start == 0 {
		return ""
	}
	if end == 0 {
		end = now.UnixNano()
	}
	return durationText(time.Duration(max(0, end-start)))
}

// durationText describes a duration: of less than ten seconds with its fractions, as stages may take no longer.
func durationText(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return ui.Short(d)
}

// progressLines returns a line for each stage that has started: a bar of its instances.
func progressLines(w *structs.WorkflowStatus, now time.Time) (lines []string) {
	widest := 0
	for _, s := range w.Stages {
		widest = max(widest, len([]rune(s.Name)))
	}
	for _, s := range w.Stages {
		if s.Attempt == 0 {
			continue
		}
		all, done, failed, queued, running := 0, 0, 0, 0, 0
		for _, j := range s.Jobs {
			all, done, failed = all+j.Instances, done+j.Complete, failed+j.Failed
			queued, running = queued+j.Queued, running+j.Running
		}
		line := fmt.Sprintf("%-*s %s %d of %s complete", widest, s.Name, ui.Bar(done, all, barWidth), done, plural(all, "instance"))
		if failed > 0 {
			line += fmt.Sprintf(", %d failed", failed)
		}
		if queued > 0 && s.End == 0 {
			if running == 0 {
				line += ", none running"
			}
			line += fmt.Sprintf(", %d in the queue", queued)
		}
		state := s.State
		if w.State == structs.WorkflowCancelled && state == structs.StageFailed {
			state = w.State
		}
		lines = append(lines, line+"  "+state+" "+took(s.Start, s.End, now)+attemptText(s.Attempt))
	}
	return lines
}
