package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/nomadish/nomadish/structs"
)

// NodeMeta reads a node's metadata from its client; an empty nodeID is the agent's own node.
func (c *Client) NodeMeta(ctx context.Context, nodeID string) (meta *structs.NodeMeta, err error) {
	_, err = c.Get(ctx, "/v1/client/metadata", (&Query{}).with("node_id", nodeID), &meta)
	return meta, err
}

// NodeMetaApply changes a node's metadata while it runs: a nil value unsets a name. The servers hear of it within seconds.
func (c *Client) NodeMetaApply(ctx context.Context, nodeID string, change map[string]*string) (meta *structs.NodeMeta, err error) {
	_, err = c.Put(ctx, "/v1/client/metadata", nil, map[string]any{"NodeID": nodeID, "Meta": change}, &meta)
	return meta, err
}

// AgentServers are the RPC addresses of the servers that the agent's client knows, the one that it speaks with first.
func (c *Client) AgentServers(ctx context.Context) (addrs []string, err error) {
	_, err = c.Get(ctx, "/v1/agent/servers", nil, &addrs)
	return addrs, err
}

// SetAgentServers replaces the servers that the agent's client knows.
func (c *Client) SetAgentServers(ctx context.Context, addrs []string) error {
	params := url.Values{"address": addrs}
	_, err := c.Put(ctx, "/v1/agent/servers?"+params.Encode(), nil, nil, nil)
	return err
}

// EvalDelete forgets evaluations: those of ids or, if there are none, those of the query's namespace that match its filter. It returns how
// many they were.
func (c *Client) EvalDelete(ctx context.Context, ids []string, q *Query) (count int, err error) {
	body := map[string]any{"EvalIDs": ids}
	only := &Query{}
	if q != nil {
		only.Namespace = q.Namespace
		if len(ids) == 0 {
			body["Filter"] = q.Filter
		}
	}
	var reply struct{ Count int }
	_, err = c.call(ctx, http.MethodDelete, "/v1/evaluations", only, body, &reply)
	return reply.Count, err
}

// ScalingPolicies lists the scaling policies of jobs. The query's Params may have "job" and "type".
func (c *Client) ScalingPolicies(ctx context.Context, q *Query) (policies []*structs.ScalingPolicyListStub, meta Meta, err error) {
	meta, err = c.Get(ctx, "/v1/scaling/policies", q, &policies)
	return policies, meta, err
}

// ScalingPolicy reads a scaling policy.
func (c *Client) ScalingPolicy(ctx context.Context, id string, q *Query) (policy *structs.ScalingPolicy, meta Meta, err error) {
	meta, err = c.Get(ctx, "/v1/scaling/policy/"+seg(id), q, &policy)
	return policy, meta, err
}
