package structs

import "time"

// The rules that a state is checked by: what must be true of it whatever has happened.
const (
	// CheckRoom: no node provides more processor, memory or disk than it has.
	CheckRoom = "room"
	// CheckCores: no core is owned twice, or by a task on a node that does not have it.
	CheckCores = "cores"
	// CheckPorts: no port is given twice, or though its node keeps it.
	CheckPorts = "ports"
	// CheckDevices: no device is given beyond the whole of it, or that its node does not have.
	CheckDevices = "devices"
	// CheckGangs: no gang runs with fewer members than it needs.
	CheckGangs = "gangs"
	// CheckStopped: nothing runs on long after it was stopped.
	CheckStopped = "stopped"
	// CheckOrphans: nothing runs that belongs to no job, or on a node that is gone.
	CheckOrphans = "orphans"
	// CheckSurplus: no more runs than is requested, and no instance twice.
	CheckSurplus = "surplus"
	// CheckCounters: summaries, tallies and job statuses equal a count of the rows.
	CheckCounters = "counters"
	// CheckWorld: what the scheduler sees equals what the tables contain.
	CheckWorld = "world"
	// CheckRequests: the queue's rows are of jobs that want them, and each waits in an evaluation.
	CheckRequests = "requests"
	// CheckBlocked: blocked evaluations wait for something that is missing.
	CheckBlocked = "blocked"
	// CheckReservations: room is reserved for requests that wait, and ends.
	CheckReservations = "reservations"
	// CheckIndexes: no row is newer than its table, and no table newer than the state.
	CheckIndexes = "indexes"
	// CheckClaims: what is owned and bound agrees with the nodes and with what runs, and leaves every owner what it owns.
	CheckClaims = "claims"
)

// CheckRules lists the rules in the order in which they are shown.
func CheckRules() []string {
	return []string{
		CheckRoom, CheckCores, CheckPorts, CheckDevices, CheckGangs, CheckStopped, CheckOrphans, CheckSurplus, CheckCounters,
		CheckWorld, CheckRequests, CheckBlocked, CheckReservations, CheckIndexes, CheckClaims,
	}
}

type (
	// CheckRequest requests that a server check one consistent snapshot of its state.
	CheckRequest struct{ QueryOptions }
	// CheckReply answers it.
	CheckReply struct {
		Report *CheckReport
		QueryMeta
	}
)

// CheckReport is what a check of a state came to.
type CheckReport struct {
	// Server is the name of the server whose state it is.
	Server string
	// StateIndex is the index of the last log entry that the state holds.
	StateIndex uint64
	// Hash is over all that is kept: equal on servers that are at one index.
	Hash string
	// Took is how long the check took, the hash included.
	Took time.Duration
	// Rows counts what was looked at, by table.
	Rows map[string]int
	// Faults are what must not be. Notes are what looks like it and may have a good
	// reason, as when a node came back with less than it had.
	Faults []CheckFinding
	Notes  []CheckFinding
	// Found counts all of both by rule: of each rule only the first CheckKept are listed.
	Found map[string]int
}

// CheckKept bounds the findings that are listed of one rule.
const CheckKept = 100

// Healthy reports whether nothing is wrong.
func (r *CheckReport) Healthy() bool { return len(r.Faults) == 0 }

// CheckFinding is one thing that a check found.
type CheckFinding struct {
	Rule string // one of CheckRules
	// Kind and ID name what it is found of: "node", "job" (as namespace/id, and
	// "request" as namespace/id/group), "allocation", "evaluation"; "state" has no ID.
	Kind string
	ID   string `json:",omitempty"`
	What string
}
