package command

import (
	"context"
	"fmt"
	gometrics "runtime/metrics"
	"time"
)

const (
	// maxParseMemory is how much memory the program may have while it reads a job file, in bytes. A file of the greatest size
	// takes a fraction of it; nested for expressions may take any amount.
	maxParseMemory = 1 << 30
	// memoryEvery is how often that is looked at.
	memoryEvery = 20 * time.Millisecond
)

// withinMemory returns what work returns. It returns an error if the program has more than limit bytes of memory meanwhile, or if
// ctx ends. Nothing can stop work: it goes on until the program ends, which whoever gets the error must bring about.
func withinMemory[T any](ctx context.Context, limit uint64, work func() T) (T, error) {
	done := make(chan T, 1)
	go func() { done <- work() }()
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	var none T
	for {
		select {
		case out := <-done:
			return out, nil
		case <-ctx.Done():
			return none, ctx.Err()
		case <-tick.C:
			if used := memoryInUse(); used > limit {
				return none, fmt.Errorf("it takes more than %d MiB of memory to read: nested for expressions and dynamic blocks multiply what they go through; make it smaller", limit>>20)
			}
		}
	}
}

// memoryInUse returns the bytes of memory that the program has from the system.
func memoryInUse() uint64 {
	samples := []gometrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	gometrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
