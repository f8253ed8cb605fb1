package structs

import (
	"maps"
	"slices"
	"unicode/utf8"
)

// What a namespace may be at most.
const (
	// MaxNamespaces bounds the namespaces of a region.
	MaxNamespaces = 10_000
	// MaxNamespaceDescription is in characters.
	MaxNamespaceDescription = 256
	// MaxNamespaceMeta is in bytes of names and values.
	MaxNamespaceMeta = 16 << 10
	// MaxNamespaceCapabilities bounds each list of capabilities.
	MaxNamespaceCapabilities = 64
)

// Namespace keeps the jobs of a tenant apart from those of others. JSON names are Nomad's.
type Namespace struct {
	Name         string                 `hcl:"name"`        // the name of the namespace
	Description  string                 `hcl:"description"` // for people
	Quota        string                 `hcl:"quota"`       // refused: there are no quotas yet
	Capabilities *NamespaceCapabilities `hcl:"capabilities,block"`
	// NodePoolConfiguration is refused: it is not supported yet.
	NodePoolConfiguration *NamespaceNodePoolConfiguration `hcl:"node_pool_config,block" json:",omitempty" codec:",omitempty"`
	Meta                  map[string]string               `hcl:"meta,block"` // metadata, for people and programs
	CreateIndex           uint64
	ModifyIndex           uint64
}

// NamespaceCapabilities is what jobs of a namespace may use. A list that is empty restricts nothing.
type NamespaceCapabilities struct {
	EnabledTaskDrivers   []string `hcl:"enabled_task_drivers"`   // the only drivers that its jobs may use; default: all
	DisabledTaskDrivers  []string `hcl:"disabled_task_drivers"`  // drivers that they may not use
	EnabledNetworkModes  []string `hcl:"enabled_network_modes"`  // the only network modes that they may use; default: all
	DisabledNetworkModes []string `hcl:"disabled_network_modes"` // network modes that they may not use
}

// NamespaceNodePoolConfiguration is which node pools jobs of a namespace use.
type NamespaceNodePoolConfiguration struct {
	Default string   `hcl:"default"` // the node pool of jobs that state none
	Allowed []string `hcl:"allowed"` // the only node pools that its jobs may use
	Denied  []string `hcl:"denied"`  // node pools that they may not use
}

// ValidNamespace reports whether a namespace may have this name.
func ValidNamespace(name string) bool { return isWord(name, false) }

// BuiltInNamespace returns the namespace that always exists; nil: it is another name.
func BuiltInNamespace(name string) *Namespace {
	if name != DefaultNamespace {
		return nil
	}
	return &Namespace{Name: DefaultNamespace, Description: "Default shared namespace", CreateIndex: 1, ModifyIndex: 1}
}

// MissingNamespace returns the error of a job that names a namespace which does not exist.
func MissingNamespace(name string) error {
	return Errorf(CodeBadRequest, "namespace %q does not exist", clip(name)).
		WithHint("`nomadish namespace list` lists those that do, and `nomadish namespace apply %s` creates it", clip(name))
}

// Copy returns a copy that shares nothing with n.
func (n *Namespace) Copy() *Namespace {
	if n == nil {
		return nil
	}
	out := *n
	out.Meta = maps.Clone(n.Meta)
	if c := n.Capabilities; c != nil {
		out.Capabilities = &NamespaceCapabilities{
			slices.Clone(c.EnabledTaskDrivers), slices.Clone(c.DisabledTaskDrivers), slices.Clone(c.EnabledNetworkModes), slices.Clone(c.DisabledNetworkModes),
		}
	}
	if p := n.NodePoolConfiguration; p != nil {
		out.NodePoolConfiguration = &NamespaceNodePoolConfiguration{p.Default, slices.Clone(p.Allowed), slices.Clone(p.Denied)}
	}
	return &out
}

// Validate returns an error of CodeBadRequest if there can be no such namespace.
func (n *Namespace) Validate() error {
	switch {
	case n == nil || n.Name == "":
		return Errorf(CodeBadRequest, "missing namespace name")
	case !ValidNamespace(n.Name):
		return Errorf(CodeBadRequest, "namespace: invalid name %q. A name has 1 to 128 letters, digits or dashes", clip(n.Name))
	case utf8.RuneCountInString(n.Description) > MaxNamespaceDescription:
		return Errorf(CodeBadRequest, "namespace %q: description: must be at most %d characters, not %d", n.Name, MaxNamespaceDescription,
			utf8.RuneCountInString(n.Description))
	case n.Quota != "":
		return Errorf(CodeBadRequest, "namespace %q: quota %q: quotas are not supported yet", n.Name, clip(n.Quota)).WithHint("leave quota out")
	case n.NodePoolConfiguration != nil:
		return Errorf(CodeBadRequest, "namespace %q: node_pool_config: it is not supported yet", n.Name).
			WithHint("leave it out, and state node_pool in the jobs")
	}
	if b := pairBytesOf(n.Meta); b > MaxNamespaceMeta {
		return Errorf(CodeBadRequest, "namespace %q: meta: the names and values have %d bytes in all, at most %d are allowed", n.Name, b, MaxNamespaceMeta)
	}
	if c := n.Capabilities; c != nil {
		for _, list := range [][]string{c.EnabledTaskDrivers, c.DisabledTaskDrivers, c.EnabledNetworkModes, c.DisabledNetworkModes} {
			if len(list) > MaxNamespaceCapabilities {
				return Errorf(CodeBadRequest, "namespace %q: capabilities: a list has %d entries, at most %d are allowed", n.Name, len(list), MaxNamespaceCapabilities)
			}
		}
	}
	return nil
}

// Admits returns why a job cannot be in the namespace, by the drivers and network modes that it uses; nil if it can.
func (n *Namespace) Admits(job *Job) error {
	c := n.Capabilities
	if c == nil {
		return nil
	}
	refused := func(value string, enabled, disabled []string) bool {
		return len(enabled) > 0 && !slices.Contains(enabled, value) || slices.Contains(disabled, value)
	}
	for _, g := range job.TaskGroups {
		for _, t := range g.Tasks {
			if refused(t.Driver, c.EnabledTaskDrivers, c.DisabledTaskDrivers) {
				return Errorf(CodeBadRequest, "job %q: group %q: task %q: driver %q is not allowed in namespace %q", job.ID, g.Name, t.Name, t.Driver, n.Name).
					WithHint("`nomadish namespace inspect %s` shows which are", n.Name)
			}
		}
		for _, network := range g.Networks {
			mode := network.Mode
			if mode == "" {
				mode = "host"
			}
			if refused(mode, c.EnabledNetworkModes, c.DisabledNetworkModes) {
				return Errorf(CodeBadRequest, "job %q: group %q: network mode %q is not allowed in namespace %q", job.ID, g.Name, mode, n.Name).
					WithHint("`nomadish namespace inspect %s` shows which are", n.Name)
			}
		}
	}
	return nil
}

// What is called of namespaces, and answered.
type (
	// NamespaceUpsertEntry makes a namespace or replaces it.
	NamespaceUpsertEntry struct {
		Namespace *Namespace
		Time      int64
	}
	// NamespaceDeleteEntry removes a namespace.
	NamespaceDeleteEntry struct {
		Name string
		Time int64
	}
	// NamespaceUpsertRequest makes a namespace or replaces it.
	NamespaceUpsertRequest struct {
		Definition *Namespace
		WriteRequest
	}
	// NamespaceDeleteRequest removes a namespace.
	NamespaceDeleteRequest struct {
		Name string
		WriteRequest
	}
	// NamespaceReply is a namespace; nil: there is none of the name.
	NamespaceReply struct {
		Definition *Namespace
		QueryMeta
	}
	// NamespaceListReply lists namespaces.
	NamespaceListReply struct {
		Namespaces []*Namespace
		QueryMeta
	}
)
