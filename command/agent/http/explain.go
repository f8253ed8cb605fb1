package httpapi

import (
	"strings"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// jobExplain answers why a job is placed as it is, and what would place the rest: of one
// group with ?group=, without changes that would help with ?remedies=false.
func jobExplain(r *request) (any, error) {
	remedies, err := r.bool("remedies", true)
	if err != nil {
		return nil, err
	}
	args := structs.JobExplainRequest{ID: r.id(), Group: r.query.Get("group"), NoRemedies: !remedies, QueryOptions: r.opts}
	var reply structs.JobExplainReply
	if err := r.read(wire.MethodJobExplain, &args, &reply); err != nil {
		return nil, err
	}
	if reply.Explanation == nil {
		if len(reply.Near) == 0 {
			return nil, notFound("job")
		}
		return nil, structs.Errorf(structs.CodeNotFound, "job %q not found; did you mean %s?", r.id(), strings.Join(reply.Near, " or "))
	}
	x := reply.Explanation
	x.Groups = list(x.Groups)
	for _, g := range x.Groups {
		g.Waits, g.Reasons, g.Smallest, g.On = list(g.Waits), list(g.Reasons), list(g.Smallest), list(g.On)
	}
	return x, nil
}

// allocExplain answers why an allocation is where it is, and what it may lose that to.
func allocExplain(r *request) (any, error) {
	return readByID(r, wire.MethodAllocExplain, "alloc", func(a *structs.AllocExplainReply) *structs.AllocExplanation { return a.Explanation })
}
