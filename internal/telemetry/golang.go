package telemetry

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// goFamilies are what Go's runtime reports about this process, by the names and in the units that Prometheus' own client has for Go
// programs, on which dashboards rely. They have no label host.
func goFamilies() []textFamily {
	gc := debug.GCStats{PauseQuantiles: make([]time.Duration, len(gcQuantiles))}
	debug.ReadGCStats(&gc)
	threads, _ := runtime.ThreadCreateProfile(nil)
	out := []textFamily{
		goValue("go_goroutines", Gauge, "Goroutines of the agent", "", float64(runtime.NumGoroutine())),
		goValue("go_threads", Gauge, "Threads of the system that were created", "", float64(threads)),
		goValue("go_info", Gauge, "Go's version", Labels("version", runtime.Version()).text, 1),
		goValue("go_memstats_last_gc_time_seconds", Gauge, "When the garbage collector last ran, in seconds since 1970", "", float64(gc.LastGC.UnixNano())/1e9),
		{"go_gc_duration_seconds", "Pauses of the garbage collector, of all of which the least, the quartiles and the longest are shown", Summary, func(w *textWriter) {
			for i, label := range gcQuantiles {
				w.value("go_gc_duration_seconds", "", "", label, gc.PauseQuantiles[i].Seconds())
			}
			w.value("go_gc_duration_seconds", "_sum", "", "", gc.PauseTotal.Seconds())
			w.value("go_gc_duration_seconds", "_count", "", "", float64(gc.NumGC))
		}},
	}
	values := runtimeValues()
	for _, f := range runtimeFamilies {
		sum := uint64(0)
		for _, name := range f.of {
			sum += values[name]
		}
		out = append(out, goValue(f.name, f.kind, f.help, "", float64(sum)))
	}
	return out
}

func goValue(name string, kind Kind, help, labels string, v float64) textFamily {
	return textFamily{name, help, kind, func(w *textWriter) { w.value(name, "", labels, "", v) }}
}

var gcQuantiles = [...]string{`quantile="0"`, `quantile="0.25"`, `quantile="0.5"`, `quantile="0.75"`, `quantile="1"`}

// runtimeValues are all metrics of the runtime that runtimeFamilies are made of. Reading them does not stop the process.
func runtimeValues() map[string]uint64 {
	var samples []metrics.Sample
	for _, f := range runtimeFamilies {
		for _, name := range f.of {
			samples = append(samples, metrics.Sample{Name: name})
		}
	}
	metrics.Read(samples)
	out := make(map[string]uint64, len(samples))
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			out[s.Name] = s.Value.Uint64()
		}
	}
	return out
}

// Names of metrics of the runtime that several families are made of.
const (
	heapObjects  = "/memory/classes/heap/objects:bytes"
	heapUnused   = "/memory/classes/heap/unused:bytes"
	heapFree     = "/memory/classes/heap/free:bytes"
	heapReleased = "/memory/classes/heap/released:bytes"
	heapStacks   = "/memory/classes/heap/stacks:bytes"
	mspanInUse   = "/memory/classes/metadata/mspan/inuse:bytes"
	mcacheInUse  = "/memory/classes/metadata/mcache/inuse:bytes"
	tinyAllocs   = "/gc/heap/tiny/allocs:objects" // of several in one: these count neither as allocated nor as freed elsewhere
)

// runtimeFamilies are sums of metrics of the runtime.
var runtimeFamilies = []struct {
	name string
	kind Kind
	help string
	of   []string
}{
	{"go_gc_gogc_percent", Gauge, "By how much the heap may grow between two collections, in percent of what lives", []string{"/gc/gogc:percent"}},
	{"go_gc_gomemlimit_bytes", Gauge, "Limit of the memory that Go takes; 2^63-1 if there is none", []string{"/gc/gomemlimit:bytes"}},
	{"go_sched_gomaxprocs_threads", Gauge, "Threads that run Go code at the same time, at most", []string{"/sched/gomaxprocs:threads"}},
	{"go_memstats_alloc_bytes", Gauge, "Memory of objects on the heap", []string{heapObjects}},
	{"go_memstats_alloc_bytes_total", Counter, "Memory of all objects that were ever allocated on the heap", []string{"/gc/heap/allocs:bytes"}},
	{"go_memstats_sys_bytes", Gauge, "Memory that Go has from the system", []string{"/memory/classes/total:bytes"}},
	{"go_memstats_mallocs_total", Counter, "Objects that were allocated on the heap", []string{"/gc/heap/allocs:objects", tinyAllocs}},
	{"go_memstats_frees_total", Counter, "Objects that were freed from the heap", []string{"/gc/heap/frees:objects", tinyAllocs}},
	{"go_memstats_heap_alloc_bytes", Gauge, "Memory of objects on the heap, as go_memstats_alloc_bytes", []string{heapObjects}},
	{"go_memstats_heap_sys_bytes", Gauge, "Memory for the heap that Go has, or had, from the system", []string{heapObjects, heapUnused, heapReleased, heapFree}},
	{"go_memstats_heap_idle_bytes", Gauge, "Memory for the heap in which nothing is, returned to the system or not", []string{heapReleased, heapFree}},
	{"go_memstats_heap_inuse_bytes", Gauge, "Memory for the heap in which something is", []string{heapObjects, heapUnused}},
	{"go_memstats_heap_released_bytes", Gauge, "Memory for the heap that was returned to the system", []string{heapReleased}},
	{"go_memstats_heap_objects", Gauge, "Objects on the heap", []string{"/gc/heap/objects:objects"}},
	{"go_memstats_stack_inuse_bytes", Gauge, "Memory of goroutines' stacks", []string{heapStacks}},
	{"go_memstats_stack_sys_bytes", Gauge, "Memory of the stacks of goroutines and threads", []string{heapStacks, "/memory/classes/os-stacks:bytes"}},
	{"go_memstats_mspan_inuse_bytes", Gauge, "Memory of the heap's spans that are in use", []string{mspanInUse}},
	{"go_memstats_mspan_sys_bytes", Gauge, "Memory of all of the heap's spans", []string{mspanInUse, "/memory/classes/metadata/mspan/free:bytes"}},
	{"go_memstats_mcache_inuse_bytes", Gauge, "Memory of the allocator's caches that are in use", []string{mcacheInUse}},
	{"go_memstats_mcache_sys_bytes", Gauge, "Memory of all of the allocator's caches", []string{mcacheInUse, "/memory/classes/metadata/mcache/free:bytes"}},
	{"go_memstats_buck_hash_sys_bytes", Gauge, "Memory of what profiles are made of", []string{"/memory/classes/profiling/buckets:bytes"}},
	{"go_memstats_gc_sys_bytes", Gauge, "Memory of the garbage collector's own data", []string{"/memory/classes/metadata/other:bytes"}},
	{"go_memstats_other_sys_bytes", Gauge, "Memory of the rest of Go's runtime", []string{"/memory/classes/other:bytes"}},
	{"go_memstats_next_gc_bytes", Gauge, "Size of the heap at which the garbage collector begins", []string{"/gc/heap/goal:bytes"}},
}
