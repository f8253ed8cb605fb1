package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/command/report"
	"github.com/nomadish/nomadish/command/tracefile"
	"github.com/nomadish/nomadish/scheduler/trace"
	"github.com/nomadish/nomadish/structs"
)

// policyBestFit is the published method that replays are proved with. It is no policy of
// the scheduler.
const policyBestFit = "openb-bestfit"

// simRunOptions is a `sim run` as it was requested.
type simRunOptions struct {
	nodes, trace, format, order, nodeRank string
	config, out                           string
	policies, seeds, until                string
	virtualClusters, sharing              string
	reservations                          string
	forecast, horizon, limits             string
	forecastFrom, forecastUntil           string
	drop                                  bool
	sortRows, parallel                    int
}

func simRun() spec {
	return spec{
		synopsis: "Replay a workload trace on the real scheduler in virtual time",
		usage:    "", example: "-nodes examples/trace-nodes.hcl -trace examples/trace-small.csv -policy binpack,spread -out report",
		local: true,
		details: "No cluster is needed. Each policy is replayed with each seed, on all cores. The results are written to a directory:\n" +
			"figures.json, figures.csv and report.html, which are identical for identical input, and timing.json.\n" +
			"docs/guides/simulation.md describes files and figures.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var o simRunOptions
			fs.StringVar(&o.nodes, "nodes", "", "a `file`: shapes as `sim nodes` reads them (.hcl), or an OpenB node list (.csv)")
			fs.StringVar(&o.trace, "trace", "", "the trace, a CSV `file`, gzip or plain")
			fs.StringVar(&o.format, "format", tracefile.FormatAuto, "its `format`: "+strings.Join(tracefile.Formats(), ", "))
			fs.StringVar(&o.order, "order", "", "a `file` with the order of arrival of the rows for each seed; implies -drop")
			fs.StringVar(&o.nodeRank, "node-rank", "", "a `file` that breaks ties between equal scores of "+policyBestFit+" by seed and node")
			fs.StringVar(&o.policies, "policy", "", "`policies`, with commas: "+strings.Join(simPolicies(), ", ")+" (default: the configuration's)")
			fs.StringVar(&o.seeds, "seed", "1", "`seeds`, with commas or as a range: 42-51")
			fs.StringVar(&o.until, "until", "", "end when the demand for GPUs that arrived is so much of all there are: `130%`")
			fs.BoolVar(&o.drop, "drop", false, "nobody leaves, and what does not fit when it arrives is dropped")
			fs.StringVar(&o.config, "config", "", "a `file` with the scheduler's configuration: an agent's (.hcl), or as get-config -json prints it (.json)")
			fs.StringVar(&o.virtualClusters, "virtual-clusters", "", "a `file` with what tenants own, blocks virtual_cluster \"NAME\" { … }; or "+
				sharesByPeak+": whole nodes in proportion to the tenants' peaks")
			fs.StringVar(&o.sharing, "sharing", "", "`ways` of sharing what virtual clusters own, with commas: "+strings.Join(trace.Sharings(), ", ")+
				" (default "+trace.SharingCells+")")
			fs.StringVar(&o.reservations, "reservations", "", "`ways` in which workflows of the trace run, with commas: "+strings.Join(trace.Reservations(), ", ")+
				" (default "+trace.ReservationsLend+")")
			o.forecastFlags(fs)
			fs.StringVar(&o.out, "out", "", "the `folder` for what is found")
			fs.IntVar(&o.sortRows, "sort-rows", tracefile.DefaultSortRows, "how many `rows` are sorted in memory; a longer trace must be sorted by arrival")
			fs.IntVar(&o.parallel, "parallel", runtime.GOMAXPROCS(0), "how many `replays` run at a time")
			return func(ctx context.Context, e *env, args []string) int {
				if what := o.missing(); what != "" {
					return e.usage("%s is needed", what)
				}
				plan, err := o.plan()
				if err != nil {
					return e.fail(err)
				}
				if err := report.Ready(o.out); err != nil { // not after hours of work
					return e.fail(fmt.Errorf("-out: %w", err))
				}
				return plan.run(ctx, e)
			}
		},
	}
}

// simPolicies are all policies that may be named.
func simPolicies() []string { return append(structs.Policies(), policyBestFit) }

// missing names the first flag that must be there and is not.
func (o *simRunOptions) missing() string {
	for _, f := range []struct{ name, value string }{{"-nodes FILE", o.nodes}, {"-trace FILE", o.trace}, {"-out DIR", o.out}} {
		if f.value == "" {
			return f.name
		}
	}
	return ""
}

// simPlan is a `sim run` ready to go.
type simPlan struct {
	o        *simRunOptions
	nodes    []*structs.Node
	trace    *tracefile.Trace
	order    tracefile.Order
	ranks    map[uint64]map[string]int
	config   structs.SchedulerConfiguration
	policies []string
	seeds    []uint64
	until    float64
	// virtualClusters are what tenants own, and sharings how it is shared.
	virtualClusters []*structs.VirtualCluster
	sharings        []string
	// reservations are how workflows run.
	reservations []string
	// every is the time between forecasts, and horizon how far they look; 0: there are none.
	every, horizon time.Duration
	// from and to are when forecasts are made, since the trace's start; to 0: to the end.
	from, to time.Duration
}

// plan reads all that is named, and refuses what does not go together.
func (o *simRunOptions) plan() (*simPlan, error) {
	p := &simPlan{o: o}
	var err error
	if o.parallel < 1 {
		return nil, fmt.Errorf("-parallel %d: must be 1 or more; all cores unless stated", o.parallel)
	}
	if o.sortRows < 1 {
		return nil, fmt.Errorf("-sort-rows %d: must be 1 or more; %d unless stated", o.sortRows, tracefile.DefaultSortRows)
	}
	if p.seeds, err = parseSeeds(o.seeds); err != nil {
		return nil, err
	}
	if p.until, err = parseUntil(o.until); err != nil {
		return nil, err
	}
	if p.config, err = readSchedulerConfig(o.config); err != nil {
		return nil, err
	}
	if p.policies, err = parsePolicies(o.policies, &p.config); err != nil {
		return nil, err
	}
	if p.nodes, err = tracefile.OpenNodes(o.nodes); err != nil {
		return nil, err
	}
	limits, err := parseLimits(o.limits)
	if err != nil {
		return nil, err
	}
	p.trace, err = tracefile.Open(o.trace, tracefile.Options{
		Format: o.format, GPUsPerNode: tracefile.MostGPUs(p.nodes), SortRows: o.sortRows, Limits: limits,
	})
	if err != nil {
		return nil, err
	}
	if err := p.together(); err != nil {
		return nil, err
	}
	if err := p.readReservations(); err != nil {
		return nil, err
	}
	if err := p.readSharing(); err != nil {
		return nil, err
	}
	return p, p.readForecast()
}

// together reads what depends on the trace, and refuses what does not go together.
func (p *simPlan) together() (err error) {
	o := p.o
	o.drop = o.drop || o.order != ""
	switch {
	case o.drop && p.trace.Len() < 0:
		return fmt.Errorf("-drop and -order: the trace is kept in memory, and has over %d rows; allow more with -sort-rows", o.sortRows)
	case o.drop && o.order == "" && p.until == 0:
		return errors.New("-drop without -order draws rows without end: set the end with -until, such as -until 130%")
	case !o.drop && p.until > 0:
		return errors.New("-until: counts the demand that arrives while nobody leaves: use it with -drop, or with -order FILE; " +
			"without them a replay ends when all work is done")
	case !o.drop && p.trace.Timeless:
		return errors.New("the trace has no arrival times (creation_time is missing): use -drop, or -order FILE")
	case p.until > 0 && tracefile.MostGPUs(p.nodes) == 0:
		return errors.New("-until: it counts GPUs, and no node has any")
	case !o.drop && slices.Contains(p.policies, policyBestFit):
		return fmt.Errorf("policy %s: is for packing only, where nobody leaves: use -drop, or -order FILE", policyBestFit)
	}
	if o.order != "" {
		if p.order, err = tracefile.OpenOrder(o.order, p.trace.Len()); err != nil {
			return err
		}
		for _, seed := range p.seeds {
			if len(p.order[seed]) == 0 {
				return fmt.Errorf("-seed %d: %s has no order of that seed", seed, filepath.Base(o.order))
			}
		}
	}
	if o.nodeRank != "" {
		p.ranks, err = tracefile.OpenRanks(o.nodeRank)
	}
	return err
}

// maxSeeds bounds the replays of one command.
const maxSeeds = 1000

// parseSeeds reads "42-51,7".
func parseSeeds(s string) ([]uint64, error) {
	var out []uint64
	for part := range strings.SplitSeq(s, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.ParseUint(low, 10, 53)
		to := from
		if err == nil && isRange {
			to, err = strconv.ParseUint(high, 10, 53)
		}
		if err != nil || to < from || to-from >= maxSeeds || len(out)+int(to-from) >= maxSeeds { // below maxSeeds
			return nil, fmt.Errorf("-seed %q: must be numbers from 0, with commas or as a range from the lower to the higher such as 42-51, at most %d of them", part, maxSeeds)
		}
		for seed := from; seed <= to; seed++ {
			if slices.Contains(out, seed) {
				return nil, fmt.Errorf("-seed: %d is named twice", seed)
			}
			out = append(out, seed)
		}
	}
	return out, nil
}

// parseUntil reads "130%" or "1.3"; 0: not stated.
func parseUntil(s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	v, err := parsePercent(s)
	if err != nil || !(v > 0 && v <= 1e6) {
		return 0, fmt.Errorf("-until %q: must be a part of all GPUs above 0, such as 130%%", s)
	}
	return v, nil
}

// parsePercent reads "130%" or "1.3".
func parsePercent(s string) (float64, error) {
	digits, isPercent := strings.CutSuffix(strings.TrimSpace(s), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if isPercent {
		v /= 100
	}
	return v, err
}

// parsePolicies reads "binpack,spread".
func parsePolicies(s string, c *structs.SchedulerConfiguration) ([]string, error) {
	if s == "" {
		return []string{c.NodeOrder()}, nil
	}
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		name := strings.TrimSpace(part)
		if !slices.Contains(simPolicies(), name) {
			return nil, fmt.Errorf("-policy %q: is not known; there are %s", name, strings.Join(simPolicies(), ", "))
		}
		if slices.Contains(out, name) {
			return nil, fmt.Errorf("-policy: %s is named twice", name)
		}
		out = append(out, name)
	}
	return out, nil
}
