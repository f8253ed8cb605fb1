// Package family names the nodes that are alike in all that constraints can look at but meta and unique attributes: what fits one of them by these fits all.
package family

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// Of names the family of a node.
func Of(n *structs.Node) string {
	h := fnv.New64a()
	put := func(parts ...string) {
		for _, p := range parts {
			_, _ = h.Write([]byte(p)) // never fails
			_, _ = h.Write([]byte{0})
		}
	}
	put(n.Datacenter, n.NodeClass, n.NodePool)
	for _, k := range slices.Sorted(maps.Keys(n.Attributes)) {
		if !strings.HasPrefix(k, "unique.") {
			put(k, n.Attributes[k])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.Drivers)) {
		d := n.Drivers[name]
		put("driver", name, fmt.Sprint(d != nil && d.Detected, d != nil && d.Healthy))
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
	return fmt.Sprintf("%016x", h.Sum64())
}
