package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// allocSuspend and allocResume go through the servers, though their routes are among
// the clients': what is suspended is part of the state.

func allocSuspend(r *request) (any, error) { return r.suspend(false) }

func allocResume(r *request) (any, error) { return r.suspend(true) }

func (r *request) suspend(resume bool) (any, error) {
	var reply structs.AllocStopReply
	args := structs.AllocSuspendRequest{AllocID: r.id(), Resume: resume, WriteRequest: r.write()}
	if err := r.change(wire.MethodAllocSuspend, &args, &reply, &reply.Index); err != nil {
		return nil, err
	}
	return &reply, nil
}
