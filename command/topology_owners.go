package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// maxOwners is how many owners are listed, unless everything is requested: those with most devices bound.
const maxOwners = 32

// owner is for whom a cell is bound, unless that is as of the cell around it.
func (p *topologyPrinter) owner(o, around structs.CellOwner) string {
	if o.Owner == "" || o == around {
		return ""
	}
	var marks []string
	if o.Pinned {
		marks = append(marks, "pinned")
	}
	if o.Away {
		marks = append(marks, "away")
	}
	text := "  owner " + o.Owner
	if len(marks) > 0 {
		text += " (" + strings.Join(marks, ", ") + ")"
	}
	return text
}

// ownedApart reports whether anything in a cell has another owner than the cell itself.
func ownedApart(c *structs.CellView, owner structs.CellOwner) bool {
	return slices.ContainsFunc(c.Members, func(d *structs.DeviceView) bool { return d.Owner != "" && d.CellOwner != owner }) ||
		slices.ContainsFunc(c.Cells, func(kid *structs.CellView) bool { return ownedApart(kid, owner) })
}

// mostBound orders owners by how many devices are bound for them.
func mostBound(a, b structs.OwnerCounts) int { return cmp.Compare(b.Bound, a.Bound) }

// bound counts the devices of each owner's bound cells where the cells themselves are not drawn.
func (p *topologyPrinter) bound(list []structs.OwnerCounts) string {
	list = slices.DeleteFunc(slices.Clone(list), func(o structs.OwnerCounts) bool { return o.Bound == 0 })
	slices.SortStableFunc(list, mostBound)
	parts := make([]string, 0, len(list))
	for _, o := range list {
		text := fmt.Sprintf("%s %d", o.Owner, o.Bound)
		if o.Lent > 0 {
			text += " " + p.e.style.Yellow(fmt.Sprintf("(%d lent)", o.Lent))
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return ""
	}
	if rest := len(parts) - maxNamed; rest > 0 && !p.verbose {
		parts = append(parts[:maxNamed], plural(rest, "other owner"))
	}
	return "  bound: " + strings.Join(parts, ", ")
}

// ownersIn are the owners in a cell of the site.
func (p *topologyPrinter) ownersIn(site string) []structs.OwnerCounts {
	list := ownersOfNodes(p.nodes[site])
	for _, s := range p.sites[site] {
		for _, o := range p.ownersIn(s.ID) {
			list = structs.MergeOwner(list, o)
		}
	}
	return list
}

func ownersOfNodes(nodes []*structs.TopologyNode) (list []structs.OwnerCounts) {
	for _, n := range nodes {
		for _, o := range n.Owners {
			list = structs.MergeOwner(list, o)
		}
	}
	return list
}

// printOwners prints a line for each owner.
func (p *topologyPrinter) printOwners() {
	if len(p.t.Owners) == 0 {
		return
	}
	e := p.e
	list, rest := slices.Clone(p.t.Owners), 0
	if len(list) > maxOwners && !p.verbose {
		slices.SortStableFunc(list, mostBound)
		list, rest = list[:maxOwners], len(list)-maxOwners
	}
	rows := [][]string{{"Owner", "Owned", "Bound", "Guaranteed", "Lent"}}
	for _, o := range list {
		rows = append(rows, []string{o.Owner, fmt.Sprint(o.Owned), fmt.Sprint(o.Bound), fmt.Sprint(o.Guaranteed), fmt.Sprint(o.Lent)})
	}
	e.printf("\n%s\n", e.style.Bold("Owners"))
	ui.Table(e.out, rows)
	if rest > 0 {
		e.printf("%s: nomadish vc list\n", plural(rest, "other owner"))
	}
	e.printf("Numbers are devices. Allocations that are not guaranteed run until an owner needs their devices.\n")
}
