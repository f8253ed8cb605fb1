package rowcheck

import (
	"math"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/structs"
)

// MaxAged bounds PendingRequest.Aged, so that no clock or setting can make it overflow.
const MaxAged = 1 << 40

// RequestUpdate refuses what cannot be a row.
func RequestUpdate(u *structs.RequestUpdate) error {
	if u == nil {
		return structs.Errorf(structs.CodeBadRequest, "pending request: missing")
	}
	return Request(&structs.PendingRequest{
		Namespace: u.Namespace, JobID: u.JobID, Group: u.Group, Missing: u.Missing, Since: max(1, u.Since),
	})
}

// Request refuses a row that no plan could have made.
func Request(a *structs.PendingRequest) error {
	if err := JobID(a.Namespace, a.JobID); err != nil {
		return structs.Errorf(structs.CodeBadRequest, "pending request: %w", err)
	}
	if err := memtable.CheckKey("group", a.Group); err != nil {
		return structs.Errorf(structs.CodeBadRequest, "pending request of job %q: %w", a.JobID, err)
	}
	switch {
	case a.Missing < 0 || a.Missing > math.MaxInt32:
		return structs.Errorf(structs.CodeBadRequest, "pending request of job %q, group %q: %d missing: allowed are 0 to %d", a.JobID, a.Group, a.Missing, math.MaxInt32)
	case a.Aged < 0 || a.Aged > MaxAged || a.Requeued < 0 || a.Requeued > math.MaxInt32:
		return structs.Errorf(structs.CodeBadRequest, "pending request of job %q, group %q: it has waited %d cycles and was requeued %d times, which is impossible",
			a.JobID, a.Group, a.Aged, a.Requeued)
	case a.Since < 0 || a.Missing > 0 && a.Since == 0:
		return structs.Errorf(structs.CodeBadRequest, "pending request of job %q, group %q: it waits since %d, which is impossible", a.JobID, a.Group, a.Since)
	}
	return nil
}

// RequestRow is Request for a row of a snapshot.
func RequestRow(a *structs.PendingRequest) error {
	if err := Request(a); err != nil {
		return err
	}
	if a.Missing == 0 && (a.Since != 0 || a.EvalID != "") || a.Missing == 0 && a.Aged == 0 && a.Requeued == 0 {
		return structs.Errorf(structs.CodeBadRequest, "pending request of job %q, group %q: it does not wait, but its row states otherwise or nothing", a.JobID, a.Group)
	}
	return nil
}
