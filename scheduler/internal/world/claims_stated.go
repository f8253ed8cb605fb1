package world

import (
	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/structs"
)

// QuotaOf returns a claim as a World has it.
func QuotaOf(c *structs.CellClaim) Quota {
	q := Quota{
		Chain: ChainKey{c.NodePool, c.Vendor, c.Type, c.Model, c.Chain}, Level: c.Level, Size: c.Size, Count: c.Count, Order: c.Order,
	}
	for _, p := range c.Pins {
		q.Pins = append(q.Pins, cells.Cell{Node: p.NodeID, Index: p.Index, Site: p.Site})
	}
	return q
}

// QuotasOf returns claims as a World has them, without those that wait.
func QuotasOf(claims []structs.CellClaim) []Quota { return quotasOf(claims, false) }

// AllQuotasOf returns claims as a World has them, those that wait among them.
func AllQuotasOf(claims []structs.CellClaim) []Quota { return quotasOf(claims, true) }

func quotasOf(claims []structs.CellClaim, waiting bool) (list []Quota) {
	for i := range claims {
		if waiting || !claims[i].Waits {
			list = append(list, QuotaOf(&claims[i]))
		}
	}
	return list
}

// SetClaims states all that an owner owns, as SetQuotas does.
func SetClaims(e *Edit, owner string, claims []structs.CellClaim) {
	e.SetQuotas(owner, QuotasOf(claims))
}

// RestoreClaims states what everybody owns, as RestoreQuotas does.
func RestoreClaims(e *Edit, all map[string][]structs.CellClaim) {
	quotas := make(map[string][]Quota, len(all))
	for owner, claims := range all { // each has its own place: the order cannot show
		if list := QuotasOf(claims); len(list) > 0 {
			quotas[owner] = list
		}
	}
	e.RestoreQuotas(quotas)
}
