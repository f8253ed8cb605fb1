package command

import (
	"context"
	"flag"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

func flowList() spec {
	return spec{
		synopsis: "List the flows",
		usage:    "", example: "", output: true,
		details: "A flow is a sequence of steps that several projects may share.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			return pageOfAll(fs, "No flows", func(e *env) listOf[*structs.Flow] { return e.client.Flows().List }, flowRows)
		},
	}
}

// flowRows is a table of flows.
func flowRows(flows []*structs.Flow) [][]string {
	rows := [][]string{{"Name", "Steps"}}
	for _, f := range flows {
		rows = append(rows, []string{f.Name, strings.Join(f.Steps, ", ")})
	}
	return rows
}

func flowApply() spec {
	return spec{
		synopsis: "Create or update flows",
		takes:    "file", usage: "<file>", example: "chip.hcl",
		details: "The file is HCL with blocks flow (or JSON with -json); \"-\" reads standard input. A step that a project's calendar has slots for, in this week or a later\n" +
			"one, cannot be removed.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			user := fs.String("user", "", editorUsage)
			isJSON := fs.Bool("json", false, "the file is JSON, not HCL: a flow as the API has it, a list of some, or {\"Flows\": […]}")
			return func(ctx context.Context, e *env, args []string) int {
				file, err := readProjects(e.in, args[0], languageOf(*isJSON, flowJSON))
				if err != nil {
					return e.fail(err)
				}
				if len(file.projects) > 0 {
					return e.usage("%s has projects: `nomadish project apply` applies them and the flows of the file", args[0])
				}
				e.client = e.client.As(*user)
				if err := file.applyFlows(ctx, e); err != nil {
					return e.fail(file.refused(err))
				}
				return exitDone
			}
		},
	}
}

func flowDelete() spec {
	return spec{
		synopsis: "Delete a flow that no project follows",
		takes:    "flow", usage: "<flow>", example: "chip",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			user := fs.String("user", "", editorUsage)
			return deleteNamed("flow", func(e *env) func(context.Context, string) error { return e.client.As(*user).Flows().Delete })
		},
	}
}
