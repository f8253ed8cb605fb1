package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// claimText returns what an allocation has a claim on.
func claimText(c *structs.AllocClaim) string {
	switch {
	case c.Kind == structs.ClaimWorkflow:
		return "reserved by workflow " + c.Owner
	case c.Kind != structs.ClaimSlots:
		return "level " + c.Level
	case c.Level != "":
		return fmt.Sprintf("slot of type %s of project %s, level %s", c.Type, c.Owner, c.Level)
	}
	return fmt.Sprintf("slot of type %s of project %s", c.Type, c.Owner)
}

// gangText returns which member of its gang an allocation is.
func gangText(g *structs.AllocGang) string {
	text := fmt.Sprintf("rank %d of %d", g.Rank, g.Size)
	if g.Level != "" {
		text += ", all under one " + g.Level
	}
	return text
}

// showTaskDevices lists the devices that a task was given, and how near they are.
func showTaskDevices(p *printer, devices []*structs.AllocatedDeviceResource) {
	if len(devices) == 0 {
		return
	}
	p.printf("\nTask Devices:\n")
	rows := [][]string{{"Name", "Share", "Level", "IDs"}}
	for _, d := range devices {
		share := "whole"
		if d.Share > 0 && d.Share < structs.DeviceShareWhole {
			share = fmt.Sprintf("%d/%d", d.Share, structs.DeviceShareWhole)
		}
		rows = append(rows, []string{d.Vendor + "/" + d.Type + "/" + d.Name, share, ui.OrNone(d.Level), strings.Join(d.DeviceIDs, ",")})
	}
	ui.Table(p.out, rows)
}

// showDevices counts a node's devices by kind, and names what is not well; each with
// who holds it, if requested.
func showDevices(p *printer, n *structs.Node, allocs []*structs.Allocation, verbose bool) {
	if n.NodeResources == nil || len(n.NodeResources.Devices) == 0 {
		return
	}
	owners := deviceOwners(allocs, verbose)
	p.printf("\n%s\n", p.style.Bold("Devices"))
	rows := [][]string{{"Name", "All", "Used", "Free", "Unhealthy"}}
	each := [][]string{{"ID", "PCI Bus ID", "Health", "Used By"}}
	var bad []string
	for _, group := range n.NodeResources.Devices {
		used, free, unwell := 0, 0, 0
		for _, d := range group.Instances {
			reserved := owners[d.ID]
			if len(reserved) > 0 {
				used++
			} else if d.Healthy && n.Ready() {
				free++
			}
			health := "healthy"
			if !d.Healthy {
				unwell++
				health = strings.TrimSuffix("unhealthy: "+d.HealthDescription, ": ")
				bad = append(bad, strings.TrimSpace(d.ID+" is "+health))
			}
			bus := ""
			if d.Locality != nil {
				bus = d.Locality.PciBusID
			}
			each = append(each, []string{d.ID, ui.OrNone(bus), health, ui.OrNone(strings.Join(reserved, ", "))})
		}
		rows = append(rows, []string{
			group.Vendor + "/" + group.Type + "/" + group.Name, fmt.Sprint(len(group.Instances)), fmt.Sprint(used), fmt.Sprint(free), fmt.Sprint(unwell),
		})
	}
	ui.Table(p.out, rows)
	if verbose {
		p.printf("\n")
		ui.Table(p.out, each)
		return
	}
	for _, line := range bad {
		p.printf("%s\n", p.style.Red(line))
	}
}

// deviceOwners returns, by device, the allocations that hold it. Those that are suspended do, too.
func deviceOwners(allocs []*structs.Allocation, verbose bool) map[string][]string {
	out := map[string][]string{}
	for _, a := range allocs {
		if a.Terminal() || a.AllocatedResources == nil {
			continue
		}
		text := short(a.ID, verbose) + " " + a.Name
		if a.Suspended() {
			text += " (suspended)"
		}
		for _, t := range a.AllocatedResources.Tasks { // order does not matter: each allocation is named once
			for _, d := range t.Devices {
				for _, id := range d.DeviceIDs {
					if !slices.Contains(out[id], text) {
						out[id] = append(out[id], text)
					}
				}
			}
		}
	}
	return out
}
