// Package events makes the event stream's events of what the state's feed reports has
// changed. It must never hold a change back or read anything but the feed:
// it stands apart from the endpoint that sends them so that it cannot.
package events

import (
	"slices"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// Filter chooses events by topic, key and namespace.
type Filter struct {
	topics    map[string][]string
	namespace string
}

// NewFilter makes a filter. topics: topic → keys, "*" for all of either; none: all
// topics. An unknown topic is refused.
func NewFilter(topics map[string][]string, namespace string) (*Filter, error) {
	known := []string{structs.TopicAll, structs.TopicJob, structs.TopicEvaluation, structs.TopicAllocation, structs.TopicNode, structs.TopicNodePool,
		structs.TopicOperator, structs.TopicQueue, structs.TopicVirtualCluster, structs.TopicExchange, structs.TopicProject, structs.TopicWorkflow, structs.TopicLicense, structs.TopicForecast}
	// Nomad's further topics exist, and are silent until what they are about does.
	silent := []string{"Deployment", "ACLPolicy", "ACLToken", "ACLRole", "ACLAuthMethod", "ACLBindingRule",
		"Service", "HostVolume", "CSIVolume", "CSIPlugin", "Variable"}
	for topic := range topics {
		if !slices.Contains(known, topic) && !slices.Contains(silent, topic) {
			return nil, structs.Errorf(structs.CodeBadRequest, "event topic %q: allowed are %v", topic, known)
		}
	}
	if len(topics) == 0 {
		topics = map[string][]string{structs.TopicAll: {structs.TopicAll}}
	}
	return &Filter{topics: topics, namespace: namespace}, nil
}

// Events returns the chosen events of one commit.
func (f *Filter) Events(c state.Changes) structs.Events {
	out := structs.Events{Index: c.Index}
	for _, change := range c.Items {
		if change.Kind == state.KindAlloc && f.topics[structs.TopicAll] == nil && f.topics[structs.TopicAllocation] == nil {
			continue // making them whole costs more than the rest
		}
		if ev, ok := eventOf(change, c.Index); ok && f.wants(&ev) {
			out.Events = append(out.Events, ev)
		}
	}
	return out
}

// Moves returns the chosen events of latest starts that forecasts moved.
func (f *Filter) Moves(moves []*structs.ForecastMove) structs.Events {
	out := structs.Events{}
	for _, m := range moves {
		out.Index = m.Index // later ones are of no earlier state
		r := m.Forecast
		ev := structs.Event{Topic: structs.TopicForecast, Type: structs.EventForecastMoved, Key: r.JobID, Namespace: r.Namespace, Index: m.Index, Payload: map[string]any{"ForecastMove": m}}
		if f.wants(&ev) {
			out.Events = append(out.Events, ev)
		}
	}
	return out
}

// Forecasts reports whether events of forecasts may be among the chosen.
func (f *Filter) Forecasts() bool {
	return f.topics[structs.TopicAll] != nil || f.topics[structs.TopicForecast] != nil
}

func (f *Filter) wants(ev *structs.Event) bool {
	if f.namespace != "" && f.namespace != structs.AllNamespaces && ev.Namespace != "" && ev.Namespace != f.namespace {
		return false
	}
	for _, topic := range []string{structs.TopicAll, ev.Topic} {
		for _, key := range f.topics[topic] {
			if key == structs.TopicAll || key == ev.Key || slices.Contains(ev.FilterKeys, key) {
				return true
			}
		}
	}
	return false
}

// eventOf returns a change as the event of Nomad's stream.
func eventOf(c state.Change, index uint64) (structs.Event, bool) {
	ev := structs.Event{Type: c.Type, Key: c.Key, Index: index}
	thing := c.New
	if isNil(thing) {
		thing = c.Old
	}
	switch v := thing.(type) {
	case *structs.Job:
		ev.Topic, ev.Key, ev.Namespace = structs.TopicJob, v.ID, v.Namespace
		ev.Payload = map[string]any{"Job": v}
	case *structs.Evaluation:
		ev.Topic, ev.Key, ev.Namespace = structs.TopicEvaluation, v.ID, v.Namespace
		ev.FilterKeys = []string{v.JobID, v.DeploymentID}
		ev.Payload = map[string]any{"Evaluation": v}
	case *state.AllocRow:
		a := v.Whole()
		ev.Topic, ev.Key, ev.Namespace = structs.TopicAllocation, a.ID, a.Namespace
		ev.FilterKeys = []string{a.JobID, a.DeploymentID}
		ev.Payload = map[string]any{"Allocation": a}
	case *structs.Node:
		ev.Topic, ev.Key = structs.TopicNode, v.ID
		ev.Payload = map[string]any{"Node": v.Sanitize()}
	case *structs.NodePool:
		ev.Topic, ev.Key = structs.TopicNodePool, v.Name
		ev.Payload = map[string]any{"NodePool": v}
	case *structs.VirtualCluster:
		ev.Topic, ev.Key, ev.Namespace = structs.TopicVirtualCluster, v.Name, v.Name
		ev.Payload = map[string]any{"VirtualCluster": v}
	case *structs.Exchange:
		ev.Topic, ev.Key, ev.Namespace = structs.TopicExchange, v.ID, v.Owner
		ev.Payload = map[string]any{"Exchange": v}
	case *structs.Project:
		ev.Topic, ev.Key = structs.TopicProject, v.Name
		ev.Payload = map[string]any{"Project": v}
	case *structs.CalendarEdit:
		ev.Topic, ev.Key = structs.TopicProject, v.Project
		ev.Payload = map[string]any{"CalendarEdit": v}
	case *structs.Flow:
		ev.Topic, ev.Key = structs.TopicProject, v.Name
		ev.Payload = map[string]any{"Flow": v}
	case *structs.WorkflowRun:
		ev.Topic, ev.Key, ev.Namespace = structs.TopicWorkflow, v.ID, v.Namespace
		ev.Payload = map[string]any{"Workflow": v.WithoutJobs()}
	case *structs.License:
		ev.Topic, ev.Key = structs.TopicLicense, v.Name
		ev.Payload = map[string]any{"License": v}
	case *structs.SchedulerConfiguration:
		ev.Topic, ev.Key = structs.TopicOperator, "scheduler-configuration"
		ev.Payload = map[string]any{"SchedulerConfiguration": v}
	case *structs.PendingRequest:
		request := *v
		if isNil(c.New) { // nothing waits, and nothing is remembered
			request.Missing, request.Since, request.EvalID, request.ModifyIndex = 0, 0, "", index
		}
		ev.Topic, ev.Key, ev.Namespace = structs.TopicQueue, v.JobID, v.Namespace
		ev.Payload = map[string]any{"Request": &request}
	default:
		return ev, false
	}
	return ev, true
}

func isNil(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case *structs.Job:
		return v == nil
	case *structs.Evaluation:
		return v == nil
	case *state.AllocRow:
		return v == nil
	case *structs.Node:
		return v == nil
	case *structs.NodePool:
		return v == nil
	case *structs.PendingRequest:
		return v == nil
	}
	return false
}
