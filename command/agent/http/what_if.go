package httpapi

import (
	"encoding/json"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// whatIf answers what would become of the queue if the changes of the body were made.
func whatIf(r *request) (any, error) {
	var stated json.RawMessage
	if err := r.decode(&stated); err != nil {
		return nil, err
	}
	var args structs.WhatIfRequest
	var configs struct {
		Changes []struct{ Scheduler json.RawMessage }
	}
	r.s.takes(r, &args)
	if err := decodeJSON(stated, &args); err != nil {
		return nil, err
	}
	if err := decodeJSON(stated, &configs); err != nil {
		return nil, err
	}
	args.QueryOptions = r.opts
	user := r.write().User
	for i, ch := range args.Changes {
		if ch == nil {
			continue
		}
		ch.User = user
		if ch.Scheduler != nil && i < len(configs.Changes) {
			config, missing, err := schedulerConfig(configs.Changes[i].Scheduler)
			if err != nil {
				return nil, err
			}
			ch.Scheduler, ch.Absent = &config, missing
		}
	}
	var reply structs.WhatIfReply
	if err := r.read(wire.MethodWhatIf, &args, &reply); err != nil {
		return nil, err
	}
	w := reply.WhatIf
	if w == nil {
		return nil, notFound("what-if")
	}
	w.Changes, w.Groups = list(w.Changes), list(w.Groups)
	for _, f := range []*structs.WhatIfFuture{&w.Before, &w.After} {
		f.Usage, f.Namespaces, f.Projects = list(f.Usage), list(f.Namespaces), list(f.Projects)
		f.Taken, f.Displaced, f.Shortfalls, f.Workflows = list(f.Taken), list(f.Displaced), list(f.Shortfalls), list(f.Workflows)
		for i := range f.Workflows {
			f.Workflows[i].Stages = list(f.Workflows[i].Stages)
		}
	}
	return w, nil
}
