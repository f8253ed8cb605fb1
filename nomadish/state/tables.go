package state

import (
	"github.com/hashicorp/go-memdb"

	"github.com/nomadish/nomadish/nomadish/state/internal/claimtable"
	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/nomadish/state/internal/projecthistory"
	"github.com/nomadish/nomadish/nomadish/state/internal/projecttable"
	"github.com/nomadish/nomadish/nomadish/state/internal/workflowtable"
	"github.com/nomadish/nomadish/structs"
)

// The tables, as TableIndex names them.
const (
	TableNodes       = "nodes"
	TableJobs        = "jobs"
	TableVersions    = "job_versions" // older versions; the newest is in TableJobs
	TableSummaries   = "job_summaries"
	TableSubmissions = "job_submissions"
	TableScaling     = "scaling_events"
	TableEvals       = "evals"
	TableAllocs      = "allocs"
	TableConfig      = "scheduler_config"
	TableAutopilot   = "autopilot_config"
	TableCluster     = "cluster_meta"
	TableHistory     = "history"
	TableSigningKeys = "signing_keys"
	TableNodePools   = "node_pools" // without those that are built in
	TableNamespaces  = "namespaces" // without the default one while nobody has changed it
	// TableVirtualClusters is what namespaces own.
	TableVirtualClusters = claimtable.VirtualClusters
	// TableClaimsTime is the time up to which what is owned has been moved on: one row.
	TableClaimsTime = claimtable.ClaimsTime
	// TableExchanges is offers and bids that are not settled.
	TableExchanges = claimtable.Exchanges
	// TableProjects and what follows is of projects: the weeks of their calendars, the last edits of these, and flows.
	TableProjects     = projecttable.Projects
	TableProjectWeeks = projecttable.Weeks
	TableProjectEdits = projecttable.Edits
	TableFlows        = projecttable.Flows
	// TableProjectUsage is what projects had and used, by week, TableProjectHistory their last runs.
	TableProjectUsage   = projecthistory.Usage
	TableProjectHistory = projecthistory.Runs
	// TableWorkflows is workflows, each with its last run.
	TableWorkflows = workflowtable.Workflows
	// TableLicenses is how many there are of each license.
	TableLicenses = "licenses"
	// TableReservations is room that is kept for requests that wait, by node.
	TableReservations = "reservations"
	// TableRequests is what waits in the queue, and what is remembered of what did.
	TableRequests = "asks"

	tableIndexes = "index" // in snapshots: the marks
)

// Tables lists the tables that TableIndex knows.
func Tables() []string {
	return []string{
		TableAllocs, TableRequests, TableAutopilot, TableCluster, TableConfig, TableEvals, TableHistory, TableJobs, TableNodePools, TableNodes, TableReservations,
		TableScaling, TableSigningKeys, TableSubmissions, TableSummaries, TableVersions,
		TableNamespaces, TableVirtualClusters, TableClaimsTime, TableExchanges,
		TableProjects, TableProjectWeeks, TableProjectEdits, TableFlows, TableProjectUsage, TableProjectHistory,
		TableWorkflows, TableLicenses,
	}
}

// Secondary indexes.
const (
	byID      = memtable.ByID
	byPrefix  = memtable.ByPrefix
	byJob     = "job"
	byOpen    = "open"    // evaluations that are pending or blocked, by status
	byPerNode = "pernode" // jobs that run on every node
	byScaling = "scaling" // jobs of which a group has a scaling policy
	byWaiting = "waiting" // requests that wait
)

// Rows that have no type of their own in structs.
type (
	indexRow struct {
		Table string
		Index uint64
	}
	submissionRow struct {
		Namespace  string
		JobID      string
		Version    uint64
		Submission *structs.JobSubmission
	}
	scalingRow struct {
		Namespace   string
		JobID       string
		Groups      map[string][]*structs.ScalingEvent // newest first
		ModifyIndex uint64
	}
)

// The helpers of memtable as the schema names them.

func key(parts ...string) []byte { return memtable.Key(parts...) }

func uniqueBy[T any](of func(*T) []byte) *memdb.IndexSchema { return memtable.UniqueBy(of) }

func also[T any](name string, of func(*T) []byte) *memdb.IndexSchema { return memtable.Also(name, of) }

// schema is the tables of memdb: all but the allocations and the
// history, see alloctable.Table and historytable.Table, and what every entry would change, see
// marks and jobcount.Tally.
func schema() *memdb.DBSchema {
	tables := map[string]*memdb.TableSchema{}
	table := func(name string, indexes ...*memdb.IndexSchema) {
		t := &memdb.TableSchema{Name: name, Indexes: map[string]*memdb.IndexSchema{}}
		for _, x := range indexes {
			t.Indexes[x.Name] = x
		}
		tables[name] = t
	}
	table(TableNodes, uniqueBy(func(n *structs.Node) []byte { return key(n.ID) }))
	table(TableJobs,
		uniqueBy(func(j *structs.Job) []byte { return key(j.Namespace, j.ID) }),
		also(byPerNode, func(j *structs.Job) []byte {
			if !j.PerNode() || j.Stop || j.IsPeriodic() || j.IsParameterized() {
				return nil
			}
			return key(byPerNode)
		}),
		also(byScaling, func(j *structs.Job) []byte {
			if !j.HasScaling() {
				return nil
			}
			return key(byScaling)
		}))
	table(TableVersions, uniqueBy(func(j *structs.Job) []byte { return memtable.KeyNumber(j.Version, j.Namespace, j.ID) }))
	table(TableSummaries, uniqueBy(func(s *structs.JobSummary) []byte { return key(s.Namespace, s.JobID) }))
	table(TableSubmissions, uniqueBy(func(r *submissionRow) []byte { return memtable.KeyNumber(r.Version, r.Namespace, r.JobID) }))
	table(TableScaling, uniqueBy(func(r *scalingRow) []byte { return key(r.Namespace, r.JobID) }))
	table(TableEvals,
		uniqueBy(func(e *structs.Evaluation) []byte { return key(e.ID) }),
		also(byJob, func(e *structs.Evaluation) []byte { return key(e.Namespace, e.JobID) }),
		also(byOpen, func(e *structs.Evaluation) []byte {
			if e.Terminal() {
				return nil
			}
			return key(e.Status)
		}))
	table(TableReservations, uniqueBy(func(r *structs.Reservation) []byte { return key(r.NodeID) }))
	table(TableRequests, uniqueBy(requestKey), &memdb.IndexSchema{
		Name: byWaiting, Unique: true, AllowMissing: true, Indexer: memtable.Indexer[structs.PendingRequest]{Of: func(a *structs.PendingRequest) []byte {
			if a.Missing == 0 {
				return nil
			}
			return requestKey(a)
		}},
	})
	table(TableConfig, uniqueBy(func(*structs.SchedulerConfiguration) []byte { return key(TableConfig) }))
	table(TableCluster, uniqueBy(func(*structs.ClusterMeta) []byte { return key(TableCluster) }))
	table(TableSigningKeys, uniqueBy(func(k *structs.SigningKey) []byte { return key(k.KeyID) }))
	table(TableNamespaces, uniqueBy(func(n *structs.Namespace) []byte { return key(n.Name) }))
	table(TableNodePools, uniqueBy(func(p *structs.NodePool) []byte { return key(p.Name) }))
	table(TableLicenses, uniqueBy(func(l *structs.License) []byte { return key(l.Name) }))
	for _, more := range []map[string][]*memtable.Index{claimtable.Indexes(), projecttable.Indexes(), projecthistory.Indexes(), workflowtable.Indexes()} {
		for name, indexes := range more { // order does not matter: each table is by itself
			table(name, indexes...)
		}
	}
	table(TableAutopilot, uniqueBy(func(*structs.AutopilotConfiguration) []byte { return key(TableAutopilot) }))
	return &memdb.DBSchema{Tables: tables}
}
