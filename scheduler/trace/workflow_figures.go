package trace

import (
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// WorkflowFigures is what became of the workflows of a trace, and of the single jobs beside them.
type WorkflowFigures struct {
	// Reservations is how they ran, one of the Reservations constants.
	Reservations string
	// Workflows have arrived, with so many Stages; Completed of them have ended, Never have not when nothing was left to happen.
	Workflows int64
	Stages    int64
	Completed int64
	Never     int64
	// Start is from a workflow's arrival until all jobs of its first stage ran, StageWaits from the end of a stage until all jobs of the next one
	// ran, Makespan from arrival to end, Running from the start of the first stage to the end. Singles is the waits of jobs of no workflow.
	Start      WaitFigures
	StageWaits WaitFigures
	Makespan   WaitFigures
	Running    WaitFigures
	Singles    WaitFigures
	// CPU and GPU are how reservations were used over all times, in hours of a core of 1000 MHz, and of a GPU.
	CPU, GPU ReservedHours
	// TakenBack is how many instances of borrowers left for a stage, LostCPUHours what instances that were taken back were to do again.
	TakenBack    int64
	LostCPUHours float64
	// UsefulCPU and UsefulGPU are Loaded.CPU and Loaded.GPU without what had to be done again by the last arrival.
	UsefulCPU float64
	UsefulGPU float64
}

// ReservedHours is how reservations were used: Used by their workflows, Lent, or Idle; together Reserved.
type ReservedHours struct {
	Reserved, Used, Lent, Idle float64
}

// flowCounts adds up what WorkflowFigures are made of.
type flowCounts struct {
	workflows, stages, completed, takenBack    int64
	starts, waits, makespans, running, singles *waits
	// cpu and gpu are amounts (MHz, thousandths) times seconds; now is what they are at the moment.
	cpu, gpu ReservedHours
}

func newFlowCounts() flowCounts {
	return flowCounts{starts: newWaits(), waits: newWaits(), makespans: newWaits(), running: newWaits(), singles: newWaits()}
}

// ended counts a workflow that has ended.
func (c *flowCounts) ended(x *flow, now int64) {
	c.completed++
	c.makespans.add(now - x.arrived)
	c.running.add(now - x.began)
}

// add adds up how reservations are used in some nanoseconds.
func (h *ReservedHours) add(o ReservedHours, nanoseconds int64) {
	s := float64(nanoseconds) / 1e9
	h.Reserved += o.Reserved * s
	h.Used += o.Used * s
	h.Lent += o.Lent * s
	h.Idle += o.Idle * s
}

// hours returns sums of thousandths times seconds as hours.
func (h ReservedHours) hours() ReservedHours {
	const perHour = 1000 * 3600
	return ReservedHours{round(h.Reserved/perHour, 6), round(h.Used/perHour, 6), round(h.Lent/perHour, 6), round(h.Idle/perHour, 6)}
}

// loans returns how the reservations of all workflows are used now: MHz, and thousandths of GPUs.
func (d workflowDriver) loans() (cpu, gpu ReservedHours) {
	r := d.r
	if !r.flows.reserves() {
		return cpu, gpu
	}
	for _, x := range r.flows.alive {
		if !x.run.Posted {
			continue
		}
		use := scheduler.WorkflowUse(r.world, x.key())
		if use == nil {
			continue
		}
		sum := func(into *ReservedHours, times int64, of func(structs.WorkflowResources) int64) {
			into.Reserved += float64(of(use.Reserved) * times)
			into.Used += float64(of(use.Used) * times)
			into.Lent += float64(of(use.Lent) * times)
			into.Idle += float64(of(use.Idle) * times)
		}
		sum(&cpu, 1, func(a structs.WorkflowResources) int64 { return a.CPU })
		sum(&gpu, structs.DeviceShareWhole, func(a structs.WorkflowResources) int64 { return a.GPUs })
	}
	return cpu, gpu
}

// workflowFigures returns the figures of workflows; nil: the trace has none.
func (d workflowDriver) workflowFigures(loaded Sample) *WorkflowFigures {
	r := d.r
	if r.flows == nil {
		return nil
	}
	c := &r.flows.figures
	f := &WorkflowFigures{
		Reservations: r.flows.mode, Workflows: c.workflows, Stages: c.stages, Completed: c.completed, Never: int64(len(r.flows.alive)),
		Start: c.starts.figures("start of workflows"), StageWaits: c.waits.figures("stages"), Makespan: c.makespans.figures("makespan"),
		Running: c.running.figures("running"), Singles: c.singles.figures("single jobs"),
		CPU: c.cpu.hours(), GPU: c.gpu.hours(), TakenBack: c.takenBack, LostCPUHours: round(r.lostCPU/1000/3600, 6),
		UsefulCPU: loaded.CPU, UsefulGPU: loaded.GPU,
	}
	length := float64(r.series.last-epoch) / 1e9
	if has := float64(r.ledger.Has.CPU) * length; has > 0 {
		f.UsefulCPU = round(loaded.CPU-r.lostCPUUntil/has, 6)
	}
	if has := float64(r.ledger.Has.GPUMilli) * length; has > 0 {
		f.UsefulGPU = round(loaded.GPU-r.lostUntil/has, 6)
	}
	return f
}

// unregistered returns how many rows of workflows that have not ended wait for the stages before theirs.
func (f *flows) unregistered() (n int64) {
	if f != nil {
		for _, x := range f.alive {
			n += int64(len(x.rows) - len(x.jobs))
		}
	}
	return n
}
