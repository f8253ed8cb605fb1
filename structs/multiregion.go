package structs

import "maps"

// InRegion is the copy of a multiregion job that one of its regions gets: with that region's count in
// the groups whose own is 0, its datacenters, node pool and meta. nil: the job does not run there.
func (j *Job) InRegion(name string) *Job {
	if j.Multiregion == nil {
		return nil
	}
	for _, r := range j.Multiregion.Regions {
		if r.Name == name {
			return j.copyFor(r)
		}
	}
	return nil
}

func (j *Job) copyFor(r *MultiregionRegion) *Job {
	to := j.Copy()
	to.Region = r.Name
	for _, g := range to.TaskGroups {
		setZero(&g.Count, r.Count)
	}
	switch {
	case len(r.Datacenters) > 0:
		to.Datacenters = append([]string(nil), r.Datacenters...)
	case len(to.Datacenters) == 0:
		to.Datacenters = []string{DefaultDatacenter}
	}
	if r.NodePool != "" {
		to.NodePool = r.NodePool
	}
	if len(r.Meta) > 0 {
		if to.Meta == nil {
			to.Meta = map[string]string{}
		}
		maps.Copy(to.Meta, r.Meta)
	}
	return to
}

// RegionNames are the regions that a multiregion job runs in, as it states them; none for others.
func (j *Job) RegionNames() []string {
	if j.Multiregion == nil {
		return nil
	}
	names := make([]string, 0, len(j.Multiregion.Regions))
	for _, r := range j.Multiregion.Regions {
		names = append(names, r.Name)
	}
	return names
}

// What Multiregion.Strategy.OnFailure can be.
const (
	OnFailureAll   = "fail_all"
	OnFailureLocal = "fail_local"
)

// JobRegionReply describes what came of a multiregion job in one of its regions.
type JobRegionReply struct {
	Region         string
	EvalID         string
	JobModifyIndex uint64
	Done           bool   // false: see Error; empty: it was not tried
	Error          string `json:",omitempty"`
}
