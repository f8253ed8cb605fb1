package gpu

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/client/gpu/nvml"
	"github.com/nomadish/nomadish/structs"
)

// Report is what a node has of GPUs. It is never changed once it is made.
type Report struct {
	Devices  []*structs.NodeDeviceResource
	Topology *structs.NodeTopology // nil without devices
}

// failureLimit is how many looks in a row may fail before all GPUs count as bad.
const failureLimit = 2

// DeviceTracker makes reports of snapshots. It remembers the GPUs that it has seen: one that
// is gone stays in the report and is reported as bad, so that the node keeps
// its topology. Its methods are called by one goroutine.
type DeviceTracker struct {
	// Root is where /sys is.
	Root string
	// Ignored are UUIDs of GPUs and MIG slices that are not reported.
	Ignored []string

	gpus     []*known // in order of their bus ids
	driver   string
	cuda     string
	failures int
}

// known is a GPU that was seen.
type known struct {
	last    nvml.GPU
	seen    bool // in the last snapshot
	pciPath pciPath
	health  condition
	bad     string // why; empty: good
}

// Update applies a snapshot, or the reason why there is none, and returns the new report.
func (k *DeviceTracker) Update(s *nvml.Snapshot, err error, now time.Time) *Report {
	if err == nil && s.Error != "" && !s.Absent {
		err = errors.New(s.Error)
	}
	if err != nil {
		k.failures++
		if errors.Is(err, ErrSilent) {
			k.failures = max(k.failures, failureLimit)
		}
		if k.failures >= failureLimit {
			for _, g := range k.gpus {
				g.bad = fmt.Sprintf("its state cannot be read: %v", err)
			}
		}
		return k.report()
	}
	k.failures = 0
	if !s.Absent {
		k.driver, k.cuda = s.Driver, s.CUDA
	}
	k.merge(s)
	for _, g := range k.gpus {
		var state *nvml.GPU
		if g.seen {
			state = &g.last
		}
		g.bad = g.health.look(state, now)
	}
	return k.report()
}

// merge applies a snapshot to what is known of the GPUs.
func (k *DeviceTracker) merge(s *nvml.Snapshot) {
	for _, g := range k.gpus {
		g.seen = false
	}
	for _, now := range s.GPUs {
		g := k.find(now.UUID)
		if g == nil {
			g = &known{pciPath: unknownPath}
			k.gpus = append(k.gpus, g)
		} else if now.Lost || now.NeedsReset { // it reports little of itself then
			now.MIG, now.Slices, now.Links = g.last.MIG, g.last.Slices, g.last.Links
		}
		g.last, g.seen = now, true
		if p, ok := findPCIPath(k.Root, now.BusID); ok {
			g.pciPath = p
		}
	}
	for _, e := range s.Events {
		for _, g := range k.gpus {
			if g.last.UUID == e.UUID {
				g.health.event(e.Xid)
			}
		}
	}
	slices.SortFunc(k.gpus, func(a, b *known) int {
		return cmp.Or(strings.Compare(a.last.BusID, b.last.BusID), strings.Compare(a.last.UUID, b.last.UUID))
	})
}

func (k *DeviceTracker) find(uuid string) *known {
	for _, g := range k.gpus {
		if g.last.UUID == uuid {
			return g
		}
	}
	return nil
}

// report makes the groups and the tree of what is known.
func (k *DeviceTracker) report() *Report {
	var all groups
	var cards []card
	for _, g := range k.gpus {
		if slices.Contains(k.Ignored, g.last.UUID) {
			continue
		}
		c := card{id: g.last.UUID, busID: g.last.BusID, mig: g.last.MIG, pciPath: g.pciPath}
		for _, l := range g.last.Links {
			c.links = append(c.links, link{peer: l.Peer, fabric: l.Switch})
		}
		if !g.last.MIG {
			all.add(TypeGPU, g.last.Name, g.device(g.last.UUID), ofGPU(&g.last, k.driver, k.cuda))
			c.devices = []string{g.last.UUID}
		}
		for i := range g.last.Slices {
			s := &g.last.Slices[i]
			if g.last.MIG && !slices.Contains(k.Ignored, s.UUID) {
				all.add(TypeSlice, s.Profile, g.device(s.UUID), ofSlice(&g.last, s, k.driver, k.cuda))
				c.devices = append(c.devices, s.UUID)
			}
		}
		if len(c.devices) > 0 {
			cards = append(cards, c)
		}
	}
	r := &Report{Devices: all.done()}
	r.Topology = topology(cards)
	return r
}

// device makes a device of a GPU: itself, or a slice of it, which shares its fate.
func (g *known) device(id string) *structs.NodeDevice {
	return &structs.NodeDevice{
		ID: id, Healthy: g.bad == "", HealthDescription: g.bad,
		Locality: &structs.NodeDeviceLocality{PciBusID: g.last.BusID, NUMANode: g.pciPath.numa, Socket: max(0, g.pciPath.socket)},
	}
}
