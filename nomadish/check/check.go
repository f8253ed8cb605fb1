package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// DefaultGrace is what is added to the times that a stopped allocation's tasks are
// given to end: for the way to the node and back.
const DefaultGrace = time.Minute

// Options are what the caller knows. The zero value is right for a check of what needs
// no time.
type Options struct {
	// Now is the caller's time, near that of the servers that made the log entries.
	// Zero: what needs a time is not looked at.
	Now time.Time
	// Grace is how much later than allowed something may be; 0: DefaultGrace.
	Grace time.Duration
	// FixedNodes reports that no node ever loses what it has: an allocation that exceeds its
	// node is then a fault even where the node has changed since, not a note.
	FixedNodes bool
}

// Run checks a snapshot. It fails only when ctx ends before it is done. The report's
// Server, Hash and Took are left to the caller.
func Run(ctx context.Context, snap *state.Snapshot, o Options) (*structs.CheckReport, error) {
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	c := &checker{
		ctx: ctx, snap: snap, opts: o, nodes: map[string]*node{}, jobs: map[structs.NamespacedID]*job{},
		report: &structs.CheckReport{StateIndex: snap.Index(), Rows: map[string]int{}, Found: map[string]int{}},
	}
	if err := snap.Export(c.row); err != nil {
		return nil, fmt.Errorf("check the state: %w", err)
	}
	for _, id := range c.nodeIDs {
		c.checkNode(c.nodes[id])
	}
	for _, id := range c.jobIDs {
		c.checkJob(c.jobs[id])
	}
	for _, r := range c.reservations {
		c.checkReservation(r)
	}
	c.checkTables()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("check the state: %w", err)
	}
	c.checkClaims()
	if err := snap.World().CheckClaims(); err != nil {
		c.fault(structs.CheckClaims, "virtual clusters", "", "%v", err)
	}
	for _, what := range snap.World().Diff(state.Rebuild(snap)) {
		c.fault(structs.CheckWorld, "state", "", "%s", what)
	}
	for _, what := range state.TableDifferences(snap) {
		rule := structs.CheckCounters
		if strings.HasPrefix(what, "pending request ") {
			rule = structs.CheckRequests
		}
		c.fault(rule, "state", "", "%s", what)
	}
	order := structs.CheckRules()
	for _, list := range [][]structs.CheckFinding{c.report.Faults, c.report.Notes} {
		slices.SortStableFunc(list, func(a, b structs.CheckFinding) int {
			return cmp.Compare(slices.Index(order, a.Rule), slices.Index(order, b.Rule))
		})
	}
	return c.report, nil
}

// checker is one check at work.
type checker struct {
	ctx    context.Context // it lives as long as one call
	snap   *state.Snapshot
	opts   Options
	report *structs.CheckReport
	rows   int

	nodes   map[string]*node
	nodeIDs []string // in the order in which they were met
	jobs    map[structs.NamespacedID]*job
	jobIDs  []structs.NamespacedID

	reservations []*structs.Reservation

	levels []structs.TopologyLevel // of cells above nodes, the lowest first
	sites  map[string]siteNodes    // by the cell's name
}

// finding files one. Of each rule only the first are kept.
func (c *checker) finding(to *[]structs.CheckFinding, rule, kind, id, format string, args ...any) {
	c.report.Found[rule]++
	if c.report.Found[rule] <= structs.CheckKept {
		*to = append(*to, structs.CheckFinding{Rule: rule, Kind: kind, ID: id, What: fmt.Sprintf(format, args...)})
	}
}

func (c *checker) fault(rule, kind, id, format string, args ...any) {
	c.finding(&c.report.Faults, rule, kind, id, format, args...)
}

func (c *checker) note(rule, kind, id, format string, args ...any) {
	c.finding(&c.report.Notes, rule, kind, id, format, args...)
}

// row takes one row of the state, in the order of Snapshot.Export: nodes and jobs, then
// evaluations, then reservations, requests and allocations, which look at those.
func (c *checker) row(table string, row any) error {
	c.rows++
	if c.rows%1024 == 0 && c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	c.report.Rows[table]++
	switch r := row.(type) {
	case *structs.Node:
		c.node(r.ID).spec = r
		c.index(table, "node", r.ID, r.CreateIndex, r.ModifyIndex)
	case *structs.Job:
		if table == state.TableJobs {
			c.job(r.NamespacedID()).setSpec(r)
		}
		c.index(table, "job", r.NamespacedID().String(), r.CreateIndex, r.ModifyIndex)
	case *structs.JobSummary:
		id := structs.NamespacedID{ID: r.JobID, Namespace: r.Namespace}
		c.job(id).summary = r
		c.index(table, "job", id.String(), r.CreateIndex, r.ModifyIndex)
	case *structs.Evaluation:
		c.evaluation(r)
	case *structs.Reservation:
		c.reservations = append(c.reservations, r)
		c.index(table, "node", r.NodeID, r.CreateIndex, r.CreateIndex)
	case *structs.PendingRequest:
		j := c.job(r.Job())
		j.requests = append(j.requests, r)
		c.index(table, "request", requestID(r), r.CreateIndex, r.ModifyIndex)
	case *structs.Allocation:
		c.allocation(r)
	}
	return nil
}

func requestID(a *structs.PendingRequest) string { return a.Job().String() + "/" + a.Group }

func (c *checker) node(id string) *node {
	n := c.nodes[id]
	if n == nil {
		n = &node{id: id}
		c.nodes[id] = n
		c.nodeIDs = append(c.nodeIDs, id)
	}
	return n
}

func (c *checker) job(id structs.NamespacedID) *job {
	j := c.jobs[id]
	if j == nil {
		j = &job{id: id, counted: map[string]structs.TaskGroupSummary{}, groups: map[string]*group{}}
		c.jobs[id] = j
		c.jobIDs = append(c.jobIDs, id)
	}
	return j
}

func (c *checker) evaluation(e *structs.Evaluation) {
	c.index(state.TableEvals, "evaluation", e.ID, e.CreateIndex, e.ModifyIndex)
	if e.Terminal() {
		return
	}
	j := c.job(e.Job())
	j.open = append(j.open, e)
}

func (c *checker) allocation(a *structs.Allocation) {
	c.index(state.TableAllocs, "allocation", a.ID, a.CreateIndex, a.ModifyIndex)
	if a.AllocModifyIndex > a.ModifyIndex {
		c.fault(structs.CheckIndexes, "allocation", a.ID, "the servers changed it last at index %d, and its last change was at %d",
			a.AllocModifyIndex, a.ModifyIndex)
	}
	j := c.job(structs.NamespacedID{ID: a.JobID, Namespace: a.Namespace})
	j.count(a)
	n := c.node(a.NodeID)
	if !a.Terminal() {
		n.take(a)
		n.claim(a)
		c.reserved(j, n, a)
	}
	if a.ServerTerminal() && !a.ClientTerminal() {
		c.stopped(n, a)
	}
}

// index checks a row's indexes; checkTables does so for the tables'.
func (c *checker) index(table, kind, id string, created, modified uint64) {
	switch {
	case created > modified:
		c.fault(structs.CheckIndexes, kind, id, "it was made at index %d, after its last change at %d", created, modified)
	case modified > c.snap.Index():
		c.fault(structs.CheckIndexes, kind, id, "it was changed at index %d, and the state is at %d", modified, c.snap.Index())
	case modified > c.snap.TableIndex(table):
		c.fault(structs.CheckIndexes, kind, id, "it was changed at index %d, and its table %s is at %d", modified, table, c.snap.TableIndex(table))
	}
}

func (c *checker) checkTables() {
	for _, table := range state.Tables() {
		// A table that never changed counts as 1, as reads need an index to wait for.
		if at := c.snap.TableIndex(table); at > max(1, c.snap.Index()) {
			c.fault(structs.CheckIndexes, "state", "", "table %s was changed at index %d, and the state is at %d", table, at, c.snap.Index())
		}
	}
}

// late reports whether a time, in Unix nanoseconds, is longer ago than allowed. Without a
// time of the caller's nothing is.
func (c *checker) late(since int64, allowed time.Duration) bool {
	return !c.opts.Now.IsZero() && c.opts.Now.Sub(time.Unix(0, since)) > allowed+c.opts.Grace
}
