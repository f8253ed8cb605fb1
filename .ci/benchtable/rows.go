package main

import "regexp"

// Row is a line of the table: what is measured, by which benchmarks, and what it must
// reach.
type Row struct {
	Work string
	// Match finds the benchmarks by name, without "Benchmark" and the number of CPUs. Its
	// first group, if there is one, is what it was measured on.
	Match *regexp.Regexp
	Unit  string // the metric, as the benchmark names it
	Peer  string // what the current Nomad does, measured apart on a like machine
	Must  float64
	Want  float64
	// AtLeast: the more the better. Otherwise the less.
	AtLeast bool
	// Worst: one line for all benchmarks that match, of the one that does worst.
	Worst bool
	// Info: measured, but nothing is asked of it.
	Info bool
	// Trace: it is measured on a trace that is not part of the project, and not missed where
	// there is none (docs/design/numbers.md).
	Trace bool
}

func row(work, match, unit, peer string, must, want float64) Row {
	return Row{Work: work, Match: regexp.MustCompile("^" + match + "$"), Unit: unit, Peer: peer, Must: must, Want: want}
}

// reaching is a row of which more is better, with a want beyond the must.
func reaching(work, match, unit, peer string, must, want float64) Row {
	r := row(work, match, unit, peer, must, want)
	r.AtLeast = true
	return r
}

func atLeast(work, match, unit, peer string, must float64) Row {
	return reaching(work, match, unit, peer, must, must)
}

func info(work, match, unit string) Row {
	r := row(work, match, unit, "", 0, 0)
	r.Info = true
	return r
}

func worst(r Row) Row {
	r.Worst = true
	return r
}

func trace(r Row) Row {
	r.Trace = true
	return r
}

const (
	perPlacement  = "µs/placement"
	perEvaluation = "µs/evaluation"
)

// decisions is the table of the scheduler alone. Rows are printed in their order.
func decisions() []Row {
	return []Row{
		row("service, 10,000 instances", "Many/service/(.*)", perPlacement, "285–360; big nodes 1,150", 15, 5),
		row("batch, 10,000 instances", "Many/batch/(.*)", perPlacement, "30–54", 8, 3),
		row("service, 1 GPU each", "Many/gpu-1/(.*)", perPlacement, "490–540", 20, 8),
		row("service, 4 GPUs each", "Many/gpu-4/(.*)", perPlacement, "490–540", 20, 8),
		row("batch, 1 GPU each", "Many/gpu-1-batch/(.*)", perPlacement, "70", 20, 8),
		row("2 GPUs under one switch", "Many/topology-pcie-2/(.*)", perPlacement, "not had", 25, 10),
		row("4 GPUs under one socket", "Many/topology-socket-4/(.*)", perPlacement, "not had", 25, 10),
		row("with an affinity", "Scored/affinity-(.*)", perPlacement, "11,400–17,000", 30, 10),
		row("with a spread over 50 racks", "Scored/spread-50-racks-(.*)", perPlacement, "19,000–27,000", 30, 10),
		row("gang of 64 × 8 GPUs in one rack", "Gang/gang-8-gpus-each/(.*)", "µs/gang", "not had", 2000, 500),
		row("one instance, one job each: whole evaluation", "Single/one/(.*)", perEvaluation, "440 / 2,600 / 43,000 (1k / 10k / 50k)", 100, 30),
		row("1 GPU onto a cluster 95 % full", "Single/one-gpu-of-full/(.*)", perEvaluation, "11,000 / 18,000 (1k / 10k)", 25, 10),
		row("high priority onto a full cluster, 1k, 10k nodes", "Preempt/one/(.*=10?k)", perEvaluation, "31,000–61,000; 740,000–920,000", 200, 50),
		row("the same, 100 instances of one job", "Preempt/many/(.*)", perPlacement, "", 200, 50),
		row("growth 1k → 100k, many instances", "Growth/many/(.*)", "growth", "1.3–2", 1.3, 1.1),
		row("growth 1k → 100k, one instance", "Growth/single/(.*)", "growth", "100", 1.3, 1.1),
		worst(row("heap allocations, many instances: worst", "(?:Many|Scored)/(.*)", "allocs/placement", "250–2,800", 40, 15)),
		row("explained with the changes that would place it", "Explain/(.*)", "ms/explanation", "not had", 100, 50),
		row("hard world, first placement", "Hard/(.*)", "µs/first", "", 200, 200),
		row("hard world, following", "Hard/(.*)", "µs/following", "", 5, 5),
		row("index, two fine dimensions: search", "Index/search-2/(.*)", "µs/search", "", 1, 0.5),
		row("index, three fine dimensions: first", "Index/first-3/(.*)", "µs/search", "", 150, 20),
		row("index, three fine dimensions: following", "Index/following-3/(.*)", "µs/search", "", 2, 1),
		row("index: update in a transient", "Index/update/(.*)", "µs/update", "", 1, 0.5),
		row("index: update after a snapshot", "Index/update-snapshot/(.*)", "µs/update", "", 6, 3),
		row("index: growth 1k → 100k of pages visited", "Index/pages-growth/(.*)", "growth", "", 3, 3),
		atLeast("50 % held by 1-GPU jobs: 8-GPU jobs that fit", "Packing/fill-50/(.*)", "8-gpu-jobs", "178 batch, 429 service", 500),
		atLeast("75 % held by 1-GPU jobs: 8-GPU jobs that fit", "Packing/fill-75/(.*)", "8-gpu-jobs", "86 batch, 211 service", 250),
		atLeast("75 %, after 10,000 arrivals and departures", "Packing/churn-10k-at-75/(.*)", "%-of-ideal", "", 90),
		trace(atLeast("OpenB trace, default list: GPU allocation, %", "OpenB/(default)/least-.*", "%-allocated", "95.23 best published", 95.6)),
		trace(atLeast("OpenB trace, more sharing", "OpenB/(gpushare40)/least-.*", "%-allocated", "93.96 FGD", 93.76)),
		trace(atLeast("OpenB trace, more models asked for", "OpenB/(gpuspec10)/least-.*", "%-allocated", "94.66 FGD", 94.46)),
		trace(atLeast("OpenB trace, more of several GPUs", "OpenB/(multigpu20)/least-.*", "%-allocated", "95.53 FGD", 95.33)),
		trace(atLeast("OpenB trace, 20 % of the GPU tasks name models: points above FGD", "OpenB/naming-(20)/least-.*", "points-above-fgd", "", 0.5)),
		trace(atLeast("OpenB trace, 25 % of the GPU tasks name models: points above FGD", "OpenB/naming-(25)/least-.*", "points-above-fgd", "", 1)),
		trace(atLeast("OpenB trace, 33 % of the GPU tasks name models: points above FGD", "OpenB/naming-(33)/least-.*", "points-above-fgd", "", 4)),
		trace(row("OpenB trace: the published FGD, replayed by the benchmark, is off by", "OpenB/published/(fgd)", "points-off", "", 0.05, 0.01)),
		trace(row("OpenB trace: the published BestFit, replayed, is off by", "OpenB/published/(bestfit)", "points-off", "", 0.3, 0.05)),
		trace(row("OpenB trace: a decision, median of each replay", "OpenB/(.*)/least-.*", "µs/decision", "", 20, 10)),

		info("OpenB trace, binpack: GPU allocation, %", "OpenB/(.*)/binpack", "%-allocated"),
		info("OpenB trace, tasks that name models: GPU allocation, %", "OpenB/(naming-.*)/least-.*", "%-allocated"),
		info("OpenB trace, tasks that name models: FGD's GPU allocation, %", "OpenB/(naming-.*)/least-.*", "%-by-fgd"),
		info("OpenB trace: a decision, mean", "OpenB/(.*)", "µs/decision-mean"),
		row("1 GPU of 100 virtual clusters' cells", "Claims/guaranteed/(nodes=.*)/gpus=1", perEvaluation, "4,200 HiveD at 10,000", 50, 30),
		row("8 GPUs of 100 virtual clusters' cells", "Claims/guaranteed/(nodes=.*)/gpus=8", perEvaluation, "12,600 HiveD at 10,000", 100, 50),
		info("1 GPU, opportunistic, beside 100 virtual clusters", "Claims/opportunistic/(nodes=.*)", perEvaluation),
		row("beside 100 virtual clusters ÷ without any, 10k nodes", "Claims/(beside)", "ratio", "", 1.2, 1.1),
		row("growth 1k → 10k nodes of 100 virtual clusters", "Claims/growth/(.*)", "growth", "×8 to ×16 HiveD", 1.3, 1.2),
		row("reserve for a workflow of five stages of 200 jobs, 1k nodes", "Workflows/reserve/(.*)", "ms/reservation", "not had", 50, 25),
		row("beside 500 workflows that have reserved ÷ without any, 10k nodes", "Workflows/beside/(.*)", "ratio", "", 1.2, 1.1),
		info("one instance beside workflows, and without any", "Workflows/ordinary/(.*)", perEvaluation),
		info("start a stage of 1,000 jobs as one plan, borrowers leaving", "Workflows/stage/(.*)", "ms/plan"),
		info("how many of them leave", "Workflows/stage/(.*)", "leave"),

		info("least-fragmentation, many instances", "LeastFrag/many/(.*)", perPlacement),
		info("least-fragmentation, one instance", "LeastFrag/one/(.*)", perEvaluation),
		info("high priority onto a full cluster, 100k nodes", "Preempt/one/(.*=100k)", perEvaluation),
		info("heap allocations, one instance", "Single/one/(.*)", "allocs/evaluation"),
		info("growth 1k → 100k, racks of 64 too", "Growth/racks-too/(.*)", "growth"),
		info("index: pages visited by a search", "Index/(.*)", "pages/search"),
		info("75 %, 10,000 jobs of 1, 2, 4, 8 GPUs come and go", "Packing/churn-of-sizes-at-75/(.*)", "%-of-ideal"),
		info("dynamic ports", "Further/ports/(.*)", perPlacement),
		info("distinct hosts", "Further/distinct-hosts/(.*)", perPlacement),
		info("system job", "Further/system/(.*)", perPlacement),
		info("other policies", "Further/policy-(.*)", perPlacement),
		info("no room: looked for and explained", "Further/no-room/(.*)", perEvaluation),
		info("judged by the applier", "Commit/judge/(.*)", "µs/alloc"),
		info("followed by the state", "Commit/upsert-alloc/(.*)", "µs/alloc"),
	}
}
