package alloctable

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/structs"
)

// Row is an allocation as it is kept. It is never changed: what changes gets a new
// row, which shares the parts that stay. Its 80 bytes are a size class.
type Row struct {
	id          indexkey.UUID // zero: it is no UUID, the notes have it
	batch       *Batch
	node        *nodeRef
	report      *report // what its client reported; nil: nothing
	extra       *extra  // what few allocations have; nil: nothing
	modify      uint64
	allocModify uint64
	modifyTime  int64
	index       int32 // the instance's number, in its name
	rank        uint16
	desired     status
	client      status
}

// Batch is what allocations share that were placed together. It is never changed.
type Batch struct {
	namespace   string
	jobID       string
	group       string
	evalID      string
	job, eval   indexkey.Hashed // the names of its groups
	jobVersion  uint64
	createIndex uint64
	createTime  int64
	resources   *structs.AllocatedResources
	metrics     *structs.AllocMetric
	gang        *structs.AllocGang // its Rank is not used
}

// nodeRef is a node as its allocations name it.
type nodeRef struct {
	id   indexkey.Hashed
	name string
}

// extra is what few allocations have, or have otherwise than their batch. It is
// comparable: equal notes are kept once.
type extra struct {
	id, name        string // when they have an unusual form
	named           bool
	desired, client string // statuses without a number
	description     string
	transition      structs.DesiredTransition
	deploymentID    string
	followupEval    string
	previous, next  string
	preemptedBy     string
	preempted       *[]string
	requeues        int
	requeueReason   string
	suspendedAt     int64
	reschedule      *structs.RescheduleTracker
	resources       *structs.AllocatedResources
	metrics         *structs.AllocMetric
	gang            *structs.AllocGang
	own             uint8 // which of the last three stand in place of the batch's
}

const (
	ownResources = 1 << iota
	ownMetrics
	ownGang
)

// Whole is the allocation without its job, made anew by each call.
func (r *Row) Whole() *structs.Allocation { return r.made(false) }

// Brief is Whole without the events of tasks that have not ended, which are most of what
// it takes.
func (r *Row) Brief() *structs.Allocation { return r.made(true) }

// JobID names the allocation's job.
func (r *Row) JobID() structs.NamespacedID {
	return structs.NamespacedID{ID: r.batch.jobID, Namespace: r.batch.namespace}
}

// NodeID is the node that it is on.
func (r *Row) NodeID() string { return r.node.id.String() }

// ClientStatus is what the client reports about the allocation.
func (r *Row) ClientStatus() string {
	switch {
	case r.client != otherStatus:
	case r.extra == nil:
		return "" // a snapshot may hold one without a status
	default:
		return r.extra.client
	}
	return statusNames[r.client]
}

// DesiredStatus is what the servers want of it.
func (r *Row) DesiredStatus() string {
	switch {
	case r.desired != otherStatus:
	case r.extra == nil:
		return "" // as above
	default:
		return r.extra.desired
	}
	return statusNames[r.desired]
}

// CreateIndex is the index at which it was placed.
func (r *Row) CreateIndex() uint64 { return r.batch.createIndex }

// ReportForm stands for what a client has reported about allocations, but for the times: most that do the same have the same.
type ReportForm = unique.Handle[string]

// ReportForm is what its client reported of it beside its status, to be compared; the zero value: nothing.
func (r *Row) ReportForm() (form ReportForm) {
	if r.report != nil {
		form = r.report.form
	}
	return form
}

// NextAllocation is the one that has replaced it; "": none.
func (r *Row) NextAllocation() string {
	if r.extra == nil {
		return ""
	}
	return r.extra.next
}

// ModifyIndex is the index at which anybody changed it last.
func (r *Row) ModifyIndex() uint64 { return r.modify }

// AllocModifyIndex is the index at which the servers changed it last.
func (r *Row) AllocModifyIndex() uint64 { return r.allocModify }

// Batch is what it shares with others. Rows of one batch are of one version of a job.
func (r *Row) Batch() *Batch { return r.batch }

// JobVersion is the version of the job that it is of.
func (r *Row) JobVersion() uint64 { return r.batch.jobVersion }

// Group is its task group.
func (r *Row) Group() string { return r.batch.group }

// Namespace is its job's.
func (r *Row) Namespace() string { return r.batch.namespace }

// CompareCreated orders allocations by the index at which they were placed, and those of one index by ID.
func (r *Row) CompareCreated(o *Row) int {
	switch {
	case r.batch.createIndex != o.batch.createIndex:
		return cmp.Compare(r.batch.createIndex, o.batch.createIndex)
	case r.nonUUID() || o.nonUUID():
		return strings.Compare(r.ID(), o.ID())
	}
	return r.id.Compare(o.id)
}

// Suspended reports whether the servers want it suspended in place.
func (r *Row) Suspended() bool { return r.DesiredStatus() == structs.AllocDesiredSuspend }

// Transition is what the scheduler is requested to do with it.
func (r *Row) Transition() structs.DesiredTransition {
	if r.extra == nil {
		return structs.DesiredTransition{}
	}
	return r.extra.transition
}

// Resources are what it was given: the same object as long as nothing of them changes.
func (r *Row) Resources() *structs.AllocatedResources {
	if r.extra != nil && r.extra.own&ownResources != 0 {
		return r.extra.resources
	}
	return r.batch.resources
}

// ID is the allocation's ID.
func (r *Row) ID() string {
	if r.nonUUID() {
		return r.extra.id
	}
	return r.id.String()
}

// nonUUID reports whether the ID is no UUID.
func (r *Row) nonUUID() bool { return r.extra != nil && r.extra.id != "" }

// ClientTerminal is as structs.Allocation's.
func (r *Row) ClientTerminal() bool { return structs.TerminalClientStatus(r.ClientStatus()) }

// Terminal is as structs.Allocation's.
func (r *Row) Terminal() bool { return r.Stopped() || r.ClientTerminal() }

// Stopped reports whether the servers have stopped it.
func (r *Row) Stopped() bool {
	d := r.DesiredStatus()
	return d == structs.AllocDesiredStop || d == structs.AllocDesiredEvict
}

// Name returns the name of its instance.
func (r *Row) Name() string {
	if n := r.extra; n != nil && n.named {
		return n.name
	}
	var buf [128]byte
	return string(appendName(buf[:0], r.batch, int(r.index)))
}

// appendName writes what structs.AllocName returns.
func appendName(to []byte, b *Batch, index int) []byte {
	to = append(append(append(to, b.jobID...), '.'), b.group...)
	return append(strconv.AppendInt(append(to, '['), int64(index), 10), ']')
}

// made makes the whole value, without its job; see Brief.
func (r *Row) made(brief bool) *structs.Allocation {
	b := r.batch
	a := &structs.Allocation{
		ID: r.ID(), Namespace: b.namespace, EvalID: b.evalID, Name: r.Name(), NodeID: r.node.id.String(), NodeName: r.node.name,
		JobID: b.jobID, JobVersion: b.jobVersion, TaskGroup: b.group, AllocatedResources: b.resources, Metrics: b.metrics,
		DesiredStatus: r.DesiredStatus(), ClientStatus: r.ClientStatus(),
		CreateIndex: b.createIndex, ModifyIndex: r.modify, AllocModifyIndex: r.allocModify,
		CreateTime: b.createTime, ModifyTime: r.modifyTime,
	}
	if g := b.gang; g != nil && (r.extra == nil || r.extra.own&ownGang == 0) {
		a.Gang = &structs.AllocGang{Rank: int(r.rank), Size: g.Size, Hosts: g.Hosts, Level: g.Level}
	}
	if s := r.report; s != nil {
		s.applyTo(a, brief)
	}
	if r.extra != nil {
		r.extra.applyTo(a)
	}
	return a
}

func (n *extra) applyTo(a *structs.Allocation) {
	a.DesiredDescription, a.DesiredTransition = n.description, n.transition
	a.DeploymentID, a.FollowupEvalID = n.deploymentID, n.followupEval
	a.PreviousAllocation, a.NextAllocation = n.previous, n.next
	a.RescheduleTracker, a.PreemptedByAllocation = n.reschedule, n.preemptedBy
	a.Requeues, a.RequeueReason, a.SuspendedAt = n.requeues, n.requeueReason, n.suspendedAt
	if n.preempted != nil {
		a.PreemptedAllocations = *n.preempted
	}
	if n.own&ownResources != 0 {
		a.AllocatedResources = n.resources
	}
	if n.own&ownMetrics != 0 {
		a.Metrics = n.metrics
	}
	if n.own&ownGang != 0 {
		a.Gang = n.gang
	}
}

// Allocation is instance i of a plan's batch, which has no resources of its own. It is
// what structs.PlacementBatch.Allocation returns, but shares what is never changed.
func (c *Batch) Allocation(p *structs.PlacementBatch, i int, id string) *structs.Allocation {
	in := &p.Instances[i]
	a := &structs.Allocation{
		ID: id, Namespace: c.namespace, EvalID: c.evalID, NodeID: p.Nodes[in.Node].ID, NodeName: p.Nodes[in.Node].Name,
		JobID: c.jobID, JobVersion: c.jobVersion, TaskGroup: c.group, AllocatedResources: c.resources, Metrics: c.metrics,
		DesiredStatus: structs.AllocDesiredRun, ClientStatus: structs.AllocClientPending,
		PreviousAllocation: in.PreviousAllocation, RescheduleTracker: in.RescheduleTracker, Requeues: int(in.Requeues), RequeueReason: in.RequeueReason,
		CreateTime: c.createTime, ModifyTime: c.createTime,
	}
	var buf [128]byte
	a.Name = string(appendName(buf[:0], c, in.Index))
	if g := c.gang; g != nil {
		a.Gang = &structs.AllocGang{Rank: in.Rank, Size: g.Size, Hosts: g.Hosts, Level: g.Level}
	}
	return a
}

// newRow makes a's row, but for what its client reported, with what b shares. was is the row that it follows, whose
// parts are shared as far as they stay; it may be nil.
func newRow(a *structs.Allocation, b *Batch, node *nodeRef, was *Row) *Row {
	r := &Row{
		batch: b, node: node, modify: a.ModifyIndex, allocModify: a.AllocModifyIndex, modifyTime: a.ModifyTime,
		desired: statusOf(a.DesiredStatus), client: statusOf(a.ClientStatus),
	}
	n := extra{
		description: a.DesiredDescription, transition: a.DesiredTransition, deploymentID: a.DeploymentID,
		followupEval: a.FollowupEvalID, previous: a.PreviousAllocation, next: a.NextAllocation,
		preemptedBy: a.PreemptedByAllocation, reschedule: a.RescheduleTracker, requeues: a.Requeues, requeueReason: a.RequeueReason,
		suspendedAt: a.SuspendedAt,
	}
	var ok bool
	if r.id, ok = indexkey.ParseUUID(a.ID); !ok {
		n.id = a.ID
	}
	if r.desired == otherStatus {
		n.desired = a.DesiredStatus
	}
	if r.client == otherStatus {
		n.client = a.ClientStatus
	}
	r.setName(a, &n)
	r.setOwn(a, &n)
	r.setPreempted(a, &n, was)
	switch {
	case n == extra{}:
	case was != nil && was.extra != nil && *was.extra == n:
		r.extra = was.extra
	default:
		kept := n // so that n itself need not be on the heap
		r.extra = &kept
	}
	return r
}

func (*Row) setPreempted(a *structs.Allocation, n *extra, was *Row) {
	if a.PreemptedAllocations == nil {
		return
	}
	if was != nil && was.extra != nil && was.extra.preempted != nil && sameList(*was.extra.preempted, a.PreemptedAllocations) {
		n.preempted = was.extra.preempted
		return
	}
	list := a.PreemptedAllocations
	n.preempted = &list // not the whole allocation
}

func (r *Row) setName(a *structs.Allocation, n *extra) {
	index := structs.AllocIndex(a.Name)
	r.index = int32(index) // at most 10 digits: one that does not fit has another name
	var buf [128]byte
	if string(appendName(buf[:0], r.batch, int(r.index))) != a.Name {
		n.named, n.name, r.index = true, a.Name, 0
	}
}

// setOwn notes what the allocation has otherwise than its batch.
func (r *Row) setOwn(a *structs.Allocation, n *extra) {
	if a.AllocatedResources != r.batch.resources {
		n.own |= ownResources
		n.resources = a.AllocatedResources
	}
	if a.Metrics != r.batch.metrics {
		n.own |= ownMetrics
		n.metrics = a.Metrics
	}
	switch g := r.batch.gang; {
	case a.Gang == nil && g == nil:
	case a.Gang != nil && g != nil && a.Gang.Rank == int(uint16(a.Gang.Rank)) && sameGang(a.Gang, g): // compared
		r.rank = uint16(a.Gang.Rank) // compared
	default:
		n.own |= ownGang
		n.gang = a.Gang
	}
}

// sameGang reports whether two members' gangs are alike, but for the rank.
func sameGang(a, b *structs.AllocGang) bool {
	return a.Size == b.Size && a.Level == b.Level && (sameList(a.Hosts, b.Hosts) ||
		(a.Hosts == nil) == (b.Hosts == nil) && slices.Equal(a.Hosts, b.Hosts))
}

// sameList reports whether two lists are one.
func sameList(a, b []string) bool {
	return len(a) == len(b) && (a == nil) == (b == nil) && (len(a) == 0 || &a[0] == &b[0])
}

// Unexplained returns a job's batch without what states how its nodes were found, unless instances are chosen by it when nodes come back.
func Unexplained(b *structs.PlacementBatch, job *structs.Job) *structs.PlacementBatch {
	if job == nil {
		return b
	}
	if g := job.LookupTaskGroup(b.Group); g == nil || g.Disconnect != nil {
		return b
	}
	brief := *b
	brief.Metrics = nil
	return &brief
}
