package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// found is the answer of both searches; Matches is of IDs or of FuzzyMatch.
type found struct {
	Matches     any
	Truncations map[string]bool
	structs.QueryMeta
}

func searchPrefix(r *request) (any, error) {
	var body struct{ Prefix, Context string }
	if err := r.decode(&body); err != nil {
		return nil, err
	}
	return r.search(structs.SearchRequest{Prefix: body.Prefix, Context: body.Context})
}

func searchFuzzy(r *request) (any, error) {
	var body struct{ Text, Context string }
	if err := r.decode(&body); err != nil {
		return nil, err
	}
	if body.Text == "" {
		return nil, badRequest("Text: missing; what to look for")
	}
	return r.search(structs.SearchRequest{Prefix: body.Text, Context: body.Context, Fuzzy: true})
}

func (r *request) search(args structs.SearchRequest) (any, error) {
	args.Context = first(args.Context, "all")
	args.QueryOptions = r.opts
	// The text searched for stands in its own field.
	args.QueryOptions.Prefix = ""
	var reply structs.SearchReply
	if err := r.read(wire.MethodSearch, &args, &reply); err != nil {
		return nil, err
	}
	out := found{Truncations: reply.Truncations, QueryMeta: reply.QueryMeta, Matches: reply.Matches}
	if args.Fuzzy {
		out.Matches = reply.Fuzzy
		if reply.Fuzzy == nil {
			out.Matches = map[string][]structs.FuzzyMatch{}
		}
	} else if reply.Matches == nil {
		out.Matches = map[string][]string{}
	}
	if out.Truncations == nil {
		out.Truncations = map[string]bool{}
	}
	return out, nil
}
