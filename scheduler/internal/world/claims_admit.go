package world

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/structs"
)

// OwnableChain is a chain as those see it who give its cells away.
type OwnableChain struct {
	Key   ChainKey
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
func (w *World) OwnableChains() []OwnableChain {
	var list []OwnableChain
	for _, s := range w.nodes.All {
		keys, trees := nodeChains(s.Node, s.Capacity)
		for i, key := range keys {
			at, found := slices.BinarySearchFunc(list, key, func(c OwnableChain, k ChainKey) int { return compareChains(c.Key, k) })
			if !found {
				levels := ChainLevels(trees[i])
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
func (w *World) checkLevel(c *OwnableChain, level string, size int, sites []structs.TopologyLevel) error {
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
	names, all, sizes := make([]string, 0, len(c.Levels)+len(sites)), []string{}, w.siteSizes(c.Key)
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

// Shortage is why quotas cannot be admitted.
type Shortage struct {
	Quota Quota
	// Level and Size name the highest kind of which cells are short, Short is how many are.
	Level string
	Size  int
	Short int
	// Err is why, if it is not for the number: the kind cannot be owned, or a pin cannot be bound.
	Err error
	Pin *cells.Cell
}

// Shortage sets an owner's quotas as SetQuotas does and returns what forbids it; nil: nothing does. The edit is as after
// SetQuotas in either case, so that whoever only wants to know gives one that is then abandoned.
func (e *Edit) Shortage(owner string, quotas []Quota) *Shortage {
	e.from = nil
	if e.w.claims == nil && len(quotas) > 0 {
		ledger{e}.buildClaims(nil)
	}
	var short *Shortage
	was := e.w.Quotas(owner)
	changes := quotaChanges(was, quotas)
	slices.SortStableFunc(changes, func(a, b Quota) int { return compareChains(a.Chain, b.Chain) })
	for i := 0; i < len(changes) && short == nil; {
		n := i
		for n < len(changes) && changes[n].Chain == changes[i].Chain {
			n++
		}
		short = ledger{e}.shortage(changes[i:n])
		i = n
	}
	e.SetQuotas(owner, quotas)
	for _, f := range e.claims.pins {
		if short != nil || slices.ContainsFunc(was, func(q Quota) bool {
			return q.Chain == f.Chain && q.Level == f.Level && q.Size == f.Size && slices.Contains(q.Pins, f.Cell)
		}) {
			continue // a pin that its owner has, and that is not bound at present, forbids nothing
		}
		short = &Shortage{Err: f.Err, Pin: &f.Cell, Quota: Quota{Chain: f.Chain, Level: f.Level, Size: f.Size}}
	}
	return short
}

// shortage returns what changes of one chain lack.
func (l ledger) shortage(changes []Quota) *Shortage {
	ed := ChainEdit(l.e, changes[0].Chain)
	var list []cells.Change
	for _, d := range changes {
		if ed == nil {
			if d.Count > 0 {
				return &Shortage{Quota: d, Level: d.Level, Size: d.Size, Short: d.Count}
			}
			continue
		}
		k, ok := ed.View().KindOf(d.Level, d.Size)
		if !ok {
			if d.Count > 0 {
				return &Shortage{Quota: d, Err: cells.ErrUnknown}
			}
			continue
		}
		if d.Count > 0 {
			if err := ed.View().Ownable(k); err != nil {
				return &Shortage{Quota: d, Err: err}
			}
		}
		if d.Count != 0 {
			list = append(list, cells.Change{Kind: k, Count: d.Count})
		}
	}
	grows := slices.ContainsFunc(list, func(c cells.Change) bool { return c.Count > 0 })
	if !grows {
		return nil
	}
	slices.SortFunc(list, func(a, b cells.Change) int { return cmp.Or(a.Kind.Compare(b.Kind), cmp.Compare(a.Count, b.Count)) })
	if k, short := ed.View().Short(list...); short > 0 {
		return &Shortage{Quota: changes[0], Level: ed.View().LevelName(k), Size: k.Size, Short: short}
	}
	return nil
}

// FindPin returns the cell that a pin names: "node-17", "node-17/socket-0", "node-17/socket-0/pcie-1" (cells are counted from 0 within
// their node), "rack:r1". It returns an error of CodeBadRequest if there is none of that chain, level and size.
func (w *World) FindPin(c *OwnableChain, level string, size int, pin string, sites []structs.TopologyLevel) (cells.Cell, error) {
	bad := func(format string, args ...any) error {
		return structs.Errorf(structs.CodeBadRequest, "pin %q: "+format, append([]any{pin}, args...)...)
	}
	chain, err := cells.NewChain(c.Levels, levelNames(sites))
	if err != nil {
		return cells.Cell{}, bad("%w", err)
	}
	k, _ := chain.KindOf(level, size)
	if at := slices.IndexFunc(sites, func(l structs.TopologyLevel) bool { return l.Name == level }); at >= 0 {
		return w.findSite(c, chain, k, pin, sites, bad)
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
	for _, s := range w.nodes.All {
		if s.Node == nil || s.Node.Name != name && s.ID != name {
			continue
		}
		keys, _ := nodeChains(s.Node, s.Capacity)
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
func (w *World) findSite(c *OwnableChain, chain *cells.Chain, k cells.Kind, pin string, sites []structs.TopologyLevel,
	bad func(format string, args ...any) error,
) (cells.Cell, error) {
	ed := chain.Edit()
	var first string
	for _, s := range w.nodes.All {
		keys, trees := nodeChains(s.Node, s.Capacity)
		if i := slices.Index(keys, c.Key); i >= 0 {
			ed.PutNode(chainNode(s, trees[i], sites))
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

// IsTaken reports whether a pin failed because somebody else has bound the cell, or a part of it.
func (s *Shortage) IsTaken() bool { return errors.Is(s.Err, cells.ErrBound) }
