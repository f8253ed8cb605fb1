package command

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/command/examples"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func vcList() spec {
	return spec{
		synopsis: "List the virtual clusters",
		usage:    "", example: "-filter 'Points > 0'", output: true,
		details: "A virtual cluster is what a namespace owns. Cells are those that it owns now, with those won in exchanges and without those\n" +
			"sold; \"until\" says when a window, shift or exchange ends to which a number of cells is due. Of them, those in use are bound,\n" +
			"and those that the hardware cannot hold at present are doomed. Lent are the devices of bound cells that others use.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var now time.Time
			return pageOfAll(fs, "No virtual clusters", func(e *env) listOf[*structs.VirtualClusterStatus] {
				now = e.now()
				return e.client.VirtualClusters().List
			}, func(list []*structs.VirtualClusterStatus) [][]string { return vcRows(list, now) })
		},
	}
}

// vcRows is a table of virtual clusters.
func vcRows(clusters []*structs.VirtualClusterStatus, now time.Time) [][]string {
	rows := [][]string{{"Name", "Over Limit", "Points", "Cells", "Bound", "Doomed", "GPUs Used", "Lent", "Pending Edit"}}
	for _, vc := range clusters {
		var sum structs.CellStatus
		var cells []string
		for _, c := range ownedCells(vc, now) {
			sum.Bound, sum.Doomed, sum.Lent = sum.Bound+c.Bound, sum.Doomed+c.Doomed, sum.Lent+c.Lent
			sum.GPUs, sum.GPUsUsed = sum.GPUs+c.GPUs, sum.GPUsUsed+c.GPUsUsed
			text := fmt.Sprintf("%d %s", c.Given+c.Won, cellLevel(c.Level, c.Size))
			if !c.until.IsZero() {
				text += fmt.Sprintf(" (until %s)", windowTime(c.until))
			}
			cells = append(cells, text)
		}
		pending := "no"
		if vc.Pending != nil {
			pending = "yes"
		}
		rows = append(rows, []string{
			vc.Name, vc.OverLimit, strconv.FormatInt(vc.Points, 10), ui.OrNone(strings.Join(cells, ", ")), strconv.Itoa(sum.Bound), strconv.Itoa(sum.Doomed),
			fmt.Sprintf("%d of %d", sum.GPUsUsed, sum.GPUs), strconv.Itoa(sum.Lent), pending,
		})
	}
	return rows
}

// cellsUntil are cells of one kind, and until when there are as many; zero: no window, shift or exchange has changed their number.
type cellsUntil struct {
	*structs.CellStatus
	until time.Time
}

// ownedCells returns the cells of a virtual cluster, those also that it has none of for a time.
func ownedCells(vc *structs.VirtualClusterStatus, now time.Time) []cellsUntil {
	list := make([]cellsUntil, 0, len(vc.Cells))
	for _, c := range vc.Cells {
		list = append(list, cellsUntil{CellStatus: c})
	}
	note := func(q *structs.CellQuota, from, until time.Time) {
		if from.After(now) || !until.After(now) {
			return
		}
		at := slices.IndexFunc(list, func(c cellsUntil) bool { return ownsAs(c.CellStatus, q) })
		if at < 0 {
			at = len(list)
			none := &structs.CellStatus{Kind: q.Kind, NodePool: cmp.Or(q.NodePool, structs.DefaultNodePool), Level: q.Level, Size: q.Size}
			list = append(list, cellsUntil{CellStatus: none})
		}
		if was := list[at].until; was.IsZero() || until.Before(was) {
			list[at].until = until
		}
	}
	for _, w := range vc.Windows {
		for _, q := range w.Cells {
			note(q, w.From, w.To)
		}
	}
	for i := range vc.Changes {
		c := &vc.Changes[i]
		note(&c.Cells, time.Unix(0, c.From), time.Unix(0, c.Until))
	}
	return list
}

// cellLevel names a kind of cells: "socket", or "rack of 16" above nodes.
func cellLevel(level string, size int) string {
	if size == 0 {
		return level
	}
	return fmt.Sprintf("%s of %d", level, size)
}

func vcDelete() spec {
	return spec{
		synopsis: "Delete a virtual cluster",
		takes:    "virtual cluster", usage: "<namespace>", example: "team-a",
		details: "The namespace then owns nothing. It stays, and so do its jobs. Nothing of the virtual cluster may be in guaranteed use: to take\n" +
			"the cells of running jobs, apply a file without cells first; the jobs run on as opportunistic ones.",
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return deleteNamed("virtual cluster", func(e *env) func(context.Context, string) error { return e.client.VirtualClusters().Delete })
		},
	}
}

func vcInit() spec {
	return initBoth("Write an example file of a virtual cluster", "team-a.hcl", "virtual cluster", "vc.nomad", examples.VirtualCluster, examples.VirtualClusterJSON)
}
