package cells

// siteOf returns the site cell of a level that a node lies in; nil if there is none.
func (c *Chain) siteOf(nodeID string, level int) *site {
	n, ok := c.nodes.get(nodeID)
	if !ok {
		return nil
	}
	for _, key := range c.keysOf(n.Sites) {
		if key.level == level {
			s, _ := c.groups.get(key.key)
			return s
		}
	}
	return nil
}

// CellsOf returns the cells of a kind that hold some devices of a node, in the order of their indexes; none if the node or the
// kind is not known. A site cell is returned whatever its number of nodes is at present.
func (c *Chain) CellsOf(nodeID string, k Kind, devices uint64) (list []Cell) {
	if !c.within(k) {
		if s := c.siteOf(nodeID, k.Level); s != nil {
			list = append(list, Cell{Site: s.key})
		}
		return list
	}
	if _, ok := c.nodes.get(nodeID); !ok || k.Level < 0 {
		return nil
	}
	for i := range c.cellsOf(k.Level) {
		if c.mask(k.Level, i)&devices != 0 {
			list = append(list, Cell{Node: nodeID, Index: i})
		}
	}
	return list
}

// Binding returns what a cell is bound for; false if it is not. away reports that the cell is not ready.
func (c *Chain) Binding(cell Cell, k Kind) (b Binding, away, ok bool) {
	find := func(list []Binding) bool {
		for i := range list {
			if list[i].Cell == cell && list[i].Kind == k {
				b = list[i]
				return true
			}
		}
		return false
	}
	if cell.Site != "" {
		s, known := c.groups.get(cell.Site)
		switch {
		case !known:
		case s.bound != nil && s.bound.Kind == k:
			return *s.bound, false, true
		case find(s.away):
			return b, true, true
		}
		return Binding{}, false, false
	}
	n, known := c.nodes.get(cell.Node)
	switch {
	case !known:
	case find(n.bound):
		return b, false, true
	case find(n.away):
		return b, true, true
	}
	return Binding{}, false, false
}

// BoundOn calls yield for each bound cell that a ready node has a part in, with the devices of the node that are of it.
func (c *Chain) BoundOn(nodeID string, yield func(b Binding, devices uint64)) {
	n, ok := c.nodes.get(nodeID)
	if !ok || !n.Ready {
		return
	}
	for _, key := range c.keysOf(n.Sites) {
		if s, known := c.groups.get(key.key); known && s.bound != nil {
			yield(*s.bound, c.mask(len(c.levels)-1, 0))
		}
	}
	for _, b := range n.bound {
		yield(b, c.mask(b.Kind.Level, b.Cell.Index))
	}
}

// AwayOn calls yield for each cell that was bound, that a node has a part in, and that is not ready at present, with the devices of
// the node that are of it.
func (c *Chain) AwayOn(nodeID string, yield func(b Binding, devices uint64)) {
	n, ok := c.nodes.get(nodeID)
	if !ok {
		return
	}
	for _, key := range c.keysOf(n.Sites) {
		s, known := c.groups.get(key.key)
		if !known {
			continue
		}
		for _, b := range s.away {
			yield(b, c.mask(len(c.levels)-1, 0))
		}
	}
	for _, b := range n.away {
		yield(b, c.mask(b.Kind.Level, b.Cell.Index))
	}
}

// Healthy returns the devices of a node that may be used; none of a node that is not ready.
func (c *Chain) Healthy(nodeID string) uint64 {
	n, ok := c.nodes.get(nodeID)
	if !ok || !n.Ready {
		return 0
	}
	return c.mask(len(c.levels)-1, 0) &^ n.Bad
}

// Maximal calls yield for every maximal cell within a node that consists of the given devices only, the largest first.
func (c *Chain) Maximal(devices uint64, yield func(level, index int)) { c.maximal(devices, yield) }

// Mask returns the devices of a cell within a node, as bits by their numbers.
func (c *Chain) Mask(level, index int) uint64 { return c.mask(level, index) }

// LevelFor returns the lowest level within nodes whose cells have at least so many devices; false if none has.
func (c *Chain) LevelFor(devices int) (int, bool) {
	for i := range c.levels {
		if c.levels[i].Devices >= devices {
			return i, true
		}
	}
	return 0, false
}

// KindOf returns the kind that a level's name and, of site cells, a number of nodes name; false if the chain has no such
// level.
func (c *Chain) KindOf(level string, size int) (Kind, bool) {
	for i := range c.levels {
		if c.levels[i].Name == level {
			return Kind{Level: i}, size == 0
		}
	}
	for i, name := range c.sites {
		if name == level {
			return Kind{Level: len(c.levels) + i, Size: size}, size > 0
		}
	}
	return Kind{}, false
}

// NodesOf calls yield for the nodes of a cell in the order of their names, until it returns false.
func (c *Chain) NodesOf(cell Cell, yield func(nodeID string) bool) {
	if cell.Site == "" {
		yield(cell.Node)
		return
	}
	if s, ok := c.groups.get(cell.Site); ok {
		c.nodesIn(s, yield)
	}
}

// Levels returns the levels within nodes, the lowest first.
func (c *Chain) Levels() []Level { return c.levels }

// View returns the chain as edited so far, to be read before the edit changes again, and not to be kept.
func (e *Edit) View() *Chain { return &e.c }

// Nodes returns how many nodes the chain has.
func (c *Chain) Nodes() int { return c.nodes.size }

// Ready reports whether all nodes of a cell are ready and, of a site cell, whether it is of the kind at present.
func (c *Chain) Ready(cell Cell, k Kind) bool {
	if cell.Site != "" {
		if s, ok := c.groups.get(cell.Site); !ok || s.kind != k {
			return false
		}
	}
	return c.ready(cell)
}
