package command

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// cellFlags say which cells, and how many.
type cellFlags struct{ cells structs.CellQuota }

func (c *cellFlags) flags(fs *flag.FlagSet) {
	fs.StringVar(&c.cells.Kind, "kind", "", "the `kind` of devices, such as nvidia/gpu/H100, where the pool has several")
	fs.StringVar(&c.cells.NodePool, "node-pool", "", "the node `pool`, if not the default one")
	fs.StringVar(&c.cells.Level, "level", "", "the `level` of the cells, such as node")
	fs.IntVar(&c.cells.Size, "size", 0, "how many nodes a cell of a site's level has: `S`")
	fs.IntVar(&c.cells.Count, "count", 1, "how many cells: `N`")
}

// timeFlag is a flag for a moment.
func timeFlag(fs *flag.FlagSet, name, usage string) *time.Time {
	at := &time.Time{}
	fs.Func(name, usage+": a `time` such as 2026-12-01T08:00:00+01:00, or a date, whose midnight in UTC is meant", func(text string) error {
		var err error
		for _, layout := range []string{time.RFC3339, time.DateOnly} {
			if *at, err = time.Parse(layout, text); err == nil {
				return nil
			}
		}
		return fmt.Errorf("must be a time such as 2026-12-01T08:00:00Z or a date such as 2026-12-01")
	})
	return at
}

// unstated returns the first of the flags that the command line does not state; "": it states all.
func unstated(fs *flag.FlagSet, needed ...string) string {
	stated := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { stated[f.Name] = true })
	for _, name := range needed {
		if !stated[name] {
			return name
		}
	}
	return ""
}

func vcShift() spec {
	return spec{
		synopsis: "Move cells of a virtual cluster from one time to another",
		takes:    "virtual cluster", usage: "-level LEVEL -count N -from A -until B -to C -until-to D <namespace>",
		example: "-level node -count 2 -from 2026-12-24 -until 2026-12-27 -to 2027-01-04 -until-to 2027-01-07 team-a",
		details: "The virtual cluster owns so many cells fewer from -from to -until, and more from -to to -until-to. No operator is needed: a\n" +
			"shift must not gain cell-hours, and the cells of all namespaces must remain available at all times.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var which cellFlags
			which.flags(fs)
			from, until := timeFlag(fs, "from", "when fewer are owned"), timeFlag(fs, "until", "how long fewer are owned")
			to, untilTo := timeFlag(fs, "to", "when more are owned"), timeFlag(fs, "until-to", "how long more are owned")
			return func(ctx context.Context, e *env, args []string) int {
				if name := unstated(fs, "level", "from", "until", "to", "until-to"); name != "" {
					return e.usage("-%s is needed", name)
				}
				shift := &structs.CellShift{Cells: which.cells, From: *from, Until: *until, To: *to, UntilTo: *untilTo}
				if err := shift.Validate(); err != nil {
					return e.fail(err)
				}
				if err := e.client.VirtualClusters().Shift(ctx, args[0], shift); err != nil {
					return e.fail(err)
				}
				e.printf("Virtual cluster %q owns %s of level %s fewer from %s to %s, and more from %s to %s.\n", args[0], plural(shift.Cells.Count, "cell"),
					cellLevel(shift.Cells.Level, shift.Cells.Size), windowTime(shift.From), windowTime(shift.Until), windowTime(shift.To), windowTime(shift.UntilTo))
				return exitDone
			}
		},
	}
}

func vcPoints() spec {
	return spec{
		synopsis: "Give a virtual cluster points for exchanges, or take some",
		usage:    "<namespace> <N>", example: "team-a 100", negatives: true,
		details: "N is added to the points of the virtual cluster; a negative one takes points. Namespaces bid points for cells that others offer.",
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return func(ctx context.Context, e *env, args []string) int {
				if len(args) != 2 || args[0] == "" {
					return e.usage("a virtual cluster and a number of points are needed, %d given", len(args))
				}
				n, err := strconv.ParseInt(args[1], 10, 64)
				if err != nil {
					return e.usage("%q: the number of points must be a whole number", args[1])
				}
				if err := e.client.VirtualClusters().AddPoints(ctx, args[0], n); err != nil {
					return e.fail(err)
				}
				vc, _, err := e.client.VirtualClusters().Info(ctx, args[0], nil)
				if err != nil {
					return e.fail(fmt.Errorf("the points were changed, but could not be read: %w", err))
				}
				e.printf("Virtual cluster %q has %s.\n", vc.Name, pointsText(vc.Points))
				return exitDone
			}
		},
	}
}

func pointsText(n int64) string {
	if n == 1 {
		return "1 point"
	}
	return strconv.FormatInt(n, 10) + " points"
}
