package command

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// licenseCommands are those about licenses.
func licenseCommands() commands {
	return commands{
		"license apply":  licenseApply,
		"license delete": licenseDelete,
		"license list":   licenseList,
		"license status": licenseStatus,
	}
}

func licenseApply() spec {
	return spec{
		synopsis: "Create or update licenses",
		usage:    "<input>", example: "-count 10 vcs",
		details: "The input is a file of HCL (or JSON with -json), \"-\" for standard input, or, with -count, the name of a license. Each license\n" +
			"block of a file replaces the license of its name; several are applied in their order, up to the first that is refused.\n" +
			"\n" +
			"Jobs that wait for a license are placed as soon as there are enough. A count below what is used stops nothing: no further\n" +
			"instance is placed until enough of the license is free.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			isJSON := fs.Bool("json", false, "the file is JSON, as the API has it, not HCL")
			count := fs.Int64("count", -1, "how many there are: `N` of the license that is given by its name")
			description := fs.String("description", "", "the `description` of the license that is given by its name")
			check := fs.Int64("check-index", -1, "apply only if the license's modify index is `N` (0: it must be new)")
			return func(ctx context.Context, e *env, args []string) int {
				stated := map[string]bool{}
				fs.Visit(func(f *flag.Flag) { stated[f.Name] = true })
				switch {
				case len(args) != 1 || args[0] == "":
					return e.usage("one file or name is needed, %d given", len(args))
				case stated["description"] && !stated["count"]:
					return e.usage("-description is of a license that is given by its name: state -count as well")
				case *isJSON && stated["count"]:
					return e.usage("-json is of a file, -count of a license that is given by its name")
				}
				licenses, err := licensesOf(ctx, e, args[0], *isJSON, stated, *count, *description)
				if err != nil {
					return e.fail(err)
				}
				if *check >= 0 && len(licenses) > 1 {
					return e.usage("-check-index is of one license: apply them one by one")
				}
				for _, l := range licenses {
					if err := e.client.Licenses().Register(ctx, l, api.Check{CAS: *check >= 0, Index: uint64(max(0, *check))}); err != nil {
						return e.fail(err)
					}
					e.printf("Successfully applied license %q!\n", l.Name)
					warnOfReservations(ctx, e, l.Name)
				}
				return exitDone
			}
		},
	}
}

// licensesOf returns the licenses of a file or, where a count is stated, the one of a name with that count: what else an existing one has stays.
func licensesOf(ctx context.Context, e *env, input string, isJSON bool, stated map[string]bool, count int64, description string) ([]*structs.License, error) {
	if !stated["count"] {
		file, err := readLicenses(e.in, input, isJSON)
		if err != nil {
			return nil, err
		}
		return file.licenses, nil
	}
	l := &structs.License{Name: input, Count: count, Description: description}
	if err := l.Validate(); err != nil {
		return nil, err
	}
	has, _, err := e.client.Licenses().Info(ctx, input, e.query())
	switch {
	case api.IsNotFound(err):
	case err != nil:
		return nil, err
	default:
		if l.Meta = has.Meta; !stated["description"] {
			l.Description = has.Description
		}
	}
	return []*structs.License{l}, nil
}

func licenseList() spec {
	return spec{
		synopsis: "List the licenses",
		usage:    "", example: "-filter 'Free == 0'", output: true,
		details: "Used are the licenses of the instances that run. There are more used than there are where a count was lowered since. Free are those that any job may\n" +
			"take now. Reserved are those of workflows, whether they use them, lend them, or neither: what idles of them is not free.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			return pageOfAll(fs, "No licenses", func(e *env) listOf[*structs.LicenseStub] { return e.client.Licenses().List }, licenseRows)
		},
	}
}

// licenseRows is a table of licenses.
func licenseRows(licenses []*structs.LicenseStub) [][]string {
	rows := [][]string{{"Name", "Count", "Used", "Free", "Reserved", "Description"}}
	for _, l := range licenses {
		rows = append(rows, []string{
			l.Name, strconv.FormatInt(l.Count, 10), strconv.FormatInt(l.Used, 10), strconv.FormatInt(l.Free, 10), strconv.FormatInt(l.Reserved, 10),
			ui.OrNone(l.Description),
		})
	}
	return rows
}

func licenseStatus() spec {
	return spec{
		synopsis: "Show a license and who uses it",
		usage:    "<license>", example: "vcs", output: true,
		details: "The license is given by its name or a prefix of it. Users are the groups of jobs whose instances use it. What workflows have\n" +
			"reserved of it is used by their own instances, lent, idle, or lost: Lost, shown where there is any, is what there is not any more,\n" +
			"as the count was lowered since.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			return showOne(fs, licenseNamed, func(e *env, l *structs.LicenseStatus) error {
				showLicense(&e.printer, l)
				return nil
			})
		},
	}
}

// licenseNamed takes a license by its name or a prefix of it.
func licenseNamed(ctx context.Context, e *env, args []string) (*structs.LicenseStatus, error) {
	l, err := oneOf(ctx, e, byName("license", func(l *structs.LicenseStub) string { return l.Name }, e.client.Licenses().List, licenseRows), args)
	if err != nil {
		return nil, err
	}
	status, _, err := e.client.Licenses().Info(ctx, l.Name, e.query())
	return status, err
}

// showLicense prints a license for people.
func showLicense(p *printer, l *structs.LicenseStatus) {
	ui.Pairs(p.out, []ui.Pair{
		{Key: "Name", Value: l.Name},
		{Key: "Description", Value: ui.OrNone(l.Description)},
		{Key: "Count", Value: strconv.FormatInt(l.Count, 10)},
		{Key: "Used", Value: strconv.FormatInt(l.Used, 10)},
		{Key: "Free", Value: strconv.FormatInt(l.Free, 10)},
		{Key: "Reserved", Value: strconv.FormatInt(l.Reserved, 10)},
	})
	if len(l.Meta) > 0 {
		showMap(p, "Metadata", l.Meta)
	}
	showReservations(p, l.Reservations)
	if why := overReserved(l); why != "" {
		p.printf("\nWarning: %s\n", why)
	}
	p.printf("\nUsers\n")
	if len(l.Users) == 0 {
		p.printf("No users\n")
		return
	}
	rows := [][]string{{"Namespace", "Job", "Task Group", "Allocations", "Used"}}
	if len(l.Reservations) > 0 {
		rows[0] = append(rows[0], "From")
	}
	for _, u := range l.Users {
		row := []string{u.Namespace, u.JobID, u.TaskGroup, strconv.Itoa(u.Allocs), strconv.FormatInt(u.Count, 10)}
		if len(l.Reservations) > 0 {
			row = append(row, ui.OrNone(usedFrom(l.Reservations, &u)))
		}
		rows = append(rows, row)
	}
	ui.Table(p.out, rows)
}

// warnOfReservations warns if workflows have reserved more of a license that was applied than there are.
func warnOfReservations(ctx context.Context, e *env, name string) {
	if l, _, err := e.client.Licenses().Info(ctx, name, e.query()); err == nil { // else it is applied all the same
		if why := overReserved(l); why != "" {
			e.eprintf("Warning: %s\n", why)
		}
	}
}

// overReserved names the workflows whose reservations together exceed a license, as its count was lowered since; "": they do not.
func overReserved(l *structs.LicenseStatus) string {
	var of []string
	sum := int64(0)
	for _, r := range l.Reservations {
		if !r.Pending && r.Reserved > 0 {
			sum += r.Reserved
			of = append(of, fmt.Sprintf("workflow %s (%d)", structs.WorkflowKey(r.Namespace, r.Workflow), r.Reserved))
		}
	}
	if sum <= l.Count {
		return ""
	}
	return fmt.Sprintf("%d of license %q are reserved and there are %d: by %s. Jobs of their stages may wait for it until one of them ends; "+
		"`nomadish license apply -count %d %s` has enough for all", sum, l.Name, l.Count, strings.Join(of, ", "), sum, shellWord(l.Name))
}

// usedFrom says from whose reservation a user has its licenses. What borrowers have counts as lent only where nothing is free beside all reservations.
func usedFrom(reservations []structs.LicenseReservation, u *structs.LicenseUser) string {
	switch {
	case u.Workflow != "":
		return "reservation of workflow " + u.Workflow
	case u.Borrows != "":
		text := "may borrow from workflow " + u.Borrows
		i := slices.IndexFunc(reservations, func(r structs.LicenseReservation) bool {
			return structs.WorkflowKey(r.Namespace, r.Workflow) == u.Borrows
		})
		switch {
		case i < 0:
			return text
		case reservations[i].Lent == 0:
			return "free beside all reservations; " + text + ", which lends none now"
		}
		return text + fmt.Sprintf(", which lends %d in all", reservations[i].Lent)
	}
	return ""
}

// showReservations prints what workflows have reserved of a license.
func showReservations(p *printer, list []structs.LicenseReservation) {
	if len(list) == 0 {
		return
	}
	p.printf("\nReservations of Workflows\n")
	rows := [][]string{{"Namespace", "Workflow", "State", "Reserved", "Used", "Lent", "Idle"}}
	lost := slices.ContainsFunc(list, func(r structs.LicenseReservation) bool { return r.Lost > 0 })
	if lost {
		rows[0] = append(rows[0], "Lost")
	}
	for _, r := range list {
		state := "reserved"
		if r.Pending {
			state = "pending"
		}
		rows = append(rows, []string{
			r.Namespace, r.Workflow, state, strconv.FormatInt(r.Reserved, 10), strconv.FormatInt(r.Used, 10), strconv.FormatInt(r.Lent, 10),
			strconv.FormatInt(r.Idle, 10),
		})
		if last := len(rows) - 1; lost {
			rows[last] = append(rows[last], strconv.FormatInt(r.Lost, 10))
		}
	}
	ui.Table(p.out, rows)
}

func licenseDelete() spec {
	return spec{
		synopsis: "Delete a license",
		takes:    "license", usage: "<license>", example: "vcs",
		details: "No job may use the license. Jobs that request it and wait go on waiting, and say that there is no such license.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			check := fs.Int64("check-index", -1, "delete only if the license's modify index is `N`")
			return func(ctx context.Context, e *env, args []string) int {
				if err := e.client.Licenses().Delete(ctx, args[0], api.Check{CAS: *check >= 0, Index: uint64(max(0, *check))}); err != nil {
					return e.fail(err)
				}
				e.printf("Successfully deleted license %q!\n", args[0])
				return exitDone
			}
		},
	}
}
