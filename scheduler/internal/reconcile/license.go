package reconcile

import "github.com/nomadish/nomadish/scheduler/internal/world"

// LacksLicense returns which license the gang's first members find too few of, all together, on an edit that stays as it is; "": none.
func (gw *GangWork) LacksLicense(e *world.Edit) string {
	var edit *world.Edit
	for _, work := range gw.Works {
		of := work.Group.Licenses()
		if of == nil {
			continue
		}
		if edit == nil {
			edit = e.World().Edit()
		}
		x := world.LicenseEdit{E: edit}
		if why := x.LacksFor(of, work.First); why != "" {
			return why
		}
		x.Reserve(of, work.First)
	}
	return ""
}
