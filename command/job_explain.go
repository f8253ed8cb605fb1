package command

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func jobExplain() spec {
	return spec{
		synopsis: "Explain why a job was placed on its nodes, or why it was not placed",
		usage:    "<job>", example: "-group workers train", output: true,
		details: "Each reason is printed with the number of nodes to which it applies; a node counts once under every reason that applies\n" +
			"to it. Each suggested change was tried: with that change, the scheduler places the pending instances. Amounts are exact:\n" +
			"memory and disk in MiB, CPU in MHz, shares in thousandths of a device.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			group := fs.String("group", "", "only this `group`")
			verbose := fs.Bool("verbose", false, "print whole IDs, every change and every node")
			return func(ctx context.Context, e *env, args []string) int {
				id, err := e.jobName(ctx, args)
				if err != nil {
					return e.fail(err)
				}
				x, _, err := e.client.Jobs().Explain(ctx, id, *group, e.query())
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(x); done {
					return code
				}
				showExplanation(&e.printer, x, *verbose, e.now())
				return exitDone
			}
		},
	}
}

// How much of an explanation is shown unless all is requested.
const (
	remediesShown = 3
	nodesShown    = 5
)

func showExplanation(p *printer, x *structs.JobExplanation, verbose bool, now time.Time) {
	p.printf("%s\n", p.style.Bold(fmt.Sprintf("Job %q (%s, %s, node pool %s)", x.JobID, x.Type, x.Status, x.NodePool)))
	if x.Queue != nil {
		p.printf("%s\n", queueSentence(x))
	}
	if x.Submission != "" {
		p.printf("Submission check: %s: %s\n", x.Submission, x.SubmissionText)
	}
	for _, g := range x.Groups {
		p.printf("\n%s\n", p.style.Bold(fmt.Sprintf("Group %q", g.Group)))
		p.printf("%s\n", groupSentence(x, g))
		for _, w := range g.Waits {
			p.printf("  * %s\n", waitSentence(&w, verbose))
		}
		showReasons(p, g, verbose)
		showRemedies(p, g, x.Queue, verbose)
		showExpected(p, g, now)
		showPlaced(p, g, verbose)
	}
}

// queueSentence returns the job's position in the queue, and what its priority is made of.
func queueSentence(x *structs.JobExplanation) string {
	q := x.Queue
	p := &q.Priority
	text := fmt.Sprintf("%s of %d in the queue of node pool %s, with an effective priority of %d: %d declared",
		ordinal(q.Place), q.Waiting, q.Pool, p.Total, p.Declared)
	if p.Aged > 0 {
		text += fmt.Sprintf(" + %d waited", p.Aged)
	}
	if p.AllocatedBonus > 0 {
		text += fmt.Sprintf(" + %d for the slots of its project", p.AllocatedBonus)
	}
	if p.RequeueBonus > 0 {
		text += fmt.Sprintf(" + %d for being taken back %s", p.RequeueBonus, times(p.Requeued))
	}
	text += fmt.Sprintf(" (%sband %d to %d)", standingTexts[p.Standing], p.BandRange.Low, p.BandRange.High)
	if len(q.Ahead) > 0 {
		text += ". Right before it: " + q.Ahead[0].JobText(x.Namespace) // a queue is of a node pool: all namespaces share it
	}
	return text + "."
}

// standingTexts describe the standings that are compared before the band; that of most jobs is left out.
var standingTexts = map[int]string{
	structs.StandingEntitled: "entitled, ", structs.StandingRecognised: "recognised, ", structs.StandingFailed: "last, as the submission check failed, ",
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// ordinal is a place, counted from 1.
func ordinal(n int) string {
	end := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, end)
}

// groupSentence returns how many are placed, and how many wait.
func groupSentence(x *structs.JobExplanation, g *structs.GroupExplanation) string {
	parts := []string{fmt.Sprintf("%d of %d placed", g.Placed, g.Wanted)}
	if g.Running > 0 {
		parts[0] += fmt.Sprintf(" (%d running)", g.Running)
	}
	if g.Completed > 0 {
		parts = append(parts, fmt.Sprintf("%d completed", g.Completed))
	}
	if g.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", g.Failed))
	}
	switch {
	case g.Missing > 0 && x.Queue != nil:
		parts = append(parts, fmt.Sprintf("%d %s, %s in the queue of pool %s", g.Missing, verb(g.Missing, "waits", "wait"), ordinal(x.Queue.Place), x.Queue.Pool))
	case g.Missing > 0:
		parts = append(parts, fmt.Sprintf("%d %s", g.Missing, verb(g.Missing, "waits", "wait")))
	}
	text := strings.Join(parts, "; ") + "."
	if n := g.Nodes; g.Missing > g.PlacedNow && n.Known > 0 {
		text += fmt.Sprintf(" Of %s %s in its pool: %d may not be used, %d without room.", plural(n.Known, "node"), are(n.InPool), n.Refused, n.Lacking)
		if n.Fitting > 0 {
			text += fmt.Sprintf(" %d %s room for an instance.", n.Fitting, verb(n.Fitting, "has", "have"))
		}
		if n.Holding > 0 {
			text += fmt.Sprintf(" %d %s.", n.Holding, verb(n.Holding, "has its instance", "have their instance"))
		}
	}
	return text
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func waitSentence(w *structs.Wait, verbose bool) string {
	text := w.Text
	if w.Instances > 0 {
		text = fmt.Sprintf("%d: %s", w.Instances, text)
	}
	if w.Until > 0 {
		text += ", at " + ui.Time(w.Until)
	}
	if len(w.Allocs) == 0 {
		return text
	}
	names := make([]string, 0, len(w.Allocs))
	for i, id := range w.Allocs {
		if i == nodesShown && !verbose {
			break
		}
		names = append(names, short(id, verbose))
	}
	if more := w.AllocCount - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return text + " [" + strings.Join(names, ", ") + "]"
}

// are is "1 is", "2 are".
func are(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

func showReasons(p *printer, g *structs.GroupExplanation, verbose bool) {
	if len(g.Reasons) == 0 {
		return
	}
	p.printf("\n")
	rows := [][]string{{"Nodes", "Reason"}}
	for _, r := range g.Reasons {
		rows = append(rows, []string{fmt.Sprint(r.Nodes), r.Text + classesText(r.Classes)})
		if !verbose {
			continue
		}
		for _, room := range r.Rooms {
			rows = append(rows, []string{"", fmt.Sprintf("%s %s has room for %d of %d", room.Level, room.Name, room.Room, room.Want)})
		}
	}
	ui.Table(p.out, rows)
}

func classesText(classes map[string]int) string {
	if len(classes) == 0 {
		return ""
	}
	text := map[string]string{}
	for class, n := range classes {
		text[class] = fmt.Sprint(n)
	}
	return " (by class: " + pairsText(text) + ")"
}

func showRemedies(p *printer, g *structs.GroupExplanation, q *structs.QueuePosition, verbose bool) {
	if len(g.Smallest) == 0 {
		if g.Missing > g.PlacedNow {
			p.printf("\nNone of the changes that were tried would place it by itself (tried: %d).\n", g.Tries)
		}
		return
	}
	before := ""
	if q != nil && q.Place > 1 {
		before = fmt.Sprintf(" (%s before it in the queue may take the room first)", plural(q.Place-1, "job"))
	}
	p.printf("\nThe smallest change that would place it%s:\n", before)
	for i, r := range g.Smallest {
		if i == remediesShown && !verbose {
			p.printf("  (%s, with -verbose)\n", plural(len(g.Smallest)-i, "other change"))
			return
		}
		text := r.Text
		if !r.All {
			text += fmt.Sprintf(" (places %d of %d)", r.Places, g.Missing)
		}
		lead := "or"
		if i == 0 {
			lead = "->"
		}
		p.printf("  %s %s\n", lead, text)
	}
}

func showExpected(p *printer, g *structs.GroupExplanation, now time.Time) {
	if f := g.Forecast; f != nil {
		p.printf("\n")
		for _, line := range forecastLines(&f.RequestForecast, now) {
			p.printf("%s\n", line)
		}
		p.printf("(%s)\n", forecastOfText(f.Index, f.Time, now))
		return
	}
	x := g.Expected
	if x == nil {
		return
	}
	switch {
	case x.Known && x.First < x.All:
		p.printf("\nExpected start: from %s, all by %s: %s\n", ui.Time(x.First), ui.Time(x.All), x.Because)
	case x.Known:
		p.printf("\nExpected start: %s: %s\n", ui.Time(x.All), x.Because)
	case x.First > 0:
		p.printf("\nExpected start: the first at %s; %s\n", ui.Time(x.First), x.Because)
	default:
		p.printf("\nExpected start: %s\n", x.Because)
	}
	if g.NoForecast != "" {
		p.printf("(by what runs now, whoever waits before it; forecast: %s)\n", g.NoForecast)
	}
}

func showPlaced(to *printer, g *structs.GroupExplanation, verbose bool) {
	if g.OnNodes == 0 {
		return
	}
	to.printf("\nPlaced on %s (`nomadish alloc status <allocation>` shows why):\n", plural(g.OnNodes, "node"))
	rows := [][]string{{"Node ID", "Node Name", "Instances"}}
	for i, p := range g.On {
		if i == nodesShown && !verbose {
			break
		}
		rows = append(rows, []string{short(p.NodeID, verbose), p.NodeName, fmt.Sprint(p.Instances)})
	}
	ui.Table(to.out, rows)
	if more := g.OnNodes - len(rows) + 1; more > 0 {
		to.printf("and %s\n", plural(more, "other node"))
	}
}
