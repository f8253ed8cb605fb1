package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/internal/printable"
	"github.com/nomadish/nomadish/structs"
)

// statusKinds are the kinds of things that a search finds, by the names that it has for them, in the order in which they are
// listed. What has no command that shows it is listed only.
var statusKinds = []struct {
	context, title, command string
	part                    bool // of jobs: found by its name alone
}{
	{context: "jobs", title: "Jobs", command: "job status"},
	{context: "evals", title: "Evaluations", command: "eval status"},
	{context: "allocs", title: "Allocations", command: "alloc status"},
	{context: "deployment", title: "Deployments", command: "deployment status"},
	{context: "nodes", title: "Nodes", command: "node status"},
	{context: "node_pools", title: "Node Pools", command: "node pool info"},
	{context: "namespaces", title: "Namespaces", command: "namespace status"},
	{context: "volumes", title: "Volumes", command: "volume status"},
	{context: "host_volumes", title: "Host Volumes", command: "volume status"},
	{context: "plugins", title: "Plugins", command: "plugin status"},
	{context: "quotas", title: "Quotas", command: "quota status"},
	{context: "scaling_policy", title: "Scaling Policies", command: "scaling policy info"},
	{context: "services", title: "Services", command: "service info"},
	{context: "groups", title: "Groups", part: true},
	{context: "tasks", title: "Tasks", part: true},
	{context: "images", title: "Images", part: true},
	{context: "commands", title: "Commands", part: true},
}

func statusCommand() spec {
	return spec{
		synopsis: "Show a job, a workflow, an evaluation, an allocation or a node, or list the jobs",
		usage:    "[<ID, the beginning of one, or a part of a name>]", accepts: []string{"ui"}, example: "5f3a9c01", output: true,
		details: "The command finds out what kind of object has the ID or name, and prints what the command of that kind prints, such as\n" +
			"`node status`. A workflow is found by its name, and by WORKFLOW/RUN. Without an argument it runs `job status`. If objects of\n" +
			"several kinds match, they are listed by kind, and the exit code is 1.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			jobs := jobStatus().setup(fs)
			own := map[string]bool{}
			fs2 := flag.NewFlagSet("", flag.ContinueOnError)
			jobStatus().setup(fs2)
			fs2.VisitAll(func(f *flag.Flag) { own[f.Name] = true })
			return func(ctx context.Context, e *env, args []string) int {
				switch len(args) {
				case 0:
					return jobs(ctx, e, args)
				case 1:
				default:
					return e.usage("one ID or name is needed, %d given", len(args))
				}
				if args[0] == "" {
					return e.usage("an ID or a name is needed; it is empty")
				}
				if stale(fs) {
					e.client = e.client.Stale()
				}
				command, id, err := e.resolve(ctx, args[0], registry())
				if err != nil {
					return e.fail(err)
				}
				if command == "job status" {
					return jobs(ctx, e, []string{id})
				}
				return showByKind(ctx, e, fs, own, command, id)
			}
		},
	}
}

// showByKind runs the command that shows a thing, with the flags of status that were given.
func showByKind(ctx context.Context, e *env, given *flag.FlagSet, own map[string]bool, command, id string) int {
	to := flag.NewFlagSet(command, flag.ContinueOnError)
	run := registry()[command]().setup(to)
	var unknown []string
	given.Visit(func(f *flag.Flag) {
		switch {
		case !own[f.Name]: // read already, as that of the agent's address
		case to.Lookup(f.Name) == nil:
			unknown = append(unknown, "-"+f.Name)
		default:
			_ = to.Set(f.Name, f.Value.String()) // it was parsed once
		}
	})
	if len(unknown) > 0 {
		return e.usage("%q is shown by `%s`, which has no flag %s", id, command, strings.Join(unknown, ", "))
	}
	return run(ctx, e, []string{id})
}

// match is one thing that a search has found.
type match struct {
	id   string // to show it by
	name string // empty: it has no other than the ID
	in   string // of a part of a job: the job's ID
}

// matches are those of one kind.
type matches struct {
	kind int // in statusKinds
	all  []match
	more bool // there are others that are not listed
}

// resolve finds the one thing that an ID, the beginning of one or a part of a name stands for, and returns the command that
// shows it. The error lists what was found if it is not one thing.
func (e *env) resolve(ctx context.Context, text string, all commands) (command, id string, err error) {
	q := e.query()
	byPrefix, err := e.client.Search().PrefixIn(ctx, text, "all", q)
	if err != nil {
		return "", "", err
	}
	found := prefixMatches(byPrefix)
	if len(found) == 0 && len(text) > 1 { // a fuzzy search takes 2 characters
		fuzzy, err := e.client.Search().Fuzzy(ctx, text, "all", q)
		if err != nil {
			return "", "", err
		}
		found = fuzzyMatches(fuzzy)
	}
	exact, ok := exactMatch(found, text)
	if !ok {
		if id := (workflowReader{e}).ofText(ctx, text); id != "" {
			return "workflow status", id, nil
		}
	}
	if len(found) == 0 {
		return "", "", fmt.Errorf("no job, workflow, evaluation, allocation or node has an ID that begins with %q or a name that contains it", text)
	}
	if ok {
		found = exact
	}
	if k := statusKinds[found[0].kind]; len(found) == 1 && k.command != "" {
		_, there := all[k.command]
		switch prefixed := found[0].all[0].name == ""; {
		case there && len(found[0].all) == 1:
			return k.command, found[0].all[0].id, nil
		case there && prefixed:
			return k.command, text, nil // its output lists the matches
		}
	}
	return "", "", errors.New(matchesText(found, text))
}

// ofText returns the ID of the workflow that is named, or of which a run is, as WORKFLOW/RUN; "": there is none. A search finds no workflows, but
// their jobs, whose IDs begin so.
func (r workflowReader) ofText(ctx context.Context, text string) string {
	id, run, ofRun := strings.Cut(text, "/")
	if _, err := strconv.Atoi(run); ofRun && err != nil || !structs.ValidWorkflowName(id) {
		return ""
	}
	q := r.e.query()
	q.Prefix = id
	list, _, err := r.e.client.Workflows().List(ctx, q)
	if err != nil || !slices.ContainsFunc(list, func(w *structs.WorkflowStub) bool { return w.ID == id }) { // the search has said what is wrong with the request
		return ""
	}
	return id
}

func prefixMatches(reply *structs.SearchReply) []matches {
	var found []matches
	for i, k := range statusKinds {
		if ids := reply.Matches[k.context]; len(ids) > 0 {
			m := matches{kind: i, more: reply.Truncations[k.context]}
			for _, id := range ids {
				m.all = append(m.all, match{id: id})
			}
			found = append(found, m)
		}
	}
	return found
}

func fuzzyMatches(reply *api.FuzzyFound) []matches {
	var found []matches
	for i, k := range statusKinds {
		m := matches{kind: i, more: reply.Truncations[k.context]}
		for _, f := range reply.Matches[k.context] {
			one := match{id: f.ID, name: f.ID}
			switch {
			case k.part && len(f.Scope) > 1: // namespace, job, …
				one.in = f.Scope[1]
			case !k.part && len(f.Scope) > 0: // its ID comes last
				one.id = f.Scope[len(f.Scope)-1]
			}
			m.all = append(m.all, one)
		}
		if len(m.all) > 0 {
			found = append(found, m)
		}
	}
	return found
}

// exactMatch is the one match whose ID or name is the text as a whole, if there is just one. Parts of jobs do not count: a task
// may well be named as its job.
func exactMatch(found []matches, text string) ([]matches, bool) {
	var exact []matches
	for _, m := range found {
		for _, one := range m.all {
			if !statusKinds[m.kind].part && (one.id == text || one.name == text) {
				exact = append(exact, matches{kind: m.kind, all: []match{one}})
			}
		}
	}
	return exact, len(exact) == 1
}

// matchesText lists what was found by kind.
func matchesText(found []matches, text string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Multiple matches found for id %q", text)
	if statusKinds[found[0].kind].part { // these come last
		b.Reset()
		fmt.Fprintf(&b, "No ID begins with %q, and only names of parts of jobs contain it", text)
	}
	for _, m := range found {
		fmt.Fprintf(&b, "\n\n%s:", statusKinds[m.kind].title)
		lines := make([]string, 0, len(m.all))
		for _, one := range m.all {
			line := one.id
			if one.name != "" && one.name != one.id {
				line += "  " + one.name
			}
			if one.in != "" {
				line += "  (job " + one.in + ")"
			}
			lines = append(lines, "  "+printable.EscapeLine(line))
		}
		slices.SortFunc(lines, cmp.Compare)
		b.WriteString("\n" + strings.Join(lines, "\n"))
		if m.more {
			b.WriteString("\n… and more")
		}
	}
	return b.String()
}
