package structs

import (
	"reflect"
	"strings"
)

// ScalingHorizontal is the type of the scaling policy of a group: it is about its count.
const ScalingHorizontal = "horizontal"

type (
	// ScalingPolicyListStub is a scaling policy's line in a list. JSON names are Nomad's.
	ScalingPolicyListStub struct {
		ID          string
		Enabled     bool
		Type        string
		Target      map[string]string // as of ScalingPolicy
		CreateIndex uint64
		ModifyIndex uint64
	}
	// ScalingPolicyListRequest lists scaling policies; those of all jobs and types unless they are named.
	ScalingPolicyListRequest struct {
		Job  string
		Type string
		QueryOptions
	}
	// ScalingPolicyListReply lists scaling policies.
	ScalingPolicyListReply struct {
		Policies []*ScalingPolicyListStub
		QueryMeta
	}
	// ScalingPolicyReply is one scaling policy; nil when there is none.
	ScalingPolicyReply struct {
		Policy *ScalingPolicy
		QueryMeta
	}
)

// HasScaling reports whether the job has scaling policies that are to be listed: whether it is not stopped, and a group of it
// has a scaling block.
func (j *Job) HasScaling() bool {
	if j.Stop {
		return false
	}
	for _, g := range j.TaskGroups {
		if g.Scaling != nil {
			return true
		}
	}
	return false
}

// ScalingPolicyID returns the ID of the scaling policy of a group. It follows from the names, so that it is the same on every
// server, and for as long as the group has one.
func ScalingPolicyID(namespace, job, group string) string {
	return DeriveID(strings.Join([]string{"scaling", namespace, job, group, ScalingHorizontal}, "\x00"), 0)
}

// ScalingPolicyOf returns the scaling policy of a group as it is listed: its scaling block with its ID and Target. It returns nil
// if the group has none. The indexes are left to the caller.
func (j *Job) ScalingPolicyOf(g *TaskGroup) *ScalingPolicy {
	if g.Scaling == nil {
		return nil
	}
	p := *g.Scaling
	p.ID, p.Namespace, p.Type = ScalingPolicyID(j.Namespace, j.ID, g.Name), j.Namespace, ScalingHorizontal
	p.Target = map[string]string{"Namespace": j.Namespace, "Job": j.ID, "Group": g.Name}
	return &p
}

// SameAs reports whether two policies state the same, whatever the servers have added to them.
func (p *ScalingPolicy) SameAs(o *ScalingPolicy) bool {
	return p.Min == o.Min && p.Max == o.Max && p.Enabled == o.Enabled &&
		(len(p.Policy) == 0 && len(o.Policy) == 0 || reflect.DeepEqual(p.Policy, o.Policy))
}

// Stub returns the policy's line in a list.
func (p *ScalingPolicy) Stub() *ScalingPolicyListStub {
	return &ScalingPolicyListStub{
		ID: p.ID, Enabled: p.Enabled, Type: p.Type, Target: p.Target, CreateIndex: p.CreateIndex, ModifyIndex: p.ModifyIndex,
	}
}
