package command

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func namespaceList() spec {
	return spec{
		synopsis: "List the namespaces",
		usage:    "", example: "-filter 'Meta.owner == \"sre\"'", output: true,
		details: "The namespace \"default\" always exists.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			return pageOfAll(fs, "No namespaces", func(e *env) listOf[*structs.Namespace] { return e.client.Namespaces().List }, namespaceRows)
		},
	}
}

// namespaceRows is a table of namespaces.
func namespaceRows(namespaces []*structs.Namespace) [][]string {
	rows := [][]string{{"Name", "Description"}}
	for _, n := range namespaces {
		rows = append(rows, []string{n.Name, ui.OrNone(n.Description)})
	}
	return rows
}

// namespaceNamed takes a namespace by its name or a prefix of it.
func namespaceNamed(ctx context.Context, e *env, args []string) (*structs.Namespace, error) {
	return oneOf(ctx, e, byName("namespace", func(n *structs.Namespace) string { return n.Name }, e.client.Namespaces().List, namespaceRows), args)
}

func namespaceStatus() spec {
	return spec{
		synopsis: "Show a namespace",
		usage:    "<namespace>", example: "team-a", output: true,
		details: "The namespace is given by its name or a prefix of it.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			return showOne(fs, namespaceNamed, showNamespace)
		},
	}
}

// showNamespace prints a namespace for people.
func showNamespace(e *env, n *structs.Namespace) error {
	c := n.Capabilities
	if c == nil {
		c = &structs.NamespaceCapabilities{}
	}
	listed := func(list []string, none string) string {
		if len(list) == 0 {
			return none
		}
		return strings.Join(list, ",")
	}
	ui.Pairs(e.out, []ui.Pair{
		{Key: "Name", Value: n.Name},
		{Key: "Description", Value: ui.OrNone(n.Description)},
		{Key: "EnabledDrivers", Value: listed(c.EnabledTaskDrivers, "*")},
		{Key: "DisabledDrivers", Value: listed(c.DisabledTaskDrivers, "<none>")},
		{Key: "EnabledNetworkModes", Value: listed(c.EnabledNetworkModes, "*")},
		{Key: "DisabledNetworkModes", Value: listed(c.DisabledNetworkModes, "<none>")},
	})
	showMap(&e.printer, "Metadata", n.Meta)
	return nil
}

func namespaceInspect() spec {
	return spec{
		synopsis: "Print a namespace as JSON",
		usage:    "<namespace>", example: "team-a", output: true,
		details: "The namespace is given by its name or a prefix of it.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			return showOne(fs, namespaceNamed, func(e *env, n *structs.Namespace) error { return ui.JSON(e.out, n) })
		},
	}
}

func namespaceDelete() spec {
	return spec{
		synopsis: "Delete a namespace",
		takes:    "namespace", usage: "<namespace>", example: "team-a",
		details: "All jobs in the namespace must have ended. The namespace \"default\" cannot be deleted.",
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return deleteNamed("namespace", func(e *env) func(context.Context, string) error { return e.client.Namespaces().Delete })
		},
	}
}

func namespaceApply() spec {
	return spec{
		synopsis: "Create or update a namespace",
		takes:    "file or name", usage: "<input>", example: "-description 'Team A' team-a",
		details: "The input is a file of HCL (or JSON with -json), \"-\" for standard input, or a name of a namespace: if there is no file of that\n" +
			"name, or -description is given. A file replaces the whole namespace: a field that it does not state is cleared. With a\n" +
			"name, only the description of an existing namespace changes.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			isJSON := fs.Bool("json", false, "the file is JSON, not HCL")
			description := fs.String("description", "", "the `description`, of a namespace that is given by its name")
			quota := fs.String("quota", "", "not supported yet: there are no quotas")
			return func(ctx context.Context, e *env, args []string) int {
				stated := map[string]bool{}
				fs.Visit(func(f *flag.Flag) { stated[f.Name] = true })
				if *quota != "" {
					return e.fail(fmt.Errorf("-quota %q: quotas are not supported yet; leave it out", *quota))
				}
				n, err := e.namespaceInput(ctx, args[0], *isJSON, stated["description"], *description)
				if err != nil {
					return e.fail(err)
				}
				if err := e.client.Namespaces().Register(ctx, n); err != nil {
					return e.fail(err)
				}
				e.printf("Successfully applied namespace %q!\n", n.Name)
				return exitDone
			}
		},
	}
}
