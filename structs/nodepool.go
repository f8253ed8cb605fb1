package structs

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"time"
	"unicode/utf8"
)

// What a node pool may be at most.
const (
	// MaxNodePools bounds the node pools of a region. Nodes make them, too, by naming them.
	MaxNodePools = 10_000
	// MaxNodePoolsOfNodes bounds those that are there when a node makes another, so that nodes cannot take the operators' places.
	MaxNodePoolsOfNodes = 9_000
	// MaxNodePoolDescription is in characters.
	MaxNodePoolDescription = 256
	// MaxNodePoolMeta is in bytes of names and values.
	MaxNodePoolMeta = 16 << 10
)

// NodePool is a set of nodes: those that name it. A job runs on the nodes of the one pool that it names. JSON names are Nomad's.
type NodePool struct {
	Name        string            `hcl:"name,label"`  // the name of the pool
	Description string            `hcl:"description"` // for people
	Meta        map[string]string `hcl:"meta,block"`  // metadata, for people and programs
	// NodeIdentityTTL is how long the identities of the pool's nodes are valid; 0: it is not stated. Nodes have none yet.
	NodeIdentityTTL time.Duration `hcl:"node_identity_ttl"`
	// SchedulerConfiguration is what of the scheduler's configuration is another one in this pool; nil: nothing. Servers take
	// none yet.
	SchedulerConfiguration *NodePoolSchedulerConfiguration `hcl:"scheduler_config,block"`
	CreateIndex            uint64
	ModifyIndex            uint64
}

// NodePoolSchedulerConfiguration is what of the scheduler's configuration may differ in a pool.
type NodePoolSchedulerConfiguration struct {
	SchedulerAlgorithm            string `hcl:"scheduler_algorithm" check:"oneof=binpack|spread"` // as in the scheduler's configuration, for the pool; default: that one
	MemoryOversubscriptionEnabled *bool  `hcl:"memory_oversubscription_enabled"`                  // as in the scheduler's configuration, for the pool; default: that one
}

// ValidNodePool reports whether a node pool may have this name.
func ValidNodePool(name string) bool { return isWord(name, true) }

// BuiltInNodePool returns one of the two pools that always exist; nil: it is another name.
func BuiltInNodePool(name string) *NodePool {
	switch name {
	case NodePoolAll:
		return &NodePool{Name: NodePoolAll, Description: "Node pool with all nodes in the cluster.", CreateIndex: 1, ModifyIndex: 1}
	case NodePoolDefault:
		return &NodePool{Name: NodePoolDefault, Description: "Default node pool.", CreateIndex: 1, ModifyIndex: 1}
	}
	return nil
}

// Copy returns a copy that shares nothing with p.
func (p *NodePool) Copy() *NodePool {
	if p == nil {
		return nil
	}
	out := *p
	out.Meta = maps.Clone(p.Meta)
	if c := p.SchedulerConfiguration; c != nil {
		own := *c
		if c.MemoryOversubscriptionEnabled != nil {
			on := *c.MemoryOversubscriptionEnabled
			own.MemoryOversubscriptionEnabled = &on
		}
		out.SchedulerConfiguration = &own
	}
	return &out
}

// Validate returns an error of CodeBadRequest if there can be no such pool.
func (p *NodePool) Validate() error {
	switch {
	case p == nil || p.Name == "":
		return Errorf(CodeBadRequest, "missing node pool name")
	case !ValidNodePool(p.Name):
		return Errorf(CodeBadRequest, "node pool %q: its name must be 1 to 128 letters, digits, dashes or underscores", clip(p.Name))
	case BuiltInNodePool(p.Name) != nil:
		return Errorf(CodeBadRequest, "node pool %q is built in and cannot be changed", p.Name).WithHint("give it another name")
	case utf8.RuneCountInString(p.Description) > MaxNodePoolDescription:
		return Errorf(CodeBadRequest, "node pool %q: description: must be at most %d characters, not %d", p.Name, MaxNodePoolDescription,
			utf8.RuneCountInString(p.Description))
	case p.NodeIdentityTTL < 0:
		return Errorf(CodeBadRequest, "node pool %q: node_identity_ttl: must not be negative, not %s", p.Name, p.NodeIdentityTTL)
	}
	if n := pairBytesOf(p.Meta); n > MaxNodePoolMeta {
		return Errorf(CodeBadRequest, "node pool %q: meta: the names and values have %d bytes in all, at most %d are allowed", p.Name, n, MaxNodePoolMeta)
	}
	if c := p.SchedulerConfiguration; c != nil && c.SchedulerAlgorithm != "" && c.SchedulerAlgorithm != AlgorithmBinpack && c.SchedulerAlgorithm != AlgorithmSpread {
		return Errorf(CodeBadRequest, "node pool %q: scheduler_algorithm %q: must be %q or %q", p.Name, clip(c.SchedulerAlgorithm), AlgorithmBinpack, AlgorithmSpread)
	}
	return nil
}

// MarshalJSON implements json.Marshaler. NodeIdentityTTL is written as text, as Nomad's clients read it: "720h0m0s", or "" for 0.
func (p NodePool) MarshalJSON() ([]byte, error) {
	type plain NodePool
	text := ""
	if p.NodeIdentityTTL != 0 {
		text = p.NodeIdentityTTL.String()
	}
	return json.Marshal(struct {
		plain
		NodeIdentityTTL string
	}{plain(p), text})
}

// UnmarshalJSON implements json.Unmarshaler. NodeIdentityTTL may be text or nanoseconds.
func (p *NodePool) UnmarshalJSON(data []byte) error {
	type plain NodePool
	read := struct {
		*plain
		NodeIdentityTTL json.RawMessage
	}{plain: (*plain)(p)}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	raw := strings.TrimSpace(string(read.NodeIdentityTTL))
	switch {
	case raw == "" || raw == "null":
		return nil
	case raw[0] != '"':
		return json.Unmarshal([]byte(raw), (*int64)(&p.NodeIdentityTTL))
	}
	var text string
	if err := json.Unmarshal([]byte(raw), &text); err != nil || text == "" {
		return err
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("NodeIdentityTTL: " + err.Error())
	}
	p.NodeIdentityTTL = d
	return nil
}

// What is called of node pools, and answered.
type (
	// NodePoolUpsertRequest makes a node pool or replaces it.
	NodePoolUpsertRequest struct {
		NodePool *NodePool
		WriteRequest
	}
	// NodePoolDeleteRequest removes a node pool.
	NodePoolDeleteRequest struct {
		Name string
		WriteRequest
	}
	// NodePoolListRequest lists the nodes or the jobs of a pool.
	NodePoolListRequest struct {
		Name string
		ListRequest
	}
	// NodePoolReply is a node pool; nil: there is none of the name.
	NodePoolReply struct {
		NodePool *NodePool
		QueryMeta
	}
	// NodePoolListReply lists node pools.
	NodePoolListReply struct {
		NodePools []*NodePool
		QueryMeta
	}
)
