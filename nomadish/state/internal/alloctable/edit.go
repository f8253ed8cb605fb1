package alloctable

import (
	"reflect"

	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/scheduler/persist"
	"github.com/nomadish/nomadish/structs"
)

// Edit is a private form of a Table that can be changed: what log
// entries that are applied together, or an import, do. Abandoning it costs nothing. It is for one goroutine.
type Edit struct {
	Table
	tok     *persist.Token
	touched []GroupRef // the groups that changed
	derived map[derivation]*Batch
	last    [GroupKinds]named // the last of each kind: neighbours share them
	strings map[string]string
	packer  packer
}

// GroupRef names a group: a node's or an evaluation's by ID, a job's by
// indexkey.HashJob's string.
type GroupRef struct {
	Kind GroupKind
	Name string
}

// named is a group that this edit may change.
type named struct {
	key   indexkey.Hashed
	group *group
}

// derivation names a batch that follows from another by an update in place.
type derivation struct {
	from    *Batch
	version uint64
	eval    string
}

// Edit returns an edit that begins with the table as it is.
func (t *Table) Edit() *Edit { return t.EditInPlace(persist.NewToken()) }

// EditInPlace is Edit, but what earlier edits with the token have made is changed in place: tables before this one must not be read any more.
func (t *Table) EditInPlace(tok *persist.Token) *Edit { return &Edit{Table: *t, tok: tok} }

// Commit returns what the edit has made. The edit must not be used afterwards.
func (e *Edit) Commit() *Table {
	t := e.Table
	return &t
}

// NextEntry begins another log entry: what shares a batch must not
// depend on what is applied together.
func (e *Edit) NextEntry() { e.derived = nil }

// Touched returns the groups that were changed since the edit began; some may be gone, or
// as they were.
func (e *Edit) Touched() []GroupRef { return e.touched }

// Put stores a row, in place of one of the same ID. With evaluations alone may
// it differ from that one in what it belongs to, but for an import.
func (e *Edit) Put(r *Row) {
	n, found := e.refOf(r)
	if found {
		was := e.rows.Get(uint32(n))
		for kind := range GroupKinds {
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
	e.Add(r)
}

// Add stores a row of an ID that is not there.
func (e *Edit) Add(r *Row) {
	n := e.take()
	for kind := range GroupKinds {
		e.join(kind, r, n)
	}
	if r.nonUUID() {
		persist.Put(e.tok, &e.nonUUIDs, indexkey.Text(r.extra.id), n)
	} else {
		persist.Put(e.tok, &e.uuids, r.id, n)
	}
	e.rows.Set(e.tok, uint32(n), r)
}

func (e *Edit) refOf(r *Row) (rowRef, bool) {
	if r.nonUUID() {
		return e.nonUUIDs.Get(indexkey.Text(r.extra.id))
	}
	return e.uuids.Get(r.id)
}

// take returns a rowRef without a row, the lowest one.
func (e *Edit) take() (n rowRef) {
	if e.free.Len() == 0 {
		e.next++
		return e.next - 1
	}
	e.free.Ascend(nil, func(least rowRef, _ struct{}) bool {
		n = least
		return false
	})
	persist.Delete(e.tok, &e.free, n)
	return n
}

// Remove removes a row that is there.
func (e *Edit) Remove(r *Row) {
	n, _ := e.refOf(r)
	for kind := range GroupKinds {
		e.leave(kind, r.label(kind), n)
	}
	if r.nonUUID() {
		persist.Delete(e.tok, &e.nonUUIDs, indexkey.Text(r.extra.id))
	} else {
		persist.Delete(e.tok, &e.uuids, r.id)
	}
	e.rows.Set(e.tok, uint32(n), nil)
	persist.Put(e.tok, &e.free, n, struct{}{})
}

// group returns a group to change, made if need be.
func (e *Edit) group(kind GroupKind, key indexkey.Hashed) *group {
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
	persist.Put(e.tok, &e.groups[kind], key, g)
	e.touched = append(e.touched, GroupRef{kind, key.String()})
	return g
}

func (e *Edit) join(kind GroupKind, r *Row, n rowRef) {
	g := e.group(kind, r.label(kind))
	persist.Put(e.tok, &g.rows, n, struct{}{})
	if kind == ByNode {
		g.node = r.node
	}
}

func (e *Edit) leave(kind GroupKind, key indexkey.Hashed, n rowRef) {
	g := e.group(kind, key)
	persist.Delete(e.tok, &g.rows, n)
	if g.rows.Len() == 0 {
		persist.Delete(e.tok, &e.groups[kind], key)
		e.last[kind] = named{}
	}
}

// Pack returns a's row. was is the row that it follows, and before what that is as a
// whole, of which a may have kept parts; both are nil if it is new. b is its batch, nil
// if that follows from was.
func (e *Edit) Pack(a *structs.Allocation, b *Batch, was *Row, before *structs.Allocation) *Row {
	if b == nil {
		b = e.batchAfter(a, was)
	}
	a.DesiredDescription = e.Intern(a.DesiredDescription)
	var node *nodeRef
	if was != nil && was.node.id.String() == a.NodeID && was.node.name == a.NodeName {
		node = was.node
	} else {
		node = e.nodeRef(a.NodeID, a.NodeName)
	}
	a.NodeID, a.NodeName = node.id.String(), node.name // the World keeps it too: one string for all
	r := newRow(a, b, node, was)
	if was != nil && sameReport(a, before) {
		r.report = was.report
	} else {
		r.report = e.packer.pack(a)
	}
	return r
}

// nodeRef returns a node as allocations name it, the same object for all if they agree.
// The node is to get a row with it.
func (e *Edit) nodeRef(id, name string) *nodeRef {
	l := indexkey.Hash(id)
	if g := e.group(ByNode, l); g.node != nil && g.node.name == name {
		return g.node
	}
	return &nodeRef{l, name}
}

// batchAfter is the batch of what was changed: the same one, or after an update in
// place one that all of its batch share which were updated alike.
func (e *Edit) batchAfter(a *structs.Allocation, was *Row) *Batch {
	b := was.batch
	if b.jobVersion == a.JobVersion && b.evalID == a.EvalID {
		return b
	}
	k := derivation{b, a.JobVersion, a.EvalID}
	after := e.derived[k]
	if after == nil {
		next := *b
		next.jobVersion, next.evalID, next.eval = a.JobVersion, a.EvalID, indexkey.Hash(a.EvalID)
		if was.extra == nil || was.extra.own&ownResources == 0 {
			next.resources = a.AllocatedResources
		}
		if e.derived == nil {
			e.derived = map[derivation]*Batch{}
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

// Intern returns the text, the same string for all that are equal.
func (e *Edit) Intern(s string) string {
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

// NewBatch is what a plan's batch shares, placed at an index.
func NewBatch(p *structs.PlacementBatch, index uint64) *Batch {
	b := &Batch{
		namespace: p.Namespace, jobID: p.JobID, job: indexkey.HashJob(p.Namespace, p.JobID), eval: indexkey.Hash(p.EvalID), group: p.Group, evalID: p.EvalID,
		jobVersion: p.JobVersion, createIndex: index, createTime: p.CreateTime,
		resources: p.Resources, metrics: p.Metrics,
	}
	if g := p.Gang; g != nil {
		b.gang = &structs.AllocGang{Size: g.Size, Hosts: g.Hosts, Level: g.Level}
	}
	return b
}
