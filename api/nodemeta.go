package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/nomadish/nomadish/structs"
)

// Meta reads a node's metadata from its client; an empty nodeID is the agent's own node.
func (n Nodes) Meta(ctx context.Context, nodeID string) (meta *structs.NodeMeta, err error) {
	_, err = n.client.Get(ctx, "/v1/client/metadata", (&Query{}).with("node_id", nodeID), &meta)
	return meta, err
}

// ApplyMeta changes a node's metadata while it runs: a nil value unsets a name. The servers hear of it within seconds.
func (n Nodes) ApplyMeta(ctx context.Context, nodeID string, change map[string]*string) (meta *structs.NodeMeta, err error) {
	_, err = n.client.Put(ctx, "/v1/client/metadata", nil, map[string]any{"NodeID": nodeID, "Meta": change}, &meta)
	return meta, err
}

// Servers are the RPC addresses of the servers that the agent's client knows, the one that it speaks with first.
func (a Agent) Servers(ctx context.Context) (addrs []string, err error) {
	_, err = a.client.Get(ctx, "/v1/agent/servers", nil, &addrs)
	return addrs, err
}

// SetServers replaces the servers that the agent's client knows.
func (a Agent) SetServers(ctx context.Context, addrs []string) error {
	params := url.Values{"address": addrs}
	_, err := a.client.Put(ctx, "/v1/agent/servers?"+params.Encode(), nil, nil, nil)
	return err
}

// Delete forgets evaluations: those of ids or, if there are none, those of the query's namespace that match its filter. It returns how
// many they were.
func (e Evaluations) Delete(ctx context.Context, ids []string, q *Query) (count int, err error) {
	body := map[string]any{"EvalIDs": ids}
	only := &Query{}
	if q != nil {
		only.Namespace = q.Namespace
		if len(ids) == 0 {
			body["Filter"] = q.Filter
		}
	}
	var reply struct{ Count int }
	_, err = e.client.call(ctx, http.MethodDelete, "/v1/evaluations", only, body, &reply)
	return reply.Count, err
}

// ListPolicies lists the scaling policies of jobs. The query's Params may have "job" and "type".
func (s Scaling) ListPolicies(ctx context.Context, q *Query) (policies []*structs.ScalingPolicyListStub, meta Meta, err error) {
	meta, err = s.client.Get(ctx, "/v1/scaling/policies", q, &policies)
	return policies, meta, err
}

// GetPolicy reads a scaling policy.
func (s Scaling) GetPolicy(ctx context.Context, id string, q *Query) (policy *structs.ScalingPolicy, meta Meta, err error) {
	meta, err = s.client.Get(ctx, "/v1/scaling/policy/"+seg(id), q, &policy)
	return policy, meta, err
}
