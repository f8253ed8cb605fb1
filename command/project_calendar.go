package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// calendarOptions are the options of project calendar.
type calendarOptions struct {
	week  string
	row   structs.CalendarRow
	slots int
	as    string
	force bool
}

func projectCalendar() spec {
	return spec{
		synopsis: "Show the calendar of a project, or change one row of it",
		takes:    "project", usage: "<project>", example: "-week 2026-W48 -type batch -slots 40 chip-a", output: true,
		details: "Without -slots the calendar is shown: this week, the next 12 and later ones that have slots, or the week of -week.\n" +
			"\n" +
			"With -slots the row of this type, step, user, group and job gets that many slots in the week, this one if -week is left out; 0\n" +
			"removes it. The other rows of the week stay. If somebody else has edited the week meanwhile, the change is refused and shows\n" +
			"what the week has now, and who edited it.\n" +
			"\n" +
			"If the project has managers, they and operators may edit: with -as (or NOMADISH_USER) you are that user, without you are an operator.\n" +
			"The flag -user is of the row. A user or group that the servers do not know is refused, unless -force is given.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var o calendarOptions
			fs.StringVar(&o.week, "week", "", "the ISO `week`, as 2026-W48")
			fs.StringVar(&o.row.Type, "type", "", "the `type` of the slots, as batch")
			fs.IntVar(&o.slots, "slots", -1, "how `many` slots the row gets; 0 removes it")
			fs.StringVar(&o.row.Step, "step", "", "the row is for this `step`")
			fs.StringVar(&o.row.User, "user", "", "the row is for this `user`")
			fs.StringVar(&o.row.Group, "group", "", "the row is for this `group`")
			fs.StringVar(&o.row.Job, "job", "", "the row is for jobs whose name matches this `glob`, as sim-*")
			fs.StringVar(&o.as, "as", "", editorUsage)
			fs.BoolVar(&o.force, "force", false, forceUsage)
			stale := staleFlag(fs)
			return func(ctx context.Context, e *env, args []string) int {
				editing := false
				fs.Visit(func(f *flag.Flag) { editing = editing || f.Name == "slots" })
				if err := o.check(editing); err != nil {
					return e.usage("%v", err)
				}
				if editing {
					return o.edit(ctx, e, args[0])
				}
				stale(e)
				return o.show(ctx, e, args)
			}
		},
	}
}

// check returns what is wrong with the options.
func (o *calendarOptions) check(editing bool) error {
	switch {
	case !editing && o.row != (structs.CalendarRow{}):
		return errors.New("-slots is missing: state how many slots the row gets")
	case editing && o.row.Type == "":
		return errors.New("-type is missing: name the type of the slots, as -type batch")
	case editing && o.slots < 0:
		return fmt.Errorf("-slots %d: must be 0 or more", o.slots)
	}
	return nil
}

// show prints the weeks of a project.
func (o *calendarOptions) show(ctx context.Context, e *env, args []string) int {
	p, err := projectReader{e}.named(ctx, args)
	if err != nil {
		return e.fail(err)
	}
	calendar, _, err := e.client.Projects().Calendar(ctx, p.Name, o.week, e.query())
	if err != nil {
		return e.fail(err)
	}
	if done, code := e.formatted(calendar); done {
		return code
	}
	zone := zoneOf(calendar.TimeZone)
	rows := [][]string{{"Week", "Begins (" + calendar.TimeZone + ")", "Type", "Row", "Slots"}}
	for _, w := range calendar.Weeks {
		head := []string{w.Week, w.From.In(zone).Format("Mon 2006-01-02 15:04")}
		if len(w.Rows) == 0 {
			rows = append(rows, append(head, ui.OrNone(""), "", ""))
		}
		for _, r := range w.Rows {
			rows = append(rows, append(head, r.Type, r.Uses(), strconv.Itoa(r.Count)))
			head = []string{"", ""}
		}
	}
	ui.Table(e.out, rows)
	return exitDone
}

// edit changes a row of a week, unless somebody edits the week meanwhile.
func (o *calendarOptions) edit(ctx context.Context, e *env, project string) int {
	calendar, _, err := e.client.Projects().Calendar(ctx, project, o.week, e.query())
	if err != nil {
		return e.fail(err)
	}
	if calendar == nil || len(calendar.Weeks) == 0 {
		return e.fail(errors.New("the server returned no weeks"))
	}
	e.client = e.client.As(o.as)
	week := calendar.Weeks[0]
	o.row.Count = o.slots
	now := slices.Clone(week.Rows)
	at := slices.IndexFunc(now, o.row.Same)
	switch {
	case at < 0 && o.slots == 0:
		return e.fail(fmt.Errorf("week %s of project %q has no row %s (%s): it has %s", week.Week, project, o.row.Type, o.row.Uses(), structs.RowsText(now)))
	case at < 0:
		now = append(now, o.row)
	case o.slots == 0:
		now = slices.Delete(now, at, at+1)
	default:
		now[at] = o.row
	}
	if _, err := e.client.Projects().EditWeek(ctx, project, week.Week, now, api.Check{CAS: true, Index: week.Index, Force: o.force}); err != nil {
		return e.fail(ofOneRow(err))
	}
	e.printf("Week %s of project %q has %s\n", week.Week, project, structs.RowsText(now))
	o.warnOfUser(ctx, e, project)
	return exitDone
}

// rowNumber is where a server's error states which row of a week it is about.
var rowNumber = regexp.MustCompile(`: slots \d+: `)

// ofOneRow returns a server's error about a week without the number of the row, which the command states alone.
func ofOneRow(err error) error {
	var answer *api.Error
	if !errors.As(err, &answer) {
		return err
	}
	return &api.Error{Status: answer.Status, Msg: rowNumber.ReplaceAllString(answer.Msg, ": ")}
}

// warnOfUser warns if the user of the row is not one of the project's: the row gives slots to members alone.
func (o *calendarOptions) warnOfUser(ctx context.Context, e *env, project string) {
	if o.row.User == "" || o.slots == 0 {
		return
	}
	p, _, err := e.client.Projects().Info(ctx, project, e.query())
	if err != nil || p == nil || slices.Contains(p.Users, o.row.User) {
		return
	}
	text := "the row gives nobody slots until it is"
	if len(p.Groups) > 0 {
		text = fmt.Sprintf("the row counts only if the user is in one of its groups (%s)", strings.Join(p.Groups, ", "))
	}
	e.eprintf("Warning: user %q is not one of the users of project %q: %s\n", o.row.User, project, text)
}

func projectEdits() spec {
	return spec{
		synopsis: "List the last edits of a project's calendar, the last one first",
		usage:    "<project>", example: "chip-a", output: true,
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			stale := staleFlag(fs)
			return func(ctx context.Context, e *env, args []string) int {
				stale(e)
				p, err := projectReader{e}.named(ctx, args)
				if err != nil {
					return e.fail(err)
				}
				edits, _, err := e.client.Projects().Edits(ctx, p.Name, e.query())
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(edits); done {
					return code
				}
				if len(edits) == 0 {
					e.printf("No edits\n")
					return exitDone
				}
				rows := [][]string{{"Time", "By", "Week", "Before", "After"}}
				for _, edit := range edits {
					rows = append(rows, []string{
						ui.Time(edit.Time), cmp.Or(edit.By, "operator"), edit.Week, structs.RowsText(edit.Before), structs.RowsText(edit.After),
					})
				}
				ui.Table(e.out, rows)
				return exitDone
			}
		},
	}
}
