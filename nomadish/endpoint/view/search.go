package view

import (
	"context"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// searchLimit bounds the matches of each kind.
const searchLimit = 20

// search finds things by the start of their ID (or, fuzzy, by a part of their name).
func (e *Endpoint) search(ctx context.Context, args *structs.SearchRequest) (*structs.SearchReply, error) {
	contexts := []string{"jobs", "evals", "allocs", "nodes", "node_pools", "namespaces"}
	silent := []string{"all", "", "deployment", "plugins", "volumes", "quotas", "recommendations", "scaling_policy",
		"variables", "services", "classes", "host_volumes"}
	within := []string{"groups", "tasks", "images", "commands"} // what jobs consist of: only a fuzzy search finds it
	if !slices.Contains(contexts, args.Context) && !slices.Contains(silent, args.Context) && !slices.Contains(within, args.Context) {
		return nil, structs.Errorf(structs.CodeBadRequest, "search context %q: allowed are %v and all", args.Context, contexts)
	}
	if args.Fuzzy && len(args.Prefix) < 2 {
		return nil, structs.Errorf(structs.CodeBadRequest, "fuzzy search for %q: at least 2 characters are needed", args.Prefix)
	}
	reply := &structs.SearchReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(_ *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Matches, reply.Fuzzy, reply.Truncations = map[string][]string{}, map[string][]structs.FuzzyMatch{}, map[string]bool{}
		for _, kind := range contexts {
			if args.Context == kind || args.Context == "all" || args.Context == "" {
				e.searchKind(snap, kind, args, reply)
			}
		}
		for _, kind := range within {
			if args.Fuzzy && (args.Context == kind || args.Context == "all" || args.Context == "") {
				searchWithin(snap, kind, args, reply)
			}
		}
		return snap.Index(), nil
	})
}

// searchKind adds the matches of one kind.
func (e *Endpoint) searchKind(snap *state.Snapshot, kind string, args *structs.SearchRequest, reply *structs.SearchReply) {
	ns := rpc.NamespaceOf(&args.QueryOptions)
	prefix, text := args.Prefix, strings.ToLower(args.Prefix)
	if args.Fuzzy {
		prefix = ""
	}
	ids, found := []string{}, []structs.FuzzyMatch{}
	// add takes one; false: there are enough.
	add := func(id, name string, scope ...string) bool {
		if args.Fuzzy && !strings.Contains(strings.ToLower(name), text) {
			return true
		}
		if len(ids) == searchLimit {
			reply.Truncations[kind] = true
			return false
		}
		ids = append(ids, id)
		found = append(found, structs.FuzzyMatch{ID: name, Scope: scope})
		return true
	}
	switch kind {
	case "jobs":
		for j := range snap.Jobs(nil, ns, prefix, false) {
			if !add(j.ID, j.Name, j.Namespace, j.ID) {
				break
			}
		}
	case "evals":
		for ev := range snap.Evals(nil, ns, prefix, false) {
			if args.Fuzzy || !add(ev.ID, ev.ID) {
				break
			}
		}
	case "allocs":
		for a := range snap.Allocs(nil, ns, prefix, false) {
			if !add(a.ID, a.Name, a.Namespace, a.ID) {
				break
			}
		}
	case "nodes":
		for n := range snap.Nodes(nil, prefix, false) {
			if !add(n.ID, n.Name, n.ID) {
				break
			}
		}
	case "namespaces":
		for n := range snap.Namespaces().List(nil, prefix, false) {
			if !add(n.Name, n.Name) {
				break
			}
		}
	case "node_pools":
		for p := range snap.NodePools().List(nil, prefix, false) {
			if !add(p.Name, p.Name) {
				break
			}
		}
	}
	if _, cut := reply.Truncations[kind]; !cut {
		reply.Truncations[kind] = false
	}
	if args.Fuzzy {
		if len(found) > 0 {
			reply.Fuzzy[kind] = found
		}
		return
	}
	reply.Matches[kind] = ids
}

// searchWithin adds the matches of one kind of part that jobs have: groups, tasks, and what tasks run.
func searchWithin(snap *state.Snapshot, kind string, args *structs.SearchRequest, reply *structs.SearchReply) {
	text := strings.ToLower(args.Prefix)
	reply.Truncations[kind] = false
	add := func(name string, scope ...string) {
		switch {
		case name == "" || !strings.Contains(strings.ToLower(name), text):
		case len(reply.Fuzzy[kind]) == searchLimit:
			reply.Truncations[kind] = true
		default:
			reply.Fuzzy[kind] = append(reply.Fuzzy[kind], structs.FuzzyMatch{ID: name, Scope: scope})
		}
	}
	for j := range snap.Jobs(nil, rpc.NamespaceOf(&args.QueryOptions), "", false) {
		for _, g := range j.TaskGroups {
			if kind == "groups" {
				add(g.Name, j.Namespace, j.ID)
				continue
			}
			for _, t := range g.Tasks {
				command, _ := t.Config["command"].(string)
				image, _ := t.Config["image"].(string)
				switch kind {
				case "tasks":
					add(t.Name, j.Namespace, j.ID, g.Name)
				case "commands":
					add(command, j.Namespace, j.ID, g.Name, t.Name)
				case "images":
					add(image, j.Namespace, j.ID, g.Name, t.Name)
				}
			}
		}
		if reply.Truncations[kind] {
			return
		}
	}
}
