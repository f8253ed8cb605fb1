package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// topologyPrinter draws a topology.
type topologyPrinter struct {
	e       *env
	t       *structs.Topology
	all     bool                               // every device, also of free cells
	verbose bool                               // whole IDs
	sites   map[string][]*structs.TopologySite // by parent
	nodes   map[string][]*structs.TopologyNode // with devices or a reservation, by site
	plain   map[string]int                     // nodes without either, by site
	drawn   int                                // nodes with devices
	lines   int                                // those of nodes

	flows map[string]string // the devices of the node that is being drawn that workflows have reserved, to the workflow
}

func newTopologyPrinter(e *env, t *structs.Topology, all, verbose bool) *topologyPrinter {
	p := &topologyPrinter{
		e: e, t: t, all: all, verbose: verbose, sites: map[string][]*structs.TopologySite{},
		nodes: map[string][]*structs.TopologyNode{}, plain: map[string]int{},
	}
	for _, s := range t.Sites {
		p.sites[s.Parent] = append(p.sites[s.Parent], s)
	}
	for _, n := range t.Nodes {
		if n.Devices > 0 {
			p.drawn++
		} else if n.Reservation == nil && n.Workflows == nil {
			p.plain[n.Site]++
			continue
		}
		p.lines++
		p.nodes[n.Site] = append(p.nodes[n.Site], n)
	}
	for _, list := range p.sites { // order does not matter: each is sorted by itself
		slices.SortFunc(list, func(a, b *structs.TopologySite) int {
			return cmp.Or(cmp.Compare(a.Level, b.Level), natural(a.Name, b.Name))
		})
	}
	for _, list := range p.nodes { // as above
		slices.SortFunc(list, func(a, b *structs.TopologyNode) int { return cmp.Or(natural(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	}
	return p
}

// branch is a line of the tree with what hangs below it.
type branch struct {
	text string
	kids []*branch
}

func (p *topologyPrinter) print() {
	e := p.e
	if len(p.t.Nodes) == 0 {
		e.printf("No nodes registered\n")
		return
	}
	if p.t.Devices == 0 {
		e.printf("No devices on %s\n", plural(len(p.t.Nodes), "node"))
	} else {
		e.printf("%s on %s: %s\n\n", plural(p.t.Devices, "device"), plural(p.drawn, "node"), p.counts(p.t.DeviceCounts))
	}
	for _, b := range p.below("", structs.CellOwner{}) {
		e.printf("%s\n", b.text)
		p.draw(b.kids, "")
	}
	if p.t.Devices == 0 {
		return
	}
	if p.all {
		p.printLinks()
	}
	p.printFree()
	p.printOwners()
}

func (p *topologyPrinter) printFree() {
	e := p.e
	e.printf("\n%s\n", e.style.Bold("Free Cells"))
	if len(p.t.FreeCells) == 0 {
		e.printf("None\n")
		return
	}
	rows, reserved := [][]string{{"Level", "Devices", "Cells", "Kind"}}, p.reservedCells()
	if len(reserved) > 0 {
		rows[0] = append(rows[0], "Reserved by Workflows")
	}
	for _, f := range p.t.FreeCells {
		row := []string{f.Level, fmt.Sprint(f.Size), fmt.Sprint(f.Count), f.Device}
		if f.Count = 0; len(reserved) > 0 {
			row = append(row, fmt.Sprint(reserved[f]))
		}
		rows = append(rows, row)
	}
	ui.Table(e.out, rows)
}

// reservedCells counts the free cells in which workflows have reserved devices, by what they are, of the nodes that were read with their devices.
func (p *topologyPrinter) reservedCells() map[structs.FreeCells]int {
	out := map[structs.FreeCells]int{}
	for _, n := range p.t.Nodes {
		flows := flowsOf(n)
		var look func(c *structs.CellView)
		look = func(c *structs.CellView) {
			if !c.FreeCell {
				for _, kid := range c.Cells {
					look(kid)
				}
				for _, d := range c.Members { // each that is free is a cell of its own
					if flows[d.ID] != "" && d.Healthy && !d.InUse() {
						out[structs.FreeCells{Device: d.Device, Level: d.Level, Size: 1}]++
					}
				}
				return
			}
			if kinds := kindsIn(c, nil); len(kinds) == 1 && len(flowsIn(c, flows)) > 0 {
				out[structs.FreeCells{Device: kinds[0], Level: c.Level, Size: c.Devices}]++
			}
		}
		if n.Cells != nil && len(flows) > 0 {
			look(n.Cells)
		}
	}
	return out
}

// flowsOf returns the devices of a node that workflows have reserved, each with its workflow. What is only kept as it comes free is not among them.
func flowsOf(n *structs.TopologyNode) map[string]string {
	out := map[string]string{}
	for _, part := range n.Workflows {
		if part.Pending {
			continue
		}
		for _, id := range part.DeviceIDs {
			out[id] = flowName(part)
		}
	}
	return out
}

// flowName names a workflow, with its namespace if that is not the default one.
func flowName(r *structs.ReservedPart) string {
	if r.Namespace != "" && r.Namespace != structs.DefaultNamespace {
		return r.Namespace + "/" + r.Workflow
	}
	return r.Workflow
}

// flowsIn returns for each device in a cell that a workflow has reserved the workflow.
func flowsIn(c *structs.CellView, flows map[string]string) (names []string) {
	for _, kid := range c.Cells {
		names = append(names, flowsIn(kid, flows)...)
	}
	for _, d := range c.Members {
		if by := flows[d.ID]; by != "" {
			names = append(names, by)
		}
	}
	return names
}

// reservedIn returns for which workflows devices in a free cell are reserved; empty: none.
func (p *topologyPrinter) reservedIn(c *structs.CellView) string {
	names := flowsIn(c, p.flows)
	if len(names) == 0 {
		return ""
	}
	count, text := len(names), "  "
	if count < c.Devices {
		text += fmt.Sprintf("%d of them ", count)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return p.e.style.Yellow(text + "reserved by " + map[bool]string{true: "workflow ", false: "workflows "}[len(names) == 1] + strings.Join(names, ", "))
}

func (p *topologyPrinter) draw(branches []*branch, indent string) {
	for i, b := range branches {
		fork, more := "├─ ", "│  "
		if i == len(branches)-1 {
			fork, more = "└─ ", "   "
		}
		p.e.printf("%s%s%s\n", indent, fork, b.text)
		p.draw(b.kids, indent+more)
	}
}

// below is what hangs below a cell of the site, which is bound for an owner, or stands at the top.
func (p *topologyPrinter) below(site string, owner structs.CellOwner) []*branch {
	var out []*branch
	for _, s := range p.sites[site] {
		text := p.e.style.Bold(s.Level+" "+s.Name) + p.owner(s.CellOwner, owner) + "  " + plural(s.Nodes, "node")
		if s.Devices > 0 {
			text += ", " + plural(s.Devices, "device") + ": " + p.counts(s.DeviceCounts)
		}
		if !p.eachNode() {
			text += p.bound(p.ownersIn(s.ID))
		}
		b := &branch{text: text}
		if s.Devices > 0 || p.lines > p.drawn {
			b.kids = p.below(s.ID, cmp.Or(s.CellOwner, owner))
		}
		out = append(out, b)
	}
	if p.eachNode() {
		for _, n := range p.nodes[site] {
			out = append(out, p.node(n, owner))
		}
	} else {
		many := p.many(p.nodes[site])
		if site == "" && len(many) > 0 {
			many[0].text += p.bound(ownersOfNodes(p.nodes[site]))
		}
		out = append(out, many...)
	}
	if k := p.plain[site]; k > 0 && p.t.Devices > 0 {
		out = append(out, &branch{text: plural(k, "node") + " without devices"})
	}
	return out
}

// eachNode reports whether every node with devices gets a line of its own.
func (p *topologyPrinter) eachNode() bool { return p.lines <= topologyLines || p.all }

// many is nodes in one line, or two.
func (p *topologyPrinter) many(nodes []*structs.TopologyNode) []*branch {
	devices, reserved, workflows := 0, 0, 0
	for _, n := range nodes {
		if n.Devices > 0 {
			devices++
		}
		if n.Reservation != nil {
			reserved++
		}
		if n.Workflows != nil {
			workflows++
		}
	}
	var out []*branch
	if devices > 0 {
		out = append(out, &branch{text: plural(devices, "node") + " with devices"})
	}
	if reserved > 0 {
		out = append(out, &branch{text: plural(reserved, "node") + " reserved for pending requests"})
	}
	if workflows > 0 {
		out = append(out, &branch{text: plural(workflows, "node") + " with room reserved by workflows"})
	}
	return out
}

// counts returns the numbers of used, free and unusable devices as text; they add up.
func (p *topologyPrinter) counts(c structs.DeviceCounts) string {
	style := p.e.style
	parts := []string{fmt.Sprintf("%d used", c.Used)}
	free := fmt.Sprintf("%d free", c.Free)
	if c.Free > 0 {
		free = style.Green(free)
	}
	parts = append(parts, free)
	if c.Withheld > 0 {
		parts = append(parts, style.Yellow(fmt.Sprintf("%d on nodes that take no work", c.Withheld)))
	}
	if c.Unhealthy > 0 {
		bad := fmt.Sprintf("%d bad", c.Unhealthy)
		if both := c.Used + c.Free + c.Withheld + c.Unhealthy - c.Devices; both > 0 {
			bad += fmt.Sprintf(" (%d of them used)", both)
		}
		parts = append(parts, style.Red(bad))
	}
	return strings.Join(parts, ", ")
}

// node is a node in a cell that is bound for an owner.
func (p *topologyPrinter) node(n *structs.TopologyNode, owner structs.CellOwner) *branch {
	style := p.e.style
	text := style.Bold("node " + cmp.Or(n.Name, n.ID))
	if p.verbose {
		text += "  " + n.ID
	}
	switch {
	case n.Status != structs.NodeStatusReady:
		text += "  " + style.Red(n.Status)
	case n.Drain:
		text += "  " + style.Yellow("draining")
	case n.SchedulingEligibility == structs.NodeIneligible:
		text += "  " + style.Yellow(n.SchedulingEligibility)
	}
	if n.Cells != nil {
		text += p.owner(n.Cells.CellOwner, owner)
		owner = cmp.Or(n.Cells.CellOwner, owner)
	}
	kinds := kindsIn(n.Cells, nil)
	if len(kinds) == 0 {
		for _, f := range n.FreeCells {
			if !slices.Contains(kinds, f.Device) {
				kinds = append(kinds, f.Device)
			}
		}
	}
	what := plural(n.Devices, "device")
	if len(kinds) == 1 {
		what = fmt.Sprintf("%d × %s", n.Devices, kinds[0])
	}
	counts := n.Counts()
	counts.Devices, counts.Withheld = counts.Devices-counts.Withheld, 0 // the node's line states why already
	switch {
	case n.Devices == 0:
		text += "  no devices"
	case n.Used == 0 && !takesWork(n):
		text += "  " + what
		if n.Unhealthy > 0 {
			text += ": " + style.Red(fmt.Sprintf("%d bad", n.Unhealthy))
		}
	default:
		text += "  " + what + ": " + p.counts(counts)
	}
	if n.Cells == nil {
		text += p.bound(n.Owners)
	}
	b := &branch{text: text + p.reserved(n.Reservation)}
	for _, part := range n.Workflows {
		b.kids = append(b.kids, &branch{text: p.workflow(part)})
	}
	p.flows = flowsOf(n)
	if n.Cells != nil && (p.all || someoneIn(n.Cells) || ownedApart(n.Cells, owner) || !n.Cells.FreeCell && takesWork(n)) {
		b.kids = append(b.kids, p.inside(n.Cells, len(kinds) > 1, owner)...)
	}
	return b
}

// someoneIn reports whether a device in a cell has somebody to be shown, who holds it or is
// suspended.
func someoneIn(c *structs.CellView) bool {
	return slices.ContainsFunc(c.Members, func(d *structs.DeviceView) bool { return len(d.Usages) > 0 }) || slices.ContainsFunc(c.Cells, someoneIn)
}

// takesWork reports whether a node may be given more.
func takesWork(n *structs.TopologyNode) bool {
	return n.Status == structs.NodeStatusReady && !n.Drain && n.SchedulingEligibility != structs.NodeIneligible
}

// reserved returns for which request a node is reserved; empty: none.
func (p *topologyPrinter) reserved(r *structs.Reservation) string {
	if r == nil {
		return ""
	}
	whom := r.JobID + "." + r.Group
	if r.Namespace != "" && r.Namespace != structs.DefaultNamespace {
		whom = r.Namespace + "/" + whom
	}
	return "  " + p.e.style.Yellow("reserved for "+whom+" until "+ui.Time(r.ExpiresAt))
}

// workflow returns what a workflow has reserved of a node.
func (p *topologyPrinter) workflow(r *structs.ReservedPart) string {
	whose := flowName(r)
	if r.Pending {
		return p.e.style.Yellow("kept for workflow " + whose + ": " + withDisk(r.Reserved))
	}
	return p.e.style.Yellow("reserved by workflow "+whose+": "+withDisk(r.Reserved)) + "   " + useText(withDisk, r.Used, r.Lent, r.Idle, r.Lost)
}

// withDisk describes amounts with the disk among them.
func withDisk(r structs.WorkflowResources) string {
	text := amountText(r)
	switch {
	case r.DiskMB == 0:
		return text
	case text == "0":
		return ui.MiB(r.DiskMB) + " of disk"
	}
	return text + ", " + ui.MiB(r.DiskMB) + " of disk"
}

// kindsIn adds the kinds of device in a cell.
func kindsIn(c *structs.CellView, kinds []string) []string {
	if c == nil {
		return kinds
	}
	for _, kid := range c.Cells {
		kinds = kindsIn(kid, kinds)
	}
	for _, d := range c.Members {
		if d.Device != "" && !slices.Contains(kinds, d.Device) {
			kinds = append(kinds, d.Device)
		}
	}
	return kinds
}

// inside is what is in a cell, which is bound for an owner. A free cell within a node is one line, unless all
// devices are requested.
func (p *topologyPrinter) inside(c *structs.CellView, mixed bool, owner structs.CellOwner) []*branch {
	var out []*branch
	for _, kid := range c.Cells {
		text := kid.ID
		if !strings.HasPrefix(text, kid.Level) {
			text = kid.Level + " " + text
		}
		b := &branch{text: text + p.owner(kid.CellOwner, owner)}
		within := cmp.Or(kid.CellOwner, owner)
		open := p.all || someoneIn(kid) || ownedApart(kid, within)
		switch {
		case kid.Devices == 0:
			b.text += "  no devices"
		case kid.Withheld == kid.Devices && !open:
			b.text += "  " + plural(kid.Devices, "device") + ", unused"
		case kid.FreeCell && !c.FreeCell:
			b.text += "  " + p.e.style.Green(fmt.Sprintf("free cell of %d", kid.Devices)) + p.reservedIn(kid)
		case kid.FreeCell && !open: // in a larger one, shown as a part is owned
			b.text += "  " + p.e.style.Green(plural(kid.Devices, "device")+", free") + p.reservedIn(kid)
		}
		if kid.Devices > 0 && (open || !kid.FreeCell && kid.Withheld < kid.Devices) {
			b.kids = p.inside(kid, mixed, within)
		}
		out = append(out, b)
	}
	for _, d := range c.Members {
		out = append(out, &branch{text: p.device(d, mixed, owner)})
	}
	return out
}

// device is a device in a cell that is bound for an owner.
func (p *topologyPrinter) device(d *structs.DeviceView, mixed bool, owner structs.CellOwner) string {
	parts := []string{d.ID + p.owner(d.CellOwner, owner)}
	if mixed {
		parts = append(parts, d.Device)
	}
	if p.verbose && d.PciBusID != "" {
		parts = append(parts, d.PciBusID)
	}
	if !d.Healthy {
		parts = append(parts, p.e.style.Red(strings.TrimSuffix("bad: "+d.HealthDescription, ": ")))
	}
	if by := p.flows[d.ID]; by != "" && d.Healthy && !d.InUse() {
		parts = append(parts, p.e.style.Yellow("reserved by workflow "+by))
	}
	if len(d.Usages) > 0 {
		users := make([]string, 0, len(d.Usages))
		for _, u := range d.Usages {
			users = append(users, p.user(d, u))
		}
		parts = append(parts, strings.Join(users, ", "))
	}
	if d.InUse() && d.FreeShare > 0 && d.Healthy {
		parts = append(parts, p.e.style.Green(fmt.Sprintf("%d/%d left", d.FreeShare, structs.DeviceShareWhole)))
	}
	return strings.Join(parts, "  ")
}

// user names who uses a device, by what right if anybody owns any.
func (p *topologyPrinter) user(d *structs.DeviceView, u *structs.DeviceUsage) string {
	text := short(u.AllocID, p.verbose) + " "
	if u.Namespace != "" && u.Namespace != structs.DefaultNamespace {
		text += u.Namespace + "/"
	}
	text += u.Name
	if p.verbose {
		text += " task " + u.Task
	}
	if u.Share < structs.DeviceShareWhole {
		text += fmt.Sprintf(" %d/%d", u.Share, structs.DeviceShareWhole)
	}
	if u.GangSize > 0 {
		text += fmt.Sprintf(" (rank %d of %d)", u.GangRank, u.GangSize)
	}
	switch {
	case u.Class == structs.ClassGuaranteed:
		text += " (guaranteed)"
	case d.Lent && u.Namespace != d.Owner:
		text += " " + p.e.style.Yellow("(lent)")
	}
	if u.Suspended {
		text += " " + p.e.style.Yellow("(suspended)")
	}
	return text
}

// printLinks lists which devices are linked directly, a line for each device.
func (p *topologyPrinter) printLinks() {
	rows := [][]string{{"Device", "Linked to (lanes)"}}
	for _, n := range p.t.Nodes {
		to := map[string][]string{}
		var order []string
		for _, l := range n.Links {
			for _, pair := range [][2]string{{l.A, l.B}, {l.B, l.A}} {
				if to[pair[0]] == nil {
					order = append(order, pair[0])
				}
				to[pair[0]] = append(to[pair[0]], fmt.Sprintf("%s (%d)", pair[1], l.Lanes))
			}
		}
		slices.SortFunc(order, natural)
		for _, id := range order {
			rows = append(rows, []string{id, strings.Join(to[id], ", ")})
		}
	}
	if len(rows) > 1 {
		p.e.printf("\n%s\n", p.e.style.Bold("Links"))
		ui.Table(p.e.out, rows)
	}
}

// natural compares texts with the numbers in them as numbers: dgx-2 before dgx-10.
func natural(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x == "" || y == "" {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		nx, ny := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if order := cmp.Or(cmp.Compare(len(nx), len(ny)), cmp.Compare(nx, ny), cmp.Compare(len(x), len(y))); order != 0 {
			return order
		}
		a, b = a[len(x):], b[len(y):]
	}
	return cmp.Compare(len(a), len(b))
}

// digits are those that a text begins with.
func digits(s string) string {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[:n]
}
