package command

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/command/examples"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func projectList() spec {
	return spec{
		synopsis: "List the projects",
		usage:    "", example: "-filter 'Flow == \"chip\"'", output: true,
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			return pageOfAll(fs, "No projects", func(e *env) listOf[*structs.ProjectStatus] { return e.client.Projects().List }, projectRows)
		},
	}
}

// projectRows is a table of projects.
func projectRows(projects []*structs.ProjectStatus) [][]string {
	rows := [][]string{{"Name", "Users", "Groups", "Flow", "Steps", "Objective", "Slots This Week"}}
	for _, p := range projects {
		sum := map[string]int{}
		for _, s := range p.Slots {
			sum[s.Type] += s.Given
		}
		var slots []string
		for _, name := range slices.Sorted(maps.Keys(sum)) {
			slots = append(slots, fmt.Sprintf("%d %s", sum[name], name))
		}
		rows = append(rows, []string{
			p.Name, strconv.Itoa(len(p.Users)), strconv.Itoa(len(p.Groups)), ui.OrNone(p.Flow), strconv.Itoa(len(p.Steps)), objectiveText(p),
			ui.OrNone(strings.Join(slots, ", ")),
		})
	}
	return rows
}

// objectiveText describes what a project is to achieve.
func objectiveText(p *structs.ProjectStatus) string {
	if t := p.Throughput; t != nil {
		return fmt.Sprintf("%s (%d jobs per %s)", p.Objective, t.Jobs, ui.Short(t.Per))
	}
	return p.Objective
}

// projectReader reads projects for the commands about one of them, and prints them.
type projectReader struct{ e *env }

// named returns the project that a command's argument names: by its name or a prefix of it.
func (r projectReader) named(ctx context.Context, args []string) (*structs.ProjectStatus, error) {
	return oneOf(ctx, r.e, byName("project", func(p *structs.ProjectStatus) string { return p.Name }, r.e.client.Projects().List, projectRows), args)
}

func projectStatus() spec {
	return spec{
		synopsis: "Show a project: its slots of this week, its members and its steps",
		usage:    "<project>", example: "chip-a", output: true,
		details: "The project is given by its name or a prefix of it. A row of slots is for a step, or for any, and for a user, a group or anybody of the\n" +
			"project; a pattern after that restricts it to jobs with such names. Given are the slots that the row has, used those that its instances use,\n" +
			"lent the others. Borrowed is what instances cost that run beyond the slots, on what idles; beside what those cost that use cells of their\n" +
			"namespace; guards are slots kept free of others beside instances that need more memory than their slots have. Pending are instances that\n" +
			"wait, oldest is how long the first of them has. Slots with GPUs are cells: bound are those in use, doomed those that the hardware cannot hold\n" +
			"at present, beside what virtual clusters own and what was given out before.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			stale := staleFlag(fs)
			return func(ctx context.Context, e *env, args []string) int {
				stale(e)
				p, err := projectReader{e}.named(ctx, args)
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(p); done {
					return code
				}
				projectReader{e}.print(p)
				showProjectQueue(ctx, e, p.Name)
				return exitDone
			}
		},
	}
}

// print prints a project for people.
func (r projectReader) print(p *structs.ProjectStatus) {
	e := r.e
	e.printf("Week %s (until %s %s)   Objective = %s\n", p.Week, p.Ends.In(zoneOf(p.TimeZone)).Format("Mon 15:04"), p.TimeZone, objectiveText(p))
	if len(p.Slots) == 0 {
		e.printf("It has no slots this week\n")
	} else {
		rows := [][]string{{"Type", "Row", "Given", "Used", "Borrowed", "Lent", "Beside", "Guards", "Pending", "Oldest"}}
		for _, s := range p.Slots {
			row := structs.CalendarRow{Type: s.Type, Step: s.Step, User: s.User, Group: s.Group, Job: s.Job}
			line := []string{s.Type, row.Uses()}
			for _, n := range []int{s.Given, s.Used, s.Borrowed, s.Lent, s.Beside, s.Guards, s.Pending} {
				line = append(line, strconv.Itoa(n))
			}
			rows = append(rows, append(line, oldestText(s)))
		}
		ui.Table(e.out, rows)
	}
	e.printf("\n")
	if len(p.Cells) > 0 {
		rows := [][]string{{"Cells of its slots", "Node Pool", "Level", "Given", "Bound", "Doomed", "Free"}}
		for _, c := range p.Cells {
			line := []string{c.Kind, c.NodePool, c.Level}
			for _, n := range []int{c.Given, c.Bound, c.Doomed, c.Free()} {
				line = append(line, strconv.Itoa(n))
			}
			rows = append(rows, line)
		}
		ui.Table(e.out, rows)
		e.printf("\n")
	}
	listed := func(list []string) string { return ui.OrNone(strings.Join(list, ", ")) }
	pairs := []ui.Pair{
		{Key: "Name", Value: p.Name}, {Key: "Users", Value: listed(p.Users)}, {Key: "Groups", Value: listed(p.Groups)},
		{Key: "Managers", Value: listed(p.Managers)}, {Key: "Flow", Value: ui.OrNone(p.Flow)}, {Key: "Steps", Value: listed(p.Steps)},
	}
	ui.Pairs(e.out, pairs)
}

// oldestText describes since when something waits for a row of slots.
func oldestText(s *structs.ProjectSlots) string {
	if s.Pending == 0 {
		return ui.OrNone("")
	}
	return ui.Short(time.Duration(s.OldestPendingSeconds * float64(time.Second)).Truncate(time.Second))
}

// zoneOf returns a time zone; UTC if this machine does not know it.
func zoneOf(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return zone
}

func projectDelete() spec {
	return spec{
		synopsis: "Delete a project with its calendar",
		takes:    "project", usage: "<project>", example: "chip-a",
		details: "Its slots are free for others at once. The edits of its calendar and its reports are deleted, too. Its jobs stay, as a job may name a\n" +
			"project that does not exist; their instances leave as soon as any other job needs the room.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			user := fs.String("user", "", editorUsage)
			return func(ctx context.Context, e *env, args []string) int {
				used := 0
				if p, _, err := e.client.Projects().Info(ctx, args[0], e.query()); err == nil && p != nil { // else it is refused
					for _, s := range p.Slots {
						used += s.Used
					}
				}
				e.client = e.client.As(*user)
				if err := e.client.Projects().Delete(ctx, args[0]); err != nil {
					return e.fail(err)
				}
				e.printf("Successfully deleted project %q!\n", args[0])
				if used > 0 {
					e.printf("Slots that were in use: %d. Their instances run on without them, and leave as soon as any other job needs the room.\n", used)
				}
				return exitDone
			}
		},
	}
}

func projectInit() spec {
	return initBoth("Write an example file of a project and its flow", "chip.hcl", "project", "project.nomad", examples.Project, examples.ProjectJSON)
}
