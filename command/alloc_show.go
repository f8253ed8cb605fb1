package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// taskNames are the names of an allocation's tasks: those of its job, in the order
// of the file, or those that its node has reported.
func taskNames(a *structs.Allocation) []string {
	if a.Job != nil {
		if g := a.Job.LookupTaskGroup(a.TaskGroup); g != nil {
			names := make([]string, 0, len(g.Tasks))
			for _, t := range g.Tasks {
				names = append(names, t.Name)
			}
			return names
		}
	}
	return slices.Sorted(maps.Keys(a.TaskStates))
}

func showTaskStates(p *printer, a *structs.Allocation) {
	p.printf("\n%s\n", p.style.Bold("Tasks"))
	rows := [][]string{{"Name", "State", "Last Event", "Time"}}
	for _, name := range taskNames(a) {
		row := []string{name, "pending", "<none>", "<none>"}
		if s := a.TaskStates[name]; s != nil {
			row[1] = taskWord(a, s)
			if n := len(s.Events); n > 0 {
				row[2], row[3] = s.Events[n-1].Type, ui.Time(s.Events[n-1].Time)
			}
		}
		rows = append(rows, row)
	}
	ui.Table(p.out, rows)
}

// taskWord is what a task does: what runs in an allocation that is suspended is suspended.
func taskWord(a *structs.Allocation, s *structs.TaskState) string {
	if a.ClientStatus == structs.AllocClientSuspended && s.State == structs.TaskStateRunning {
		return structs.AllocClientSuspended
	}
	return s.State
}

// showAddresses lists the allocation's ports.
func showAddresses(to *printer, a *structs.Allocation) {
	if a.AllocatedResources == nil || len(a.AllocatedResources.Shared.Ports) == 0 {
		return
	}
	to.printf("\n%s\n", to.style.Bold("Allocation Addresses:"))
	rows := [][]string{{"Label", "Dynamic", "Address"}}
	for _, p := range a.AllocatedResources.Shared.Ports {
		dynamic := "yes"
		if static(a, p.Label) {
			dynamic = "no"
		}
		address := net.JoinHostPort(p.HostIP, strconv.Itoa(p.Value))
		if p.To > 0 && p.To != p.Value {
			address += fmt.Sprintf(" -> %d", p.To)
		}
		rows = append(rows, []string{p.Label, dynamic, address})
	}
	ui.Table(to.out, rows)
}

// static reports whether the job requested that very port.
func static(a *structs.Allocation, label string) bool {
	if a.Job == nil {
		return false
	}
	g := a.Job.LookupTaskGroup(a.TaskGroup)
	if g == nil {
		return false
	}
	for _, n := range g.Networks {
		if slices.ContainsFunc(n.ReservedPorts, func(p structs.Port) bool { return p.Label == label }) {
			return true
		}
	}
	return false
}

func showTask(p *printer, a *structs.Allocation, name string, used *structs.AllocResourceUsage, o allocStatusOptions) {
	state := a.TaskStates[name]
	if state == nil {
		state = &structs.TaskState{State: structs.TaskStatePending}
	}
	text := taskWord(a, state)
	switch {
	case text == structs.AllocClientSuspended:
		text = p.style.Yellow(text)
	case state.Failed:
		text = p.style.Red(text + " (failed)")
	case state.State == structs.TaskStateRunning:
		text = p.style.Green(text)
	}
	p.printf("\n%s is %s\n", p.style.Bold(fmt.Sprintf("Task %q", name)), text)
	var usage *structs.ResourceUsage
	if used != nil && used.Tasks[name] != nil {
		usage = used.Tasks[name].ResourceUsage
	}
	showTaskResources(p, a, name, usage)
	if o.stats && usage != nil {
		showUsage(p, usage)
	}
	p.printf("\nTask Events:\n")
	pairs := []ui.Pair{
		{Key: "Started At", Value: timeOrNone(state.StartedAt)}, {Key: "Finished At", Value: timeOrNone(state.FinishedAt)},
		{Key: "Total Restarts", Value: fmt.Sprint(state.Restarts)}, {Key: "Last Restart", Value: timeOrNone(state.LastRestart)},
	}
	if code, ended := state.ExitCode(); ended {
		pairs = append(pairs, ui.Pair{Key: "Exit Code", Value: fmt.Sprint(code)})
	}
	ui.Pairs(p.out, pairs)
	if len(state.Events) == 0 {
		return
	}
	p.printf("\nRecent Events:\n")
	rows := [][]string{{"Time", "Type", "Description"}}
	for _, ev := range slices.Backward(state.Events) {
		rows = append(rows, []string{ui.Time(ev.Time), ev.Type, ui.OrNone(eventText(ev))})
	}
	ui.Table(p.out, rows)
}

func timeOrNone(t time.Time) string {
	if t.IsZero() {
		return "<none>"
	}
	return ui.Time(t.UnixNano())
}

// showTaskResources is what the task was given, and what it uses of it.
func showTaskResources(p *printer, a *structs.Allocation, name string, usage *structs.ResourceUsage) {
	if a.AllocatedResources == nil || a.AllocatedResources.Tasks[name] == nil {
		return
	}
	given := a.AllocatedResources.Tasks[name]
	cpu, memory := fmt.Sprintf("%d MHz", given.Cpu.CpuShares), ui.MiB(given.Memory.MemoryMB)
	if usage != nil && usage.CpuStats != nil {
		cpu = fmt.Sprintf("%.0f/%s", usage.CpuStats.TotalTicks, cpu)
	}
	if usage != nil && usage.MemoryStats != nil {
		memory = ui.Bytes(cmp.Or(usage.MemoryStats.Usage, usage.MemoryStats.RSS)) + "/" + memory
	}
	row := []string{cpu, memory, ui.MiB(a.AllocatedResources.Shared.DiskMB)}
	head := []string{"CPU", "Memory", "Disk"}
	if len(given.Cpu.ReservedCores) > 0 {
		head, row = append(head, "Cores"), append(row, fmt.Sprint(given.Cpu.ReservedCores))
	}
	if given.Memory.MemoryMaxMB > 0 {
		head, row = append(head, "Memory Max"), append(row, ui.MiB(given.Memory.MemoryMaxMB))
	}
	p.printf("Task Resources:\n")
	ui.Table(p.out, [][]string{head, row})
	showTaskDevices(p, given.Devices)
}

func showUsage(p *printer, u *structs.ResourceUsage) {
	if m := u.MemoryStats; m != nil {
		p.printf("\nMemory Stats\n")
		ui.Table(p.out, [][]string{
			{"RSS", "Cache", "Swap", "Usage", "Max Usage"},
			{ui.Bytes(m.RSS), ui.Bytes(m.Cache), ui.Bytes(m.Swap), ui.Bytes(m.Usage), ui.Bytes(m.MaxUsage)},
		})
	}
	if c := u.CpuStats; c != nil {
		p.printf("\nCPU Stats\n")
		ui.Table(p.out, [][]string{
			{"Percent", "User", "System", "MHz", "Throttled Periods"},
			{
				fmt.Sprintf("%.2f%%", c.Percent), fmt.Sprintf("%.2f%%", c.UserMode), fmt.Sprintf("%.2f%%", c.SystemMode),
				fmt.Sprintf("%.0f", c.TotalTicks), fmt.Sprint(c.ThrottledPeriods),
			},
		})
	}
}

// showWhy prints why the allocation is where it is, and what it may lose its place to. A
// server that does not know leaves it out.
func showWhy(ctx context.Context, e *env, a *structs.Allocation) {
	limited, cancel := context.WithTimeout(ctx, statsPatience)
	defer cancel()
	x, _, err := e.client.Allocations().Explain(limited, a.ID, e.query())
	if err != nil || x == nil || len(x.Text) == 0 {
		return
	}
	e.printf("\n%s\n", e.style.Bold("Why Here, and What It May Lose"))
	for _, line := range x.Text {
		e.printf("  * %s\n", line)
	}
}

// showMetrics prints how the node was chosen.
func showMetrics(p *printer, m *structs.AllocMetric) {
	if m == nil {
		return
	}
	p.printf("\n%s\n", p.style.Bold("Placement Metrics"))
	p.printf("  * %s looked at, %d filtered, %d without room\n", plural(m.NodesEvaluated, "node"), m.NodesFiltered, m.NodesExhausted)
	if m.AllocationTime > 0 {
		p.printf("  * Decided in %s\n", m.AllocationTime.Round(time.Microsecond))
	}
	for _, line := range explain(m) {
		p.printf("  * %s\n", line)
	}
	if len(m.ScoreMetaData) == 0 {
		return
	}
	columns := map[string]bool{}
	for _, s := range m.ScoreMetaData {
		for name := range s.Scores {
			columns[name] = true
		}
	}
	names := slices.Sorted(maps.Keys(columns))
	rows := [][]string{append(append([]string{"Node"}, names...), "Final Score")}
	for _, s := range m.ScoreMetaData {
		row := []string{short(s.NodeID, true)}
		for _, name := range names {
			row = append(row, fmt.Sprintf("%.3g", s.Scores[name]))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.3g", s.NormScore)))
	}
	ui.Table(p.out, rows)
}
