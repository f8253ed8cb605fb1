package main

import (
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/client/gpu/nvml"
)

// reader reads snapshots. What never changes of a GPU is read once, so that a GPU
// that is lost later still has its name.
type reader struct {
	lib    *library
	count  uint32
	gpus   []*gpu
	events set
	driver string
	cuda   string
}

// gpu is a GPU with its handle.
type gpu struct {
	d     device
	fixed nvml.GPU
}

// start prepares the library. The result is the library's.
func (r *reader) start() result {
	if res := r.lib.init(); res != success {
		return res
	}
	var version [versionSize]byte
	if r.lib.driverVersion(&version[0], versionSize) == success {
		r.driver = text(version[:])
	}
	var cuda int32
	if r.lib.cudaVersion(&cuda) == success {
		r.cuda = fmt.Sprintf("%d.%d", cuda/1000, cuda%1000/10)
	}
	return success
}

// look reads all GPUs.
func (r *reader) look() nvml.Snapshot {
	s := nvml.Snapshot{Protocol: nvml.Protocol, Driver: r.driver, CUDA: r.cuda}
	var n uint32
	if res := r.lib.count(&n); res != success {
		s.Error = "count GPUs: " + res.Error()
		return s
	}
	if n != r.count || r.gpus == nil {
		if err := r.find(min(n, maxGPUs)); err != nil {
			s.Error = err.Error()
			return s
		}
		r.count = n
	}
	s.Events = r.drain()
	for _, g := range r.gpus {
		s.GPUs = append(s.GPUs, r.state(g))
	}
	s.Absent = len(s.GPUs) == 0
	return s
}

// find takes in the GPUs that there are. One that does not even identify itself, is
// left out: nothing could be done with it.
func (r *reader) find(n uint32) error {
	r.gpus = []*gpu{}
	var failed error
	for i := range n {
		var d device
		if res := r.lib.byIndex(i, &d); res != success {
			failed = fmt.Errorf("GPU %d: %w", i, res)
			continue
		}
		g, err := r.identify(d)
		if err != nil {
			failed = fmt.Errorf("GPU %d: %w", i, err)
			continue
		}
		r.gpus = append(r.gpus, g)
	}
	if len(r.gpus) == 0 && failed != nil {
		return failed
	}
	r.listen()
	return nil
}

// identify reads what stays as it is.
func (r *reader) identify(d device) (*gpu, error) {
	l := r.lib
	var buf [nameSize]byte
	g := &gpu{d: d}
	if res := l.uuid(d, &buf[0], nameSize); res != success {
		return nil, fmt.Errorf("UUID: %w", res)
	}
	g.fixed.UUID = text(buf[:])
	buf = [nameSize]byte{}
	if res := l.name(d, &buf[0], nameSize); res != success {
		return nil, fmt.Errorf("name: %w", res)
	}
	g.fixed.Name = text(buf[:])
	var pci pciInfo
	if res := l.pci(d, &pci); res != success {
		return nil, fmt.Errorf("bus id: %w", res)
	}
	g.fixed.BusID = pci.address()
	var m memory
	if l.memory(d, &m) == success {
		g.fixed.MemoryMiB = m.total >> 20
	}
	m = memory{}
	if l.bar1(d, &m) == success {
		g.fixed.BAR1MiB = m.total >> 20
	}
	number := func(query func(device, *uint32) result) uint64 {
		var n uint32
		if query(d, &n) != success {
			return 0
		}
		return uint64(n)
	}
	g.fixed.PowerLimitW = number(l.powerLimit) / 1000
	g.fixed.CoreClockMHz = number(func(d device, n *uint32) result { return l.maxClock(d, clockGraphics, n) })
	g.fixed.MemoryClockMHz = number(func(d device, n *uint32) result { return l.maxClock(d, clockMemory, n) })
	g.fixed.PCIeGeneration = int(number(l.generation)) // a few
	g.fixed.PCIeLanes = int(number(l.lanes))           // a few
	state := func(query func(device, *int32) result) *bool {
		var on int32
		if query(d, &on) != success {
			return nil
		}
		v := on == enabled
		return &v
	}
	g.fixed.DisplayMode, g.fixed.PersistenceMode = state(l.display), state(l.persistence)
	var major, minor int32
	if l.capability(d, &major, &minor) == success {
		g.fixed.ComputeCapability = fmt.Sprintf("%d.%d", major, minor)
	}
	return g, nil
}

// state reads what changes.
func (r *reader) state(g *gpu) nvml.GPU {
	l, d, out := r.lib, g.d, g.fixed
	ok := func(res result) bool {
		out.Lost = out.Lost || res == gpuIsLost
		out.NeedsReset = out.NeedsReset || res == resetRequired
		return res == success
	}
	var celsius uint32
	if ok(l.temperature(d, sensorGPU, &celsius)) {
		out.Temperature = int(celsius) // a few hundred
	}
	if out.Lost {
		return out // each further question may take the driver seconds
	}
	celsius = 0
	if ok(l.threshold(d, thresholdSlowdown, &celsius)) {
		out.SlowdownAt = int(celsius) // a few hundred
	}
	m := margin{version: marginVersion}
	if ok(l.thermalMargin(d, &m)) {
		v := int(m.celsius)
		out.ThermalMargin = &v
	}
	var errors uint64
	if ok(l.ecc(d, eccUncorrected, eccVolatile, &errors)) {
		out.Uncorrected = errors
	}
	var corrected, uncorrected, pending, failed uint32
	if ok(l.remapped(d, &corrected, &uncorrected, &pending, &failed)) {
		out.RemapFailed = failed != 0
	}
	var mode, next uint32
	out.MIG = ok(l.migMode(d, &mode, &next)) && mode == migEnabled
	if out.MIG {
		out.Slices = r.slices(d)
	}
	out.Links = r.links(d, ok)
	return out
}

// slices reads a GPU's MIG devices. Their numbers may have gaps.
func (r *reader) slices(parent device) []nvml.Slice {
	var out []nvml.Slice
	for i := range uint32(maxSlices) {
		var d device
		if r.lib.migByIndex(parent, i, &d) != success {
			continue
		}
		var id, name [nameSize]byte
		if r.lib.uuid(d, &id[0], nameSize) != success {
			continue
		}
		var a attributes
		known := r.lib.attributes(d, &a) == success
		s := nvml.Slice{UUID: text(id[:]), MemoryMiB: a.memoryMiB}
		if r.lib.name(d, &name[0], nameSize) == success {
			_, s.Profile, _ = strings.Cut(text(name[:]), "MIG ")
		}
		if s.Profile == "" && known {
			s.Profile = profile(a)
		}
		out = append(out, s)
	}
	return out
}

// profile names a slice as NVIDIA does: "1g.10gb", or "1c.3g.20gb" for a part of the
// processors of one. It is for drivers that do not name it themselves.
func profile(a attributes) string {
	gb := (a.memoryMiB + 1023) / 1024
	if a.computeSlices == a.gpuSlices {
		return fmt.Sprintf("%dg.%dgb", a.gpuSlices, gb)
	}
	return fmt.Sprintf("%dc.%dg.%dgb", a.computeSlices, a.gpuSlices, gb)
}

// links reads the NVLinks that are up.
func (r *reader) links(d device, ok func(result) bool) []nvml.Link {
	var out []nvml.Link
	for i := range uint32(maxNVLinks) {
		var up int32
		if !ok(r.lib.linkState(d, i, &up)) || up != enabled {
			continue
		}
		var pci pciInfo
		if !ok(r.lib.linkRemote(d, i, &pci)) {
			continue
		}
		kind := int32(remoteUnknown)
		_ = ok(r.lib.linkType(d, i, &kind))
		out = append(out, nvml.Link{Peer: pci.address(), Switch: kind == remoteSwitch})
	}
	return out
}

// listen has the library keep the errors that happen. A library or GPU that
// cannot is left alone: the other signs remain.
func (r *reader) listen() {
	if r.events == 0 && r.lib.newSet(&r.events) != success {
		r.events = 0
		return
	}
	for _, g := range r.gpus {
		_ = r.lib.register(g.d, eventXid, r.events)
	}
}

// drain takes the errors that happened since it was last called.
func (r *reader) drain() []nvml.Event {
	var out []nvml.Event
	for r.events != 0 && len(out) < maxEvents {
		var e event
		if r.lib.wait(r.events, &e, eventWait) != success {
			break
		}
		if e.kind == eventXid {
			out = append(out, nvml.Event{UUID: r.owner(e.device), Xid: e.data})
		}
	}
	return out
}

// owner returns the UUID of an event's GPU.
func (r *reader) owner(d device) string {
	for _, g := range r.gpus {
		if g.d == d {
			return g.fixed.UUID
		}
	}
	var id [nameSize]byte
	if d != 0 && r.lib.uuid(d, &id[0], nameSize) == success {
		return text(id[:])
	}
	return ""
}
