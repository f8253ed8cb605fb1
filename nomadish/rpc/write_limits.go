package rpc

import (
	"encoding/json"

	"github.com/nomadish/nomadish/structs"
)

// What people may write beside a job. It is kept with the job or the node, and shown in lists.
const (
	maxNote = 1 << 10 // bytes of a message
	maxMeta = 4 << 10 // bytes of meta, as JSON
)

// checkCount returns an error if a job's groups have more instances together than this cluster allows. The count of the group
// scaled, if it is not nil, counts as count.
func (e *Endpoints) checkCount(job *structs.Job, scaled *structs.TaskGroup, count int64) error {
	if e.JobMaxCount <= 0 {
		return nil
	}
	total := int64(0)
	for _, g := range job.TaskGroups {
		n := int64(g.Count)
		if g == scaled {
			n = count
		}
		if n > int64(e.JobMaxCount) || total+n > int64(e.JobMaxCount) {
			return structs.Errorf(structs.CodeBadRequest, "job %q > group %q: count %d: this cluster allows at most %d instances of a job, and its other groups before it have %d (job_max_count)",
				job.ID, g.Name, n, e.JobMaxCount, total)
		}
		total += n
	}
	return nil
}

// checkScalingNote bounds what is kept of a scaling beside its count.
func checkScalingNote(args *structs.JobScaleRequest) error {
	if len(args.Message) > maxNote {
		return structs.Errorf(structs.CodeBadRequest, "Message: must be at most %d bytes, not %d", maxNote, len(args.Message))
	}
	return checkMeta(args.Meta)
}

// checkMeta bounds the meta of an event.
func checkMeta[V any](meta map[string]V) error {
	if len(meta) == 0 {
		return nil
	}
	text, err := json.Marshal(meta)
	if err != nil {
		return structs.Errorf(structs.CodeBadRequest, "Meta: %w", err)
	}
	if len(text) > maxMeta {
		return structs.Errorf(structs.CodeBadRequest, "Meta: must be at most %d bytes as JSON, not %d", maxMeta, len(text))
	}
	return nil
}
