package reconcile

import "github.com/nomadish/nomadish/structs"

// Requests returns what is missing of each group of a job once a plan has been committed by which so many wait, where that is
// not what is known of it already. since is since when it has been pending. evalID is what the rest waits in; "": none.
func Requests(job *structs.Job, known []*structs.PendingRequest, queued map[string]int, since int64, evalID string) (list []*structs.RequestUpdate) {
	if job == nil || job.Stopped() {
		return nil // the job's requests end with it
	}
	rows := map[string]*structs.PendingRequest{}
	for _, row := range known {
		rows[row.Group] = row
	}
	for _, g := range job.TaskGroups {
		missing, row := queued[g.Name], rows[g.Name]
		u := &structs.RequestUpdate{Namespace: job.Namespace, JobID: job.ID, Group: g.Name, Missing: missing}
		if missing > 0 {
			u.Since, u.EvalID = since, evalID
		}
		if row == nil && missing == 0 || row != nil && row.Missing == missing && row.EvalID == u.EvalID {
			continue
		}
		list = append(list, u)
	}
	return list
}
