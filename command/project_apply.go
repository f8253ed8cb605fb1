package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/structs"
)

func projectApply() spec {
	return spec{
		synopsis: "Create or update projects, their calendars and flows",
		takes:    "file", usage: "<file>", example: "chip.hcl",
		details: "The file is HCL (or JSON with -json); \"-\" reads standard input. It has blocks project and flow; `nomadish project init` writes an\n" +
			"example. The flows are applied first, then each project with its weeks, in their order, up to the first that is refused.\n" +
			"\n" +
			"A project block replaces all but the calendar of the project. Each calendar block in it replaces all slots of that week; weeks that\n" +
			"the file does not name stay as they are. A week is refused if all projects together would have more slots of a type than the\n" +
			"nodes offer. Users, groups and managers that the project had and the file does not state are removed, with a warning.\n" +
			"\n" +
			"A project that has managers is changed by them and by operators: with -user (or NOMADISH_USER) you are that user, without you are an\n" +
			"operator. A file that names users or groups which the servers do not know is refused, unless -force is given; those that the\n" +
			"project has already are not looked up again.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			isJSON := fs.Bool("json", false, "the file is JSON, not HCL: a project as the API has it with its weeks in Calendar, a list of some, or {\"Flows\": […], \"Projects\": […]}")
			user, force := fs.String("user", "", editorUsage), fs.Bool("force", false, forceUsage)
			check := fs.Int64("check-index", -1, "apply only if the project's modify index is `N` (0: it must be new)")
			try := whatIfFlags(fs)
			return func(ctx context.Context, e *env, args []string) int {
				whatIf, err := try.wanted()
				if err != nil {
					return e.usage("%v", err)
				}
				file, err := readProjects(e.in, args[0], languageOf(*isJSON, projectJSON))
				if err != nil {
					return e.fail(err)
				}
				if *check >= 0 && len(file.projects) != 1 {
					return e.usage("-check-index is of one project: apply them one by one")
				}
				e.client = e.client.As(*user)
				if whatIf {
					return try.file(ctx, e, checking(*check, file.changes(args[0], *force)...), file.refused)
				}
				if err := file.applyFlows(ctx, e); err != nil {
					return e.fail(file.refused(err))
				}
				for _, p := range file.projects {
					if err := applyProject(ctx, e, p, api.Check{CAS: *check >= 0, Index: uint64(max(0, *check)), Force: *force}); err != nil {
						return e.fail(file.refused(err))
					}
				}
				return exitDone
			}
		},
	}
}

// applyProject submits a project and the weeks of its file.
func applyProject(ctx context.Context, e *env, p *projectBlock, check api.Check) error {
	was, _, err := e.client.Projects().Info(ctx, p.Name, e.query())
	if err != nil {
		was = nil // a new one; or the edit shows what is wrong
	}
	if _, err := e.client.Projects().Register(ctx, &p.Project, check); err != nil {
		return err
	}
	e.printf("Successfully applied project %q!\n", p.Name)
	if lost := lostMembers(was, &p.Project); lost != "" {
		e.eprintf("Warning: project %q has no longer %s: a project block replaces all but the calendar\n", p.Name, lost)
	}
	for _, week := range p.Calendar {
		if _, err := e.client.Projects().EditWeek(ctx, p.Name, week.Week, week.Slots, api.Check{Force: check.Force}); err != nil {
			return err
		}
		e.printf("Successfully applied week %s of project %q!\n", week.Week, p.Name)
	}
	return nil
}

// lostMembers lists the users, groups and managers that a project had and that an edit does not state; "": none.
func lostMembers(was *structs.ProjectStatus, now *structs.Project) string {
	if was == nil {
		return ""
	}
	var out []string
	for _, list := range []struct {
		noun     string
		was, now []string
	}{{"users", was.Users, now.Users}, {"groups", was.Groups, now.Groups}, {"managers", was.Managers, now.Managers}} {
		var lost []string
		for _, name := range list.was {
			if !slices.Contains(list.now, name) {
				lost = append(lost, name)
			}
		}
		if more := len(lost) - lostNamed; more > 0 {
			lost = append(lost[:lostNamed], fmt.Sprintf("%d more", more))
		}
		if len(lost) > 0 {
			out = append(out, list.noun+" "+strings.Join(lost, ", "))
		}
	}
	return strings.Join(out, "; ")
}

// lostNamed is how many users, groups or managers a warning names each.
const lostNamed = 5

// applyFlows submits the flows of a file.
func (f *projectFile) applyFlows(ctx context.Context, e *env) error {
	for _, flow := range f.flows {
		if _, err := e.client.Flows().Register(ctx, flow, api.Check{}); err != nil {
			return err
		}
		e.printf("Successfully applied flow %q!\n", flow.Name)
	}
	return nil
}

// refused puts the place in the file before what the servers report as wrong with it.
func (f *projectFile) refused(err error) error {
	var answer *api.Error
	if errors.As(err, &answer) && (answer.Status == http.StatusBadRequest || answer.Status == http.StatusConflict) {
		return f.placed(err)
	}
	return err
}
