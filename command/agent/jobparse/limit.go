package jobparse

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// programMemory is kept for the pages of the program that are read from its file later.
	programMemory = 20 << 20
	// collectMemory is how far below the limit the garbage collector begins to work hard.
	collectMemory = 8 << 20
	// maxStack is a goroutine's. Nesting is bounded, so no job file comes near.
	maxStack = 16 << 20
	// watchEvery is how often the process compares its CPU time to its limit.
	watchEvery = 10 * time.Millisecond
)

// limitProcess limits the process that calls it, for good. Two limits hold back each resource: one that Go keeps, so that
// the process ends with a status which states why, and a harder one that the kernel enforces.
func limitProcess(cpu time.Duration, memory int64) error {
	runtime.GOMAXPROCS(1)
	debug.SetMaxStack(maxStack)
	resident, data, err := memoryUsed()
	if err != nil {
		return err
	}
	room := memory*raceFactor - resident - programMemory
	if room < 2*collectMemory {
		return fmt.Errorf("%d bytes of memory are too few: the program itself has %d already", memory, resident)
	}
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	// Nothing is collected before the limit is near: most files never come there.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(int64(now.Sys-now.HeapReleased) + room - collectMemory) // far below 2^63
	seconds := uint64((cpu + time.Second - 1) / time.Second)                     // positive
	for resource, limit := range map[int]uint64{                                 // order does not matter: they are independent
		unix.RLIMIT_DATA: uint64(data + room), // positive
		unix.RLIMIT_CPU:  seconds,
		unix.RLIMIT_CORE: 0,
	} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("limit resource %d of the process: %w", resource, err)
		}
	}
	go watchCPU(cpu - max(cpu/10, 2*watchEvery))
	return nil
}

// watchCPU ends the process when it has used its CPU time.
func watchCPU(limit time.Duration) {
	for range time.Tick(watchEvery) {
		var used unix.Rusage
		if unix.Getrusage(unix.RUSAGE_SELF, &used) == nil && used.Utime.Nano()+used.Stime.Nano() >= limit.Nanoseconds() {
			os.Exit(exitCPU)
		}
	}
}

// memoryUsed returns the bytes that the process has in memory, and those of its private writable mappings, which
// RLIMIT_DATA counts.
func memoryUsed() (resident, data int64, err error) {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, 0, fmt.Errorf("read the memory of the process: %w", err)
	}
	var total, shared, text, lib int64
	if _, err := fmt.Sscan(string(raw), &total, &resident, &shared, &text, &lib, &data); err != nil {
		return 0, 0, fmt.Errorf("read the memory of the process from %q: %w", raw, err)
	}
	page := int64(os.Getpagesize())
	return resident * page, data * page, nil
}
