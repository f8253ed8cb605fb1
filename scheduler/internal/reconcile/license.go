package reconcile

import (
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// LacksLicense returns which license the gang's first members find too few of, all together, on an edit that stays as it is; "": none.
// recognised reports that the submission check recognised their job.
func (gw *GangWork) LacksLicense(e *world.Edit, job *structs.Job, recognised bool) string {
	var edit *world.Edit
	for _, work := range gw.Works {
		of := feasible.Terms(job, work.Group)
		if of.Licenses == nil {
			continue
		}
		if edit == nil {
			edit = e.World().Edit()
		}
		x := world.LicenseEdit{E: edit}
		if why := x.LacksFor(of, work.First, recognised); why != "" {
			return why
		}
		x.Reserve("", job.ID, of, int64(work.First))
	}
	return ""
}

// Licenses returns what the gang's first members request of licenses, all together.
func (gw *GangWork) Licenses() []structs.RequestedLicense {
	var sum structs.WorkflowResources
	for _, work := range gw.Works {
		for _, l := range work.Group.Licenses().List() {
			sum.Add(structs.WorkflowResources{Licenses: map[string]int64{l.Name: l.Count * int64(work.First)}})
		}
	}
	return sum.LicenseList()
}
