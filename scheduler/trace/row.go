package trace

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// Forever is the duration of work that does not end.
const Forever time.Duration = math.MaxInt64

// Limits of a row: what is larger is a mistake.
const (
	MaxCount    = 1_000_000
	MaxGPUs     = 4096 // of one instance
	MaxCPU      = 1_000_000_000
	MaxMemoryMB = 1_000_000_000
	// MaxTime is the latest arrival and the longest duration, some sixty years.
	MaxTime = 500_000 * time.Hour
)

// Row is one job of a trace.
type Row struct {
	// Name is the job's; "": it is made of the row's number.
	Name string
	// Tenant is the namespace; "": default.
	Tenant  string
	Arrival time.Duration // since the trace's start
	// Duration is how long each instance runs, or Forever.
	Duration time.Duration
	// Count is how many instances there are, all alike.
	Count    int
	CPU      int // MHz
	MemoryMB int
	GPUs     int
	// Share is thousandths of the one GPU that an instance takes a part of; 0 and 1000
	// are whole GPUs.
	Share int
	// Models are the GPU models that may be taken, sorted; empty: any.
	Models   []string
	Priority int // 1 to 100; 0: the default
	// Gang: all instances start together.
	Gang bool
	// MaxRun is the time limit that the job states; 0: none.
	MaxRun time.Duration
	// Reclaim is how it returns resources, a Reclaim constant of structs; "": requeue.
	Reclaim string
	// Workflow is the workflow that the row is a job of; nil: of none.
	Workflow *WorkflowRow
}

// Validate names what is wrong with the row, by the names of the simple format's
// columns, and what is allowed.
func (r *Row) Validate() error {
	between := func(name string, v, low, high int) error {
		if v < low || v > high {
			return fmt.Errorf("%s %d: must be %d to %d", name, v, low, high)
		}
		return nil
	}
	for _, err := range []error{
		between("count", r.Count, 1, MaxCount), between("cpu", r.CPU, 0, MaxCPU), between("memory", r.MemoryMB, 0, MaxMemoryMB),
		between("gpus", r.GPUs, 0, MaxGPUs), between("share", r.Share, 0, structs.DeviceShareWhole),
		between("priority", r.Priority, 0, structs.JobMaxPriority),
	} {
		if err != nil {
			return err
		}
	}
	switch {
	case len(r.Tenant) > 128 || strings.ContainsFunc(r.Tenant, notPlain):
		return fmt.Errorf("tenant %q: must be letters, digits, - and _, at most 128 of them", r.Tenant)
	case r.part() && r.GPUs != 1:
		return fmt.Errorf("share %d: a part of a GPU is requested with gpus 1, not %d", r.Share, r.GPUs)
	case len(r.Models) > 0 && r.GPUs == 0:
		return fmt.Errorf("model %s: is stated, but gpus is 0", strings.Join(r.Models, "|"))
	case r.Arrival < 0 || r.Arrival > MaxTime:
		return fmt.Errorf("arrival %s: must be 0 to %s", r.Arrival, MaxTime)
	case r.Duration < 0 || r.Duration > MaxTime && r.Duration != Forever:
		return fmt.Errorf("duration %s: must be 0 to %s", r.Duration, MaxTime)
	case r.MaxRun < 0 || r.MaxRun > MaxTime:
		return fmt.Errorf("max_run_duration %s: must be 0 (none) to %s", r.MaxRun, MaxTime)
	case r.Reclaim != "" && r.Reclaim != structs.ReclaimRequeue && r.Reclaim != structs.ReclaimSuspend:
		return fmt.Errorf("reclaim %q: must be %q or %q", r.Reclaim, structs.ReclaimRequeue, structs.ReclaimSuspend)
	}
	if r.Workflow != nil {
		return r.Workflow.validate(r)
	}
	return nil
}

func notPlain(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
}

// part reports whether the row requests a part of a GPU.
func (r *Row) part() bool { return r.Share > 0 && r.Share < structs.DeviceShareWhole }

// wholeGPUs reports whether the row takes whole GPUs: parts of one are never guaranteed.
func (r *Row) wholeGPUs() bool { return r.GPUs > 0 && !r.part() }

// gpuMilli is what all instances take of GPUs, in thousandths.
func (r *Row) gpuMilli() int64 { return int64(r.Count) * r.instanceMilli() }

func (r *Row) instanceMilli() int64 {
	if r.part() {
		return int64(r.Share)
	}
	return int64(r.GPUs) * structs.DeviceShareWhole
}

// classKey is all that the scheduler can know of a row, but its rank.
type classKey struct {
	count       int // of a gang; else 0: each instance is placed for itself
	cpu, memory int
	gpus, share int
	models      string
	band        int
	maxRun      time.Duration
	reclaim     string
	owner       uint64 // not 0: the one job of it, which holds reservations
	tenant      string // whose it is, if tenants own something
	workflow    string // of whose reservation it uses
}

func (r *Row) key(band int) classKey {
	k := classKey{
		cpu: r.CPU, memory: r.MemoryMB, gpus: r.GPUs, models: strings.Join(r.Models, ","), band: band, maxRun: r.MaxRun,
		reclaim: r.Reclaim,
	}
	if r.part() {
		k.share = r.Share
	}
	if r.Gang {
		k.count = r.Count
	}
	return k
}

// Job returns the job of a row as a job file would state it. number counts the rows from 1: names may repeat.
func (r *Row) Job(number uint64) *structs.Job {
	name := cmp.Or(r.Name, "row") + "-" + strconv.FormatUint(number, 10)
	return &structs.Job{
		Namespace: cmp.Or(r.Tenant, structs.DefaultNamespace), ID: name, Name: name, Type: structs.JobTypeBatch, Priority: priority(r),
		NodePool: structs.DefaultNodePool, Reclaim: r.Reclaim, TaskGroups: r.groups(),
	}
}

// DriverName is the driver of all tasks, which nodes must have.
const DriverName = "mock_driver"

// Names of what each job has one of.
const (
	groupName = "work"
	taskName  = "task"
)

// groups are the task groups of a row as a job file would state them. Jobs of one request key and
// count share them.
func (r *Row) groups() []*structs.TaskGroup {
	res := &structs.Resources{CPU: r.CPU, MemoryMB: r.MemoryMB}
	if r.GPUs > 0 {
		d := &structs.RequestedDevice{Name: "gpu", Count: r.GPUs, Share: structs.DeviceShareWhole}
		if r.part() {
			d.Share = r.Share
		}
		if len(r.Models) > 0 {
			models := slices.Clone(r.Models)
			d.Constraints = []*structs.Constraint{{
				LTarget: "${device.model}", Operand: structs.ConstraintSetContainsAny, RTarget: strings.Join(models, ","),
			}}
		}
		res.Devices = []*structs.RequestedDevice{d}
	}
	g := &structs.TaskGroup{
		Name: groupName, Count: r.Count, MaxRunDuration: r.MaxRun,
		Tasks: []*structs.Task{{Name: taskName, Driver: DriverName, Resources: res}},
	}
	if r.Gang {
		g.Gang = &structs.Gang{}
	}
	return []*structs.TaskGroup{g}
}
