// Package picture draws what the agents answer as SVG that needs nothing from anywhere else. The same answer gives the same bytes. It must
// never call an agent.
package picture

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// Sizes of a drawing, in its own units; who shows it scales it.
const (
	square  = 24  // a device
	gap     = 4   // between devices, and around them
	title   = 18  // a line of text
	nameCol = 110 // the names of nodes
	margin  = 12
	widest  = 1100 // beside each other stand as many racks as fit into this
	colours = 8    // of jobs; from the ninth on they begin anew
	frames  = 4    // colours of workflows' frames; from the fifth on they begin anew
)

// drawing is a topology as it is drawn.
type drawing struct {
	t    *structs.Topology
	out  strings.Builder
	jobs []string // who uses devices, as namespace/job, in the order in which they are met: that of their colours
	// flows are the workflows that have reserved devices, as namespace/workflow, in the same way; reserved is by which of them each device of the node that is
	// being drawn is.
	flows    []string
	reserved map[string]*structs.ReservedPart
	state    string // why the node that is being drawn takes no work; "": it does
	// What the picture has, so that the legend states no more.
	borrows, owned, gang, bad, off bool
}

// Topology draws the nodes with devices of a topology, each within the cells above it: which job uses which device, members of gangs by
// their rank, what is owned and by whom, or reserved and by which workflow, and what of that others use. Devices are there only if the topology was read with its details.
func Topology(t *structs.Topology) []byte {
	d := &drawing{t: t}
	width, height := d.sites()
	width = max(width, 480)
	height = d.legend(height, width)
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="The devices of %d nodes, and who uses them">`, width, height, len(t.Nodes))
	svg.WriteString("\n" + style)
	svg.WriteString(d.out.String())
	svg.WriteString("</svg>\n")
	return []byte(svg.String())
}

const style = `<style>
svg { --bg: #fff; --fg: #1c2126; --dim: #5a646e; --card: #f1f4f6; --idle: #fff; --c0: #0b63b5; --c1: #c2410c; --c2: #15803d; --c3: #9333a8; --c4: #a16207; --c5: #0e7c86; --c6: #be185d; --c7: #57606a; }
@media (prefers-color-scheme: dark) { svg { --bg: #14181c; --fg: #e4e8eb; --dim: #9aa5af; --card: #20272d; --idle: #14181c; --c0: #3f8fdb; --c1: #d96a2b; --c2: #3a9c58; --c3: #b06ad0; --c4: #b8892a; --c5: #2f9aa5; --c6: #d45c92; --c7: #7f8a94; } }
text { fill: var(--fg); font: 12px system-ui, sans-serif; } .dim { fill: var(--dim); } .rank { fill: #fff; font-weight: 600; text-anchor: middle; }
.page { fill: var(--bg); } .card { fill: var(--card); } .cell { fill: none; stroke: var(--dim); stroke-opacity: .35; } .owned { fill: none; stroke: var(--fg); stroke-width: 2; stroke-dasharray: 5 3; }
.idle { fill: var(--idle); stroke: var(--dim); stroke-opacity: .5; } .off { fill: var(--dim); fill-opacity: .35; } .bad { stroke: #d33; stroke-width: 2; } .lines { stroke: #fff; stroke-width: 3; stroke-opacity: .65; }
.c0 { fill: var(--c0); } .c1 { fill: var(--c1); } .c2 { fill: var(--c2); } .c3 { fill: var(--c3); } .c4 { fill: var(--c4); } .c5 { fill: var(--c5); } .c6 { fill: var(--c6); } .c7 { fill: var(--c7); }
.flow { fill: none; stroke-width: 2; } .f0 { stroke: var(--c6); } .f1 { stroke: var(--c4); } .f2 { stroke: var(--c5); } .f3 { stroke: var(--c3); }
</style>
<rect class="page" width="100%" height="100%"/>
`

// sites draws the cells above nodes, beside each other where there is room, and the nodes in none. It returns the size of all.
func (d *drawing) sites() (width, height int) {
	byParent, nodes := map[string][]*structs.TopologySite{}, map[string][]*structs.TopologyNode{}
	for _, s := range d.t.Sites {
		byParent[s.Parent] = append(byParent[s.Parent], s)
	}
	for _, n := range d.t.Nodes {
		if n.Cells != nil && n.Devices > 0 {
			nodes[n.Site] = append(nodes[n.Site], n)
		}
	}
	for _, list := range nodes { // order does not matter: each is sorted by itself
		slices.SortFunc(list, func(a, b *structs.TopologyNode) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
		})
	}
	var place func(parent string, x, y int, owner structs.CellOwner) (int, int)
	place = func(parent string, x, y int, owner structs.CellOwner) (wide, tall int) {
		for _, n := range nodes[parent] {
			w, h := d.node(n, x, y+tall, owner)
			wide, tall = max(wide, w), tall+h+2*gap
		}
		at, row := 0, 0
		for _, s := range byParent[parent] {
			if s.Devices == 0 {
				continue
			}
			if at > 0 && x+at+wide > widest { // as wide as the last one
				at, tall, row = 0, tall+row+margin, 0
			}
			start := d.out.Len()
			w, h := place(s.ID, x+at+margin, y+tall+title+gap, cmp.Or(s.CellOwner, owner))
			inside := d.out.String()[start:] // what is around a cell is drawn before it
			kept := d.out.String()[:start]
			d.out.Reset()
			d.out.WriteString(kept)
			d.box("card", x+at, y+tall, w+2*margin, h+title+margin, 6)
			d.ownerOf(s.CellOwner, owner, x+at, y+tall, w+2*margin, h+title+margin)
			d.text("", x+at+margin, y+tall+title-4, s.Level+" "+s.Name+ownerText(s.CellOwner, owner))
			d.out.WriteString(inside)
			at, row = at+w+3*margin, max(row, h+title+margin)
			wide = max(wide, at-margin)
		}
		return wide, tall + row
	}
	wide, tall := place("", margin, margin, structs.CellOwner{})
	return wide + 2*margin, tall + 2*margin
}

// node draws a node in a row, and returns its size.
func (d *drawing) node(n *structs.TopologyNode, x, y int, owner structs.CellOwner) (wide, tall int) {
	d.reserved, d.state = map[string]*structs.ReservedPart{}, stateOf(n)
	for _, part := range n.Workflows {
		for _, id := range part.DeviceIDs {
			if !part.Pending { // what comes free is kept for it, and nothing of it is there yet
				d.reserved[id] = part
			}
		}
	}
	w, h := d.cell(n.Cells, x+nameCol, y, cmp.Or(n.Cells.CellOwner, owner))
	name := cmp.Or(n.Name, n.ID)
	d.text("", x, y+h/2+1, clip(name, 16))
	for i, note := range notesOf(n, owner) {
		d.text("dim", x, y+h/2+14+13*i, clip(note, 20))
	}
	d.ownerOf(n.Cells.CellOwner, owner, x+nameCol-2, y-1, w+4, h+2)
	return nameCol + w, h
}

// stateOf is why a node takes no work; "": it does.
func stateOf(n *structs.TopologyNode) string {
	switch {
	case n.Status != structs.NodeStatusReady:
		return n.Status
	case n.Drain:
		return "draining"
	case n.SchedulingEligibility == structs.NodeIneligible:
		return n.SchedulingEligibility
	}
	return ""
}

// notesOf is what stands below the name of a node: two lines have room.
func notesOf(n *structs.TopologyNode, owner structs.CellOwner) (notes []string) {
	for _, note := range []string{stateOf(n), keptFor(n), strings.TrimSpace(ownerText(n.Cells.CellOwner, owner))} {
		if note != "" {
			notes = append(notes, note)
		}
	}
	return notes[:min(len(notes), 2)]
}

// keptFor names the workflow for which what comes free on a node is kept.
func keptFor(n *structs.TopologyNode) string {
	for _, part := range n.Workflows {
		if part.Pending {
			return "kept for workflow " + flowText(part.Namespace+"/"+part.Workflow)
		}
	}
	return ""
}

// cell draws what is in a cell within a node, from left to right, and returns its size.
func (d *drawing) cell(c *structs.CellView, x, y int, owner structs.CellOwner) (wide, tall int) {
	at := gap
	for _, kid := range c.Cells {
		if kid.Devices == 0 {
			continue
		}
		w, h := d.cell(kid, x+at, y+gap, cmp.Or(kid.CellOwner, owner))
		d.ownerOf(kid.CellOwner, owner, x+at, y+gap, w, h)
		at, tall = at+w+gap, max(tall, h)
	}
	for _, m := range c.Members {
		d.device(m, x+at, y+gap)
		at, tall = at+square+gap, max(tall, square)
	}
	tall += 2 * gap
	d.box("cell", x, y, at, tall, 4)
	return at, tall
}

// device draws a device in the colour of the job that uses it: of several, each has a part.
func (d *drawing) device(m *structs.DeviceView, x, y int) {
	class := "idle"
	if d.state != "" {
		class, d.off = "idle off", true
	}
	if !m.Healthy {
		class, d.bad = class+" bad", true
	}
	users := make([]string, 0, len(m.Usages))
	d.out.WriteString("<g>")
	d.box(class, x, y, square, square, 3)
	by := d.reserved[m.ID]
	left := 0
	for _, u := range m.Usages {
		wide := max(1, square*min(u.Share, structs.DeviceShareWhole)/structs.DeviceShareWhole)
		d.box(d.colour(u), x+left, y, min(wide, square-left), square, 3)
		left = min(square-1, left+wide)
		users = append(users, u.Name)
		if u.GangSize > 1 {
			d.gang = true
			fmt.Fprintf(&d.out, `<text class="rank" x="%d" y="%d">%d</text>`, x+square/2, y+square/2+4, u.GangRank)
		}
		if m.Lent || by != nil && !of(u, by) {
			d.borrows = true
			fmt.Fprintf(&d.out, `<path class="lines" d="M%d %dL%d %dM%d %dL%d %d"/>`, x+2, y+square/2, x+square/2, y+2, x+square/2, y+square-2, x+square-2, y+square/2)
		}
	}
	state := strings.Join(users, ", ")
	switch {
	case !m.Healthy:
		state = strings.TrimSuffix("bad: "+m.HealthDescription, ": ") + strings.TrimSuffix("; "+state, "; ")
	case state == "" && d.state != "":
		state = "unused"
	case state == "":
		state = "free"
	}
	if d.state != "" {
		state += "; its node is " + d.state
	}
	if by != nil {
		d.box("flow "+d.frame(by), x-2, y-2, square+4, square+4, 4)
		state += "; reserved by workflow " + flowText(by.Namespace+"/"+by.Workflow)
	}
	fmt.Fprintf(&d.out, "<title>%s: %s</title></g>\n", html.EscapeString(m.ID), html.EscapeString(state))
}

// colour returns the class of a job's colour.
func (d *drawing) colour(u *structs.DeviceUsage) string {
	job := u.Namespace + "/" + u.JobID
	return fmt.Sprintf("c%d", numberOf(&d.jobs, job)%colours)
}

// of reports whether a device is used by a job of the workflow that has reserved it.
func of(u *structs.DeviceUsage, by *structs.ReservedPart) bool {
	id, _, _, ok := structs.SplitWorkflowJobID(u.JobID)
	return ok && id == by.Workflow && u.Namespace == by.Namespace
}

// frame returns the class of the colour of a workflow's frames.
func (d *drawing) frame(by *structs.ReservedPart) string {
	flow := by.Namespace + "/" + by.Workflow
	return fmt.Sprintf("f%d", numberOf(&d.flows, flow)%frames)
}

// numberOf returns the index of a name in a list, to which it is added if need be.
func numberOf(list *[]string, name string) int {
	at := slices.Index(*list, name)
	if at < 0 {
		at = len(*list)
		*list = append(*list, name)
	}
	return at
}

// flowText names a workflow, without the default namespace.
func flowText(flow string) string { return strings.TrimPrefix(flow, structs.DefaultNamespace+"/") }

// legend says what is what, and returns where it ends.
func (d *drawing) legend(y, width int) int {
	x := margin
	add := func(text string, sample func(x, y int)) {
		wide := square + 7*len(text) + 24
		if x > margin && x+wide > width {
			x, y = margin, y+title+6
		}
		sample(x, y-square/2-2)
		d.text("", x+square+6, y+2, text)
		x += wide
	}
	y += title
	for i, job := range d.jobs {
		add(strings.TrimPrefix(job, structs.DefaultNamespace+"/"), func(x, y int) { d.box(fmt.Sprintf("c%d", i%colours), x, y+4, square-6, square-10, 3) })
	}
	if d.gang {
		add("number: the rank in a gang", func(x, y int) { d.text("", x+6, y+15, "0") })
	}
	if d.owned {
		add("owned by a namespace", func(x, y int) { d.box("owned", x, y+4, square-6, square-10, 3) })
	}
	for i, flow := range d.flows {
		add("framed: reserved by workflow "+flowText(flow), func(x, y int) { d.box(fmt.Sprintf("flow f%d", i%frames), x, y+4, square-6, square-10, 3) })
	}
	if d.borrows {
		add("striped: borrowed, until the owner needs it", func(x, y int) {
			d.box("c7", x, y+4, square-6, square-10, 3)
			fmt.Fprintf(&d.out, `<path class="lines" d="M%d %dL%d %d"/>`, x+3, y+square-8, x+square-9, y+6)
		})
	}
	if d.off {
		add("on a node that takes no work", func(x, y int) { d.box("idle off", x, y+4, square-6, square-10, 3) })
	}
	if d.bad {
		add("bad", func(x, y int) { d.box("idle bad", x, y+4, square-6, square-10, 3) })
	}
	return y + margin + 4
}

// ownerOf draws the border of a cell that is bound for an owner, unless the cell around it is.
func (d *drawing) ownerOf(o, around structs.CellOwner, x, y, w, h int) {
	if o.Owner != "" && o != around {
		d.owned = true
		d.box("owned", x, y, w, h, 5)
	}
}

// ownerText is for whom a cell is bound, unless that is as of the cell around it.
func ownerText(o, around structs.CellOwner) string {
	if o.Owner == "" || o == around {
		return ""
	}
	return "  owner " + o.Owner
}

func (d *drawing) box(class string, x, y, w, h, round int) {
	fmt.Fprintf(&d.out, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`, class, x, y, w, h, round)
}

func (d *drawing) text(class string, x, y int, text string) {
	fmt.Fprintf(&d.out, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y, html.EscapeString(text))
}

// clip shortens a text that is longer than a number of letters.
func clip(text string, most int) string {
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return text
}
