package state

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/structs"
)

// NodePools reads the node pools of a snapshot.
type NodePools struct{ snap *Snapshot }

// NodePools returns the reads of node pools.
func (s *Snapshot) NodePools() NodePools { return NodePools{s} }

// Get returns a node pool, one that is built in among them; nil if there is none of the name.
func (n NodePools) Get(ws *WatchSet, name string) *structs.NodePool {
	if p := one[structs.NodePool](n.snap.v, ws, TableNodePools, byID, name); p != nil {
		return p
	}
	return structs.BuiltInNodePool(name)
}

// List walks the node pools whose name begins with prefix, those that are built in among them, by name, or backwards.
func (n NodePools) List(ws *WatchSet, prefix string, reverse bool) iter.Seq[*structs.NodePool] {
	all := collect(many[structs.NodePool](n.snap.v, ws, false, TableNodePools, byPrefix, prefix))
	for _, name := range []string{structs.NodePoolAll, structs.NodePoolDefault} {
		if strings.HasPrefix(name, prefix) {
			all = append(all, structs.BuiltInNodePool(name))
		}
	}
	slices.SortFunc(all, func(a, b *structs.NodePool) int { return cmp.Compare(a.Name, b.Name) })
	if reverse {
		slices.Reverse(all)
	}
	return slices.Values(all)
}

// Has reports whether a job may name a node pool: there is one of the name, or a node is in it. The latter without the former
// is a region that is being upgraded from a version that did not keep node pools.
func (n NodePools) Has(name string) bool {
	return n.Get(nil, name) != nil || nodesIn(n.snap.v.txn, name) > 0
}

// Missing returns the names of the pools that nodes or jobs that are not dead name and that there are not, in order, as far as
// there may be more. They are those of a region that is being upgraded, see Has.
func (n NodePools) Missing() []string {
	txn := n.snap.v.txn
	named := map[string]bool{}
	for node := range rows[structs.Node](txn, false, TableNodes, byID) {
		named[node.NodePool] = true
	}
	for j := range rows[structs.Job](txn, false, TableJobs, byID) {
		if j.Status != structs.JobStatusDead {
			named[j.NodePool] = true
		}
	}
	maps.DeleteFunc(named, func(name string, _ bool) bool { return !structs.ValidNodePool(name) || n.Get(nil, name) != nil })
	missing := slices.Sorted(maps.Keys(named))
	return missing[:min(len(missing), max(0, structs.MaxNodePoolsOfNodes-countNodePools(txn)))]
}

func countNodePools(r reader) int { return memtable.Count(r, TableNodePools) }

func nodesIn(r reader, pool string) (n int) {
	for node := range rows[structs.Node](r, false, TableNodes, byID) {
		if node.NodePool == pool {
			n++
		}
	}
	return n
}

func (x *txn) nodePool(name string) *structs.NodePool {
	return get[structs.NodePool](x.rows, TableNodePools, byID, name)
}

// NodePoolUpsert makes node pools, or replaces them unless the entry forbids that.
func (w *Writer) NodePoolUpsert(index uint64, e *structs.NodePoolUpsertEntry) error {
	return w.commit(index, e.Time, structs.EventNodePoolUpserted, "", func(x *txn) error {
		added := map[string]bool{}
		for _, p := range e.Pools {
			if err := p.Validate(); err != nil {
				return err
			}
			if x.nodePool(p.Name) == nil {
				added[p.Name] = true
			}
		}
		most := structs.MaxNodePools
		if e.IfAbsent {
			most = structs.MaxNodePoolsOfNodes
		}
		if have := countNodePools(x.rows); len(added) > 0 && have+len(added) > most {
			return structs.Errorf(structs.CodeTooLarge, "node pool %q: there are %d node pools, and at most %d are allowed", e.Pools[0].Name, have, most).
				WithHint("`nomadish node pool delete` removes unused ones")
		}
		for _, p := range e.Pools {
			was := x.nodePool(p.Name)
			if was != nil && e.IfAbsent {
				continue
			}
			now := p.Copy()
			now.CreateIndex, now.ModifyIndex = x.index, x.index
			if was != nil {
				now.CreateIndex = was.CreateIndex
			}
			x.put(TableNodePools, now)
			note(x, KindNodePool, now.Name, was, now)
		}
		return nil
	})
}

// NodePoolDelete removes a node pool that nobody uses.
func (w *Writer) NodePoolDelete(index uint64, e *structs.NodePoolDeleteEntry) error {
	return w.commit(index, e.Time, structs.EventNodePoolDeleted, "", func(x *txn) error {
		if structs.BuiltInNodePool(e.Name) != nil {
			return structs.Errorf(structs.CodeBadRequest, "node pool %q is built in and cannot be deleted", e.Name)
		}
		was := x.nodePool(e.Name)
		if was == nil {
			return memtable.Missing("node pool", e.Name)
		}
		if n := nodesIn(x.rows, e.Name); n > 0 {
			return structs.Errorf(structs.CodeConflict, "node pool %q has nodes: %d", e.Name, n).
				WithHint("`nomadish node pool nodes %s` lists them; give them another node_pool in their clients' configuration, or remove them", e.Name)
		}
		for j := range rows[structs.Job](x.rows, false, TableJobs, byID) {
			if j.NodePool == e.Name && j.Status != structs.JobStatusDead {
				return structs.Errorf(structs.CodeConflict, "node pool %q has jobs that are not dead, such as %q in namespace %q", e.Name, j.ID, j.Namespace).
					WithHint("`nomadish node pool jobs -namespace '*' %s` lists them; stop them, or give them another node_pool", e.Name)
			}
		}
		for r := range rows[structs.WorkflowRun](x.rows, false, TableWorkflows, byID) {
			if r.Workflow.NodePool == e.Name && r.Alive() {
				return structs.Errorf(structs.CodeConflict, "node pool %q has workflows whose run has not ended, such as %q in namespace %q", e.Name, r.ID, r.Namespace).
					WithHint("`nomadish workflow cancel -namespace %s %s` ends it", r.Namespace, r.ID)
			}
		}
		x.drop(TableNodePools, was)
		note(x, KindNodePool, was.Name, was, nil)
		return nil
	})
}
