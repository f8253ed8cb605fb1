package world

import "github.com/nomadish/nomadish/scheduler/entitle/cells"

// NodeBinding is the part of a bound cell that is on one node.
type NodeBinding struct {
	Owner   string
	Level   string // of the cell
	Site    bool   // the cell is above nodes
	Pinned  bool
	Away    bool     // the cell is not ready, and not bound until it is
	Devices []string // IDs
}

// BindingsOn returns the bound cells that a node has a part in. Those that are away come first: another binding may be of the same
// devices meanwhile.
func (w *World) BindingsOn(nodeID string) (list []NodeBinding) {
	n, known := w.nodes.Get(nodeID)
	if w.claims == nil || !known {
		return nil
	}
	keys, trees := NodeChains(n.Node, n.Capacity)
	for i, key := range keys {
		c, found := w.claims.chains.Get(key)
		if !found {
			continue
		}
		add := func(b cells.Binding, devices uint64, away bool) {
			is := NodeBinding{Owner: b.Owner, Level: c.LevelName(b.Kind), Site: b.Cell.Site != "", Pinned: b.Pinned, Away: away}
			for at, id := range trees[i].IDs {
				if devices&(1<<at) != 0 {
					is.Devices = append(is.Devices, id)
				}
			}
			list = append(list, is)
		}
		c.AwayOn(nodeID, func(b cells.Binding, devices uint64) { add(b, devices, true) })
		c.BoundOn(nodeID, func(b cells.Binding, devices uint64) { add(b, devices, false) })
	}
	return list
}

// DevicesOwned returns how many devices the cells of an owner have, those included that the hardware cannot hold at present. Cells
// of a kind that no node is of count as none.
func (w *World) DevicesOwned(owner string) (devices int) {
	for _, q := range w.Quotas(owner) {
		if c, known := w.Chain(q.Chain); known {
			if k, ok := c.KindOf(q.Level, q.Size); ok {
				devices += q.Count * c.Devices(k)
			}
		}
	}
	return devices
}
