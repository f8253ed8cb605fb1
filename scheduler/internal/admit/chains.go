package admit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// OwnableChain is a chain as those see it who give its cells away.
type OwnableChain struct {
	Key   world.ChainKey
	Tree  string // how many children each vertex has, from the node down: "2x2x2"
	Nodes int
	// Levels are those of which cells can be owned, the lowest first, without those above nodes.
	Levels []cells.Level
}

// Kind returns the chain's kind of devices as files have it, without the tree.
func (c *OwnableChain) Kind() string { return c.Key.Vendor + "/" + c.Key.Type + "/" + c.Key.Model }

// treeName returns how the levels of a chain divide its nodes.
func treeName(levels []cells.Level) string {
	parts := make([]string, 0, len(levels))
	for i := len(levels) - 1; i > 0; i-- {
		parts = append(parts, strconv.Itoa(levels[i].Devices/levels[i-1].Devices))
	}
	if len(parts) == 0 {
		return "1"
	}
	return strings.Join(parts, "x")
}

// OwnableChains returns the chains of which cells can be owned, in the order of their keys. It looks at every node.
func OwnableChains(w *world.World) []OwnableChain {
	var list []OwnableChain
	for _, s := range w.States {
		keys, trees := world.NodeChains(s.Node, s.Capacity)
		for i, key := range keys {
			at, found := slices.BinarySearchFunc(list, key, func(c OwnableChain, k world.ChainKey) int { return world.CompareChains(c.Key, k) })
			if !found {
				levels := world.ChainLevels(trees[i])
				list = slices.Insert(list, at, OwnableChain{Key: key, Tree: treeName(levels), Levels: levels})
			}
			list[at].Nodes++
		}
	}
	return list
}

// FindChain returns the chain that a pool and a kind name ("vendor/type/model", with the tree after it where one model has
// several; "" where the pool has one chain). It returns an error of CodeBadRequest that names those that there are.
func FindChain(chains []OwnableChain, pool, kind string) (*OwnableChain, error) {
	var of, named []*OwnableChain
	for i := range chains {
		c := &chains[i]
		if c.Key.Pool != pool {
			continue
		}
		of = append(of, c)
		if kind == "" || kind == c.Kind() || kind == c.Kind()+"/"+c.Tree {
			named = append(named, c)
		}
	}
	names := func(list []*OwnableChain) string {
		all := make([]string, len(list))
		for i, c := range list {
			all[i] = c.Kind() + "/" + c.Tree
		}
		return strings.Join(all, ", ")
	}
	switch {
	case len(named) == 1:
		return named[0], nil
	case len(of) == 0:
		return nil, structs.Errorf(structs.CodeBadRequest, "node pool %q has no devices whose cells can be owned", pool).
			WithHint("`nomadish topology` shows the devices that there are")
	case len(named) == 0:
		return nil, structs.Errorf(structs.CodeBadRequest, "kind %q: node pool %q has %s", kind, pool, names(of))
	}
	return nil, structs.Errorf(structs.CodeBadRequest, "kind %q: node pool %q has several: %s", kind, pool, names(named)).WithHint("state one of them as kind")
}

// checkLevel checks that cells of a level, and of a size above nodes, can be owned; an error of CodeBadRequest names those that there are,
// with their sizes, so that one more look suffices.
func checkLevel(w *world.World, c *OwnableChain, level string, size int, sites []structs.TopologyLevel) error {
	for _, l := range c.Levels {
		if l.Name == level {
			if size != 0 {
				return structs.Errorf(structs.CodeBadRequest, "level %q: size: only cells above nodes have one", level).WithHint("leave size out")
			}
			return nil
		}
	}
	site := slices.ContainsFunc(sites, func(l structs.TopologyLevel) bool { return l.Name == level })
	if site && size > 0 {
		return nil
	}
	names, all, sizes := make([]string, 0, len(c.Levels)+len(sites)), []string{}, siteSizes(w, c.Key)
	for _, l := range c.Levels {
		names, all = append(names, l.Name), append(all, l.Name)
	}
	for _, l := range sites {
		if of := sizes[l.Name]; len(of) > 0 {
			names, all = append(names, l.Name), append(all, fmt.Sprintf("%s (size %s)", l.Name, sizeList(of)))
		}
	}
	if of := sizes[level]; site && len(of) > 0 {
		return structs.Errorf(structs.CodeBadRequest, "level %q: size is missing: how many nodes such a cell has", level).WithHint("there are cells with %s nodes", sizeList(of))
	}
	err := structs.Errorf(structs.CodeBadRequest, "level %q: cells of %s can be owned at the levels %s", level, c.Kind(), strings.Join(all, ", "))
	if near := structs.Nearest(level, names); near != "" {
		err = err.WithHint("did you mean %q?", near)
	}
	return err
}

// FindPin returns the cell that a pin names: "node-17", "node-17/socket-0", "node-17/socket-0/pcie-1" (cells are counted from 0 within
// their node), "rack:r1". It returns an error of CodeBadRequest if there is none of that chain, level and size.
func FindPin(w *world.World, c *OwnableChain, level string, size int, pin string, sites []structs.TopologyLevel) (cells.Cell, error) {
	bad := func(format string, args ...any) error {
		return structs.Errorf(structs.CodeBadRequest, "pin %q: "+format, append([]any{pin}, args...)...)
	}
	chain, err := cells.NewChain(c.Levels, levelNames(sites))
	if err != nil {
		return cells.Cell{}, bad("%w", err)
	}
	k, _ := chain.KindOf(level, size)
	if at := slices.IndexFunc(sites, func(l structs.TopologyLevel) bool { return l.Name == level }); at >= 0 {
		return findSite(w, c, chain, k, pin, sites, bad)
	}
	name, path, _ := strings.Cut(pin, "/")
	index := 0
	if level != structs.LevelNode {
		last := path[strings.LastIndexByte(path, '/')+1:]
		text, ok := strings.CutPrefix(last, level+"-")
		if index, err = strconv.Atoi(text); !ok || err != nil || index < 0 || index >= chain.Devices(cells.Kind{Level: len(c.Levels) - 1})/chain.Devices(k) {
			return cells.Cell{}, bad("a cell of level %q is written NODE/%s-0, counted from 0 within its node", level, level)
		}
	} else if path != "" {
		return cells.Cell{}, bad("a cell of level %q is written as the node's name alone", level)
	}
	var found cells.Cell
	n := 0
	for _, s := range w.States {
		if s.Node == nil || s.Node.Name != name && s.ID != name {
			continue
		}
		keys, _ := world.NodeChains(s.Node, s.Capacity)
		if !slices.Contains(keys, c.Key) {
			return cells.Cell{}, bad("node %q is not of kind %s/%s in node pool %q", name, c.Kind(), c.Tree, c.Key.Pool)
		}
		found = cells.Cell{Node: s.ID, Index: index}
		n++
	}
	switch n {
	case 0:
		return cells.Cell{}, bad("there is no node %q", name)
	case 1:
		return found, nil
	}
	return cells.Cell{}, bad("%d nodes are called %q", n, name)
}

func levelNames(sites []structs.TopologyLevel) []string {
	names := make([]string, len(sites))
	for i, l := range sites {
		names[i] = l.Name
	}
	return names
}

// findSite returns a cell above nodes by its name.
func findSite(w *world.World, c *OwnableChain, chain *cells.Chain, k cells.Kind, pin string, sites []structs.TopologyLevel,
	bad func(format string, args ...any) error,
) (cells.Cell, error) {
	ed := chain.Edit()
	var first string
	for _, s := range w.States {
		keys, trees := world.NodeChains(s.Node, s.Capacity)
		if i := slices.Index(keys, c.Key); i >= 0 {
			ed.PutNode(world.ChainNode(s, trees[i], sites))
			for _, cell := range ed.View().CellsOf(s.ID, k, 1) {
				if ed.View().CellName(cell, k, "") == pin {
					first = s.ID
				}
			}
		}
	}
	if first == "" {
		return cells.Cell{}, bad("there is no such cell of level %q; one is written %s:NAME", chain.LevelName(k), chain.LevelName(k))
	}
	cell := ed.View().CellsOf(first, k, 1)[0]
	nodes := 0
	ed.View().NodesOf(cell, func(string) bool { nodes++; return true })
	if nodes != k.Size {
		return cells.Cell{}, bad("it has %d nodes of kind %s, not %d", nodes, c.Kind(), k.Size)
	}
	return cell, nil
}
