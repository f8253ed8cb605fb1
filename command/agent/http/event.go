package httpapi

import (
	"strings"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// topics are those of Nomad's event stream. Of those that we have no events for
// nothing comes, but they may be requested.
var topics = []string{
	structs.TopicAll, structs.TopicJob, structs.TopicEvaluation, structs.TopicAllocation, structs.TopicNode, structs.TopicNodePool, structs.TopicVirtualCluster, structs.TopicExchange, structs.TopicProject, structs.TopicWorkflow, structs.TopicLicense, structs.TopicOperator,
	structs.TopicQueue, structs.TopicForecast,
	"Deployment", "NodeDrain", "Namespace", "Service", "ACLToken", "ACLPolicy", "ACLRole", "ACLAuthMethod",
	"ACLBindingRule", "CSIVolume", "CSIPlugin", "HostVolume",
}

// parseTopics reads Topic and Topic:key; a topic without keys is all of it, no
// topic at all is everything.
func parseTopics(requested []string) (map[string][]string, error) {
	if len(requested) == 0 {
		return map[string][]string{structs.TopicAll: {"*"}}, nil
	}
	out := map[string][]string{}
	for _, one := range requested {
		topic, key, hasKey := strings.Cut(one, ":")
		if !hasKey {
			key = "*"
		}
		if topic == "" || key == "" || strings.HasPrefix(key, ":") {
			return nil, badRequest("Invalid key value pair, topic %q: must be Topic or Topic:key", one)
		}
		known := false
		for _, t := range topics {
			known = known || t == topic
		}
		if !known {
			hint := ""
			if near := structs.Nearest(topic, topics); near != "" {
				hint = "; did you mean " + near + "?"
			}
			return nil, badRequest("topic %q: unknown%s", topic, hint)
		}
		out[topic] = append(out[topic], key)
	}
	return out, nil
}

// eventStream writes {} when the stream is open, then one line of JSON for all events of an index, and {} while
// nothing happens.
func eventStream(r *request) (any, error) {
	requested, err := parseTopics(r.query["topic"])
	if err != nil {
		return nil, err
	}
	args := structs.EventStreamRequest{
		Topics: requested, Index: r.opts.MinQueryIndex, Namespace: r.opts.Namespace, Region: r.opts.Region, AuthToken: r.opts.AuthToken,
	}
	from, err := r.s.cfg.Backend.Stream(r.Context(), wire.MethodEventStream, &args)
	if err != nil {
		return nil, err
	}
	r.w.Header().Set("Content-Type", "application/json")
	r.w.Header().Set("Cache-Control", "no-cache")
	return answered, relay(r, from, 8, r.s.cfg.EventHeartbeat,
		func(e structs.Events) error {
			if len(e.Events) == 0 { // the stream is open
				return r.writeJSON(empty{}, "\n")
			}
			if err := typed(&e); err != nil {
				return err
			}
			for _, ev := range e.Events {
				if node, ok := ev.Payload["Node"].(*structs.Node); ok {
					ev.Payload["Node"] = shownNode{Node: node, Drain: node.DrainStrategy != nil}
				}
			}
			return r.writeJSON(e, "\n")
		},
		func() error { return r.writeJSON(empty{}, "\n") })
}

// typed makes what events carry values of their types. Of this server they are; from another they come as maps, which lack what
// has no value, and whose bytes are texts: whoever reads the stream must not see where it comes from.
func typed(e *structs.Events) error {
	for i := range e.Events {
		for kind, raw := range e.Events[i].Payload {
			if _, untyped := raw.(map[string]any); !untyped {
				continue
			}
			value := structs.EventPayload(kind)
			if value == nil {
				continue // of a newer build
			}
			text, err := codec.Encode(raw)
			if err == nil {
				err = codec.Decode(text, value)
			}
			if err != nil {
				return structs.Errorf(structs.CodeInternal, "event %s: %w", kind, err)
			}
			e.Events[i].Payload[kind] = value
		}
	}
	return nil
}
