package admit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// ResolveCells finds the chains and the pins of quotas, and writes them and the whole kind into them. sites are the levels above
// nodes. It returns an error of CodeBadRequest if a kind, a level, a size or a pin names nothing.
func ResolveCells(w *world.World, list []*structs.CellQuota, sites []structs.TopologyLevel) error {
	if len(list) == 0 {
		return nil
	}
	chains := OwnableChains(w)
	for i, q := range list {
		if err := resolve(w, chains, q, sites); err != nil {
			return structs.Errorf(structs.CodeBadRequest, "cells %d: %w", i+1, err)
		}
		if slices.ContainsFunc(list[:i], q.SameCells) {
			return structs.Errorf(structs.CodeBadRequest, "cells %d: the same kind, level and size are stated twice", i+1)
		}
	}
	return nil
}

// resolve finds the chain and the pins of a quota.
func resolve(w *world.World, chains []OwnableChain, q *structs.CellQuota, sites []structs.TopologyLevel) error {
	chain, err := FindChain(chains, cmp.Or(q.NodePool, structs.DefaultNodePool), q.Kind)
	if err != nil {
		return err
	}
	if err := checkLevel(w, chain, q.Level, q.Size, sites); err != nil {
		return err
	}
	q.Kind, q.NodePool, q.Chain, q.Pinned = chain.Kind()+"/"+chain.Tree, chain.Key.Pool, chain.Key.Tree, nil
	for _, pin := range q.Pin {
		cell, err := FindPin(w, chain, q.Level, q.Size, pin, sites)
		if err != nil {
			return err
		}
		is := structs.CellPin{Name: pin, NodeID: cell.Node, Index: cell.Index, Site: cell.Site}
		for _, o := range q.Pinned {
			if o.NodeID == is.NodeID && o.Index == is.Index && o.Site == is.Site {
				return fmt.Errorf("pin %q: it is the same cell as %q", pin, o.Name)
			}
		}
		q.Pinned = append(q.Pinned, is)
	}
	return nil
}

// Now tries what an owner shall own on a copy of a World. It returns an error of CodeConflict that names the highest level
// of which cells are short, and how many; of CodeBadRequest for kinds that cannot be owned and pins that somebody else has.
func Now(w *world.World, owner string, claims []structs.CellClaim) error {
	e := w.Edit()
	s := e.Shortage(owner, world.QuotasOf(claims))
	if s == nil {
		return nil
	}
	if s.Pin != nil {
		return pinRefused(w, e, owner, claims, s)
	}
	if s.Err != nil {
		if s.Quota.Size > 0 && errors.Is(s.Err, cells.ErrUnknown) {
			return structs.Errorf(structs.CodeBadRequest, "level %s: there is no cell with %d nodes%s", s.Quota.Level, s.Quota.Size, otherSizes(w, s.Quota.Chain, s.Quota.Level))
		}
		if s.Quota.Size > 0 {
			return structs.Errorf(structs.CodeBadRequest, "level %s: %w%s", s.Quota.Level, s.Err, otherSizes(w, s.Quota.Chain, s.Quota.Level))
		}
		return structs.Errorf(structs.CodeBadRequest, "level %s: %w", s.Quota.Level, s.Err)
	}
	return short(s.Level, s.Size, s.Short, "").
		WithHint("`nomadish topology` and `nomadish vc list` show what there is and who owns it; -when-free lets the edit wait until it can be admitted")
}

// short returns the error of cells that are short, at a time ("": now).
func short(level string, size, count int, at string) *structs.Error {
	of := ""
	if size > 0 {
		of = fmt.Sprintf(" of %d nodes", size)
	}
	return structs.Errorf(structs.CodeConflict, "level %s%s: %d short%s", level, of, count, at)
}

// LaterClaims is what all are to own at a time to come, by owner, if one of them is admitted.
type LaterClaims struct {
	At    string // for people
	All   map[string][]structs.CellClaim
	Owner string              // whose claims are to be admitted
	Was   []structs.CellClaim // what this owner would own then otherwise
}

// Later returns an error of CodeConflict if the cluster's healthy devices could not hold, with nothing bound, what an owner is to have
// more at some time to come, beside what all others own by then. What is doomed then anyway, as devices are not healthy, counts as at present:
// it is in nobody's way.
func Later(w *world.World, times []LaterClaims) error {
	var chains map[world.ChainKey]*cells.Edit
	for _, t := range times {
		more := world.QuotaChanges(world.AllQuotasOf(t.Was), world.AllQuotasOf(t.All[t.Owner]))
		for i := range more {
			if more[i].Count < 1 {
				continue
			}
			if chains == nil {
				chains = emptyChains(w)
			}
			key := more[i].Chain
			ed := chains[key]
			if ed == nil {
				continue
			}
			if _, n := ed.View().Short(t.sums(ed, key)...); n == 0 {
				continue
			}
			if k, n := t.shortage(ed.View().Edit(), key, more); n > 0 {
				return short(ed.View().LevelName(k), k.Size, n, " from "+t.At)
			}
		}
	}
	return nil
}

// sums returns all that is to be owned of a chain.
func (t *LaterClaims) sums(ed *cells.Edit, key world.ChainKey) (all []cells.Change) {
	for _, claims := range t.All { // order does not matter: sums
		for i := range claims {
			if q := world.QuotaOf(&claims[i]); q.Chain == key {
				if k, ok := ed.View().KindOf(q.Level, q.Size); ok {
					all = append(all, cells.Change{Kind: k, Count: q.Count})
				}
			}
		}
	}
	return all
}

// shortage returns what is short for the change of what its owner has of a chain, beside what is doomed without it.
func (t *LaterClaims) shortage(ed *cells.Edit, key world.ChainKey, more []world.Quota) (kind cells.Kind, short int) {
	give := func(owner string, claims []structs.CellClaim) {
		for i := range claims {
			if q := world.QuotaOf(&claims[i]); q.Chain == key {
				if k, ok := ed.View().KindOf(q.Level, q.Size); ok {
					ed.Give(owner, k, q.Count, q.Order)
				}
			}
		}
	}
	for owner, claims := range t.All { // order does not matter: they are ordered by their admission
		if owner != t.Owner {
			give(owner, claims)
		}
	}
	give(t.Owner, t.Was)
	var changes []cells.Change
	for _, q := range more {
		if k, ok := ed.View().KindOf(q.Level, q.Size); ok && q.Chain == key {
			changes = append(changes, cells.Change{Kind: k, Count: q.Count})
		}
	}
	return ed.View().Short(changes...)
}

// emptyChains returns the chains of all registered nodes, as if all were ready and nothing were bound or owned.
func emptyChains(w *world.World) map[world.ChainKey]*cells.Edit {
	chains := map[world.ChainKey]*cells.Edit{}
	for _, s := range w.States {
		of, trees := world.NodeChains(s.Node, s.Capacity)
		for i, key := range of {
			if chains[key] == nil {
				c, err := cells.NewChain(world.ChainLevels(trees[i]), levelNames(w.SiteLevels()))
				if err != nil {
					continue
				}
				chains[key] = c.Edit()
			}
			n := world.ChainNode(s, trees[i], w.SiteLevels())
			n.Ready = true
			chains[key].PutNode(n)
		}
	}
	return chains
}

// pinClaim returns the claim that a pinned cell is of, and how the pin was written.
func pinClaim(claims []structs.CellClaim, s *world.Shortage) (*structs.CellClaim, string) {
	for i := range claims {
		if q := world.QuotaOf(&claims[i]); q.Chain != s.Quota.Chain || q.Level != s.Quota.Level || q.Size != s.Quota.Size {
			continue
		}
		for _, p := range claims[i].Pins {
			if p.NodeID == s.Pin.Node && p.Index == s.Pin.Index && p.Site == s.Pin.Site {
				return &claims[i], p.Name
			}
		}
	}
	return nil, s.Pin.Node + s.Pin.Site
}
