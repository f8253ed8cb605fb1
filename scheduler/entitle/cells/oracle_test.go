package cells

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
)

// model is a chain as a list of what was stated, with everything else worked out anew from the words of semantics part 2.
type model struct {
	levels []Level
	sites  []string
	nodes  map[string]Node
	users  map[string][]User
	lots   []lot
	bound  []Binding // Uses at least 1, or pinned
}

// physical is a cell that is there: its devices over all nodes, in order.
type physical struct {
	cell    Cell
	kind    Kind
	devices []device
}

type device struct {
	node string
	at   int
}

func (m *model) ids() []string {
	var ids []string
	for id := range m.nodes {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	return ids
}

// all returns every cell of the chain, complete or not.
func (m *model) all() []physical {
	var all []physical
	total := m.levels[len(m.levels)-1].Devices
	bySite := map[string][]string{}
	levelOf := map[string]int{}
	for _, id := range m.ids() {
		for l, level := range m.levels {
			for i := range total / level.Devices {
				p := physical{cell: Cell{Node: id, Index: i}, kind: Kind{Level: l}}
				for d := range level.Devices {
					p.devices = append(p.devices, device{id, i*level.Devices + d})
				}
				all = append(all, p)
			}
		}
		key := ""
		sites := m.nodes[id].Sites
		for i := len(sites) - 1; i >= 0; i-- {
			if sites[i] != "" {
				key += fmt.Sprintf("/%d:%q", i, sites[i])
				bySite[key] = append(bySite[key], id)
				levelOf[key] = len(m.levels) + i
			}
		}
	}
	keys := make([]string, 0, len(bySite))
	for key := range bySite {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		p := physical{cell: Cell{Site: key}, kind: Kind{levelOf[key], len(bySite[key])}}
		for _, id := range bySite[key] {
			for d := range total {
				p.devices = append(p.devices, device{id, d})
			}
		}
		all = append(all, p)
	}
	return all
}

// parts describes what the nodes of a site cell are grouped into.
func (m *model) parts(key string) string {
	var list []string
	for _, p := range m.all() {
		if p.cell.Site == "" && p.kind.Level == len(m.levels)-1 && m.lowest(p.cell.Node) == key {
			list = append(list, "node")
		}
		if p.cell.Site != "" && parentOf(p.cell.Site) == key {
			list = append(list, fmt.Sprint(p.kind))
		}
	}
	sort.Strings(list)
	return fmt.Sprint(list)
}

func (m *model) lowest(id string) string {
	key := ""
	sites := m.nodes[id].Sites
	for i := len(sites) - 1; i >= 0; i-- {
		if sites[i] != "" {
			key += fmt.Sprintf("/%d:%q", i, sites[i])
		}
	}
	return key
}

func parentOf(key string) string {
	for i := len(key) - 1; i >= 0; i-- {
		if key[i] == '/' {
			return key[:i]
		}
	}
	return ""
}

// mixed reports whether cells of a kind differ in their parts.
func (m *model) mixed(k Kind) bool {
	seen := ""
	for _, p := range m.all() {
		if p.cell.Site == "" || p.kind != k {
			continue
		}
		parts := m.parts(p.cell.Site)
		if seen != "" && seen != parts {
			return true
		}
		seen = parts
	}
	return false
}

func (m *model) ready(p physical) bool {
	return !slices.ContainsFunc(p.devices, func(d device) bool { return !m.nodes[d.node].Ready })
}

// blocked returns the devices that no cell may have.
func (m *model) blocked(bound []Binding) map[device]bool {
	out := map[device]bool{}
	for id, n := range m.nodes {
		for d := range m.levels[len(m.levels)-1].Devices {
			if !n.Ready || n.Bad>>d&1 == 1 {
				out[device{id, d}] = true
			}
		}
	}
	for _, p := range m.all() {
		for _, b := range bound {
			if b.Cell == p.cell && b.Kind == p.kind && m.ready(p) {
				for _, d := range p.devices {
					out[d] = true
				}
			}
		}
	}
	return out
}

// embeds reports whether so many cells of each kind can be found side by side among what is not blocked.
func (m *model) embeds(want map[Kind]int, blocked map[device]bool) bool {
	byKind := map[Kind][]physical{}
	for _, p := range m.all() {
		if p.cell.Site != "" && want[p.kind] > 0 && m.mixed(p.kind) {
			continue
		}
		byKind[p.kind] = append(byKind[p.kind], p)
	}
	var kinds []Kind
	for k, n := range want {
		if n > 0 {
			kinds = append(kinds, k)
		}
	}
	slices.SortFunc(kinds, func(a, b Kind) int { return cmp.Or(b.Compare(a)) })
	used := map[device]bool{}
	var place func(at, left, from int) bool
	place = func(at, left, from int) bool {
		if left == 0 {
			if at++; at == len(kinds) {
				return true
			}
			left, from = want[kinds[at]], 0
		}
		cells := byKind[kinds[at]]
		for i := from; i+left <= len(cells); i++ {
			if slices.ContainsFunc(cells[i].devices, func(d device) bool { return used[d] || blocked[d] }) {
				continue
			}
			for _, d := range cells[i].devices {
				used[d] = true
			}
			if place(at, left-1, i+1) {
				return true
			}
			for _, d := range cells[i].devices {
				delete(used, d)
			}
		}
		return false
	}
	return len(kinds) == 0 || place(-1, 0, 0)
}

type right struct {
	owner string
	kind  Kind
}

// inUse returns what of each right is bound, or pinned to a cell that is not there at present.
func (m *model) inUse() map[right]int {
	inUse := map[right]int{}
	all := m.all()
	for _, b := range m.bound {
		there := slices.ContainsFunc(all, func(p physical) bool { return b.Cell == p.cell && b.Kind == p.kind && m.ready(p) })
		if b.Pinned || there {
			inUse[right{b.Owner, b.Kind}]++
		}
	}
	return inUse
}

// doomed returns the quota cells of each right that cannot be had: they are added in the order of admission while all embed.
func (m *model) doomed() (doomed map[right]int, counted map[Kind]int) {
	doomed, counted = map[right]int{}, map[Kind]int{}
	inUse, blocked := m.inUse(), m.blocked(m.bound)
	for _, l := range m.lots {
		r := right{l.owner, l.kind}
		for range l.count {
			if inUse[r] > 0 {
				inUse[r]--
				continue
			}
			counted[l.kind]++
			if !m.embeds(counted, blocked) {
				counted[l.kind]--
				doomed[r]++
			}
		}
	}
	return doomed, counted
}
