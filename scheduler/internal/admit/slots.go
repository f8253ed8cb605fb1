package admit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// gpu is the type of the devices of slots.
const gpu = "gpu"

// CellOfSlot returns the quota cell that a slot of a type with GPUs is: one of the smallest level that holds its GPUs, of the chain of the nodes that
// state slots of the type. It returns an error of CodeBadRequest if they have none such, or of several chains: which of them is meant would not be
// known; nil if no node states any.
func CellOfSlot(w *world.World, t structs.SlotType) (*structs.CellClaim, error) {
	var found []OwnableChain
	stated := false
	for _, s := range w.States {
		if s.Node == nil || s.Node.NodeResources == nil || s.Node.NodeResources.Slots[t.Name] == 0 {
			continue
		}
		stated = true
		keys, trees := world.NodeChains(s.Node, s.Capacity)
		for i, key := range keys {
			at, known := slices.BinarySearchFunc(found, key, func(c OwnableChain, k world.ChainKey) int { return world.CompareChains(c.Key, k) })
			if known {
				continue
			}
			levels := world.ChainLevels(trees[i])
			if c := (OwnableChain{Key: key, Tree: treeName(levels), Levels: levels}); key.Type == gpu && isKind(t.Kind, &c) {
				found = slices.Insert(found, at, c)
			}
		}
	}
	switch {
	case !stated:
		return nil, nil
	case len(found) == 0:
		return nil, structs.Errorf(structs.CodeBadRequest, "the nodes with such slots have no GPUs of kind %q", cmp.Or(t.Kind, "any")).
			WithHint("`nomadish topology` shows the kinds that there are; `operator scheduler set-config -slot` changes that of the slots")
	case len(found) > 1:
		names := make([]string, len(found))
		for i := range found {
			names[i] = found[i].Kind() + "/" + found[i].Tree + " (node pool " + found[i].Key.Pool + ")"
		}
		return nil, structs.Errorf(structs.CodeBadRequest, "the nodes with such slots have GPUs of several kinds: %s", strings.Join(names, ", ")).
			WithHint("state one of them as the kind of the slots, or have a type of slots for each")
	}
	c := &found[0]
	for _, l := range c.Levels {
		if l.Devices >= t.GPUs {
			return &structs.CellClaim{
				NodePool: c.Key.Pool, Vendor: c.Key.Vendor, Type: c.Key.Type, Model: c.Key.Model, Chain: c.Key.Tree, Tree: c.Tree, Level: l.Name,
			}, nil
		}
	}
	return nil, structs.Errorf(structs.CodeBadRequest, "a slot has %d GPUs, and no node of kind %s has so many in one cell", t.GPUs, c.Kind())
}

// isKind reports whether a slot's kind names a chain: vendor/type/model, with the tree after it or without, or the end of that; "": any.
func isKind(kind string, c *OwnableChain) bool {
	ends := func(whole string) bool { return whole == kind || strings.HasSuffix(whole, "/"+kind) }
	return kind == "" || ends(c.Kind()) || ends(c.Kind()+"/"+c.Tree)
}
