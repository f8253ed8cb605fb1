package world

import (
	"github.com/nomadish/nomadish/scheduler/internal/license"
	"github.com/nomadish/nomadish/structs"
)

// Licenses are the licenses of the World and who uses them; nil: there are none. What is suspended uses none: it gives them back as it does its
// cores.
func (w *World) Licenses() *license.Book { return w.licenses }

// LicenseEdit is an Edit as what changes licenses, and looks at them.
type LicenseEdit struct{ E *Edit }

// Set states how many there are of a license.
func (x LicenseEdit) Set(name string, count int64) {
	x.E.from, x.E.w.licenses = nil, x.E.w.licenses.Set(x.E.tok, name, count)
}

// Drop forgets a license. What uses it stays counted.
func (x LicenseEdit) Drop(name string) {
	x.E.from, x.E.w.licenses = nil, x.E.w.licenses.Drop(x.E.tok, name)
}

// Place counts what an instance uses that an evaluation places.
func (x LicenseEdit) Place(u *Usage) { x.use("", u, 1) }

func (x LicenseEdit) use(id string, u *Usage, sign int64) {
	if !u.IsSuspended {
		x.Reserve(id, u.Owner.Job, &u.Owner.Terms, sign)
	}
}

// Lacks returns which license a usage finds too few of; "": none. recognised reports that the submission check recognised its job.
func (x LicenseEdit) Lacks(u *Usage, recognised bool) string {
	return x.LacksFor(&u.Owner.Terms, 1, recognised)
}

// LacksFor returns which license so many instances find too few of by their terms; "": none.
func (x LicenseEdit) LacksFor(t *structs.AllocTerms, instances int, recognised bool) string {
	if t.Licenses == nil {
		return ""
	}
	return x.E.w.licenses.Lacks(t.Licenses, int64(instances), x.TakerOf(t, recognised))
}

// TakerOf returns an instance by its terms as a taker of licenses; recognised reports that the submission check recognised its job.
func (x LicenseEdit) TakerOf(t *structs.AllocTerms, recognised bool) *license.Taker {
	from := t.BorrowsFrom()
	return &license.Taker{Workflow: t.LicensesOf(), Borrows: from, Precedes: t.Claim != "" || recognised, NoRoom: WorkflowEdit(x).NoRoom(from)}
}

// LacksToReserve returns why a workflow cannot reserve licenses in place of what it has reserved; "": it can.
func (x LicenseEdit) LacksToReserve(was *structs.WorkflowClaim, of []structs.RequestedLicense) string {
	return x.E.w.licenses.LacksToReserve(was, of)
}

// Reserve counts what so many instances of a job will use by their terms.
func (x LicenseEdit) Reserve(id, job string, t *structs.AllocTerms, instances int64) {
	if t.Licenses != nil {
		x.E.from, x.E.w.licenses = nil, x.E.w.licenses.Use(x.E.tok, id, job, t, instances)
	}
}
