package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func scalingPolicies(r *request) (any, error) {
	var reply structs.ScalingPolicyListReply
	args := structs.ScalingPolicyListRequest{Job: r.query.Get("job"), Type: r.query.Get("type"), QueryOptions: r.opts}
	if err := r.read(wire.MethodScalingList, &args, &reply); err != nil {
		return nil, err
	}
	return list(reply.Policies), nil
}

func scalingPolicy(r *request) (any, error) {
	return readByID(r, wire.MethodScalingGet, "policy", func(a *structs.ScalingPolicyReply) *structs.ScalingPolicy { return a.Policy })
}
