package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func showNode(ctx context.Context, e *env, n *structs.Node, o nodeStatusOptions) int {
	allocs, _, err := e.client.Nodes().Allocations(ctx, n.ID, nil)
	if err != nil {
		return e.fail(err)
	}
	var host *structs.HostStats
	code := exitDone
	if n.Status == structs.NodeStatusReady && !o.short {
		limited, cancel := context.WithTimeout(ctx, statsPatience)
		host, err = e.client.Nodes().Stats(limited, n.ID)
		cancel()
		if err != nil && o.stats {
			code = e.fail(fmt.Errorf("read the resource usage of the node: %w", err))
		}
	}
	showNodeHead(&e.printer, n, host, slotSettingsOf(ctx, e, n))
	if !o.short {
		if o.verbose {
			showHostVolumes(&e.printer, n)
			showHostNetworks(&e.printer, n)
		}
		showDrivers(&e.printer, n)
		showNodeEvents(&e.printer, n)
		showAllocated(&e.printer, n, allocs)
		showDevices(&e.printer, n, allocs, o.verbose)
		if host != nil {
			showAllocationsUse(ctx, e, n, allocs)
			showHost(&e.printer, n, host, o.stats)
		}
	}
	e.printf("\n%s\n", e.style.Bold("Allocations"))
	if len(allocs) == 0 {
		e.printf("No allocations placed\n")
	} else {
		ui.Table(e.out, nodeAllocRows(&e.printer, allocs, o.verbose))
	}
	if o.verbose {
		showMap(&e.printer, "Attributes", n.Attributes)
		showMap(&e.printer, "Meta", n.Meta)
	}
	return code
}

// showNodeHead shows what a node is. slots are the settings by which its slots count; nil: the defaults.
func showNodeHead(p *printer, n *structs.Node, host *structs.HostStats, slots *structs.SlotSettings) {
	pairs := []ui.Pair{
		{Key: "ID", Value: n.ID}, {Key: "Name", Value: n.Name}, {Key: "Node Pool", Value: n.NodePool},
		{Key: "Class", Value: ui.OrNone(n.NodeClass)}, {Key: "DC", Value: n.Datacenter},
		{Key: "Drain", Value: drainText(n)}, {Key: "Eligibility", Value: n.SchedulingEligibility}, {Key: "Status", Value: n.Status},
	}
	if n.StatusDescription != "" {
		pairs = append(pairs, ui.Pair{Key: "Status Description", Value: n.StatusDescription})
	}
	if names := slices.Sorted(maps.Keys(n.HostVolumes)); len(names) > 0 {
		pairs = append(pairs, ui.Pair{Key: "Host Volumes", Value: strings.Join(names, ",")})
	}
	if names := healthyDrivers(n); len(names) > 0 {
		pairs = append(pairs, ui.Pair{Key: "Driver Status", Value: strings.Join(names, ",")})
	}
	if n.NodeResources != nil {
		pairs = append(pairs, ui.Pair{Key: "Slots", Value: slotsOffered(n, slots)})
	}
	if host != nil {
		pairs = append(pairs, ui.Pair{Key: "Uptime", Value: ui.Short(time.Duration(host.Uptime) * time.Second)}) // far below the limit
	}
	ui.Pairs(p.out, pairs)
}

// slotsOffered returns the slots that a node offers to calendars of projects, by type, and how many of them count if its cores and its memory hold
// fewer.
func slotsOffered(n *structs.Node, settings *structs.SlotSettings) string {
	counts, fit := map[string]int{}, settings.FittingSlots(n)
	n.AddSlots(counts)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		switch {
		case fit[name] < counts[name]:
			out = append(out, fmt.Sprintf("%s: %d (%d count: its cores and memory hold no more)", name, counts[name], fit[name]))
		case counts[name] > 0:
			out = append(out, fmt.Sprintf("%s: %d", name, counts[name]))
		}
	}
	return ui.OrNone(strings.Join(out, ", "))
}

// slotSettingsOf returns the settings by which the slots of a node count; nil, the defaults, if they cannot be read or it has none.
func slotSettingsOf(ctx context.Context, e *env, n *structs.Node) *structs.SlotSettings {
	counts := map[string]int{}
	if n.AddSlots(counts); len(counts) == 0 {
		return nil
	}
	config, err := e.client.Operator().SchedulerConfig(ctx)
	if err != nil || config == nil {
		return nil
	}
	return config.Slots
}

func drainText(n *structs.Node) string {
	d := n.DrainStrategy
	switch {
	case d == nil:
		return "false"
	case !d.ForceDeadline.IsZero():
		return "true; ends by " + ui.Time(d.ForceDeadline.UnixNano())
	case d.Deadline < 0:
		return "true; force drain"
	}
	return "true; no deadline"
}

func showDrivers(p *printer, n *structs.Node) {
	p.printf("\n%s\n", p.style.Bold("Drivers"))
	rows := [][]string{{"Driver", "Detected", "Healthy", "Message", "Time"}}
	var absent []string
	for _, name := range slices.Sorted(maps.Keys(n.Drivers)) {
		switch d := n.Drivers[name]; {
		case d == nil:
		case d.Detected:
			rows = append(rows, []string{name, fmt.Sprint(d.Detected), fmt.Sprint(d.Healthy), ui.OrNone(d.HealthDescription), timeOrNone(d.UpdateTime)})
		case d.HealthDescription != "": // why, which is too long for the table
			absent = append(absent, fmt.Sprintf("No driver %s: %s", name, d.HealthDescription))
		}
	}
	if len(rows) == 1 {
		p.printf("No drivers: nothing can run here\n")
	} else {
		ui.Table(p.out, rows)
	}
	for _, line := range absent {
		p.printf("%s\n", line)
	}
}

func showNodeEvents(p *printer, n *structs.Node) {
	if len(n.Events) == 0 {
		return
	}
	p.printf("\n%s\n", p.style.Bold("Node Events"))
	rows := [][]string{{"Time", "Subsystem", "Message", "Details"}}
	for _, ev := range slices.Backward(n.Events) {
		var details []string
		for _, key := range slices.Sorted(maps.Keys(ev.Details)) {
			details = append(details, key+": "+ev.Details[key])
		}
		rows = append(rows, []string{timeOrNone(ev.Timestamp), ev.Subsystem, ev.Message, ui.OrNone(strings.Join(details, ", "))})
	}
	ui.Table(p.out, rows)
}

// showAllocated is what of the node has been given away.
func showAllocated(p *printer, n *structs.Node, allocs []*structs.Allocation) {
	if n.NodeResources == nil {
		return
	}
	var cpu, memory, disk int64
	cores := 0
	for _, a := range allocs {
		if a.Terminal() {
			continue
		}
		c, m, d, k := a.AllocatedResources.Total()
		if a.Suspended() {
			c, k = 0, 0 // it keeps its memory and disk
		}
		cpu, memory, disk, cores = cpu+c, memory+m, disk+d, cores+k
	}
	total := n.NodeResources
	allCPU, allMemory, allDisk := total.Cpu.CpuShares, total.Memory.MemoryMB, total.Disk.DiskMB
	if r := n.ReservedResources; r != nil {
		allCPU, allMemory, allDisk = allCPU-int64(r.Cpu.CpuShares), allMemory-r.Memory.MemoryMB, allDisk-r.Disk.DiskMB // MHz fit
	}
	p.printf("\n%s\n", p.style.Bold("Allocated Resources"))
	ui.Table(p.out, [][]string{{"CPU", "Cores", "Memory", "Disk"}, {
		fmt.Sprintf("%d/%d MHz", cpu, allCPU), fmt.Sprintf("%d/%d", cores, len(total.Cpu.ReservableCpuCores)),
		ui.MiB(memory) + "/" + ui.MiB(allMemory), ui.MiB(disk) + "/" + ui.MiB(allDisk),
	}})
}

func showHost(p *printer, n *structs.Node, h *structs.HostStats, detailed bool) {
	p.printf("\n%s\n", p.style.Bold("Host Resource Utilization"))
	memory, disk, total := "<none>", "<none>", int64(0)
	if n.NodeResources != nil {
		total = n.NodeResources.Cpu.CpuShares
	}
	if h.Memory != nil {
		memory = ui.Bytes(h.Memory.Used) + "/" + ui.Bytes(h.Memory.Total)
	}
	if d := h.AllocDirStats; d != nil {
		disk = fmt.Sprintf("%s/%s (%s)", ui.Bytes(d.Used), ui.Bytes(d.Size), d.Mountpoint)
	}
	ui.Table(p.out, [][]string{{"CPU", "Memory", "Disk"}, {fmt.Sprintf("%.0f/%d MHz", h.CPUTicksConsumed, total), memory, disk}})
	if !detailed {
		return
	}
	p.printf("\n%s\n", p.style.Bold("CPU Stats"))
	rows := [][]string{{"CPU", "User", "System", "Idle"}}
	for _, c := range h.CPU {
		rows = append(rows, []string{c.CPU, fmt.Sprintf("%.2f%%", c.User), fmt.Sprintf("%.2f%%", c.System), fmt.Sprintf("%.2f%%", c.Idle)})
	}
	ui.Table(p.out, rows)
	p.printf("\n%s\n", p.style.Bold("Disk Stats"))
	rows = [][]string{{"Device", "MountPoint", "Size", "Used", "Available", "Used %"}}
	for _, d := range h.DiskStats {
		rows = append(rows, []string{d.Device, d.Mountpoint, ui.Bytes(d.Size), ui.Bytes(d.Used), ui.Bytes(d.Available), fmt.Sprintf("%.1f%%", d.UsedPercent)})
	}
	ui.Table(p.out, rows)
}

func nodeAllocRows(p *printer, allocs []*structs.Allocation, verbose bool) [][]string {
	stubs := make([]*structs.AllocListStub, 0, len(allocs))
	for _, a := range allocs {
		stubs = append(stubs, a.Stub(false, false))
	}
	rows := [][]string{{"ID", "Job ID", "Task Group", "Version", "Desired", "Status", "Created", "Modified"}}
	now := p.now()
	for _, a := range newestFirst(stubs) {
		rows = append(rows, []string{
			short(a.ID, verbose), a.JobID, a.TaskGroup, fmt.Sprint(a.JobVersion), a.DesiredStatus, statusText(a),
			ui.Ago(a.CreateTime, now), ui.Ago(a.ModifyTime, now),
		})
	}
	return rows
}

func showMap(p *printer, title string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	p.printf("\n%s\n", p.style.Bold(title))
	showPairs(p, m)
}

func showPairs(p *printer, m map[string]string) {
	var pairs []ui.Pair
	for _, key := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, ui.Pair{Key: key, Value: m[key]})
	}
	ui.Pairs(p.out, pairs)
}
