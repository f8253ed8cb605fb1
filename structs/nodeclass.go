package structs

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
)

// ComputeClass sets ComputedClass from all that constraints and drivers can look
// at, but attributes and meta whose name starts with "unique.": two nodes of one
// class are alike to every constraint that does not name a unique attribute.
func (n *Node) ComputeClass() {
	h := fnv.New64a()
	put := func(parts ...string) {
		for _, p := range parts {
			_, _ = h.Write([]byte(p)) // never fails
			_, _ = h.Write([]byte{0})
		}
	}
	put("v1", n.Datacenter, n.NodeClass, n.NodePool)
	putMap := func(kind string, m map[string]string) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !strings.HasPrefix(k, "unique.") {
				put(kind, k, m[k])
			}
		}
	}
	putMap("attr", n.Attributes)
	putMap("meta", n.Meta)
	for _, name := range slices.Sorted(maps.Keys(n.Drivers)) {
		d := n.Drivers[name]
		put("driver", name, fmt.Sprint(d.Detected, d.Healthy))
	}
	for _, name := range slices.Sorted(maps.Keys(n.HostVolumes)) {
		put("volume", name, fmt.Sprint(n.HostVolumes[name].ReadOnly))
	}
	if n.NodeResources != nil {
		for _, d := range n.NodeResources.Devices {
			put("device", d.Vendor, d.Type, d.Name)
			for _, k := range slices.Sorted(maps.Keys(d.Attributes)) {
				put(k, d.Attributes[k].String())
			}
		}
	}
	n.ComputedClass = fmt.Sprintf("v1:%d", h.Sum64())
}

// String prints the value with its unit.
func (a *Attribute) String() string {
	var v string
	switch {
	case a == nil:
		return ""
	case a.FloatVal != nil:
		v = fmt.Sprint(*a.FloatVal)
	case a.IntVal != nil:
		v = fmt.Sprint(*a.IntVal)
	case a.StringVal != nil:
		v = *a.StringVal
	case a.BoolVal != nil:
		v = fmt.Sprint(*a.BoolVal)
	}
	if a.Unit != "" {
		v += " " + a.Unit
	}
	return v
}
