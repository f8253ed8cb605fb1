package scheduler_test

import (
	"fmt"

	"github.com/nomadish/nomadish/structs"
)

// reservedJobs is how many jobs hold a world that is all held.
const reservedJobs = 200

// preemptConfig lets service and batch jobs take from lower bands.
func preemptConfig() *structs.SchedulerConfiguration {
	c := structs.DefaultSchedulerConfiguration()
	c.PreemptionConfig.ServiceSchedulerEnabled, c.PreemptionConfig.BatchSchedulerEnabled = true, true
	return &c
}

// run puts an allocation on a node, with the GPUs of these numbers.
func (b *builder) run(n *structs.Node, cpu, memoryMB int64, gpus ...int) {
	b.allocs++
	task := &structs.AllocatedTaskResources{
		Cpu: structs.AllocatedCpuResources{CpuShares: cpu}, Memory: structs.AllocatedMemoryResources{MemoryMB: memoryMB},
	}
	if len(gpus) > 0 {
		d := n.NodeResources.Devices[0]
		given := &structs.AllocatedDeviceResource{Vendor: d.Vendor, Type: d.Type, Name: d.Name}
		for _, i := range gpus {
			given.DeviceIDs = append(given.DeviceIDs, d.Instances[i].ID)
		}
		task.Devices = []*structs.AllocatedDeviceResource{given}
	}
	job, shared := "filler", structs.AllocatedSharedResources{DiskMB: 10}
	if b.fill == fillReserved {
		of := b.rng.IntN(reservedJobs)
		job = fmt.Sprintf("filler-%d", of)
		shared.Terms = &structs.AllocTerms{Priority: 1 + of%40, Submitted: uint64(of)} // not negative
	}
	b.edit.UpsertAlloc(&structs.Allocation{
		ID: structs.DeriveID("alloc", b.allocs), NodeID: n.ID, JobID: job, TaskGroup: "g",
		DesiredStatus: structs.AllocDesiredRun, ClientStatus: structs.AllocClientRunning,
		AllocatedResources: &structs.AllocatedResources{
			Tasks: map[string]*structs.AllocatedTaskResources{"t": task}, Shared: shared,
		},
	})
}

// fillNode lets run on node i what the world's fill says.
func (b *builder) fillNode(i int, n *structs.Node, sh layout) {
	between := func(low, high int64) int64 { return low + b.rng.Int64N(high-low) }
	// short leaves less than wanted of one of the two, and enough of the other.
	short := func(ofMemory bool, byMost int64) {
		cpu, memory := sh.mhz()-between(hardMHz, sh.mhz()), sh.memoryMB-hardMemoryMB+between(1, 1+min(byMost, hardMemoryMB))
		if !ofMemory {
			cpu, memory = sh.mhz()-hardMHz+between(1, 1+min(byMost, hardMHz)), sh.memoryMB-between(hardMemoryMB, sh.memoryMB)
		}
		b.run(n, cpu, memory)
	}
	either := b.rng.IntN(2) == 0
	switch b.fill {
	case fillHalf, fillFull, fillReserved:
		if sh.gpus > 0 {
			b.fillGPUs(n, sh)
		} else {
			b.fillCPU(n, sh)
		}
	case oneFits:
		b.run(n, sh.mhz()-100, sh.memoryMB-100, b.all(sh)...)
	case oneFits4GPU:
		b.runGPUs(n, sh, b.rng.Perm(sh.gpus)[:sh.gpus-3])
	case oneFitsPCIe:
		var gpus []int
		for sw := range sh.sockets * sh.switches {
			gpus = append(gpus, 2*sw+b.rng.IntN(2))
		}
		b.runGPUs(n, sh, gpus)
	case oneRackFree:
		if i%8 == 0 {
			b.runGPUs(n, sh, []int{b.rng.IntN(sh.gpus)})
		}
	case hardOne:
		short(true, hardMemoryMB)
	case hardEither:
		short(either, hardMemoryMB)
	case hardGranule:
		if either {
			short(true, granuleMemory-1)
		} else {
			short(false, granuleMHz-1)
		}
	}
}

func (sh layout) mhz() int64 { return int64(sh.cores) * mhzPerCore }

func (b *builder) all(sh layout) []int {
	gpus := make([]int, sh.gpus)
	for i := range gpus {
		gpus[i] = i
	}
	return gpus
}

// fillCPU runs allocations of an eighth to a half of the node, as much memory or
// more or less, until the node is as full as wanted.
func (b *builder) fillCPU(n *structs.Node, sh layout) {
	target := b.rng.Float64()
	switch b.fill {
	case fillFull:
		target = 0.9 + 0.1*target
	case fillReserved:
		target = 1
	}
	cpu, memory := int64(target*float64(sh.mhz())), int64(target*float64(sh.memoryMB))
	for cpu >= 50 && memory >= 64 {
		part := 0.125 + 0.375*b.rng.Float64()
		c := min(cpu, int64(part*float64(sh.mhz()))/50*50)
		m := min(memory, int64(part*(0.8+0.4*b.rng.Float64())*float64(sh.memoryMB))/64*64)
		b.run(n, c, m)
		cpu, memory = cpu-c, memory-m
	}
}

// fillGPUs leaves a number of GPUs free: any at half, mostly none when full.
func (b *builder) fillGPUs(n *structs.Node, sh layout) {
	free := b.rng.IntN(sh.gpus + 1)
	if b.fill == fillReserved || b.fill == fillFull && b.rng.IntN(10) > 0 {
		free = 0
	}
	b.occupy(n, sh, 0, sh.gpus, free)
}

// occupy takes the GPUs from low on, but for so many that stay free, in pieces of
// powers of two that lie as their switches do.
func (b *builder) occupy(n *structs.Node, sh layout, low, count, free int) {
	switch {
	case free == count:
	case count == 1 || free == 0 && b.rng.IntN(2) == 0:
		b.runGPUs(n, sh, b.all(sh)[low:low+count])
	default:
		half := count / 2
		least, most := max(0, free-half), min(half, free)
		left := least + b.rng.IntN(most-least+1)
		b.occupy(n, sh, low, half, left)
		b.occupy(n, sh, low+half, half, free-left)
	}
}

// runGPUs runs an allocation with these GPUs, and up to their part of the node.
func (b *builder) runGPUs(n *structs.Node, sh layout, gpus []int) {
	part := float64(len(gpus)) / float64(sh.gpus) * (0.4 + 0.5*b.rng.Float64())
	b.run(n, int64(part*float64(sh.mhz())), int64(part*float64(sh.memoryMB)), gpus...)
}
