package command

import (
	"cmp"
	"context"
	"flag"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// exchangeCommand is vc offer or vc bid: flags adds those of its own, and submit submits.
func exchangeCommand(
	fs *flag.FlagSet, what string, needed []string, flags func(*structs.Exchange), submit func(api.Exchanges, context.Context, *structs.Exchange) (string, error),
) func(context.Context, *env, []string) int {
	var which cellFlags
	which.flags(fs)
	from, until := timeFlag(fs, "from", "when the cells change hands"), timeFlag(fs, "until", "when they return")
	x := &structs.Exchange{}
	flags(x)
	return func(ctx context.Context, e *env, args []string) int {
		if len(args) != 1 || args[0] == "" {
			return e.usage("one virtual cluster is needed, %d given", len(args))
		}
		if name := unstated(fs, needed...); name != "" {
			return e.usage("-%s is needed", name)
		}
		x.Owner, x.Cells, x.From, x.Until = args[0], which.cells, *from, *until
		if err := x.Validate(); err != nil {
			return e.fail(err)
		}
		id, err := submit(e.client.Exchanges(), ctx, x)
		if err != nil {
			return e.fail(err)
		}
		e.printf("Successfully made %s %s of virtual cluster %q; it is settled at %s\n", what, id, x.Owner, windowTime(x.From))
		return exitDone
	}
}

func vcOffer() spec {
	return spec{
		synopsis: "Offer cells of a virtual cluster to others, for points",
		usage:    "-level LEVEL -count N -from T -until T <namespace>",
		example:  "-level node -count 1 -from 2026-12-24 -until 2026-12-27 team-a",
		details: "The cells go to those who bid the most points for exactly the same kind, level, size and times. Offers and bids are settled at\n" +
			"-from; the cells return at -until. What nobody buys stays. `nomadish vc exchanges` lists offers and bids.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			return exchangeCommand(fs, "offer", []string{"level", "from", "until"}, func(*structs.Exchange) {}, api.Exchanges.Offer)
		},
	}
}

func vcBid() spec {
	return spec{
		synopsis: "Bid points for cells that other virtual clusters offer",
		usage:    "-level LEVEL -count N -points P -from T -until T <namespace>",
		example:  "-level node -count 1 -points 3 -from 2026-12-24 -until 2026-12-27 team-b",
		details: "The bid is for offers of exactly the same kind, level, size and times. It is settled at -from: the highest bids get the cells, and\n" +
			"pay what they bid for each. Nobody bids on their own offer. `nomadish vc exchanges` lists offers and bids.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			return exchangeCommand(fs, "bid", []string{"level", "points", "from", "until"}, func(x *structs.Exchange) {
				x.Bid = true
				fs.Int64Var(&x.Points, "points", 0, "how many points for each cell: `P`")
			}, api.Exchanges.Bid)
		},
	}
}

func vcExchanges() spec {
	return spec{
		synopsis: "List the offers and bids that are not settled yet, and the exchanges that hold",
		usage:    "", example: "-filter 'Owner == \"team-a\"'", output: true,
		details: "Below the offers and bids stand the exchanges that were settled and whose cells have not returned yet, unless -json, -t or a flag\n" +
			"chooses some of the offers and bids.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			list := pageOfAll(fs, "No offers and bids", func(e *env) listOf[*structs.Exchange] { return e.client.Exchanges().List }, func(list []*structs.Exchange) [][]string { return exchangeRows(list, false) })
			return func(ctx context.Context, e *env, args []string) int {
				code := list(ctx, e, args)
				chosen := false
				for _, name := range []string{"filter", "per-page", "page-token"} {
					chosen = chosen || unstated(fs, name) == ""
				}
				if code != exitDone || chosen || e.json || e.template != "" {
					return code
				}
				clusters, _, err := e.client.VirtualClusters().List(ctx, e.query())
				if err != nil {
					return e.fail(err)
				}
				if rows := settledRows(clusters, e.now()); len(rows) > 1 {
					e.printf("\n%s\n", e.style.Bold("Settled"))
					ui.Table(e.out, rows)
				}
				return exitDone
			}
		},
	}
}

// settledRows is a table of the exchanges that were settled and have not ended, by the time at which the cells return.
func settledRows(clusters []*structs.VirtualClusterStatus, now time.Time) [][]string {
	type bought struct {
		by string
		structs.CellChange
	}
	var all []bought
	for _, vc := range clusters {
		for _, c := range vc.Changes {
			if c.Why == structs.CellChangeWon && time.Unix(0, c.Until).After(now) {
				all = append(all, bought{vc.Name, c})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b bought) int { return cmp.Or(cmp.Compare(a.Until, b.Until), cmp.Compare(a.From, b.From)) })
	quotas := make([]*structs.CellQuota, 0, len(all))
	for i := range all {
		quotas = append(quotas, &all[i].Cells)
	}
	kinds := kindTexts(quotas)
	rows := [][]string{{"From Owner", "To Owner", "Kind", "Level", "Cells", "Points", "From", "Back at"}}
	for i := range all {
		c := &all[i]
		points := "" // of servers of an earlier version
		if c.Points > 0 {
			points = strconv.FormatInt(c.Points, 10)
		}
		rows = append(rows, []string{
			ui.OrNone(c.With), c.by, kinds[i], cellLevel(c.Cells.Level, c.Cells.Size), strconv.Itoa(c.Cells.Count), points,
			windowTime(time.Unix(0, c.From)), windowTime(time.Unix(0, c.Until)),
		})
	}
	return rows
}

// kindTexts returns the kinds of cells as they are shown: with the tree of a node only where they are of several trees of one model.
func kindTexts(list []*structs.CellQuota) []string {
	model := func(kind string) string {
		if parts := strings.SplitN(kind, "/", 4); len(parts) == 4 {
			return strings.Join(parts[:3], "/")
		}
		return kind
	}
	texts := make([]string, 0, len(list))
	for _, q := range list {
		text := model(q.Kind)
		if slices.ContainsFunc(list, func(o *structs.CellQuota) bool {
			return o.Kind != q.Kind && model(o.Kind) == text && strings.Count(o.Kind, "/") == 3
		}) {
			text = q.Kind
		}
		texts = append(texts, text)
	}
	return texts
}

// exchangeRows is a table of offers and bids.
func exchangeRows(list []*structs.Exchange, verbose bool) [][]string {
	rows := [][]string{{"ID", "Type", "Owner", "Kind", "Level", "Cells", "Points per Cell", "From", "Until"}}
	quotas := make([]*structs.CellQuota, 0, len(list))
	for _, x := range list {
		quotas = append(quotas, &x.Cells)
	}
	kinds := kindTexts(quotas)
	for i, x := range list {
		what, points := "offer", ""
		if x.Bid {
			what, points = "bid", strconv.FormatInt(x.Points, 10)
		}
		rows = append(rows, []string{
			short(x.ID, verbose), what, x.Owner, ui.OrNone(kinds[i]), cellLevel(x.Cells.Level, x.Cells.Size), strconv.Itoa(x.Cells.Count), points,
			windowTime(x.From), windowTime(x.Until),
		})
	}
	return rows
}

func vcWithdraw() spec {
	return spec{
		synopsis: "Take an offer or a bid back",
		usage:    "<exchange>", example: "5f3a9c01",
		details: "The offer or bid is given by its ID or a prefix of it. It can be taken back until it is settled. When the ID is shorter than the\n" +
			"short ID that lists print, the command asks for confirmation, or needs -yes.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			yes := fs.Bool("yes", false, "do not ask for confirmation")
			return func(ctx context.Context, e *env, args []string) int {
				if len(args) != 1 || args[0] == "" {
					return e.usage("one offer or bid is needed, %d given", len(args))
				}
				id := func(x *structs.Exchange) string { return x.ID }
				x, err := one(ctx, e, kind[*structs.Exchange]{
					word: "exchange", only: "an ID",
					list: func(ctx context.Context, q *api.Query) ([]*structs.Exchange, api.Meta, error) {
						all, meta, err := e.client.Exchanges().List(ctx, nil)
						return slices.DeleteFunc(all, func(x *structs.Exchange) bool { return !strings.HasPrefix(x.ID, q.Prefix) }), meta, err
					},
					id: id, name: id, rows: exchangeRows,
				}, args[0])
				if err != nil {
					return e.fail(err)
				}
				if guess := guessedShort(args[0], x.ID, ""); guess != "" && !*yes {
					if err := e.sure("Withdraw exchange", "exchange", guess, x.ID); err != nil {
						return e.fail(err)
					}
				}
				if err := e.client.Exchanges().Withdraw(ctx, x.ID); err != nil {
					return e.fail(err)
				}
				e.printf("Successfully withdrew %s of virtual cluster %q\n", short(x.ID, false), x.Owner)
				return exitDone
			}
		},
	}
}
