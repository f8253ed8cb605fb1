package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// healthyDrivers names the drivers that a node can run tasks with; one that is there and unwell is marked.
func healthyDrivers(n *structs.Node) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(n.Drivers)) {
		switch d := n.Drivers[name]; {
		case d == nil || !d.Detected:
		case d.Healthy:
			names = append(names, name)
		default:
			names = append(names, name+" (unhealthy)")
		}
	}
	return names
}

func showHostVolumes(p *printer, n *structs.Node) {
	if len(n.HostVolumes) == 0 {
		return
	}
	p.printf("\n%s\n", p.style.Bold("Host Volumes"))
	rows := [][]string{{"Name", "ReadOnly", "Source"}}
	for _, name := range slices.Sorted(maps.Keys(n.HostVolumes)) {
		if v := n.HostVolumes[name]; v != nil {
			rows = append(rows, []string{name, fmt.Sprint(v.ReadOnly), ui.OrNone(v.Path)})
		}
	}
	ui.Table(p.out, rows)
}

func showHostNetworks(p *printer, n *structs.Node) {
	rows := [][]string{{"Name", "Device", "Address", "Speed"}}
	if n.NodeResources != nil {
		for _, network := range n.NodeResources.NodeNetworks {
			if network == nil {
				continue
			}
			for _, a := range network.Addresses {
				rows = append(rows, []string{
					ui.OrNone(a.Alias), ui.OrNone(network.Device), cmp.Or(a.Address, "<none>"), fmt.Sprintf("%d Mbit/s", network.Speed),
				})
			}
		}
	}
	if len(rows) == 1 {
		return
	}
	p.printf("\n%s\n", p.style.Bold("Host Networks"))
	ui.Table(p.out, rows)
}

// showAllocationsUse is what the node's running allocations use together. It is left out where the node does not
// answer for all of them in time.
func showAllocationsUse(ctx context.Context, e *env, n *structs.Node, allocs []*structs.Allocation) {
	limited, cancel := context.WithTimeout(ctx, statsPatience)
	defer cancel()
	cpu, memory := 0.0, uint64(0)
	for _, a := range allocs {
		if a.ClientStatus != structs.AllocClientRunning {
			continue
		}
		used, err := e.client.Allocations().Stats(limited, a.ID)
		if err != nil {
			return
		}
		if used == nil {
			continue
		}
		for _, task := range used.Tasks { // a sum
			if task == nil || task.ResourceUsage == nil {
				continue
			}
			if c := task.ResourceUsage.CpuStats; c != nil {
				cpu += c.TotalTicks
			}
			if m := task.ResourceUsage.MemoryStats; m != nil {
				memory += cmp.Or(m.Usage, m.RSS)
			}
		}
	}
	total := n.NodeResources
	if total == nil {
		return
	}
	e.printf("\n%s\n", e.style.Bold("Allocation Resource Utilization"))
	ui.Table(e.out, [][]string{{"CPU", "Memory"}, {
		fmt.Sprintf("%.0f/%d MHz", cpu, total.Cpu.CpuShares), ui.Bytes(memory) + "/" + ui.MiB(total.Memory.MemoryMB),
	}})
}
