package fingerprint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/gpu"
	"github.com/nomadish/nomadish/structs"
)

// Options is what is known beforehand, and where to look.
type Options struct {
	// AllocDir is on the disk that allocations get.
	AllocDir string
	// Interface is the network interface that tasks get; empty: that of the default
	// route.
	Interface string
	// CPUTotalCompute (MHz), MemoryTotalMB, DiskTotalMB and DiskFreeMB override what
	// is found, unless 0.
	CPUTotalCompute int
	MemoryTotalMB   int
	DiskTotalMB     int
	DiskFreeMB      int
	// ReservableCores is a list of cores ("0-3,6"); empty: all.
	ReservableCores string
	MinDynamicPort  int
	MaxDynamicPort  int
	Version         string
	HTTPAddr        string
	// GPUs are what was found of them last (client/gpu watches them); nil: none.
	GPUs *gpu.Report
	// Root is where /proc, /sys and /etc are; empty: "/". For tests.
	Root string
}

// Result is what was found.
type Result struct {
	Attributes map[string]string
	Resources  *structs.NodeResources
	Hostname   string
	// Warnings describe what could not be found out.
	Warnings []error
}

func (r *Result) set(name, value string) {
	if value != "" {
		r.Attributes[name] = value
	}
}

func (r *Result) warn(err error) { r.Warnings = append(r.Warnings, err) }

// Run looks at the machine. The error is a contradiction in the options.
func Run(ctx context.Context, o Options) (*Result, error) {
	if o.Root == "" {
		o.Root = "/"
	}
	r := &Result{Attributes: map[string]string{}, Resources: &structs.NodeResources{
		MinDynamicPort: o.MinDynamicPort, MaxDynamicPort: o.MaxDynamicPort,
	}}
	r.set("nomad.version", o.Version)
	r.set("nomadish.version", o.Version)
	r.set("nomad.advertise.address", o.HTTPAddr)
	r.set("nomad.service_discovery", "true")
	host(o, r)
	cgroup(o, r)
	memory(ctx, o, r)
	storage(ctx, o, r)
	network(o, r)
	if err := cpu(o, r); err != nil {
		return nil, err
	}
	if o.GPUs != nil {
		r.Resources.Devices, r.Resources.Topology = o.GPUs.Devices, o.GPUs.Topology
	}
	return r, nil
}

// Drivers fingerprints each driver and returns what the node reports about it, with the attributes
// that those which were detected stand for.
func Drivers(ctx context.Context, registry *driver.Registry, now time.Time) (infos map[string]*structs.DriverInfo, attributes map[string]string) {
	infos, attributes = map[string]*structs.DriverInfo{}, map[string]string{}
	for _, name := range registry.Names() {
		d, err := registry.Get(name)
		if err != nil {
			continue // it was listed just now
		}
		f := d.Fingerprint(ctx)
		infos[name] = &structs.DriverInfo{
			Attributes: maps.Clone(f.Attributes), Detected: f.Detected(), Healthy: f.Health == driver.HealthHealthy,
			HealthDescription: f.Description, UpdateTime: now,
		}
		if f.Detected() {
			maps.Copy(attributes, f.Attributes)
			if f.Health == driver.HealthHealthy {
				attributes["driver."+name] = "1"
			}
			attributes[structs.AttrDriverSuspend(name)] = suspends(d)
		}
	}
	return infos, attributes
}

// suspends reports whether a driver can suspend its tasks, as the attribute has it.
func suspends(d driver.Driver) string {
	if f, ok := d.(driver.SuspendCapable); ok && f.CanSuspend() {
		return "1"
	}
	return "0"
}

// ParseCores reads a list of cores, such as "0-3,6".
func ParseCores(list string) ([]uint16, error) {
	var out []uint16
	seen := map[uint16]bool{}
	for _, part := range strings.Split(list, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		low, high, ranged := strings.Cut(part, "-")
		first, err1 := strconv.ParseUint(strings.TrimSpace(low), 10, 16)
		last := first
		var err2 error
		if ranged {
			last, err2 = strconv.ParseUint(strings.TrimSpace(high), 10, 16)
		}
		if err := errors.Join(err1, err2); err != nil || last < first {
			return nil, fmt.Errorf("cores %q: write numbers and ranges, such as 0-3,6", list)
		}
		for c := first; c <= last; c++ {
			if id := uint16(c); !seen[id] {
				seen[id] = true
				out = append(out, id)
			}
		}
	}
	return out, nil
}
