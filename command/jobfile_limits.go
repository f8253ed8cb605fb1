package command

import (
	"context"
	"fmt"
	gometrics "runtime/metrics"
	"time"

	"golang.org/x/sys/unix"
)

// costs is what work may take.
type costs struct {
	memory uint64        // of the program meanwhile, in bytes
	cpu    time.Duration // CPU time
}

// parseCosts is what reading a job file may take. One of the greatest size takes a fraction of it; nested for expressions may take
// any amount.
var parseCosts = costs{memory: 1 << 30, cpu: 20 * time.Second}

// costsEvery is how often what work has taken is looked at.
const costsEvery = 20 * time.Millisecond

// within returns what work returns. It returns an error if that takes more than most, or if ctx ends. Nothing can stop work: it
// goes on until the program ends, which whoever gets the error must bring about.
func within[T any](ctx context.Context, most costs, work func() T) (T, error) {
	const smaller = "make it smaller; nested for expressions and dynamic blocks, if it has any, multiply what they go through"
	begun := cpuTime()
	done := make(chan T, 1)
	go func() { done <- work() }()
	tick := time.NewTicker(costsEvery)
	defer tick.Stop()
	var none T
	for {
		select {
		case out := <-done:
			return out, nil
		case <-ctx.Done():
			return none, ctx.Err()
		case <-tick.C:
			if memoryInUse() > most.memory {
				return none, fmt.Errorf("it takes more than %d MiB of memory to read: %s", most.memory>>20, smaller)
			}
			if cpuTime()-begun > most.cpu {
				return none, fmt.Errorf("it takes more than %s of CPU time to read: %s", most.cpu, smaller)
			}
		}
	}
}

// cpuTime returns what the program has used; 0: the system does not report it.
func cpuTime() time.Duration {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// memoryInUse returns the bytes of memory that the program has from the system.
func memoryInUse() uint64 {
	samples := []gometrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	gometrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
