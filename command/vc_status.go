package command

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func vcStatus() spec {
	return spec{
		synopsis: "Show a virtual cluster: what the namespace owns, who uses it, and what it borrows",
		usage:    "<namespace>", example: "team-a", output: true,
		details: "The virtual cluster is given by the name of its namespace or a prefix of it.\n" +
			"\n" +
			"Owned are the cells that the file gives it, or the window that it is in, without those sold; with those won in exchanges, they\n" +
			"are bound (in use, or pinned), free or doomed: the hardware cannot hold them at present. Bad are bound cells with a device\n" +
			"that is not healthy. Lent are the devices of bound cells that others use; they lose them when the owner needs them. Changes\n" +
			"are shifts, exchanges, and offers and bids that are not settled yet: these change nothing before their time begins.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			verbose := fs.Bool("verbose", false, "list every job that uses a cell, and all windows")
			stale := staleFlag(fs)
			return func(ctx context.Context, e *env, args []string) int {
				stale(e)
				read := &vcReader{e: e}
				vc, err := read.named(ctx, args)
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(vc); done {
					return code
				}
				p := &vcPrinter{printer: &e.printer, vc: vc, verbose: *verbose}
				if p.usage, err = read.usage(ctx, vc); err != nil {
					return e.fail(err)
				}
				if p.open, err = read.open(ctx, vc.Name); err != nil {
					return e.fail(err)
				}
				p.print()
				return exitDone
			}
		},
	}
}

// vcPrinter prints a virtual cluster for people.
type vcPrinter struct {
	*printer
	vc      *structs.VirtualClusterStatus
	usage   *vcUsage
	open    []*structs.Exchange // its offers and bids that are not settled yet
	verbose bool
}

func (p *vcPrinter) print() {
	vc := p.vc
	p.printf("Name = %s   Over Limit = %s   Points = %d   %s\n", vc.Name, vc.OverLimit, vc.Points, p.window())
	if vc.Pending != nil {
		p.printf("%s\n", p.style.Yellow("Pending = "+cellCounts(vc.Pending.Cells)+" ("+pendingReason(vc.Pending)+")"))
	}
	if vc.Waits != "" {
		p.printf("%s\n", p.style.Yellow("Due = "+p.due()+" ("+vc.Waits+")"))
	}
	p.cells()
	p.bound()
	p.borrowed()
	p.changes()
	if p.verbose {
		p.windows()
	}
}

// due names the cells that are to be owned by now and are not given yet.
func (p *vcPrinter) due() string {
	var list []string
	for _, c := range p.vc.Cells {
		if c.Waiting > 0 {
			list = append(list, fmt.Sprintf("%s %d", cellLevel(c.Level, c.Size), c.Waiting))
		}
	}
	return strings.Join(list, ", ")
}

// cells prints a line for each kind of cells. The pool is named where one is not the default one.
func (p *vcPrinter) cells() {
	if len(p.vc.Cells) == 0 {
		p.printf("It owns no cells\n")
		return
	}
	pools := slices.ContainsFunc(p.vc.Cells, func(c *structs.CellStatus) bool { return c.NodePool != structs.DefaultNodePool && c.NodePool != "" })
	head := []string{"Kind", "Level", "Owned", "Won", "Bound", "Free", "Bad", "Doomed", "GPUs Used", "Lent"}
	rows := [][]string{head}
	for _, c := range p.vc.Cells {
		row := []string{c.Kind, cellLevel(c.Level, c.Size)}
		for _, n := range []int{c.Given, c.Won, c.Bound, c.Free(), c.Bad, c.Doomed} {
			row = append(row, strconv.Itoa(n))
		}
		if c.Bad > 0 {
			row[6] = p.style.Red(row[6])
		}
		if c.Doomed > 0 {
			row[7] = p.style.Red(row[7])
		}
		rows = append(rows, append(row, fmt.Sprintf("%d of %d", c.GPUsUsed, c.GPUs), strconv.Itoa(c.Lent)))
	}
	if pools {
		rows[0] = append(rows[0], "Node Pool")
		for i, c := range p.vc.Cells {
			rows[i+1] = append(rows[i+1], c.NodePool)
		}
	}
	ui.Table(p.out, rows)
}

// bound prints a line for each cell that is in use or pinned.
func (p *vcPrinter) bound() {
	if len(p.vc.Bound) == 0 {
		return
	}
	rows := [][]string{{"Bound", "Cell", "Used by", "Lent to"}}
	for _, b := range p.vc.Bound {
		rows = append(rows, []string{b.Level, p.cellName(b), p.users(b), p.borrowers(b)})
	}
	ui.Table(p.out, rows)
}

// cellName is a bound cell's name, with what is unusual about it.
func (p *vcPrinter) cellName(b *structs.BoundCell) string {
	var marks []string
	if b.Pinned {
		marks = append(marks, "pinned")
	}
	if b.Bad {
		marks = append(marks, p.style.Red("bad"))
	}
	if b.Away {
		marks = append(marks, p.style.Yellow("away"))
	}
	if len(marks) == 0 {
		return b.Cell
	}
	return b.Cell + " (" + strings.Join(marks, ", ") + ")"
}

// users names the allocations that use a cell by their claim, and the workflows that have reserved it: "train.w[0-1]", "workflow etl".
func (p *vcPrinter) users(b *structs.BoundCell) string {
	groups, unread := p.usage.groups(b.Allocs)
	names := make([]string, 0, len(groups))
	for _, g := range groups {
		names = append(names, g.name+indexText(g.indexes))
	}
	for _, id := range b.Workflows {
		names = append(names, "workflow "+id)
	}
	return p.listed(names, unread)
}

// borrowers names those that use devices of a cell without a claim, with how many: "team-b sweep.run (5)".
func (p *vcPrinter) borrowers(b *structs.BoundCell) string {
	groups, unread := p.usage.groups(b.Borrowers)
	names := make([]string, 0, len(groups))
	for _, g := range groups {
		n := len(g.devices)
		if len(groups) == 1 && unread == 0 {
			n = b.Lent // it may have others, elsewhere
		}
		name := fmt.Sprintf("%s (%d)", g.name, n)
		if g.namespace != p.vc.Name {
			name = g.namespace + " " + name
		}
		names = append(names, name)
	}
	return p.listed(names, unread)
}

// maxNamed is how many names stand in a table's cell, unless all are wanted.
const maxNamed = 4

// listed joins names. unread is of how many allocations no name is known.
func (p *vcPrinter) listed(names []string, unread int) string {
	if rest := len(names) - maxNamed; rest > 0 && !p.verbose {
		names = append(slices.Clone(names[:maxNamed]), fmt.Sprintf("%d more", rest))
	}
	if unread > 0 {
		names = append(names, plural(unread, "allocation"))
	}
	return strings.Join(names, ", ")
}

// borrowed prints the devices that the namespace uses without a claim: those in bound cells of others by their names.
func (p *vcPrinter) borrowed() {
	if p.vc.OpportunisticGPUs == 0 {
		return
	}
	var where []string
	named := map[string]bool{}
	for _, b := range p.usage.borrowed {
		groups, _ := p.usage.groups(b.allocs)
		for _, g := range groups {
			where = append(where, fmt.Sprintf("%s on %s (cell of %s)", g.name+indexText(g.indexes), b.cell, b.owner))
			for _, d := range g.devices {
				named[d] = true
			}
		}
	}
	if rest := len(where) - maxNamed; rest > 0 && !p.verbose {
		where = append(where[:maxNamed], plural(rest, "other group")+" in cells of others")
	}
	total := plural(p.vc.OpportunisticGPUs, "GPU")
	if len(where) == 0 {
		p.printf("Borrowed %s outside the bound cells of others\n", total)
		return
	}
	if rest := p.vc.OpportunisticGPUs - len(named); rest > 0 {
		where = append(where, fmt.Sprintf("%d outside the bound cells of others", rest))
	}
	p.printf("Borrowed %s: %s\n", total, strings.Join(where, ", "))
}

// window is the window that the virtual cluster is in, or else the next one, with what it changes.
func (p *vcPrinter) window() string {
	var next *structs.CellWindow
	for _, w := range p.vc.Windows {
		switch {
		case !w.To.After(p.now()):
		case !w.From.After(p.now()):
			return fmt.Sprintf("Window = until %s (%s)", windowTime(w.To), cellCounts(w.Cells))
		case next == nil || w.From.Before(next.From):
			next = w
		}
	}
	if next == nil {
		return "Next Window = <none>"
	}
	changes := make([]string, 0, len(next.Cells))
	for _, q := range next.Cells {
		given := 0
		for _, c := range p.vc.Cells {
			if ownsAs(c, q) {
				given += c.Given
			}
		}
		changes = append(changes, fmt.Sprintf("%s %d -> %d", cellLevel(q.Level, q.Size), given, q.Count))
	}
	return fmt.Sprintf("Next Window = %s (%s)", windowTime(next.From), strings.Join(changes, ", "))
}

// ownsAs reports whether cells of a status are those that a quota speaks of.
func ownsAs(c *structs.CellStatus, q *structs.CellQuota) bool {
	pool := q.NodePool == c.NodePool || q.NodePool == "" && c.NodePool == structs.DefaultNodePool
	kind := q.Kind == "" || q.Kind == c.Kind || strings.HasPrefix(c.Kind, q.Kind+"/") || strings.HasPrefix(q.Kind, c.Kind+"/")
	return pool && kind && q.Level == c.Level && q.Size == c.Size
}

// changes prints a line for each shift and exchange that has not ended, and for each offer and bid that is not settled yet, by their begin.
func (p *vcPrinter) changes() {
	type change struct {
		from time.Time
		row  []string
	}
	var list []change
	add := func(what string, from, until time.Time, cells *structs.CellQuota, count int, details string) {
		number := fmt.Sprintf("%s %+d", cellLevel(cells.Level, cells.Size), count)
		list = append(list, change{from, []string{what, windowTime(from), windowTime(until), number, details}})
	}
	for i := range p.vc.Changes {
		c := &p.vc.Changes[i]
		if until := time.Unix(0, c.Until); until.After(p.now()) {
			add(c.Why, time.Unix(0, c.From), until, &c.Cells, c.Cells.Count, changeDetails(c))
		}
	}
	for _, x := range p.open {
		if x.Bid {
			add("bid", x.From, x.Until, &x.Cells, x.Cells.Count, fmt.Sprintf("%s, %s each, not settled yet", short(x.ID, p.verbose), pointsText(x.Points)))
		} else {
			add("offer", x.From, x.Until, &x.Cells, -x.Cells.Count, short(x.ID, p.verbose)+", not settled yet")
		}
	}
	if len(list) == 0 {
		return
	}
	slices.SortStableFunc(list, func(a, b change) int { return a.from.Compare(b.from) })
	rows := [][]string{{"Change", "From", "Until", "Cells", "Details"}}
	for _, c := range list {
		rows = append(rows, c.row)
	}
	ui.Table(p.out, rows)
}

// changeDetails says with whom cells were exchanged, for how much, and when they are back where they were.
func changeDetails(c *structs.CellChange) string {
	back := "back at " + windowTime(time.Unix(0, c.Until))
	if c.Cells.Count > 0 {
		back = "they go back at " + windowTime(time.Unix(0, c.Until))
	}
	switch {
	case c.Why == structs.CellChangeShift && c.Cells.Count > 0:
		return "" // they go nowhere: it is the time that ends
	case c.With == "":
		return back
	case c.Cells.Count < 0:
		return fmt.Sprintf("to %s for %s; %s", c.With, pointsText(c.Points), back)
	}
	return fmt.Sprintf("from %s for %s; %s", c.With, pointsText(c.Points), back)
}

func (p *vcPrinter) windows() {
	if len(p.vc.Windows) == 0 {
		return
	}
	rows := [][]string{{"Window", "Until", "Cells"}}
	for _, w := range p.vc.Windows {
		rows = append(rows, []string{windowTime(w.From), windowTime(w.To), cellCounts(w.Cells)})
	}
	ui.Table(p.out, rows)
}

// cellCounts is quotas in one line: "node 4, rack of 16 1".
func cellCounts(list []*structs.CellQuota) string {
	parts := make([]string, 0, len(list))
	for _, q := range list {
		parts = append(parts, fmt.Sprintf("%s %d", cellLevel(q.Level, q.Size), q.Count))
	}
	if len(parts) == 0 {
		return "no cells"
	}
	return strings.Join(parts, ", ")
}

// windowTime is a moment in UTC, without the time of the day where that is midnight.
func windowTime(t time.Time) string {
	t = t.UTC()
	switch {
	case t.Equal(t.Truncate(24 * time.Hour)):
		return t.Format(time.DateOnly)
	case t.Second() == 0:
		return t.Format("2006-01-02T15:04Z")
	}
	return t.Format(time.RFC3339)
}
