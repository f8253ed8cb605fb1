package state

import (
	"reflect"

	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/scheduler/persist"
	"github.com/nomadish/nomadish/structs"
)

// allocEdit is a private form of an allocTable that can be changed: what log
// entries that are applied together, or an import, do. Abandoning it costs nothing. It is for one goroutine.
type allocEdit struct {
	allocTable
	tok     *persist.Token
	touched []subject // the groups that changed
	derived map[derivation]*common
	last    [groupKinds]named // the last of each kind: neighbours share them
	strings map[string]string
	packer  packer
}

// named is a group that this edit may change.
type named struct {
	key   indexkey.Hashed
	group *group
}

// derivation names a batch that follows from another by an update in place.
type derivation struct {
	from    *common
	version uint64
	eval    string
}

func (t *allocTable) edit() *allocEdit { return &allocEdit{allocTable: *t, tok: persist.NewToken()} }

// table is what the edit has made. The edit must not be used afterwards.
func (e *allocEdit) table() *allocTable {
	t := e.allocTable
	return &t
}

// put stores a row, in place of one of the same ID. With evaluations alone may
// it differ from that one in what it belongs to, but for an import.
func (e *allocEdit) put(r *row) {
	n, found := e.ordinalOf(r)
	if found {
		was := e.rows.Get(uint32(n))
		for kind := range groupKinds {
			if from, to := was.label(kind), r.label(kind); from != to {
				e.leave(kind, from, n)
				e.join(kind, r, n)
			} else {
				e.group(kind, to) // it has changed
			}
		}
		e.rows.Set(e.tok, uint32(n), r)
		return
	}
	e.add(r)
}

// add stores a row of an ID that is not there.
func (e *allocEdit) add(r *row) {
	n := e.take()
	for kind := range groupKinds {
		e.join(kind, r, n)
	}
	if r.odd() {
		e.odd.Put(e.tok, indexkey.Text(r.noted.id), n)
	} else {
		e.ids.Put(e.tok, r.id, n)
	}
	e.rows.Set(e.tok, uint32(n), r)
}

func (e *allocEdit) ordinalOf(r *row) (ordinal, bool) {
	if r.odd() {
		return e.odd.Get(indexkey.Text(r.noted.id))
	}
	return e.ids.Get(r.id)
}

// take gives an ordinal without a row, the lowest one.
func (e *allocEdit) take() (n ordinal) {
	if e.free.Len() == 0 {
		e.next++
		return e.next - 1
	}
	e.free.Ascend(nil, func(least ordinal, _ struct{}) bool {
		n = least
		return false
	})
	e.free.Delete(e.tok, n)
	return n
}

// remove forgets a row that is there.
func (e *allocEdit) remove(r *row) {
	n, _ := e.ordinalOf(r)
	for kind := range groupKinds {
		e.leave(kind, r.label(kind), n)
	}
	if r.odd() {
		e.odd.Delete(e.tok, indexkey.Text(r.noted.id))
	} else {
		e.ids.Delete(e.tok, r.id)
	}
	e.rows.Set(e.tok, uint32(n), nil)
	e.free.Put(e.tok, n, struct{}{})
}

// group gives a group to change, made if need be.
func (e *allocEdit) group(kind groupKind, key indexkey.Hashed) *group {
	if e.last[kind].key == key && e.last[kind].group != nil {
		return e.last[kind].group
	}
	g, found := e.groups[kind].Get(key)
	switch {
	case !found:
		g = &group{owner: e.tok}
	case g.owner == e.tok:
		e.last[kind] = named{key, g}
		return g
	default:
		g = &group{owner: e.tok, node: g.node, rows: g.rows}
	}
	e.last[kind] = named{key, g}
	e.groups[kind].Put(e.tok, key, g)
	e.touched = append(e.touched, subject{subjectKind(kind), key.String()})
	return g
}

func (e *allocEdit) join(kind groupKind, r *row, n ordinal) {
	g := e.group(kind, r.label(kind))
	g.rows.Put(e.tok, n, struct{}{})
	if kind == ofNode {
		g.node = r.node
	}
}

func (e *allocEdit) leave(kind groupKind, key indexkey.Hashed, n ordinal) {
	g := e.group(kind, key)
	g.rows.Delete(e.tok, n)
	if g.rows.Len() == 0 {
		e.groups[kind].Delete(e.tok, key)
		e.last[kind] = named{}
	}
}

// pack makes a's row. was is the row that it follows, and before what that is as a
// whole, of which a may have kept parts; both are nil if it is new. b is its batch, nil
// if that follows from was.
func (e *allocEdit) pack(a *structs.Allocation, b *common, was *row, before *structs.Allocation) *row {
	if b == nil {
		b = e.batchAfter(a, was)
	}
	a.DesiredDescription = e.intern(a.DesiredDescription)
	var node *place
	if was != nil && was.node.id.String() == a.NodeID && was.node.name == a.NodeName {
		node = was.node
	} else {
		node = e.place(a.NodeID, a.NodeName)
	}
	a.NodeID, a.NodeName = node.id.String(), node.name // the World keeps it too: one string for all
	r := newRow(a, b, node, was)
	if was != nil && saidAlike(a, before) {
		r.said = was.said
	} else {
		r.said = e.packer.pack(a)
	}
	return r
}

// place gives a node as allocations name it, the same object for all if they agree.
// The node is to get a row with it.
func (e *allocEdit) place(id, name string) *place {
	l := indexkey.Hash(id)
	if g := e.group(ofNode, l); g.node != nil && g.node.name == name {
		return g.node
	}
	return &place{l, name}
}

// batchAfter is the batch of what was changed: the same one, or after an update in
// place one that all of its batch share which were updated alike.
func (e *allocEdit) batchAfter(a *structs.Allocation, was *row) *common {
	b := was.batch
	if b.jobVersion == a.JobVersion && b.evalID == a.EvalID {
		return b
	}
	k := derivation{b, a.JobVersion, a.EvalID}
	after := e.derived[k]
	if after == nil {
		next := *b
		next.jobVersion, next.evalID, next.eval = a.JobVersion, a.EvalID, indexkey.Hash(a.EvalID)
		if was.noted == nil || was.noted.own&ownResources == 0 {
			next.resources = a.AllocatedResources
		}
		if e.derived == nil {
			e.derived = map[derivation]*common{}
		}
		after = &next
		e.derived[k] = after
	}
	if a.AllocatedResources != b.resources && reflect.DeepEqual(a.AllocatedResources, after.resources) {
		a.AllocatedResources = after.resources
	}
	return after
}

// maxInterned bounds the texts that an edit remembers to keep each once.
const maxInterned = 100_000

func (e *allocEdit) intern(s string) string {
	if s == "" {
		return ""
	}
	if known, ok := e.strings[s]; ok {
		return known
	}
	if e.strings == nil {
		e.strings = map[string]string{}
	}
	if len(e.strings) < maxInterned {
		e.strings[s] = s
	}
	return s
}

// newCommon is what a plan's batch shares, placed at an index.
func newCommon(p *structs.PlacementBatch, index uint64) *common {
	b := &common{
		namespace: p.Namespace, jobID: p.JobID, job: indexkey.HashJob(p.Namespace, p.JobID), eval: indexkey.Hash(p.EvalID), group: p.Group, evalID: p.EvalID,
		jobVersion: p.JobVersion, createIndex: index, createTime: p.CreateTime,
		resources: p.Resources, metrics: p.Metrics,
	}
	if g := p.Gang; g != nil {
		b.gang = &structs.AllocGang{Size: g.Size, Hosts: g.Hosts, Level: g.Level}
	}
	return b
}
