package tracefile

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/nomadish/nomadish/scheduler/trace"
	"github.com/nomadish/nomadish/structs"
)

// Mix is a mix of workflows and single jobs to be generated. Sizes are in units: a GPU with its part of its node, or, where no node has a GPU, a core.
type Mix struct {
	Nodes []*structs.Node
	Seed  uint64
	// Span is the time in which all arrives.
	Span time.Duration
	// Load is the demand in parts of all that the nodes could do in that time, Workflows the part of it that is of workflows.
	Load, Workflows float64
	// Stage and Single are how long a stage and a single job run, on average.
	Stage, Single time.Duration
}

// maxMixRows bounds what is generated.
const maxMixRows = 1_000_000

// unit is what sizes are counted in.
type unit struct {
	cpu, memory, gpus int
	all               int // of all nodes
	most              int // of a job's instance: a power of two that the smallest node with any has
}

// teams are those of whom single jobs are, and who borrow.
var teams = []string{"team-a", "team-b", "team-c"}

// flowTeam is whose the workflows are.
const flowTeam = "flows"

// Rows returns the rows of the mix in the order of their arrival: the same ones for the same Mix.
func (m *Mix) Rows() ([]*trace.Row, error) {
	u, err := m.unit()
	if err != nil {
		return nil, err
	}
	demand := m.Load * float64(u.all) * m.Span.Seconds()
	if n := demand / m.Single.Seconds() / 2; n > maxMixRows {
		return nil, fmt.Errorf("some %.0f jobs would be generated, at most %d are: state a shorter time, longer jobs, or fewer nodes", n, maxMixRows)
	}
	g := &generator{Mix: m, unit: u, rand: rand.New(rand.NewPCG(m.Seed, 0))} // reproducible, and not for secrets
	var flows [][]*trace.Row
	for left := demand * m.Workflows; left > 0; {
		rows := g.workflow(len(flows) + 1)
		for _, r := range rows {
			left -= g.work(r)
		}
		flows = append(flows, rows)
	}
	var list []*trace.Row
	for left := demand * (1 - m.Workflows); left > 0; {
		r := g.single()
		left -= g.work(r)
		list = append(list, r)
	}
	slices.SortStableFunc(list, byArrival)
	for i, r := range list {
		r.Name = fmt.Sprintf("job-%d", i+1)
	}
	for _, rows := range flows {
		list = append(list, rows...) // each stays together, as all of it arrives at once
	}
	slices.SortStableFunc(list, byArrival)
	return list, nil
}

func byArrival(a, b *trace.Row) int { return cmp.Compare(a.Arrival, b.Arrival) }

// unit returns what sizes are counted in.
func (m *Mix) unit() (u unit, err error) {
	gpus := MostGPUs(m.Nodes) > 0
	least := math.MaxInt
	for _, n := range m.Nodes {
		has, cpu, memory := int(n.NodeResources.Cpu.CpuShares)/mhzPerCore, int(n.NodeResources.Cpu.CpuShares), int(n.NodeResources.Memory.MemoryMB)
		if gpus {
			has = MostGPUs([]*structs.Node{n})
		}
		if has == 0 {
			continue
		}
		u.all, least = u.all+has, min(least, has)
		if cpu, memory = cpu/has, memory/has; u.cpu == 0 {
			u.cpu, u.memory = cpu, memory
		}
		u.cpu, u.memory = min(u.cpu, cpu), min(u.memory, memory)
	}
	if u.all == 0 || u.cpu == 0 {
		return u, errors.New("no node has a core of 1000 MHz, or a GPU with a part of a core")
	}
	if u.gpus = 0; gpus {
		u.gpus = 1
	} else {
		u.cpu = mhzPerCore
	}
	for u.most = 1; 2*u.most <= least; {
		u.most *= 2
	}
	return u, nil
}

// generator draws rows.
type generator struct {
	*Mix
	unit
	rand *rand.Rand
}

// between draws a number of a range.
func (g *generator) between(low, high int) int { return low + g.rand.IntN(high-low+1) }

// around draws a time from a part to a multiple of another, in whole seconds.
func (g *generator) around(d time.Duration, low, high float64) time.Duration {
	return time.Duration(max(1, math.Round(d.Seconds()*(low+(high-low)*g.rand.Float64())))) * time.Second
}

// work is what a row takes, in units times seconds.
func (g *generator) work(r *trace.Row) float64 {
	return float64(r.Count) * float64(r.CPU) / float64(g.cpu) * r.Duration.Seconds()
}

// row returns a row of so many instances of so many units.
func (g *generator) row(count, units int, duration time.Duration) *trace.Row {
	return &trace.Row{Count: count, CPU: units * g.cpu, MemoryMB: units * g.memory / 2, GPUs: units * g.gpus, Duration: duration}
}

// arrival draws when something arrives.
func (g *generator) arrival() time.Duration {
	return time.Duration(g.rand.Float64()*g.Span.Seconds()) * time.Second
}

// single draws a single job: most are small, and their times vary as those of real ones do, about ten times more or less than the mean.
func (g *generator) single() *trace.Row {
	units := min(g.most, []int{1, 1, 1, 1, 2, 2, 4, 8}[g.rand.IntN(8)])
	duration := time.Second + time.Duration(min(10, g.rand.ExpFloat64())*g.Single.Seconds())*time.Second
	r := g.row(1, units, duration)
	r.Arrival, r.Tenant, r.Priority = g.arrival(), teams[g.rand.IntN(len(teams))], g.between(45, 60)
	if g.rand.IntN(10) > 0 { // the others state no limit, and do not borrow
		r.MaxRun = g.limit(duration)
	}
	if g.rand.IntN(3) == 0 {
		r.Reclaim = structs.ReclaimSuspend
	}
	return r
}

// limit draws a time limit as people state them: a round one that is not less than a tenth above what is needed.
func (g *generator) limit(duration time.Duration) time.Duration {
	need := g.around(duration, 1.1, 1.5)
	for _, limit := range []time.Duration{5 * time.Minute, 15 * time.Minute} {
		if need <= limit {
			return limit
		}
	}
	return (need + 30*time.Minute - 1).Truncate(30 * time.Minute)
}

// workflow draws a workflow of three to six stages, the largest of which takes an eighth to a third of all.
func (g *generator) workflow(number int) (rows []*trace.Row) {
	name, arrival, priority := fmt.Sprintf("flow-%d", number), g.arrival(), g.between(50, 80)
	peak := max(1, g.between(g.all/8, g.all/3))
	sizes := make([]int, g.between(3, 6))
	for i := range sizes {
		sizes[i] = max(1, peak>>g.between(0, 3))
	}
	sizes[g.rand.IntN(len(sizes))] = peak
	lend := g.lend()
	for i, size := range sizes {
		length := g.around(g.Stage, 0.5, 1.5)
		for k, part := range g.jobs(size) {
			r := g.row(part.count, part.units, length)
			if k > 0 {
				r.Duration = g.around(length, 0.6, 1)
			}
			r.Name, r.Tenant, r.Priority, r.Arrival = name, flowTeam, priority, arrival
			r.MaxRun = g.limit(r.Duration)
			r.Workflow = &trace.WorkflowRow{Name: name, Stage: i + 1, Reserve: structs.ReserveMax, Lend: lend}
			rows = append(rows, r)
		}
	}
	return rows
}

// part is instances of a job, of so many units each.
type part struct{ count, units int }

// jobs divides a stage into jobs of instances of equal size, the largest instances first: so they find room in any order of nodes.
func (g *generator) jobs(size int) (list []part) {
	for units := min(g.most, []int{2, 4, 8, 16}[g.rand.IntN(4)]); size > 0; units = max(1, units/2) {
		count := size / units
		if count > 1 && units > 1 {
			count = g.between(count/2, count)
		}
		if count > 0 {
			list = append(list, part{count, units})
			size -= count * units
		}
	}
	return list
}

// lend draws to whom a workflow lends: to all, or to the teams by shares.
func (g *generator) lend() (list []*structs.WorkflowLend) {
	if g.rand.IntN(2) == 0 {
		return []*structs.WorkflowLend{{To: "node_pool:" + structs.DefaultNodePool}}
	}
	for i, team := range teams {
		list = append(list, &structs.WorkflowLend{To: "namespace:" + team, Share: 1 + i%2, LendLonger: g.rand.IntN(4) == 0})
	}
	return list
}

// WriteSimple writes rows in the simple format.
func WriteSimple(w io.Writer, rows []*trace.Row) error {
	c := csv.NewWriter(w)
	names := make([]string, len(simpleColumns))
	for i, column := range simpleColumns {
		names[i] = column.name
	}
	if err := c.Write(names); err != nil {
		return err
	}
	for _, r := range rows {
		if err := c.Write(simpleFields(r)); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// simpleFields are the fields of a row in the order of simpleColumns.
func simpleFields(r *trace.Row) []string {
	optional := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	limit, gang := "", ""
	if r.MaxRun > 0 {
		limit = secondsText(r.MaxRun)
	}
	if r.Gang {
		gang = "true"
	}
	duration := ""
	if r.Duration != trace.Forever {
		duration = secondsText(r.Duration)
	}
	models := ""
	for i, m := range r.Models {
		if i > 0 {
			models += "|"
		}
		models += m
	}
	fields := []string{
		secondsText(r.Arrival), duration, strconv.Itoa(r.Count), strconv.Itoa(r.CPU), strconv.Itoa(r.MemoryMB), optional(r.GPUs), optional(r.Share),
		models, r.Tenant, optional(r.Priority), gang, limit, r.Reclaim, r.Name,
	}
	if w := r.Workflow; w != nil {
		return append(fields, w.Name, strconv.Itoa(w.Stage), w.Reserve, lendsText(w.Lend))
	}
	return append(fields, "", "", "", "")
}

func secondsText(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
