package tracefile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/scheduler/trace"
	"github.com/nomadish/nomadish/structs"
)

// Formats of traces.
const (
	FormatAuto   = "auto" // by the names of the columns
	FormatOpenB  = "openb"
	FormatPhilly = "philly"
	FormatSimple = "simple"
)

// Formats are the formats that may be stated.
func Formats() []string { return []string{FormatAuto, FormatOpenB, FormatPhilly, FormatSimple} }

// format is how the rows of a file are read.
type format struct {
	columns []column
	// row reads the row that the table stands at.
	row func(t *table, o *Options) (trace.Row, time.Time)
	// strict: columns that are not known are refused. Files of others have more than we read.
	strict bool
}

var formats = map[string]format{
	FormatSimple: {simpleColumns, simpleRow, true},
	FormatPhilly: {phillyColumns, phillyRow, false},
	FormatOpenB:  {openbColumns, openbRow, false},
}

var simpleColumns = []column{
	{"arrival", true}, {"duration", true}, {"count", false}, {"cpu", true}, {"memory", true}, {"gpus", false}, {"share", false},
	{"model", false}, {"tenant", false}, {"priority", false}, {"gang", false}, {"max_run_duration", false}, {"reclaim", false},
	{"name", false}, {"workflow", false}, {"stage", false}, {"reserve", false}, {"lend", false},
}

// simpleRow reads our own format. Processor is in MHz and memory in MiB, as in a job file.
func simpleRow(t *table, o *Options) (trace.Row, time.Time) {
	r := trace.Row{
		Name: o.name(t.text("name")), Tenant: o.word(t.text("tenant")), Count: t.whole("count", 1, 1, trace.MaxCount),
		CPU: t.whole("cpu", 0, 0, trace.MaxCPU), MemoryMB: t.whole("memory", 0, 0, trace.MaxMemoryMB),
		GPUs: t.whole("gpus", 0, 0, trace.MaxGPUs), Share: t.whole("share", 0, 1, structs.DeviceShareWhole),
		Models: o.models(t.text("model")), Priority: t.whole("priority", 0, structs.JobMinPriority, structs.JobMaxPriority),
		Reclaim: o.word(t.text("reclaim")),
	}
	switch s := strings.ToLower(t.text("gang")); s {
	case "", "0", "false", "no":
	case "1", "true", "yes":
		r.Gang = true
	default:
		t.fail("gang", "gang %q: must be true or false", clip(s))
	}
	var stated bool
	if r.Arrival, stated = t.seconds("arrival", trace.MaxTime); !stated {
		t.fail("arrival", "arrival: must be stated, in seconds")
	}
	if r.Duration, stated = t.seconds("duration", trace.MaxTime); !stated {
		r.Duration = trace.Forever
	}
	r.MaxRun, _ = t.seconds("max_run_duration", trace.MaxTime)
	r.Workflow = workflowRow(t, o)
	return r, time.Time{}
}

var phillyColumns = []column{{"timestamp", true}, {"duration", true}, {"num_gpus", true}, {"gpu_time", false}, {"cluster", false}}

// phillyRow reads a job of Philly. It states nothing about processors and memory. What takes
// more GPUs than a node has is a gang of equal members that each fit on a node.
func phillyRow(t *table, o *Options) (trace.Row, time.Time) {
	gpus := t.whole("num_gpus", 0, 0, trace.MaxCount)
	r := trace.Row{Tenant: o.word(t.text("cluster")), Count: 1, GPUs: gpus}
	for n := o.GPUsPerNode; gpus > n && n > 0; n-- {
		if gpus%n == 0 {
			r.Count, r.GPUs, r.Gang = gpus/n, n, true
			break
		}
	}
	var stated bool
	if r.Duration, stated = t.seconds("duration", trace.MaxTime); !stated {
		t.fail("duration", "duration: must be stated, in seconds")
	}
	at, err := time.Parse(time.DateTime, t.text("timestamp"))
	if err != nil {
		t.fail("timestamp", "timestamp %q: must be of the form 2017-10-09 07:01:55", clip(t.text("timestamp")))
	}
	return r, at
}

var openbColumns = []column{
	{"name", true}, {"cpu_milli", true}, {"memory_mib", true}, {"num_gpu", true}, {"gpu_milli", true}, {"gpu_spec", false},
	{"creation_time", false}, {"deletion_time", false}, {"scheduled_time", false},
}

// openbRow reads a task of OpenB: 1000 thousandths of a core are 1000 MHz.
func openbRow(t *table, o *Options) (trace.Row, time.Time) {
	r := trace.Row{
		Name: o.name(t.text("name")), Count: 1, CPU: t.whole("cpu_milli", 0, 0, trace.MaxCPU),
		MemoryMB: t.whole("memory_mib", 0, 0, trace.MaxMemoryMB), GPUs: t.whole("num_gpu", 0, 0, trace.MaxGPUs),
		Duration: trace.Forever,
	}
	if share := t.whole("gpu_milli", 0, 0, structs.DeviceShareWhole); r.GPUs > 0 && share > 0 && share < structs.DeviceShareWhole {
		r.Share = share
	}
	if r.GPUs > 0 {
		r.Models = o.models(t.text("gpu_spec"))
	}
	created, stated := t.seconds("creation_time", trace.MaxTime)
	if r.Arrival = created; !stated {
		return r, time.Time{}
	}
	began, stated := t.seconds("scheduled_time", trace.MaxTime)
	if !stated {
		began = created
	}
	if ended, stated := t.seconds("deletion_time", trace.MaxTime); stated {
		if r.Duration = ended - began; ended < began {
			t.fail("deletion_time", "deletion_time %s: is before the task began (%s s)", t.text("deletion_time"), fmt.Sprint(began.Seconds()))
		}
	}
	return r, time.Time{}
}

// formatOf returns the format by the names of columns.
func formatOf(names []string) (string, bool) {
	has := func(name string) bool { return slices.Contains(names, name) }
	switch {
	case has("num_gpus") && has("timestamp"):
		return FormatPhilly, true
	case has("num_gpu") && has("gpu_milli"):
		return FormatOpenB, true
	case has("arrival") && has("duration"):
		return FormatSimple, true
	}
	return "", false
}
