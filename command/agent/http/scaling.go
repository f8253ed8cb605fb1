package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func scalingPolicies(r *request) (any, error) {
	args := structs.ScalingPolicyListRequest{Job: r.query.Get("job"), Type: r.query.Get("type"), QueryOptions: r.opts}
	return readList(r, wire.MethodScalingList, &args, func(a *structs.ScalingPolicyListReply) []*structs.ScalingPolicyListStub { return a.Policies })
}

func scalingPolicy(r *request) (any, error) {
	return readByID(r, wire.MethodScalingGet, "policy", func(a *structs.ScalingPolicyReply) *structs.ScalingPolicy { return a.Policy })
}
