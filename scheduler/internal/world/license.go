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
	if of := u.Owner.Terms.Licenses; of != nil && !u.IsSuspended {
		x.E.w.licenses = x.E.w.licenses.Use(x.E.tok, id, of, sign)
	}
}

// Lacks returns which license a usage finds too few of; "": none.
func (x LicenseEdit) Lacks(u *Usage) string { return x.LacksFor(u.Owner.Terms.Licenses, 1) }

// LacksFor returns which license so many instances find too few of; "": none.
func (x LicenseEdit) LacksFor(of *structs.LicenseTerms, instances int) string {
	if of == nil {
		return ""
	}
	return x.E.w.licenses.Lacks(of, int64(instances))
}

// Reserve counts what so many instances will use.
func (x LicenseEdit) Reserve(of *structs.LicenseTerms, instances int) {
	if of != nil {
		x.E.w.licenses = x.E.w.licenses.Use(x.E.tok, "", of, int64(instances))
	}
}
