package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// operatorCheck checks the leader's state, or with ?stale that of the server that is called.
func operatorCheck(r *request) (any, error) {
	var reply structs.CheckReply
	if err := r.read(wire.MethodCheck, &structs.CheckRequest{QueryOptions: r.opts}, &reply); err != nil {
		return nil, err
	}
	if reply.Report != nil {
		reply.Report.Faults, reply.Report.Notes = list(reply.Report.Faults), list(reply.Report.Notes)
	}
	return reply.Report, nil
}
